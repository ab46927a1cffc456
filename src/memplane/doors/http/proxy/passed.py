"""What is told of a request that went upstream: for counters and spans, never what was said in it."""

from collections.abc import Callable

import msgspec

from memplane.doors.http.proxy.answer import Charge


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """One turn that a provider was asked for."""

    upstream: str
    operation: str
    """`chat`, whichever API it was asked through; `text_completion`, `embeddings`."""
    model: str
    status: int
    """Zero: there was no answer."""
    outcome: str
    """`ok`, `refused` by the provider, `failed` or `aborted` on the way."""
    seconds: float
    charge: Charge = Charge()
    kept: bool | None = None
    """Whether it was in the ledger when the client saw the end; None where it was not to be kept."""


PassedListener = Callable[[Passed], None]
