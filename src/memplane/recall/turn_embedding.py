"""The text embedded for a turn, and its vector."""

import numpy as np

from memplane.models.embedding import Vectors
from memplane.types import Role

ROLES = frozenset(Role)

_PAIR_CHARS_MAX = 300
_PAIR_SHARE = 0.7
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full-width, Arabic."""


def embedded_text(speaker: str, text: str) -> str:
    """A speaker's name is put before the text."""
    return text if not speaker or speaker in ROLES else f"{speaker}: {text}"


def pair_text(before: str | None, speaker: str, text: str) -> str:
    """A turn with the end of the one before it.

    An assistant's turn is embedded alone: it repeats what it answers, and a second long text would double the cost.
    """
    if before is None or (speaker in ROLES and speaker != Role.USER):
        return text
    return f"{before[-_PAIR_CHARS_MAX:]} {text}"


def turn_vectors(own: Vectors, pair: Vectors) -> Vectors:
    """The vector to store. The dot product with a sum is the sum of the dot products, so one vector replaces two, in
    half the space and time."""
    return ((own + _PAIR_SHARE * pair) / (1 + _PAIR_SHARE)).astype(np.float32)


def is_question(text: str) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS)
