"""Replacing a memory. Chains are lines: whoever replaces something already replaced replaces the newest of the
chain, so two writers at once never leave two current answers, and a new id cannot close a circle."""

from memplane.errors import InvalidRequest, NotFound
from memplane.storage.base import Reader
from memplane.types import Memory

_CHAIN_MAX = 10_000


def head_of(reader: Reader, memory_id: str) -> str:
    """The id to supersede: the given memory's newest successor that is still there."""
    memory = reader.memory(memory_id)
    if memory is None:
        raise NotFound("memory", memory_id)
    for _ in range(_CHAIN_MAX):
        following = successor(reader, memory)
        if following is None:
            return memory.id
        memory = following
    raise InvalidRequest(
        f"over {_CHAIN_MAX:,} memories replaced {memory_id!r} one after the other; name the newest instead",
        field="supersedes",
    )


def chain_of(reader: Reader, memory_id: str) -> list[Memory]:
    """The memory and everything that replaced it, oldest first; empty if there is none."""
    memory = reader.memory(memory_id)
    chain: list[Memory] = []
    while memory is not None and len(chain) < _CHAIN_MAX:
        chain.append(memory)
        memory = successor(reader, memory)
    return chain


def successor(reader: Reader, memory: Memory) -> Memory | None:
    """The next of the chain that is still there; the ledger leads over a link that is forgotten."""
    id_ = memory.superseded_by if memory.superseded_by != memory.id else None
    for _ in range(_CHAIN_MAX):
        if id_ is None:
            break
        following = reader.memory(id_)
        if following is not None:
            return following
        id_ = reader.replacement(id_)
    return None
