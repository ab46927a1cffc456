"""The LLM interface."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import msgspec

from memplane.errors import ErrorCategory, MemplaneError

Schema = Mapping[str, Any]
"""A JSON schema in which every object requires all of its fields and allows no others."""


class LLMFailed(MemplaneError):
    """The LLM rejects us: its key, name or address is wrong. Another request would fail too."""

    code: ClassVar[str] = "llm_failed"
    category = ErrorCategory.UPSTREAM


class LLMUnavailable(LLMFailed):
    """The LLM is unreachable; the same call may succeed later."""

    code = "llm_unavailable"
    category = ErrorCategory.UNAVAILABLE


class LLMUnusable(LLMFailed):
    """The LLM refused this request, or its answer is unreadable; another request may succeed."""

    code = "llm_unusable"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The endpoint's status; None if the answer itself is the problem."""


class StopReason(StrEnum):
    """Why an answer ended."""

    DONE = "done"
    CUT = "cut"
    """The token limit was reached."""
    REFUSED = "refused"


class Completion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An answer and its token counts."""

    text: str
    """JSON that should match the schema. The caller validates it: models err, and some endpoints ignore a schema."""
    stop: StopReason = StopReason.DONE
    input_tokens: int = 0
    output_tokens: int = 0


class LLM(Protocol):
    """Answers one prompt at a time. Called from many threads at once."""

    @property
    def model_id(self) -> str:
        """Identifies the model; stored with its answers."""

    def complete(self, system: str, user: str, schema: Schema, tokens_max: int) -> Completion:
        """Raises `LLMUnavailable`, `LLMUnusable` or, if nothing else can help, `LLMFailed`.

        A refusal and a truncated answer are not errors, since they cost tokens as well.
        """
