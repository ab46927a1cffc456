"""What a turn asks for, as far as memory goes by it; a door reads it out of the API that the turn came by."""

import hashlib
from typing import Any, Protocol


class AskedTurn(Protocol):
    """A turn that is about to be made."""

    @property
    def model(self) -> str:
        """As the agent names it."""

    @property
    def question(self) -> str:
        """What is recalled for: the last thing the user said."""

    @property
    def begins(self) -> bool:
        """Whether nobody has answered yet in this conversation."""

    @property
    def goes_on(self) -> bool:
        """Whether the agent works on what the user said before, as it does between the calls of its tools."""

    @property
    def has_tools(self) -> bool:
        """Whether the agent may come back with results of tools before the user says anything more."""

    @property
    def kept_elsewhere(self) -> bool:
        """Whether the provider has the conversation, and this turn only its newest part."""

    @property
    def style(self) -> str:
        """`openai` or `anthropic`: how the messages are written."""

    @property
    def inbound(self) -> Any:
        """The messages as they came, for a memory service of somebody else's."""

    @property
    def system(self) -> Any:
        """What the system says where that is no message; None otherwise."""

    def texts(self) -> list[str]:
        """Everything that is said in the request, which therefore need not be told again."""


def digest_of(*parts: str) -> str:
    """A name for a place among all, which says nothing of it."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.hexdigest()
