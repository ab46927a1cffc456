"""`IndexReader` over a SQLite connection: what ranking asks for."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.clock import Instant, to_instant
from memplane.storage.base import (
    Evidence,
    Filter,
    Marks,
    MemoryVector,
    TurnHead,
    TurnVector,
    Untold,
    turn_number,
)
from memplane.storage.sqlite import conditions, rows
from memplane.storage.sqlite.session import Session, match
from memplane.storage.words import is_prefix
from memplane.types import Memory, Turn

_LAST_CHARACTER = "\U0010ffff"
_decode_numbers = msgspec.json.Decoder(list[int]).decode
_decode_memory = msgspec.json.Decoder(Memory).decode


class SqliteIndexReader(Session):
    """See `IndexReader`."""

    def marks(self) -> Marks:
        return Marks(*self._one("marks"))

    def model(self, model_id: str, dimension: int) -> int | None:
        row = self._one("model", id=model_id, dimension=dimension)
        return None if row is None else int(row[0])

    def current_model(self) -> int | None:
        number = self._note("model")
        return None if number is None else int(number)

    def embedded(self, model: int) -> int:
        return int(self._note(f"embedded:{model}") or 0) if model == self.current_model() else 0

    def turn_heads(self, *, after: int, until: int, limit: int) -> list[TurnHead]:
        found = self._all("turn_heads", after=after, until=until, limit=limit)
        return [TurnHead(*row) for row in found]

    def turn_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, TurnVector]]:
        return [
            (stamp, TurnVector(n, words, bool(asks), digest, vector))
            for stamp, n, words, asks, digest, vector in self._all(
                "turn_vectors", model=model, after=after, limit=limit
            )
        ]

    def turn_vectors_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("turn_vectors_at", model=model, numbers=json.dumps(numbers)))

    def turn_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("turn_digests", model=model, numbers=json.dumps(numbers)))

    def stale_turns(self, *, limit: int) -> list[int]:
        return [n for (n,) in self._all("stale_turns", limit=limit)]

    def memory_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, MemoryVector]]:
        return [
            (stamp, MemoryVector(*row))
            for stamp, *row in self._all("memory_vectors", model=model, after=after, limit=limit)
        ]

    def memory_vectors_of(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._all("memory_vectors_of", model=model, ids=json.dumps(ids)))

    def memory_digests(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._all("memory_digests", model=model, ids=json.dumps(ids)))

    def occurrences(self, stem: str) -> list[int]:
        if is_prefix(stem):
            found = self._one("occurrences_of_prefix", stem=stem, last=stem + _LAST_CHARACTER)
        else:
            found = self._one("occurrences", stem=stem)
        return _decode_numbers(found[0])

    def common(self, words: Sequence[str], *, beyond: int) -> set[str]:
        return {
            word
            for word in words
            if self._one("count_up_to", match=match([word]), limit=beyond + 1)[0] > beyond
        }

    def not_indexed(self, *, after: int, until: int, limit: int) -> list[tuple[int, str]]:
        first = max(after, self._indexed())
        return [(n, text) for n, text in self._all("not_indexed", after=first, until=until, limit=limit)]

    def turns_at(self, numbers: Sequence[int], where: Filter) -> list[Turn]:
        found = self._filtered("turns_at", conditions.of_turns(where), numbers=json.dumps(numbers))
        return [rows.turn_from(row) for row in found]

    def turns_between(self, first: int, last: int) -> list[Turn]:
        return [rows.turn_from(row) for row in self._all("turns_between", first=first, last=last)]

    def memories_of(self, ids: Sequence[str], where: Filter) -> list[Memory]:
        return self._memories("memories_of", where, ids=json.dumps(ids))

    def waiting_memories(self, *, limit: int) -> list[Memory]:
        return [rows.memory_from(row) for row in self._all("waiting_memories", limit=limit)]

    def waiting_count(self) -> int:
        return int(self._one("waiting_count")[0])

    def rivals(
        self,
        subject: str,
        predicate: str,
        words: Sequence[str],
        *,
        limit: int,
        topic: str = "",
        within: str | None = None,
    ) -> list[Memory]:
        about = {"subject": subject, "within": within, "limit": limit}
        found = self._all("rivals", predicate=predicate, **about)
        if topic and len(found) == limit:
            found += self._all("rivals_by_topic", predicate=predicate, topic=topic, **about)
        found += self._all("newest_rivals", **about)
        if words:
            found += self._all("rivals_by_words", match=match(words), **about)
        return list({row[0]: rows.memory_from(row) for row in found}.values())

    def claimed(self, predicates: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        found = (self._memories("claimed", where, predicate=name, limit=limit) for name in predicates)
        return [memory for memories in found for memory in memories]

    def told_between(self, begin: Instant, until: Instant, where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("told_between", where, time_from=begin, time_until=until, limit=limit)

    def hot(self, where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("hot", where, limit=limit)

    def conflicts(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        found = self._all("conflicts", ids=json.dumps(ids)) if ids else self._all("all_conflicts")
        return [(left, right) for left, right in found]

    def evidence(self, memory_ids: Sequence[str]) -> list[Evidence]:
        return [
            Evidence(memory, _decode_memory(body))
            for memory, body in self._all("evidence", ids=json.dumps(memory_ids))
        ]

    def memories_from(self, seqs: Sequence[int]) -> list[Memory]:
        return [rows.memory_from(row) for row in self._all("memories_from", seqs=json.dumps(seqs))]

    def heirs(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._all("heirs", ids=json.dumps(ids)))

    def all_replaced(self, seqs: Sequence[int]) -> list[int]:
        return [seq for (seq,) in self._all("all_replaced", seqs=json.dumps(seqs))]

    def replaced_by(self, ids: Sequence[str]) -> list[str]:
        return [id_ for (id_,) in self._all("replaced_by", ids=json.dumps(ids))]

    def accesses(self, ids: Sequence[str]) -> dict[str, int]:
        return dict(self._all("accesses", ids=json.dumps(ids)))

    def turn_before(self, turn: Turn) -> Turn | None:
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            row = self._one("turn_before_outside", n=n)
        else:
            row = self._one("turn_before", conversation=turn.conversation, at=to_instant(turn.at), n=n)
        return None if row is None else rows.turn_from(row)

    def turns_after(self, turn: Turn, *, limit: int, offset: int = 0) -> list[Turn]:
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            found = self._all("turns_after_outside", n=n, limit=limit, offset=offset)
        else:
            found = self._all(
                "turns_after",
                conversation=turn.conversation,
                at=to_instant(turn.at),
                n=n,
                limit=limit,
                offset=offset,
            )
        return [rows.turn_from(row) for row in found]

    def untold(self, *, before: Instant, limit: int) -> list[Untold]:
        return [Untold(*row) for row in self._all("untold", before=before, limit=limit)]

    def untold_in(self, conversation: str) -> Untold | None:
        row = self._one("untold_in", conversation=conversation)
        return None if row is None else Untold(*row)

    def turns_of(self, conversation: str, *, since: int) -> list[Turn]:
        found = self._all("turns_of", conversation=conversation, since=since)
        return [rows.turn_from(row) for row in found]

    def last_turn_of(self, conversation: str, *, before: int) -> Turn | None:
        row = self._one("last_turn_of", conversation=conversation, before=before)
        return None if row is None else rows.turn_from(row)

    def episode_count(self, conversations: Sequence[str]) -> int:
        return int(self._one("episode_count", conversations=json.dumps(conversations))[0])

    def conversations_of(self, seqs: Sequence[int]) -> list[str]:
        return [name for (name,) in self._all("conversations_of", seqs=json.dumps(seqs))]

    def episodes_of(self, conversations: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("episodes_of", where, conversations=json.dumps(conversations), limit=limit)

    def _memories(self, query: str, where: Filter, /, **parameters: Any) -> list[Memory]:
        return [
            rows.memory_from(row)
            for row in self._filtered(query, conditions.of_memories(where), **parameters)
        ]
