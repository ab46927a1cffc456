"""Memories and turns as they may leave a space: rules may have been added since they were derived, and time has
passed."""

import msgspec

from memplane.clock import Instant, to_instant
from memplane.governance.flags import flags_of
from memplane.governance.redact import find_secrets, redact
from memplane.types import Memory, State, Tier, Turn


def shown(memory: Memory, now: Instant) -> Memory:
    memory = looked_at(memory)
    state = memory.state
    if has_expired(memory, now) and state is not State.SUPERSEDED:
        state = State.EXPIRED
    told = [part for part in (memory.text, memory.quote, memory.object_text, memory.subject) if part]
    if not find_secrets("\n\n".join(told)):  # at once, since it is almost never otherwise
        if state is memory.state and memory.claim is None:
            return memory
        return msgspec.structs.replace(memory, state=state, claim=None)
    return msgspec.structs.replace(
        memory,
        text=redact(memory.text).text,
        quote=_redacted(memory.quote),
        object_text=_redacted(memory.object_text),
        subject=_redacted(memory.subject),
        state=state,
        claim=None,
    )


def looked_at(memory: Memory) -> Memory:
    """With its flags, also where it was kept before there were any."""
    if memory.flags is not None:
        return memory
    flags = flags_of(memory.line, memory.quote, *memory.tags)
    hot = memory.tier is Tier.HOT and flags and not memory.released
    return msgspec.structs.replace(memory, flags=flags, tier=Tier.WARM if hot else memory.tier)


def _redacted(text: str | None) -> str | None:
    return None if text is None else redact(text).text


def shown_turn(turn: Turn) -> Turn:
    if turn.flags is None:
        turn = msgspec.structs.replace(turn, flags=flags_of(turn.text, turn.speaker))
    text = redact(turn.text).text
    return turn if text == turn.text else msgspec.structs.replace(turn, text=text)


def has_expired(memory: Memory, now: Instant) -> bool:
    return memory.expires_at is not None and to_instant(memory.expires_at) <= now
