"""Extract propositions from messages with an LLM. It may refuse, ramble or invent; only the affected message is lost.

Messages of users and of others never share a request: a web page fetched by a tool could otherwise make the model
attribute claims to the user.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.llm_answer import (
    RIGHTLY,
    SCHEMA,
    VERSION,
    AnswerUnreadable,
    CheckedClaims,
    PromptMessage,
    Rejection,
    check_answer,
    retry_prompt,
    system_prompt,
    user_prompt,
)
from memplane.extract.proposition import Proposition
from memplane.models.llm import LLM, Completion, LLMFailed, LLMUnusable, StopReason
from memplane.types import Role


class ExtractLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The limits of a request."""

    request_chars: int = 6_000
    request_messages: int = 12
    message_chars: int = 24_000
    """A longer message is sent alone and truncated; the rest stays searchable in the ledger."""
    answer_tokens: int = 4_096
    useless_answers: int = 8
    """After this many consecutive failures the model is not called again in this call."""


class ExtractionStatus(StrEnum):
    """The status of a message."""

    READ = "read"
    SKIPPED = "skipped"
    """It is a system message, or blank."""
    FAILED = "failed"
    """The LLM could not read it; the rules may."""
    DEFERRED = "left"
    """The LLM became unavailable before it; try again later."""


class Extracted(msgspec.Struct, kw_only=True):
    """The claims of one message, in order."""

    message_id: str
    status: ExtractionStatus = ExtractionStatus.DEFERRED
    propositions: list[Proposition] = []
    reason: str = ""
    """Why it failed."""
    cut: bool = False
    """Only a part of the message was read, or only a part of the answer arrived."""


class Extraction(msgspec.Struct, kw_only=True):
    """The result of one call, and the tokens used."""

    messages: list[Extracted]
    """One per message, in order."""
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    rejected: Counter[Rejection] = msgspec.field(default_factory=Counter)
    """Rejected claims in all answers."""


class LLMExtractor:
    """Asks an `LLM` for the claims of messages and keeps only those the messages support. Thread-safe."""

    def __init__(
        self,
        llm: LLM,
        catalog: PredicateCatalog,
        *,
        limits: ExtractLimits = ExtractLimits(),  # noqa: B008  # frozen
    ) -> None:
        self._llm = llm
        self._catalog = catalog
        self._limits = limits
        self._system = system_prompt(catalog)

    @property
    def extractor_id(self) -> str:
        """Stored with the claims."""
        return f"llm/{self._llm.model_id}/{VERSION}"

    def extract(self, messages: Sequence[PromptMessage]) -> Extraction:
        """Every message gets a status. Raises `LLMFailed` if no request was answered, `LLMUnavailable` if that may
        change, and nothing else."""
        run = _Run(self._llm, self._catalog, self._limits, self._system, messages)
        try:
            for group in _groups(run.sent, self._limits):
                run.read(group)
        except LLMFailed:
            if run.extraction.requests == 0:
                raise
        return run.extraction


class _Complaint(msgspec.Struct, frozen=True):
    """Why an answer was unusable."""

    text: str
    again: bool = True
    """Whether a retry may help."""


class _Run:
    """One call: pending messages, results, and tokens used."""

    def __init__(
        self,
        llm: LLM,
        catalog: PredicateCatalog,
        limits: ExtractLimits,
        system: str,
        messages: Sequence[PromptMessage],
    ) -> None:
        self._llm = llm
        self._catalog = catalog
        self._limits = limits
        self._system = system
        self._useful = 0
        self.sent = [
            msgspec.structs.replace(message, text=message.text[: limits.message_chars])
            for message in messages
        ]
        self.extraction = Extraction(
            messages=[
                Extracted(
                    message_id=message.id,
                    status=ExtractionStatus.DEFERRED if _is_read(sent) else ExtractionStatus.SKIPPED,
                    cut=len(message.text) > limits.message_chars,
                )
                for message, sent in zip(messages, self.sent, strict=True)
            ]
        )

    def read(self, group: Sequence[int], *, whole: bool = True) -> None:
        """Ask, retry once, then ask in halves, so a message that breaks the model breaks nothing else."""
        if not self._useful and self.extraction.requests >= self._limits.useless_answers:
            self.fail(group, "the LLM gives no usable answer")
            return
        complaint = self._complete(group, self._system)
        alone = len(group) == 1
        if complaint and complaint.again and (whole or alone):
            complaint = self._complete(group, retry_prompt(self._system, complaint.text))
        if complaint and alone:
            self.fail(group, complaint.text)
        elif complaint:
            middle = len(group) // 2
            self.read(group[:middle], whole=False)
            self.read(group[middle:], whole=False)

    def fail(self, places: Sequence[int], reason: str) -> None:
        for place in places:
            message = self.extraction.messages[place]
            if message.status is ExtractionStatus.DEFERRED:
                message.status, message.reason = ExtractionStatus.FAILED, reason

    def _complete(self, group: Sequence[int], system: str) -> _Complaint | None:
        messages = [self.sent[place] for place in group]
        try:
            answer = self._llm.complete(system, user_prompt(messages), SCHEMA, self._limits.answer_tokens)
        except LLMUnusable as exc:
            self.extraction.requests += 1
            return _Complaint(str(exc), again=exc.status is None)
        self._meter(answer)
        if answer.stop is StopReason.REFUSED:
            return _Complaint("the language model refused", again=False)
        if answer.stop is StopReason.CUT and len(group) > 1:
            return _Complaint("the answer was cut short", again=False)
        try:
            checked = check_answer(answer.text, messages, self._catalog)
        except AnswerUnreadable as exc:
            return _Complaint(str(exc), again=answer.stop is StopReason.DONE)
        return self._store(group, checked, cut=answer.stop is StopReason.CUT)

    def _meter(self, answer: Completion) -> None:
        self.extraction.requests += 1
        self.extraction.input_tokens += answer.input_tokens
        self.extraction.output_tokens += answer.output_tokens

    def _store(self, group: Sequence[int], checked: CheckedClaims, *, cut: bool) -> _Complaint | None:
        self.extraction.rejected += checked.rejected
        spoiled = checked.rejected.keys() - RIGHTLY
        if spoiled and not any(checked.propositions):
            return _Complaint(f"not one claim could be used ({', '.join(sorted(spoiled))})", again=not cut)
        self._useful += 1
        for number, place in enumerate(group):
            if number in checked.spoiled:
                self.fail([place], "none of its claims could be used")
                continue
            message = self.extraction.messages[place]
            message.status = ExtractionStatus.READ
            message.propositions = checked.propositions[number]
            message.cut = message.cut or cut
        return None


def _is_read(message: PromptMessage) -> bool:
    return message.role != Role.SYSTEM and bool(message.text.strip())


def _groups(messages: Sequence[PromptMessage], limits: ExtractLimits) -> Iterator[list[int]]:
    """Messages grouped into requests: by trust, then as many as fit."""
    for trusted in (True, False):
        group: list[int] = []
        chars = 0
        for place, message in enumerate(messages):
            if not _is_read(message) or (message.role == Role.USER) is not trusted:
                continue
            full = len(group) == limits.request_messages or chars + len(message.text) > limits.request_chars
            if group and full:
                yield group
                group, chars = [], 0
            group.append(place)
            chars += len(message.text)
        if group:
            yield group
