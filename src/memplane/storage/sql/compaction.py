"""`CompactionReader` and `CompactionWriter` in SQL."""

from collections.abc import Sequence

import msgspec

from memplane.clock import DAY, Instant, to_datetime, to_instant
from memplane.storage.compaction import (
    RETENTION,
    CompactionLine,
    JudgementRow,
    Layer,
    LearningDecision,
    RawEntryPosition,
)
from memplane.storage.sql import rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Memory

_decode_memory = msgspec.json.Decoder(Memory).decode


class SqlCompactionReader(SqlSession):
    """See `CompactionReader`."""

    def raw_between(self, since: Instant, until: Instant) -> list[RawEntryPosition]:
        return [RawEntryPosition(*row) for row in self._all("raw_between", since=since, until=until)]

    def raw_days(self, before: Instant) -> list[Instant]:
        # From day to day rather than over all turns: there are few days and may be many turns.
        days: list[Instant] = []
        (first,) = self._one("first_raw", since=-(1 << 62))
        while first is not None and first < before:
            days.append(first - first % DAY)
            (first,) = self._one("first_raw", since=days[-1] + DAY)
        return days

    def judged(self, entry_ids: Sequence[str]) -> list[JudgementRow]:
        return [_judged(row) for row in self._all("judged", ids=self._list(entry_ids))]

    def judged_on(self, day: str | None, *, limit: int, offset: int) -> list[JudgementRow]:
        return [_judged(row) for row in self._all("judged_on", day=day, limit=limit, offset=offset)]

    def lines(self, layer: Layer, day: str | None = None) -> list[CompactionLine]:
        # From a day to a day, so that the index leads there.
        first, last = (day, day) if day is not None else ("", "~")
        return [_line(row) for row in self._all("lines", layer=layer, first=first, last=last)]

    def lines_at(self, ids: Sequence[str]) -> list[CompactionLine]:
        return [_line(row) for row in self._all("lines_at", ids=self._list(ids))]

    def lines_from(self, entry_ids: Sequence[str]) -> list[CompactionLine]:
        return [_line(row) for row in self._all("lines_from", ids=self._list(entry_ids))]

    def verdicts(self) -> dict[str, LearningDecision]:
        return {
            learning: LearningDecision(
                learning=learning, confirmed=bool(confirmed), by=by, at=to_datetime(at), memory=memory
            )
            for learning, confirmed, by, at, memory in self._all("verdicts")
        }

    def payloads_left(self, entry_ids: Sequence[str]) -> set[str]:
        return {id_ for (id_,) in self._all("payloads_left", ids=self._list(entry_ids))}

    def forgotten_by_someone(self, entry_ids: Sequence[str]) -> set[str]:
        found = self._all("forgotten_by_someone", ids=self._list(entry_ids), retention=RETENTION)
        return {id_ for (id_,) in found}

    def cited_by(self, memory_id: str) -> list[int]:
        return [seq for (seq,) in self._all("cited_by", id=memory_id)]

    def evidence_at(self, seqs: Sequence[int]) -> list[Memory]:
        return [_decode_memory(body) for (body,) in self._all("evidence_at", seqs=self._list(seqs))]


class SqlCompactionWriter(SqlCompactionReader):
    """See `CompactionWriter`."""

    def add_line(self, line: CompactionLine) -> None:
        self._ready()
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
        self._many("add_line", [row])
        self._many("add_line_source", [(source, line.seq) for source in dict.fromkeys(line.sources)])

    def add_judged(self, judged: Sequence[JudgementRow]) -> None:
        self._ready()
        self._many(
            "add_judged", [(it.day, it.entry, it.item, it.outcome, it.into, it.reason) for it in judged]
        )

    def add_decision(self, decision: LearningDecision) -> None:
        self._ready()
        at = to_instant(decision.at)
        self._many(
            "add_verdict", [(decision.learning, int(decision.confirmed), decision.by, at, decision.memory)]
        )

    def _erase_promoted(self, seqs: Sequence[int]) -> None:
        for query in ("drop_line", "drop_line_sources"):
            self._many(query, [(seq,) for seq in seqs])


def _judged(row: rows.Row) -> JudgementRow:
    day, entry, item, outcome, into, reason = row
    return JudgementRow(day=day, entry=entry, item=item, outcome=outcome, into=into, reason=reason)


def _line(row: rows.Row) -> CompactionLine:
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
