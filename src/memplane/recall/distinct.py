"""Turns that repeat: the same said often counts once, and a question asked before is no answer to itself.

Copies are removed before the ranking, not after it: they would raise the mean of every channel and lend their score to all that was
said around them, so that an answer elsewhere falls behind.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from memplane.recall.copies import repeats
from memplane.recall.query_context import PreparedQuery
from memplane.recall.turn_ranking import RankedTurn, TurnWords, rank_turns
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader
from memplane.types import Role, Turn

_ROUNDS_MAX = 3
_COPIES_SHARE = 4
"""If more than a quarter of the places are taken by copies, the ranking is repeated without them."""


def rank_distinct(
    reader: Reader, prepared: PreparedQuery, worded: TurnWords, *, limit: int, leave_out: Sequence[int]
) -> list[RankedTurn]:
    """Turns without copies of the query. Copies of another turn follow at the end, so that they can be counted."""
    query = prepared.text
    asked: list[RankedTurn] = []
    copies: list[RankedTurn] = []
    said = rank_turns(reader, prepared, worded, limit=limit, leave_out=leave_out)
    for _ in range(_ROUNDS_MAX):
        again = [ranked for ranked in said if repeats(ranked.turn.text, query)]
        surplus = _surplus(said, limit)
        if not again and not surplus:
            break
        asked += again
        copies += surplus
        apart = [_number(ranked.turn) for ranked in (*again, *surplus)]
        prepared = msgspec.structs.replace(prepared, apart=[*prepared.apart, *apart])
        said = rank_turns(reader, prepared, TurnWords(prepared), limit=limit, leave_out=leave_out)
    replied = _replies(reader, prepared, asked, leave_out) if asked else []
    numbers = {_number(ranked.turn) for ranked in replied}
    rest = [
        ranked
        for ranked in said
        if _number(ranked.turn) not in numbers and not repeats(ranked.turn.text, query)
    ]
    return [*[*replied, *rest][:limit], *copies]


def _surplus(said: Sequence[RankedTurn], limit: int) -> list[RankedTurn]:
    """All copies but the newest, if there are many."""
    newest: dict[tuple[str, ...], RankedTurn] = {}
    for ranked in said:
        key = ranked.copy_key
        newest[key] = max(newest.get(key, ranked), ranked, key=lambda each: each.turn.at)
    kept = {_number(ranked.turn) for ranked in newest.values()}
    copies = [ranked for ranked in said if _number(ranked.turn) not in kept]
    return copies if len(copies) * _COPIES_SHARE > limit else []


def _replies(
    reader: Reader, prepared: PreparedQuery, asked: Sequence[RankedTurn], leave_out: Sequence[int]
) -> list[RankedTurn]:
    """What another one said directly after these turns, with their score: the reply to a question answers the same question
    later, however little it resembles it."""
    turns = prepared.turns
    places, there = turns.find(np.array([_number(ranked.turn) for ranked in asked], np.int64))
    after = {
        int(turns.n[turns.after[place]]): ranked
        for place, known, ranked in zip(places, there, asked, strict=True)
        if known and turns.after[place] >= 0
    }
    found = reader.turns.at(list(after), prepared.where) if after else []
    return [
        msgspec.structs.replace(before, turn=turn, contributions={"reply": before.score}, words=())
        for turn in found
        if (before := after[_number(turn)])
        and turn.role != Role.SYSTEM
        and (turn.role, turn.speaker) != (before.turn.role, before.turn.speaker)
        and _number(turn) not in (*prepared.apart, *leave_out)
    ]


def _number(turn: Turn) -> int:
    return turn_number(turn.seq, turn.ordinal)
