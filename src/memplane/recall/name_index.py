"""The names a query uses, resolved with the turns of a space."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
import numpy as np

from memplane.recall.names import (
    USES_READ,
    SpeakerName,
    addressed_names,
    fold,
    learned_speaker,
    unknown_names,
    written_forms,
)
from memplane.recall.query import CHARS_READ_MAX, replace_speakers
from memplane.recall.turn_embedding import ROLES
from memplane.recall.turn_index import TurnColumns, TurnIndex
from memplane.recall.turn_ranking import COMMON
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader
from memplane.storage.words import stems_of
from memplane.types import SPEAKER_NAMES

_LEARNED_MAX = 512
_TURNS_LISTED = 20_000
_PAGE = 2_000
_NAMES_LISTED = 200
"""`list_names` looks for names in this many turns, the newest, and shows this many of them."""


class NameDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of a row of the category `SPEAKER_NAMES`: an operator added a name or, without a speaker, removed it."""

    name: str
    speaker: str | None = None


def decided_names(rows: Sequence[str]) -> dict[str, str | None]:
    """The operator's names, folded, with the speakers they stand for."""
    return {fold(decision.name): decision.speaker for decision in _decisions(rows)}


def _decisions(rows: Sequence[str]) -> Iterator[NameDecision]:
    """Unreadable rows are skipped."""
    for text in rows:
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(text, type=NameDecision)


def name_key(name: str) -> str:
    """The key of the row that holds the decision about a name."""
    return f"{SPEAKER_NAMES}/{fold(name)}"


def names_in(
    reader: Reader, index: TurnIndex, turns: TurnColumns, question: str, where: Filter
) -> Mapping[str, str | None]:
    """Names other than their own that speakers have in this question: those of an operator, and learned ones."""
    decided = decided_names(index.names)
    if not turns.speakers:
        return decided
    rest, _ = replace_speakers(question[:CHARS_READ_MAX], turns.speakers, decided)
    unknown = [name for name in unknown_names(rest, turns.speakers) if name not in decided]
    common = reader.words.common(unknown, beyond=COMMON) if unknown and turns.count > COMMON else set()
    learned = _learned(reader, index, turns, [name for name in unknown if name not in common], where)
    index.known_names = {**learned, **decided}
    return index.known_names


def _learned(
    reader: Reader, index: TurnIndex, turns: TurnColumns, names: Sequence[str], where: Filter
) -> dict[str, str]:
    """What these names stand for. It is worked out once for the turns that contain a name."""
    stems = {name: (stems_of(name) or [name])[0] for name in names}
    held = index.occurrences(reader, turns, dict.fromkeys(stems.values())) if names else {}
    numbers = {
        name: tuple(turns.n[np.sort(held[stem][0])[-USES_READ:]].tolist()) for name, stem in stems.items()
    }
    keys = {name: (name, numbers[name], turns.speakers, where.audience, where.as_of) for name in names}
    new = [name for name in names if keys[name] not in index.learned]
    wanted = list(dict.fromkeys(number for name in new for number in numbers[name]))
    there = (
        {turn_number(turn.seq, turn.ordinal): turn for turn in reader.turns.at(wanted, where)}
        if wanted
        else {}
    )
    if len(index.learned) > _LEARNED_MAX:
        index.learned.clear()
    for name in new:
        uses = [there[number] for number in numbers[name] if number in there]
        index.learned[keys[name]] = learned_speaker(name, uses, turns.speakers)
    known = {name: index.learned.get(keys[name]) for name in names}
    return {name: speaker for name, speaker in known.items() if speaker is not None}


def list_names(reader: Reader, where: Filter) -> list[SpeakerName]:
    """Every name that stands for a speaker without being part of the speaker's own: decided ones, then learned ones."""
    decisions = list(_decisions(reader.recall.names()))
    decided = [
        SpeakerName(
            name=decision.name,
            speaker=decision.speaker,
            source="removed" if decision.speaker is None else "added",
        )
        for decision in decisions
    ]
    speakers, used = _used_names(reader, where)
    known = {*written_forms(speakers), *(fold(decision.name) for decision in decisions)}
    learned = []
    for name, _ in used.most_common(_NAMES_LISTED):
        if fold(name) not in known:
            known.add(fold(name))
            uses = reader.turns.match([fold(name)], where, limit=USES_READ, newest=True)
            speaker = learned_speaker(fold(name), uses, speakers)
            if speaker is not None:
                learned.append(SpeakerName(name=name, speaker=speaker, source="learned"))
    return decided + learned


def _used_names(reader: Reader, where: Filter) -> tuple[tuple[str, ...], Counter[str]]:
    """The speakers, and how often each name is used to address one."""
    speakers: dict[str, None] = {}
    used: Counter[str] = Counter()
    for offset in range(0, _TURNS_LISTED, _PAGE):
        turns = reader.turns.find(where, limit=_PAGE, offset=offset)
        for turn in turns:
            if turn.speaker is not None and turn.speaker not in ROLES:
                speakers[turn.speaker] = None
            used.update(addressed_names(turn))
        if len(turns) < _PAGE:
            break
    return tuple(speakers), used
