"""What is embedded for a turn, and what else the worker notes about it."""

import numpy as np

from memplane.models.embedding import Vectors
from memplane.types import Role

ROLES = frozenset(Role)

NEARNESS_MIN = {"snowflake-arctic-embed-s-int8": (0.58, 0.65)}
"""How near a turn and a memory must be to have anything to do with a question, by model: of LoCoMo's evidence nine turns
in ten are as near as that, of other turns one in six. A model that is not here is judged by deviations alone."""

_PAIR_CHARS_MAX = 300
_PAIR_SHARE = 0.7
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full-width, Arabic."""


def embedded_text(speaker: str, text: str) -> str:
    """Who has a name says it first."""
    return text if not speaker or speaker in ROLES else f"{speaker}: {text}"


def pair_text(before: str | None, speaker: str, text: str) -> str:
    """A turn with the one before it, of which the end is nearest to what follows.

    An assistant's turn stands alone: it repeats what it answers, and a second long text would cost as much again.
    """
    if before is None or (speaker in ROLES and speaker != Role.USER):
        return text
    return f"{before[-_PAIR_CHARS_MAX:]} {text}"


def turn_vectors(own: Vectors, pair: Vectors) -> Vectors:
    """The vectors to store. A sum of vectors has the sum of their dot products, so one is as good as two, in half the
    room and half the time."""
    return ((own + _PAIR_SHARE * pair) / (1 + _PAIR_SHARE)).astype(np.float32)


def is_question(text: str) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS)
