"""Superseding a memory. Chains are linear: superseding an already superseded memory supersedes the newest of its
chain, so concurrent writers never leave two current answers, and a new id cannot close a cycle."""

from memplane.errors import InvalidRequest, NotFound
from memplane.storage.store import Reader
from memplane.types import Memory

_CHAIN_MAX = 10_000
_EARLIER_MAX = 100
"""Maximum number of predecessors looked up for display."""


def head_of(reader: Reader, memory_id: str) -> str:
    """The id to supersede: the newest existing successor of the given memory."""
    memory = reader.memories.get(memory_id)
    if memory is None:
        raise NotFound("memory", memory_id)
    for _ in range(_CHAIN_MAX):
        following = successor(reader, memory)
        if following is None:
            return memory.id
        memory = following
    raise InvalidRequest(
        f"the chain of {memory_id!r} has over {_CHAIN_MAX:,} memories; name the newest instead",
        field="supersedes",
    )


def chain_of(reader: Reader, memory_id: str) -> list[Memory]:
    """The memory and its successors, oldest first; empty if there is none."""
    memory = reader.memories.get(memory_id)
    chain: list[Memory] = []
    while memory is not None and len(chain) < _CHAIN_MAX:
        chain.append(memory)
        memory = successor(reader, memory)
    return chain


def lineage_of(reader: Reader, memory_id: str) -> list[Memory]:
    """The memory with its predecessors and successors, oldest first; empty if there is none. A derived memory may
    supersede several."""
    chain = chain_of(reader, memory_id)
    earlier = {memory.id: memory for memory in chain[:1]}
    waiting = chain[:1]
    while waiting and len(earlier) <= _EARLIER_MAX:
        for memory in predecessors(reader, waiting.pop()):
            if memory.id not in earlier:
                earlier[memory.id] = memory
                waiting.append(memory)
    before = [memory for memory in earlier.values() if memory.id != memory_id]
    return [*sorted(before, key=lambda memory: (memory.updated_at, memory.seq)), *chain]


def predecessors(reader: Reader, memory: Memory) -> list[Memory]:
    """What it superseded; for a forgotten link, what that one superseded."""
    found = reader.memories.predecessors(memory.id, limit=_EARLIER_MAX)
    if memory.supersedes is not None and all(each.id != memory.supersedes for each in found):
        named = reader.memories.get(memory.supersedes)
        found += (
            reader.memories.predecessors(memory.supersedes, limit=_EARLIER_MAX) if named is None else [named]
        )
    return found


def successor(reader: Reader, memory: Memory) -> Memory | None:
    """The next existing memory of the chain; the ledger bridges forgotten links."""
    id_ = memory.superseded_by if memory.superseded_by != memory.id else None
    for _ in range(_CHAIN_MAX):
        if id_ is None:
            break
        following = reader.memories.get(id_)
        if following is not None:
            return following
        id_ = reader.ledger.replacement(id_)
    return None
