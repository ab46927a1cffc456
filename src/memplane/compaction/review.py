"""Review of compaction: what it does or did with each day, and the state of learnings."""

from collections.abc import Sequence

import msgspec

from memplane.compaction.retention import Retention
from memplane.storage.compaction import CompactionLine, Layer, LearningDecision, LearningStatus
from memplane.storage.store import Reader
from memplane.types import Receipt


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """A draft that compaction proposes: said on one day or on several, decided once."""

    id: str
    """Of the first of them; a decision may name any."""
    ids: tuple[str, ...]
    kind: str
    text: str
    quote: str
    days: tuple[str, ...]
    standing: LearningStatus
    by: str = ""
    memory: str | None = None
    """What it became."""
    conversation: str | None = None
    project: str | None = None


class CompactedDay(msgspec.Struct, frozen=True, kw_only=True):
    """What compaction made of one day."""

    day: str
    entries: int
    """Judged this time; none where all of it was judged before."""
    learnings: tuple[str, ...] = ()
    digested: tuple[str, ...] = ()
    discarded: dict[str, int] = {}
    """By reason."""
    removed: int = 0
    """Raw entries that went, or would go."""


class CompactionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one run."""

    days: tuple[CompactedDay, ...]
    confirmed: int = 0
    """Learnings that the policy confirmed."""
    digests_removed: int = 0
    """Lines of digests, and rejected learnings, whose time was over."""
    summaries_removed: int = 0
    """Of what summaries of removed days are made of, the lines whose time was over."""
    waiting: int = 0
    """Entries that were not read yet. A dry run does not read them, and they are not in what it says."""
    dry_run: bool = False
    receipts: tuple[Receipt, ...] = ()


class DueDay(msgspec.Struct, frozen=True):
    """A day whose retention has expired."""

    day: str
    entries: int


class RetentionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The policy, and what it would remove now."""

    policy: Retention
    words: list[str]
    due: tuple[DueDay, ...]
    digest_lines_due: int
    summary_lines_due: int
    learnings_open: int


def learnings_of(reader: Reader) -> list[Learning]:
    """Every learning, those that wait for a decision first, then by day and text."""
    groups: dict[tuple[str, str, str | None], list[CompactionLine]] = {}
    for line in reader.compaction.lines(Layer.LEARN):
        groups.setdefault((line.kind, line.text, line.within), []).append(line)
    decisions = reader.compaction.decisions()
    made = [_learning(reader, group, decisions) for group in groups.values()]
    return sorted(made, key=lambda it: (it.standing is not LearningStatus.OPEN, it.days, it.text, it.id))


def _learning(
    reader: Reader, group: Sequence[CompactionLine], decisions: dict[str, LearningDecision]
) -> Learning:
    first = group[0]
    status, decision = learning_status(reader, group, decisions)
    return Learning(
        id=first.id,
        ids=tuple(line.id for line in group),
        kind=first.kind,
        text=first.text,
        quote=first.quote,
        days=tuple(dict.fromkeys(line.day for line in group)),
        standing=status,
        by="" if decision is None else decision.by,
        memory=None if decision is None else decision.memory,
        conversation=first.conversation,
        project=first.project,
    )


def learning_status(
    reader: Reader, group: Sequence[CompactionLine], decisions: dict[str, LearningDecision]
) -> tuple[LearningStatus, LearningDecision | None]:
    """What was decided about one of them holds for all. A confirmation holds as long as its memory is there: what was
    forgotten since and said again is open again."""
    said = [decisions[line.id] for line in group if line.id in decisions]
    for decision in said:
        if decision.confirmed and decision.memory and reader.memories.get(decision.memory) is not None:
            return LearningStatus.CONFIRMED, decision
    if len(said) == len(group) and any(decision.confirmed for decision in said):
        return LearningStatus.CONFIRMED, next(decision for decision in said if decision.confirmed)
    for decision in said:
        if not decision.confirmed:
            return LearningStatus.REJECTED, decision
    return LearningStatus.OPEN, None
