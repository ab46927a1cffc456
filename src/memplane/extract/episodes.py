"""Cut a conversation into episodes, each summarised in a few of its own sentences. Extractive: every word was said."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from memplane.clock import Instant, to_instant
from memplane.extract.english import content_stems
from memplane.extract.sentences import split_sentences
from memplane.ledger.ids import derived_id
from memplane.storage.episodes import OpenSitting
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader, Writer
from memplane.types import PAUSE, REBUILD, Kind, Memory, Role, Turn

TURNS_MIN = 4
TURNS_MAX = 40
SENTENCES = 3
_WINDOW = 3
_SHIFT = 0.05
"""Below this similarity of the turns before and after a position, the topic changed there."""
_WORDS_MIN = 4
_WORDS_FULL = 8


class EpisodeTurn(msgspec.Struct, frozen=True, gc=False):
    """One turn, as far as an episode needs it."""

    text: str
    at: datetime
    role: str = Role.USER


class Quote(msgspec.Struct, frozen=True, gc=False):
    """A sentence of a turn: exactly `turns[turn].text[start:end]`."""

    turn: int
    start: int
    end: int
    text: str


class Episode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Turns from `first` up to, not including, `after`, and their summary."""

    first: int
    after: int
    quotes: tuple[Quote, ...]


def split_episodes(turns: Sequence[EpisodeTurn], *, sentences: int = SENTENCES) -> list[Episode]:
    """In order and without gaps: every turn is in exactly one episode."""
    stems = [content_stems(turn.text) for turn in turns]
    return [
        Episode(first=first, after=after, quotes=_most_central(turns, first, after, sentences))
        for first, after in _segments(turns, stems)
    ]


