"""Compaction: learnings that wait for review, lines of digests, and what was decided about every raw entry."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from memplane.clock import DAY, Instant, to_datetime, to_instant
from memplane.storage import rows
from memplane.storage.engine import Row
from memplane.storage.session import NEVER, SessionReader, WriteSession

RETENTION = "retention"
"""The reason of tombstones that the retention policy sets; no caller may give it."""


class Layer(StrEnum):
    """Where compaction promotes something to, named as the op that records it."""

    LEARN = "learn"
    DIGEST = "digest"
    SUMMARY = "summarize"


class LearningStatus(StrEnum):
    """Whether a learning was reviewed."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class CompactionLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that compaction kept, with the entries it was read from."""

    id: str
    seq: int
    layer: Layer
    day: str
    kind: str
    text: str
    at: datetime
    sources: tuple[str, ...]
    recorded: Instant
    """When it was kept."""
    quote: str = ""
    conversation: str | None = None
    project: str | None = None
    within: str | None = None


class LearningDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The review of a learning: once confirmed, it stays confirmed."""

    learning: str
    confirmed: bool
    by: str
    at: datetime
    memory: str | None = None


class JudgementRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What compaction decided about one item of a raw entry: a memory, or a turn without one."""

    day: str
    entry: str
    item: str
    outcome: str
    into: str = ""
    reason: str = ""


class RawEntryPosition(msgspec.Struct, frozen=True, gc=False):
    """An entry with a turn in it, and when the turn was said."""

    seq: int
    id: str
    at: Instant


class CompactionReader(SessionReader):
    """Reads of what compaction kept and decided."""

    def raw_between(self, since: Instant, until: Instant) -> list[RawEntryPosition]:
        """Entries with a turn in this time range, by time and seq."""
        return [RawEntryPosition(*row) for row in self._session.all("raw_between", since=since, until=until)]

    def raw_days(self, before: Instant) -> list[Instant]:
        """The start of every day (UTC) before then that has such a turn, in order."""
        # From day to day rather than over all turns: there are few days and may be many turns.
        days: list[Instant] = []
        (first,) = self._session.one("first_raw", since=NEVER)
        while first is not None and first < before:
            days.append(first - first % DAY)
            (first,) = self._session.one("first_raw", since=days[-1] + DAY)
        return days

    def judgements(self, entry_ids: Sequence[str]) -> list[JudgementRow]:
        """The decisions of compaction about these entries, by entry and item."""
        return [_judged_item(row) for row in self._session.all("judged", ids=list(entry_ids))]

    def judgements_on(self, day: str | None, *, limit: int, offset: int) -> list[JudgementRow]:
        """The decisions of compaction about a day, or about all days; newest day first, then by entry and item."""
        return [
            _judged_item(row) for row in self._session.all("judged_on", day=day, limit=limit, offset=offset)
        ]

    def lines(self, layer: Layer, day: str | None = None) -> list[CompactionLine]:
        """The lines of a layer, or those of one day of it, by day, time and id."""
        # A range of days, so that the index serves.
        first, last = (day, day) if day is not None else ("", "~")
        return [_line(row) for row in self._session.all("lines", layer=layer, first=first, last=last)]

    def lines_at(self, ids: Sequence[str]) -> list[CompactionLine]:
        """The lines with these ids that exist, in any layer, by seq."""
        return [_line(row) for row in self._session.all("lines_at", ids=list(ids))]

    def lines_from(self, entry_ids: Sequence[str]) -> list[CompactionLine]:
        """The lines that have one of these entries as a source, by seq."""
        return [_line(row) for row in self._session.all("lines_from", ids=list(entry_ids))]

    def decisions(self) -> dict[str, LearningDecision]:
        """The review of each learning, by its id; also of learnings that were forgotten since."""
        return {
            learning: LearningDecision(
                learning=learning, confirmed=bool(confirmed), by=by, at=to_datetime(at), memory=memory
            )
            for learning, confirmed, by, at, memory in self._session.all("verdicts")
        }

    def forgotten_by_request(self, entry_ids: Sequence[str]) -> set[str]:
        """Those of these ids with a tombstone that the retention policy did not set."""
        found = self._session.all("forgotten_by_someone", ids=list(entry_ids), retention=RETENTION)
        return {id_ for (id_,) in found}


class CompactionWriter(CompactionReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add_line(self, line: CompactionLine) -> None:
        """Add a line. It is removed when its entry is erased. Adding it again changes nothing."""
        row = (
            line.seq,
            line.id,
            line.layer,
            line.day,
            line.kind,
            line.text,
            to_instant(line.at),
            msgspec.json.encode(line.sources).decode(),
            line.quote,
            line.conversation,
            line.project,
            line.within,
            line.recorded,
        )
        self._session.many("add_line", [row])
        self._session.many("add_line_source", [(source, line.seq) for source in dict.fromkeys(line.sources)])

    def add_judgements(self, judged: Sequence[JudgementRow]) -> None:
        """Add decisions of compaction. The first decision about an item stays."""
        self._session.many(
            "add_judged", [(it.day, it.entry, it.item, it.outcome, it.into, it.reason) for it in judged]
        )

    def add_decision(self, decision: LearningDecision) -> None:
        """Add the review of a learning. A confirmation wins over a rejection; otherwise the first review stays."""
        at = to_instant(decision.at)
        self._session.many(
            "add_verdict", [(decision.learning, int(decision.confirmed), decision.by, at, decision.memory)]
        )


def erase_lines(session: WriteSession, seqs: Sequence[int]) -> None:
    """Remove what compaction kept under these entries."""
    for query in ("drop_line", "drop_line_sources"):
        session.many(query, [(seq,) for seq in seqs])


def _judged_item(row: Row) -> JudgementRow:
    day, entry, item, outcome, into, reason = row
    return JudgementRow(day=day, entry=entry, item=item, outcome=outcome, into=into, reason=reason)


def _line(row: Row) -> CompactionLine:
    seq, id_, layer, day, kind, text, at, sources, quote, conversation, project, within, recorded = row
    return CompactionLine(
        id=id_,
        seq=seq,
        layer=Layer(layer),
        day=day,
        kind=kind,
        text=text,
        at=to_datetime(at),
        sources=rows.tags_from(sources),
        quote=quote,
        conversation=conversation,
        project=project,
        within=within,
        recorded=recorded,
    )
