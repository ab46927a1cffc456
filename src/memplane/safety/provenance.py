"""Who a memory comes from, and whether it may enter a brief.

A brief is read as context at the start of a session, so nothing that speaks to the agent enters it unless a person stored it,
said it, pinned it or released it. For everything else the source decides first, then the kind, the flags and the form: a memory
that a program stored enters a brief only as a statement about something.
"""

from collections.abc import Sequence

from memplane.safety.addressed import THRESHOLD, first_words, score
from memplane.safety.fold import fold
from memplane.safety.vocabulary import HEAD_CHARS, UNSPACED, WORD, vocabulary
from memplane.types import IMPORTED, Kind, Memory, Role, Source, Turn

_PEOPLE = frozenset(["python", "cli", "console"])
"""Interfaces that a person uses, or a program in the person's name."""
_DOUBT = 2.0
"""Text from a program is held back at a lower score than a flag needs."""
_SENTENCES_MAX = 6
"""A longer text is a document and not a statement."""
_STATEMENT_CHARS_MAX = 2_000
_ORDERS = frozenset(
    ["drop", "send", "reveal", "hide", "act", "role", "memory", "say", "force", "not", "order"]
)
"""What an order begins with."""
_ORDERS_TO_AGENTS = _ORDERS | {"rules", "secret", "tool", "consent"}

_MARKS = {
    Source.USER: "",
    Source.ASSISTANT: " (from the assistant)",
    Source.TOOL: " (from a tool)",
    Source.DOCUMENT: " (from a document)",
    Source.IMPORTED: " (imported)",
}


def source_of(memory: Memory) -> Source:
    """A derived memory has the source of its turn; a stored one, that of the interface it was stored through."""
    if memory.derived:
        return _by_role(memory.role)
    adapter = memory.caller.adapter
    if adapter.removeprefix(IMPORTED) in _PEOPLE:
        return Source.USER
    return Source.IMPORTED if adapter.startswith(IMPORTED) else Source.TOOL


def source_of_turn(turn: Turn) -> Source:
    return _by_role(turn.role)


def _by_role(role: str | None) -> Source:
    if role == Role.USER:
        return Source.USER
    return Source.ASSISTANT if role == Role.ASSISTANT else Source.TOOL


def source_mark(source: Source) -> str:
    """What follows a text that is not the user's own, wherever an agent reads it."""
    return _MARKS[source]


def may_enter_brief(memory: Memory) -> bool:
    """Whether a person vouches for the memory, or it says something without speaking to the agent."""
    if memory.pinned or memory.released:
        return True
    source = source_of(memory)
    if source is Source.USER:
        return True
    return memory.kind is not Kind.INSTRUCTION and not speaks_to_agent(memory.text)


def speaks_to_agent(text: str) -> bool:
    """Whether a text may be an order: it addresses somebody, begins a sentence as an order does, talks about what agents have to
    do, or is longer than a statement. Holds back more than `flags_of` flags, since nothing is lost but a place in the brief."""
    if len(text) > _STATEMENT_CHARS_MAX:
        return True
    folded = fold(text)
    words = WORD.findall(folded)
    learned = score(folded, set(words), {word[:HEAD_CHARS] for word in words})
    if learned is not None and learned >= THRESHOLD - _DOUBT:
        return True
    concepts = set(vocabulary().known(words))
    if not folded.isascii() and UNSPACED.search(folded):
        concepts.update(found.concept for found in vocabulary().anywhere(folded))
        if concepts & _ORDERS and not concepts & {"self", "user"}:
            return True  # without spaces, nothing shows where a clause begins
    if "you" in concepts or ("agent" in concepts and concepts & _ORDERS_TO_AGENTS):
        return True
    beginnings: Sequence[str] = first_words(folded)
    return len(beginnings) > _SENTENCES_MAX or any(
        vocabulary().concept(word) in _ORDERS for word in beginnings
    )