def _segments(turns: Sequence[EpisodeTurn], stems: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    first = 0
    for at in range(1, len(turns)):
        paused = turns[at].at - turns[at - 1].at >= PAUSE
        long_enough = at - first >= TURNS_MIN and len(turns) - at >= TURNS_MIN
        if paused or at - first >= TURNS_MAX or (long_enough and _shifts(stems, at)):
            yield first, at
            first = at
    if turns:
        yield first, len(turns)


def _shifts(stems: Sequence[frozenset[str]], at: int) -> bool:
    """Whether the text from here on shares almost nothing with the text just before."""
    before = Counter(stem for words in stems[max(0, at - _WINDOW) : at] for stem in words)
    after = Counter(stem for words in stems[at : at + _WINDOW] for stem in words)
    if before.total() < _WORDS_FULL or after.total() < _WORDS_FULL:
        return False
    shared = sum(before[stem] * after[stem] for stem in before.keys() & after.keys())
    return shared / (_length(before) * _length(after)) < _SHIFT


def _length(counts: Counter[str]) -> float:
    return math.sqrt(sum(count * count for count in counts.values()))


def _most_central(turns: Sequence[EpisodeTurn], first: int, after: int, count: int) -> tuple[Quote, ...]:
    """The sentences whose words the episode uses most, without repetitions, in order."""
    quotes, words = _quotes(turns, first, after)
    weight = Counter(stem for stems in words for stem in stems)
    chosen: list[int] = []
    covered: set[str] = set()
    while len(chosen) < min(count, len(quotes)):
        best = max(
            (place for place in range(len(quotes)) if place not in chosen),
            key=lambda place: (
                _centrality(words[place], weight, covered, turns[quotes[place].turn].role),
                -place,
            ),
        )
        chosen.append(best)
        covered |= words[best]
    return tuple(quotes[place] for place in sorted(chosen))


def _quotes(turns: Sequence[EpisodeTurn], first: int, after: int) -> tuple[list[Quote], list[frozenset[str]]]:
    quotes: list[Quote] = []
    words: list[frozenset[str]] = []
    for turn in range(first, after):
        if turns[turn].role == Role.SYSTEM:
            continue
        text = turns[turn].text
        for sentence in split_sentences(text):
            said = text[sentence.start : sentence.end]
            if not sentence.question and len(said.split()) >= _WORDS_MIN:
                quotes.append(Quote(turn, sentence.start, sentence.end, said))
                words.append(content_stems(said))
    return quotes, words


def _centrality(words: frozenset[str], weight: Counter[str], covered: set[str], role: str) -> float:
    new = words - covered
    share = sum(weight[stem] - 1 for stem in new) / max(len(words), _WORDS_FULL)
    spread = len(new) / (len(words) + _WORDS_FULL)
    return (share + spread) * (1.0 if role == Role.USER else 0.7)


# Episodes of conversations are written once a session has ended with a pause. They depend on its turns alone, so a
# replay writes the same.


EXTRACTOR = "episode-1"

_TURNS_MIN = 4
"""Fewer turns are as quick to read as a summary."""
_IMPORTANCE = 0.4
_PAUSE = int(PAUSE.total_seconds()) * 1_000_000
_CONVERSATIONS_PER_STEP = 16


def note_turn(writer: Writer, turn: Turn) -> None:
    """A turn arrived: the session continues, or the previous one has ended and a new one begins. If the session was
    already summarised, because this turn came late, the conversation is summarised again."""
    if turn.conversation is None:
        return
    number, at = turn_number(turn.seq, turn.ordinal), to_instant(turn.at)
    open_ = writer.episodes.pending_in(turn.conversation)
    if open_ is None or open_.last_at == REBUILD:
        before = writer.turns.last_of(turn.conversation, before=number)
        if before is None or (open_ is None and abs(turn.at - before.at) >= PAUSE):
            open_ = None
        else:
            open_ = _reopened(writer, turn.conversation, before)
    if open_ is not None and abs(at - open_.last_at) >= _PAUSE:
        _write_episodes(writer, open_, until=number)
        open_ = None
    first = number if open_ is None else open_.first
    writer.episodes.set_pending(OpenSitting(turn.conversation, first, at))


def has_finished_sitting(reader: Reader, now: Instant) -> bool:
    """Whether a conversation has a finished session."""
    return bool(reader.episodes.pending(before=now - _PAUSE, limit=1))


def write_due_episodes(writer: Writer, now: Instant) -> int:
    """Write episodes of conversations that have paused; return how many."""
    over = writer.episodes.pending(before=now - _PAUSE, limit=_CONVERSATIONS_PER_STEP)
    unheard = turn_number(writer.state.marks().derived + 1, 0)
    for open_ in over:
        last = writer.turns.last_of(open_.conversation, before=unheard)
        if last is not None and to_instant(last.at) > now - _PAUSE:
            writer.episodes.set_pending(_reopened(writer, open_.conversation, last))
        else:
            _write_episodes(writer, open_, until=unheard)
            writer.episodes.set_done(open_.conversation)
    return len(over)


def _reopened(writer: Writer, conversation: str, last: Turn) -> OpenSitting:
    """The session that ends with this turn is open; those before it are summarised again."""
    writer.episodes.drop(conversation)
    turns = [turn for turn in writer.turns.of_conversation(conversation, since=0) if turn.seq <= last.seq]
    first = 0
    for before, turn in pairwise(turns):
        if abs(turn.at - before.at) >= PAUSE:
            first = turn_number(turn.seq, turn.ordinal)
    _write_episodes(writer, OpenSitting(conversation, 0, REBUILD), until=first)
    return OpenSitting(conversation, first, to_instant(last.at))


def _write_episodes(writer: Writer, open_: OpenSitting, *, until: int) -> None:
    turns = [
        turn
        for turn in writer.turns.of_conversation(open_.conversation, since=open_.first)
        if turn.role != Role.SYSTEM and turn_number(turn.seq, turn.ordinal) < until
    ]
    parts = (part for sitting in _sittings(turns) for part in _by_audience(sitting))
    for sitting in parts:
        if len(sitting) >= _TURNS_MIN:
            spoken = [EpisodeTurn(turn.text, turn.at, turn.role) for turn in sitting]
            episodes = [episode for episode in split_episodes(spoken) if episode.quotes]
            writer.episodes.add([_memory(sitting, episode) for episode in episodes])


def _sittings(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    first = 0
    for at, (before, turn) in enumerate(pairwise(turns), start=1):
        if abs(turn.at - before.at) >= PAUSE:
            yield turns[first:at]
            first = at
    if turns:
        yield turns[first:]


def _by_audience(sitting: Sequence[Turn]) -> list[list[Turn]]:
    """Turns of different scopes are summarised separately: an episode has one scope. Flagged turns are not quoted,
    released or not."""
    parts: dict[str | None, list[Turn]] = {}
    for turn in sitting:
        if turn.flags:
            continue
        parts.setdefault(turn.within, []).append(turn)
    return list(parts.values())


def _memory(sitting: Sequence[Turn], episode: Episode) -> tuple[Memory, list[int]]:
    """The memory, and the seqs of the entries it quotes."""
    covered = sitting[episode.first : episode.after]
    first = covered[0]
    quote = episode.quotes[0]
    source = sitting[quote.turn]
    memory = Memory(
        id=derived_id(first.entry_id, EXTRACTOR, first.ordinal, 0),
        kind=Kind.EPISODE,
        text=_episode_text(sitting, episode),
        entry_id=source.entry_id,
        seq=source.seq,
        start=quote.start,
        end=quote.end,
        created_at=min(turn.at for turn in covered),
        updated_at=max(turn.at for turn in covered),
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


def _episode_text(sitting: Sequence[Turn], episode: Episode) -> str:
    """Its sentences, each with its speaker: an assistant's `I` is not the user's, and one person's is not another's."""
    said = []
    speaker = None
    for quote in episode.quotes:
        turn = sitting[quote.turn]
        who = turn.speaker or turn.role
        said.append(quote.text if who == speaker else f"{who}: {quote.text}")
        speaker = who
    return " ".join(said)
