"""Explain why a recall does not return an expected memory."""

from collections.abc import Sequence

from memplane.clock import Instant
from memplane.recall.result import Recall, RecallHit
from memplane.safety.sanitize import has_expired, sanitized_turn, with_flags
from memplane.storage.filter import Audience
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader
from memplane.types import Memory, Role, State, Tier, Turn

_OUT_OF_SCOPE = "It is limited to {place}, and is returned only there."


def why_not(
    reader: Reader, expected: str, result: Recall, ranked: Recall, *, now: Instant, audience: Audience
) -> str:
    """One sentence about an entry or a memory: `result` is the recall, `ranked` the same with a much larger limit."""
    if any(block.id == expected for block in result.blocks):
        return "It is returned."
    if any(turn.entry_id == expected for turn in result.conversation_history):
        return "It is returned as part of the current conversation."
    if reader.ledger.tombstoned([expected]):
        return "It was forgotten; forgotten memories are never returned."
    memory = reader.memories.get(expected)
    if memory is not None:
        if not audience.hears(memory.within):
            return _OUT_OF_SCOPE.format(place=_place_of(memory.within))
        return _why_not_memory(memory, result, ranked, now)
    return _why_not_entry(reader, expected, result, ranked, audience)


def _place_of(within: str | None) -> str:
    reach, _, name = (within or "").partition(":")
    return f"{reach} {name!r}"


def _why_not_entry(reader: Reader, expected: str, result: Recall, ranked: Recall, audience: Audience) -> str:
    entry = reader.ledger.get(expected)
    if entry is None:
        return "Nothing with this id was ever stored in this space."
    instead = next(
        (hit.id for hit in result.facts if hit.memory is not None and hit.memory.entry_id == expected), None
    )
    if instead is not None:
        return f"The memory derived from it, {instead}, is returned instead."
    turns = reader.turns.between(turn_number(entry.seq, 0), turn_number(entry.seq + 1, 0) - 1)
    if not turns:
        return "Nothing of it can be recalled: it is empty after secrets and injected memory are removed."
    return _why_not_turns(turns, audience) or _place(expected, result, ranked, "turns")


def _why_not_turns(turns: Sequence[Turn], audience: Audience) -> str | None:
    if not any(audience.hears(turn.within) for turn in turns):
        return _OUT_OF_SCOPE.format(place=_place_of(turns[0].within))
    if all(turn.role == Role.SYSTEM for turn in turns):
        return "It is a system turn; those are never returned."
    suspect = next((turn for turn in map(sanitized_turn, turns) if turn.quarantined), None)
    return None if suspect is None else _flagged(suspect.flags)


def _flagged(flags: tuple[str, ...] | None) -> str:
    return (
        f"It is flagged: {', '.join(flags or ())}. Until it is released, it is returned only after everything else, with a "
        "warning, and only if it contains words of the query."
    )


def _why_not_memory(memory: Memory, result: Recall, ranked: Recall, now: Instant) -> str:
    memory = with_flags(memory)
    if memory.state is State.SUPERSEDED:
        return (
            f"It was superseded by {memory.superseded_by}; use include_superseded, or an earlier as_of date."
        )
    if has_expired(memory, now):
        return f"It expired on {memory.expires_at:%Y-%m-%d}."
    if memory.quarantined:
        return _flagged(memory.flags)
    if memory.tier is Tier.COLD and memory.leaning < 0:
        return (
            f"It faded: feedback marked it as not used {memory.passed_over:,} times and as used {memory.chosen:,} times. "
            "Use include_superseded, or mark it as used again."
        )
    if memory.derived and any(block.id == memory.entry_id for block in result.blocks):
        return f"The turn it was derived from, {memory.entry_id}, is returned instead."
    return _place(memory.id, result, ranked, "memories")


def _place(id_: str, result: Recall, ranked: Recall, among: str) -> str:
    same = [hit for hit in ranked.hits if (hit.turn is not None) == (among == "turns")]
    found = next(((rank, hit) for rank, hit in enumerate(same, start=1) if hit.id == id_), None)
    if found is None:
        return (
            f"It is not among the best {len(same):,} {among} of any channel: it shares no word with the query and is "
            "not similar in meaning."
        )
    rank, hit = found
    return f"It ranks {rank:,} among {among}, and {_selected_among(result, among)} fit. {_channels(hit)}"


def _selected_among(result: Recall, among: str) -> str:
    sources = [block for block in result.blocks if block.source != "document"]
    blocks = [block for block in sources if (block.kind == "turn") == (among == "turns")]
    return f"{len(blocks)} of them" if blocks else "none of them"


def _channels(hit: RecallHit) -> str:
    parts = (
        f"{name} {value:+.2f}" + (f" (rank {hit.ranks[name]:,})" if name in hit.ranks else "")
        for name, value in hit.channels.items()
    )
    return f"Its score is {hit.score:.2f}: {', '.join(parts)}."
