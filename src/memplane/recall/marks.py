"""Marks on memories and turns that were replaced or are contradicted, with the current statement.

A memory has a state. The state of a turn is that of the memories that were read from it, or that it repeated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from memplane.memory.supersession import chain_of
from memplane.recall.mark_text import mark_text
from memplane.safety.sanitize import sanitized_memory
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.recall_reads import DisputedClaim
from memplane.storage.store import Reader
from memplane.types import Memory, State, Turn


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a memory or turn was replaced or is contradicted."""

    replaced: bool = False
    contested: bool = False
    current: Memory | None = None
    """What replaced it: the end of the chain. None if that was forgotten, is flagged, or belongs to another scope."""

    @property
    def text(self) -> str:
        return mark_text(
            replaced=self.replaced,
            now=None if self.current is None else self.current.line,
            contested=self.contested,
        )


UNMARKED = Mark()


def current_of(reader: Reader, gone: Iterable[str], where: Filter) -> dict[str, Memory]:
    """For superseded memories, the memory that is current, if it may be shown."""
    ids = list(dict.fromkeys(gone))
    if not ids:
        return {}
    _, ends = reader.recall.with_successors([], ids, where)
    for id_ in ids:
        if id_ not in ends and len(chain := chain_of(reader, id_)) > 1:  # a link of the chain was forgotten
            ends[id_] = chain[-1].id
    # Whatever else a search filters by, a mark quotes the current statement.
    ever = Filter(now=where.now, audience=where.audience, include_superseded=True)
    there = {heir.id: heir for heir in reader.memories.get_many(list(set(ends.values())), ever)}
    heirs = {id_: sanitized_memory(heir, where.now) for id_, heir in there.items() if _is_current(heir)}
    return {start: heirs[end] for start, end in ends.items() if end in heirs and not heirs[end].quarantined}


def _is_current(memory: Memory) -> bool:
    """`I no longer drink tea` replaces a memory without being a fact, so it is stored as superseded by itself."""
    return memory.state is not State.SUPERSEDED or memory.superseded_by == memory.id


def as_it_was(memory: Memory, where: Filter) -> Memory:
    """A memory superseded after `as_of` was still active then."""
    if where.as_of is None or memory.state is not State.SUPERSEDED:
        return memory
    return msgspec.structs.replace(memory, state=State.ACTIVE, superseded_by=None, superseded_at=None)


def memory_mark(memory: Memory, current: Mapping[str, Memory]) -> Mark:
    if memory.state is State.SUPERSEDED and memory.superseded_by != memory.id:
        return Mark(replaced=True, current=current.get(memory.id))
    return Mark(contested=True) if memory.state is State.CONTESTED else UNMARKED


def turn_mark(
    turn: Turn,
    disputed: Sequence[DisputedClaim],
    current: Mapping[str, Memory],
    worth: Callable[[Memory], float] = lambda memory: memory.updated_at.timestamp(),
) -> Mark:
    """Of several current statements, show the one with the highest `worth`; by default the newest."""
    number = turn_number(turn.seq, turn.ordinal)
    claims = [claim for claim in disputed if claim.turn == number]
    gone = [claim.id for claim in claims if claim.state is State.SUPERSEDED]
    if gone:
        heirs = [current[id_] for id_ in gone if id_ in current]
        return Mark(replaced=True, current=max(heirs, key=worth, default=None))
    return Mark(contested=True) if claims else UNMARKED


class Marks:
    """The marks of memories and turns, read together."""

    def __init__(
        self, reader: Reader, memories: Iterable[Memory], turns: Sequence[Turn], where: Filter
    ) -> None:
        self._disputed = (
            reader.recall.context([turn.seq for turn in turns], [], None, where, episodes_max=0)[0]
            if turns
            else []
        )
        gone = [memory.id for memory in memories if memory.state is State.SUPERSEDED]
        gone += [claim.id for claim in self._disputed if claim.state is State.SUPERSEDED]
        self._current = current_of(reader, gone, where)

    @property
    def heirs(self) -> Iterable[Memory]:
        return self._current.values()

    def of(self, shown: Memory | Turn) -> Mark:
        if isinstance(shown, Memory):
            return memory_mark(shown, self._current)
        return turn_mark(shown, self._disputed, self._current)


class Markable(Protocol):
    """A result that shows a memory or a turn."""

    @property
    def id(self) -> str: ...
    @property
    def memory(self) -> Memory | None: ...
    @property
    def turn(self) -> Turn | None: ...
    @property
    def replaced_by_id(self) -> str | None: ...


_Result = TypeVar("_Result", bound=Markable)


def with_mark(result: _Result, mark: Mark) -> _Result:
    if mark is UNMARKED:
        return result
    marked: _Result = msgspec.structs.replace(
        result,  # type: ignore[type-var]  # a struct with these fields
        replaced=mark.replaced,
        replaced_by=None if mark.current is None else mark.current.line,
        replaced_by_id=None if mark.current is None else mark.current.id,
        contested=mark.contested,
    )
    return marked


def current_first(results: Sequence[_Result], heirs: Iterable[Memory]) -> list[_Result]:
    """The same results, with each current statement moved directly before the first result that it replaced."""
    by_id = {heir.id: heir for heir in heirs}
    ordered = list(results)
    for result in results:
        heir = by_id.get(result.replaced_by_id or "")
        if heir is None:
            continue
        place = next(at for at, other in enumerate(ordered) if other is result)
        later = (there for there in range(place + 1, len(ordered)) if _shows(ordered[there], heir))
        if (there := next(later, None)) is not None:
            ordered.insert(place, ordered.pop(there))
    return ordered


def _shows(result: Markable, heir: Memory) -> bool:
    if result.turn is None:
        return result.id == heir.id
    return heir.derived and (result.turn.seq, result.turn.ordinal) == (heir.seq, heir.ordinal)
