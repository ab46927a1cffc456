"""Episodes of conversations: what was said in one sitting is told once the sitting is over.

A sitting ends with a pause. What is told of it depends on its turns alone, so that a replay tells the same.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from memplane.clock import Instant, to_instant
from memplane.enrich.episodes import Episode, Spoken, tell_episodes
from memplane.ledger.ids import derived_id
from memplane.memory.sitting import ANEW, PAUSE
from memplane.storage.base import Reader, Writer
from memplane.storage.episodes import Untold
from memplane.storage.index import turn_number
from memplane.types import Kind, Memory, Role, Turn

EXTRACTOR = "episode-1"

_TURNS_MIN = 4
"""Fewer are read as quickly as they are summed up."""
_IMPORTANCE = 0.4
_PAUSE = int(PAUSE.total_seconds()) * 1_000_000
_CONVERSATIONS_PER_STEP = 16


def hear(writer: Writer, turn: Turn) -> None:
    """A turn came in: the sitting goes on, or the one before is over and a new one begins. Where it goes on although it
    was told, because this part of it came late, the conversation is told anew."""
    if turn.conversation is None:
        return
    number, at = turn_number(turn.seq, turn.ordinal), to_instant(turn.at)
    open_ = writer.untold_in(turn.conversation)
    if open_ is None or open_.last_at == ANEW:
        before = writer.last_turn_of(turn.conversation, before=number)
        if before is None or (open_ is None and abs(turn.at - before.at) >= PAUSE):
            open_ = None
        else:
            open_ = _reopened(writer, turn.conversation, before)
    if open_ is not None and abs(at - open_.last_at) >= _PAUSE:
        _tell(writer, open_, until=number)
        open_ = None
    first = number if open_ is None else open_.first
    writer.set_untold(Untold(turn.conversation, first, at))


def is_over(reader: Reader, now: Instant) -> bool:
    """Whether any conversation waits to be told."""
    return bool(reader.untold(before=now - _PAUSE, limit=1))


def tell_what_is_over(writer: Writer, now: Instant) -> int:
    """Tell conversations that have paused; returns how many were told."""
    over = writer.untold(before=now - _PAUSE, limit=_CONVERSATIONS_PER_STEP)
    unheard = turn_number(writer.marks().derived + 1, 0)
    for open_ in over:
        last = writer.last_turn_of(open_.conversation, before=unheard)
        if last is not None and to_instant(last.at) > now - _PAUSE:
            writer.set_untold(_reopened(writer, open_.conversation, last))
        else:
            _tell(writer, open_, until=unheard)
            writer.set_told(open_.conversation)
    return len(over)


def _reopened(writer: Writer, conversation: str, last: Turn) -> Untold:
    """The sitting that ends with this turn goes on; those before it are told anew."""
    writer.drop_episodes(conversation)
    turns = [turn for turn in writer.turns_of(conversation, since=0) if turn.seq <= last.seq]
    first = 0
    for before, turn in pairwise(turns):
        if abs(turn.at - before.at) >= PAUSE:
            first = turn_number(turn.seq, turn.ordinal)
    _tell(writer, Untold(conversation, 0, ANEW), until=first)
    return Untold(conversation, first, to_instant(last.at))


def _tell(writer: Writer, open_: Untold, *, until: int) -> None:
    turns = [
        turn
        for turn in writer.turns_of(open_.conversation, since=open_.first)
        if turn.role != Role.SYSTEM and turn_number(turn.seq, turn.ordinal) < until
    ]
    told_apart = (part for sitting in _sittings(turns) for part in _by_place(sitting))
    for sitting in told_apart:
        if len(sitting) >= _TURNS_MIN:
            spoken = [Spoken(turn.text, turn.at, turn.role) for turn in sitting]
            told = [episode for episode in tell_episodes(spoken) if episode.quotes]
            writer.add_episodes([_memory(sitting, episode) for episode in told])


def _sittings(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    first = 0
    for at, (before, turn) in enumerate(pairwise(turns), start=1):
        if abs(turn.at - before.at) >= PAUSE:
            yield turns[first:at]
            first = at
    if turns:
        yield turns[first:]


def _by_place(sitting: Sequence[Turn]) -> list[list[Turn]]:
    """What is told everywhere and what is told in one place only are told apart: an episode has one audience. What is
    flagged is not told again in its words, released or not."""
    parts: dict[str | None, list[Turn]] = {}
    for turn in sitting:
        if turn.flags:
            continue
        parts.setdefault(turn.within, []).append(turn)
    return list(parts.values())


def _memory(sitting: Sequence[Turn], episode: Episode) -> tuple[Memory, list[int]]:
    """The memory, and the seqs of the entries it quotes."""
    told = sitting[episode.first : episode.after]
    first = told[0]
    quote = episode.quotes[0]
    source = sitting[quote.turn]
    memory = Memory(
        id=derived_id(first.entry_id, EXTRACTOR, first.ordinal, 0),
        kind=Kind.EPISODE,
        text=_told(sitting, episode),
        entry_id=source.entry_id,
        seq=source.seq,
        start=quote.start,
        end=quote.end,
        created_at=min(turn.at for turn in told),
        updated_at=max(turn.at for turn in told),
        conversation=first.conversation,
        project=first.project,
        ordinal=source.ordinal,
        quote=quote.text,
        extractor=EXTRACTOR,
        importance=_IMPORTANCE,
        within=first.within,
        flags=(),
    )
    return memory, sorted({sitting[quote.turn].seq for quote in episode.quotes})


def _told(sitting: Sequence[Turn], episode: Episode) -> str:
    """Its sentences, each with who said it: an assistant's `I` is not the user's, and one person's not another's."""
    said = []
    speaker = None
    for quote in episode.quotes:
        turn = sitting[quote.turn]
        who = turn.speaker or turn.role
        said.append(quote.text if who == speaker else f"{who}: {quote.text}")
        speaker = who
    return " ".join(said)
