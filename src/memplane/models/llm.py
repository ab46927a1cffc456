"""What answers a prompt, as the rest of Memplane sees it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import msgspec

from memplane.errors import Category, MemplaneError

Schema = Mapping[str, Any]
"""A JSON schema in which every object names all of its fields as required and allows no others."""


class LLMFailed(MemplaneError):
    """The language model will not serve us: its key, name or address is wrong. Another request would fail too."""

    code: ClassVar[str] = "llm_failed"
    category = Category.UPSTREAM


class LLMUnavailable(LLMFailed):
    """The language model cannot be reached just now; the same call may succeed later."""

    code = "llm_unavailable"
    category = Category.UNAVAILABLE


class LLMUnusable(LLMFailed):
    """The language model refused this request, or its answer cannot be read; another request may fare better."""

    code = "llm_unusable"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """What the endpoint answered instead; None when the answer itself was the trouble."""


class StopReason(StrEnum):
    """Why an answer ended."""

    DONE = "done"
    CUT = "cut"
    """It reached the limit of tokens."""
    REFUSED = "refused"


class Completion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An answer and what it cost."""

    text: str
    """JSON that should fit the schema. Whoever asked checks it: models err, and some endpoints ignore a schema."""
    stop: StopReason = StopReason.DONE
    input_tokens: int = 0
    output_tokens: int = 0


class LLM(Protocol):
    """Answers one prompt at a time. Calls may come from many threads at once."""

    @property
    def model_id(self) -> str:
        """Names the model; stored beside what it said."""

    def complete(self, system: str, user: str, schema: Schema, tokens_max: int) -> Completion:
        """Raises `LLMUnavailable`, `LLMUnusable` or, where nothing else can help, `LLMFailed`.

        A refusal and an answer that was cut short are not errors, since they cost tokens as well.
        """
