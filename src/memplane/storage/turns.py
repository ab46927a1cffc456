"""Turns: what was said, by conversation, by number and by words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

import msgspec

from memplane.clock import Instant, to_datetime, to_instant
from memplane.storage import conditions, rows
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.session import ReadSession, SessionReader, WriteSession
from memplane.storage.words import matching_words, stems_of
from memplane.types import Conversation, Turn

TAIL_TURNS_MAX = 1_024
"""How many turns that are not in the word index yet a search still scans."""


class TurnHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a turn, without its text."""

    n: int
    conversation: str | None
    project: str | None
    role: str
    speaker: str | None
    at: Instant
    words: int
    asks: int
    within: str | None = None


class TurnsReader(SessionReader):
    """Reads of turns."""

    def conversations(self, *, project: str | None, limit: int, offset: int) -> list[Conversation]:
        """Conversations, of one project or of all, by their newest turn, newest first. With a project, only its
        turns are counted."""
        found = self._session.all("conversations", project=project, limit=limit, offset=offset)
        return [
            Conversation(
                id=id_,
                project=project if project is not None else last_project,
                turns=turns,
                first_at=to_datetime(first),
                last_at=to_datetime(last),
            )
            for id_, turns, first, last, last_project in found
        ]

    def find(self, where: Filter, *, limit: int, offset: int = 0) -> list[Turn]:
        """Newest first."""
        found = self._session.filtered("turns", conditions.of_turns(where), limit=limit, offset=offset)
        return [rows.turn_from(row) for row in found]

    def numbers(self, where: Filter, *, limit: int) -> list[int]:
        """The numbers of turns that pass the filter, newest first."""
        return [n for (n,) in self._session.filtered("turn_numbers", conditions.of_turns(where), limit=limit)]

    def match(self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False) -> list[Turn]:
        """Turns that contain any of the words; see `Memories.match`. Turns that are not in the word index yet
        are scanned."""
        if not words:
            return []
        wanted = conditions.of_turns(where)
        query = "match_newest_turns" if newest else "match_turns"
        found = [
            rows.turn_from(row)
            for row in self._session.filtered(
                query, wanted, limit=limit, match=self._session.words.match("turn", words)
            )
        ]
        waiting = _match_tail(self._session, words, wanted)
        # What waits for the index is the newest; it may take half of the places, and more where there is room.
        waiting = waiting[: max(limit - len(found), limit // 2)]
        return [*waiting, *found[: limit - len(waiting)]]

    def heads(self, *, after: int, until: int, limit: int) -> list[TurnHead]:
        """Turns with after < n <= until, in order. Until the worker has processed a turn, `words` and `asks`
        are estimates from its length and its last character."""
        found = self._session.all("turn_heads", after=after, until=until, limit=limit)
        return [TurnHead(*row) for row in found]

    def newest(self, *, limit: int) -> list[int]:
        """The numbers of the newest turns by time, newest first."""
        return [n for (n,) in self._session.all("newest_turns", limit=limit)]

    def at(self, numbers: Sequence[int], where: Filter) -> list[Turn]:
        """The turns with these numbers that pass the filter."""
        found = self._session.filtered("turns_at", conditions.of_turns(where), numbers=list(numbers))
        return [rows.turn_from(row) for row in found]

    def between(self, first: int, last: int) -> list[Turn]:
        """Turns with first <= n <= last, in order."""
        return [rows.turn_from(row) for row in self._session.all("turns_between", first=first, last=last)]

    def before(self, turn: Turn) -> Turn | None:
        """The previous turn of its conversation, by time and then by place in the ledger. For a turn without a
        conversation, the previous one without a conversation, among the last few entries."""
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            row = self._session.one("turn_before_outside", n=n)
        else:
            row = self._session.one(
                "turn_before", conversation=turn.conversation, at=to_instant(turn.at), n=n
            )
        return None if row is None else rows.turn_from(row)

    def after(self, turn: Turn, *, limit: int, offset: int = 0) -> list[Turn]:
        """The turns that may follow it: later in the ledger and, in a conversation, not earlier in time;
        nearest first. For a turn without a conversation, only among the next few entries."""
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            found = self._session.all("turns_after_outside", n=n, limit=limit, offset=offset)
        else:
            found = self._session.all(
                "turns_after",
                conversation=turn.conversation,
                at=to_instant(turn.at),
                n=n,
                limit=limit,
                offset=offset,
            )
        return [rows.turn_from(row) for row in found]

    def of_conversation(self, conversation: str, *, since: int) -> list[Turn]:
        """The turns of a conversation with n >= since, in order."""
        found = self._session.all("turns_of", conversation=conversation, since=since)
        return [rows.turn_from(row) for row in found]

    def last_of(self, conversation: str, *, before: int) -> Turn | None:
        """The turn of a conversation with the largest n < before."""
        row = self._session.one("last_turn_of", conversation=conversation, before=before)
        return None if row is None else rows.turn_from(row)

    def conversations_of(self, seqs: Sequence[int]) -> list[str]:
        """The conversations that turns of these entries belong to."""
        return [name for (name,) in self._session.all("conversations_of", seqs=list(seqs))]


class TurnsWriter(TurnsReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add(self, turns: Iterable[Turn]) -> None:
        """Add turns. One that exists stays as it is. Searchable at once, except for those that `words.lag` counts."""
        self._session.turns.extend(rows.turn_row(turn) for turn in turns)


def _match_tail(session: ReadSession, words: Sequence[str], wanted: conditions.WhereClause) -> list[Turn]:
    """Turns that are stored but not in the word index yet, compared one by one in the same way: those with the rarest of
    the words first, then the newest."""
    tail = session.filtered("tail", wanted, indexed=session.indexed(), limit=TAIL_TURNS_MAX)
    held = [(row, matching_words(tail_stems(session, row[0], row[3]), words)) for row in tail]
    counts = Counter(word for _, found in held for word in found)
    hits = [(sum(1 / counts[word] for word in found), row[0], row) for row, found in held if found]
    return [rows.turn_from(row) for _, _, row in sorted(hits, key=itemgetter(0, 1), reverse=True)]


def tail_stems(session: ReadSession, n: int, text: str) -> frozenset[str]:
    """The stems of a turn that is not in the word index yet; remembered, because a search needs them twice."""
    found = session.tail_stems.get(n)
    if found is None:
        found = session.tail_stems[n] = frozenset(stems_of(text))
    return found
