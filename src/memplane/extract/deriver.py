"""Extract memories from entries: with an LLM if there is one, else, or if it failed, with the rules."""

from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.claims import memories_of
from memplane.extract.llm import Extracted, ExtractionStatus, LLMExtractor
from memplane.extract.llm_answer import PromptMessage
from memplane.extract.proposition import Proposition
from memplane.extract.rules import extract
from memplane.ledger.payloads import DerivePayload
from memplane.types import Memory, Turn

RULES = "rules-1"

_TROUBLE = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError)
"""Errors that code raises on unexpected text."""


class DerivedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one entry."""

    memories: tuple[Memory, ...] = ()
    record: DerivePayload | None = None
    """The LLM's answer, to be recorded in the ledger; its memories are derived from there."""
    failed: bool = False
    """Neither the LLM nor the rules could read it."""
    deferred: bool = False
    """The LLM became unavailable before this entry; it and the following ones must wait."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Tokens used for it and for the entries in the same request."""


class Deriver:
    """Reads entries. Raises only `LLMUnavailable`, if the LLM cannot be reached at all."""

    def __init__(self, catalog: PredicateCatalog, llm: LLMExtractor | None = None) -> None:
        self._catalog = catalog
        self._llm = llm

    @property
    def uses_model(self) -> bool:
        return self._llm is not None

    def read(self, entries: Sequence[Sequence[Turn]]) -> list[DerivedEntry]:
        """One result per entry, in order."""
        if self._llm is None:
            return self.reread(entries)
        messages = [
            PromptMessage(
                id=f"{number}.{turn.ordinal}",
                text=turn.text,
                role=turn.role,
                speaker=turn.speaker or "",
                at=turn.at,
            )
            for number, turns in enumerate(entries)
            for turn in turns
        ]
        answer = self._llm.extract(messages)
        read = iter(answer.messages)
        readings = [
            self._by_model(turns, [next(read) for _ in turns], self._llm.extractor_id) for turns in entries
        ]
        return _metered(readings, answer.input_tokens, answer.output_tokens)

    def reread(self, entries: Sequence[Sequence[Turn]]) -> list[DerivedEntry]:
        """An entry processed before without a record was read by the rules; a replay does the same and calls no LLM."""
        return [self._by_rules(turns) for turns in entries]

    def recorded(self, turns: Sequence[Turn], record: DerivePayload) -> list[Memory]:
        """The memories of a recorded LLM answer."""
        claims = msgspec.convert(record.claims, list[list[Proposition]])
        return [
            memory
            for turn, said in zip(turns, claims, strict=False)
            for memory in memories_of(
                turn,
                [
                    msgspec.structs.replace(
                        claim, role=turn.role
                    )  # whatever a record says, the turn has the role
                    for claim in said
                    if 0 <= claim.start < claim.end <= len(turn.text)
                ],
                extractor=record.extractor,
                catalog=self._catalog,
            )
        ]

    def _by_rules(self, turns: Sequence[Turn]) -> DerivedEntry:
        try:
            memories = [
                memory
                for turn in turns
                for memory in memories_of(
                    turn,
                    extract(turn.text, role=turn.role, catalog=self._catalog),
                    extractor=RULES,
                    catalog=self._catalog,
                )
            ]
        except _TROUBLE:
            return DerivedEntry(failed=True)
        return DerivedEntry(memories=tuple(memories))

    def _by_model(self, turns: Sequence[Turn], read: Sequence[Extracted], extractor: str) -> DerivedEntry:
        statuses = {message.status for message in read}
        if ExtractionStatus.DEFERRED in statuses:
            return DerivedEntry(deferred=True)
        if not turns or ExtractionStatus.FAILED in statuses or statuses <= {ExtractionStatus.SKIPPED}:
            return self._by_rules(turns)
        claims: list[list[dict[str, Any]]] = [msgspec.to_builtins(message.propositions) for message in read]
        return DerivedEntry(record=DerivePayload(entry=turns[0].entry_id, extractor=extractor, claims=claims))


def _metered(readings: list[DerivedEntry], tokens_in: int, tokens_out: int) -> list[DerivedEntry]:
    """The token counts of a batch are booked on its first entry."""
    for place, reading in enumerate(readings):
        if reading.record is not None:
            paid = msgspec.structs.replace(reading.record, tokens_in=tokens_in, tokens_out=tokens_out)
            readings[place] = msgspec.structs.replace(reading, record=paid)
            break
    if readings:
        readings[0] = msgspec.structs.replace(readings[0], tokens_in=tokens_in, tokens_out=tokens_out)
    return readings
