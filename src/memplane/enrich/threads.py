"""What the summary of a day needs of it once the day itself is gone: what was said last, in either direction, wherever
something was said. Which of that waits for somebody, and which was answered, is for the summary to say."""

from collections.abc import Iterable
from typing import Any

from memplane.clock import to_instant
from memplane.enrich.judging import scope_of
from memplane.enrich.rawday import turns_of
from memplane.governance.neutral import one_line, shortened
from memplane.ledger.payloads import INTERACTION, Promoted, Said, decode
from memplane.storage.base import Reader
from memplane.types import Entry, Op, Role, Turn

SHORT_CHARS_MAX = 280
"""Of what was said; a summary is no place for all of it."""

_TOLD = ("channel", "direction", "sender", "recipient")
_CHAT = "chat_id"


def in_short(text: str) -> str:
    """On one line, and not for long."""
    return shortened(" ".join(one_line(text).split()), SHORT_CHARS_MAX)


def said_last(reader: Reader, day: str, seqs: Iterable[int]) -> list[Promoted]:
    """Of these entries of a day. More than one of a thread may be kept: what counts is the last of all that there are, so
    that days which are taken in parts, or on several machines, come to the same."""
    last: dict[tuple[Any, ...], tuple[Turn, dict[str, Any] | None]] = {}
    for entry in reader.entries_at(list(seqs)):
        line = _line_of(entry)
        told = () if line is None else (*map(line.get, _TOLD), line.get("metadata", {}).get(_CHAT))
        for turn in turns_of(reader, entry.seq):
            place = (turn.role, turn.conversation, turn.project, turn.speaker, turn.within, told)
            known = last.get(place)
            if turn.role in (Role.USER, Role.ASSISTANT) and (
                known is None or _order(known[0]) < _order(turn)
            ):
                last[place] = (turn, line)
    return [_kept(day, turn, line) for turn, line in last.values()]


def _order(turn: Turn) -> tuple[Any, ...]:
    return turn.at, turn.entry_id, turn.ordinal


def _line_of(entry: Entry) -> dict[str, Any] | None:
    """What tells the thread of a line that another program wrote."""
    said = decode(entry) if entry.op is Op.TURN and entry.body else None
    line = (said.metadata or {}).get(INTERACTION) if isinstance(said, Said) else None
    if not isinstance(line, dict):
        return None
    told: dict[str, Any] = {name: line[name] for name in _TOLD if isinstance(line.get(name), str)}
    metadata = line.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get(_CHAT), str):
        told["metadata"] = {_CHAT: metadata[_CHAT]}
    return told


def _kept(day: str, turn: Turn, line: dict[str, Any] | None) -> Promoted:
    return Promoted(
        day=day,
        kind=turn.role,
        text=in_short(turn.text),
        at=to_instant(turn.at),
        sources=(turn.entry_id,),
        conversation=turn.conversation,
        project=turn.project,
        scope=scope_of(turn.within),
        speaker=turn.speaker,
        line=line,
    )
