"""What a conversation is about just now, read off its last turns."""

import re
from collections import Counter
from collections.abc import Sequence

from memplane.recall.relevance import Question
from memplane.recall.result import WorkingMemory
from memplane.types import Memory, Turn

_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_ENTITIES_MAX = 8
_TOPICS_MAX = 6


def working_memory(recent: Sequence[Turn], told: Sequence[Memory]) -> WorkingMemory:
    names = Counter(
        name for turn in recent for name in _NAME.findall(turn.text) if name.lower() not in {"i", "i'm"}
    )
    stems = Counter(word for turn in recent for word in Question(turn.text).words)
    return WorkingMemory(
        entities=tuple(name for name, _ in names.most_common(_ENTITIES_MAX)),
        subjects=tuple(dict.fromkeys(memory.subject for memory in told if memory.subject is not None)),
        topics=tuple(word for word, count in stems.most_common(_TOPICS_MAX) if count > 1),
    )
