"""Memories and turns as they may leave a space: rules may have been added since they were derived, and time has
passed."""

import msgspec

from memplane.clock import Instant, to_instant
from memplane.governance.redact import redact
from memplane.types import Memory, State, Turn


def shown(memory: Memory, now: Instant) -> Memory:
    text = redact(memory.text).text
    state = memory.state
    if has_expired(memory, now) and state is not State.SUPERSEDED:
        state = State.EXPIRED
    if text == memory.text and state is memory.state:
        return memory
    return msgspec.structs.replace(memory, text=text, state=state)


def shown_turn(turn: Turn) -> Turn:
    text = redact(turn.text).text
    return turn if text == turn.text else msgspec.structs.replace(turn, text=text)


def has_expired(memory: Memory, now: Instant) -> bool:
    return memory.expires_at is not None and to_instant(memory.expires_at) <= now
