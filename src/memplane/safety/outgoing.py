"""Redaction between the proxy and an external memory service: the blocks a service returns, and the entries it is
sent.

Clawdapus' two patterns are tried first, exactly as it defines them; then our own rules, in its style. One exception:
its first pattern has no word boundary, so `task-management` would become `ta[redacted-secret]`. A lower-case word
hyphenated to another is left alone.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.safety.redact import CLAWDAPUS, redact, redact_tree

# Kinds and sources of blocks that a proxy drops: transcripts are not memory.


_SOURCES = frozenset({"raw_transcript", "session_tail"})
_KINDS = _SOURCES | {"transcript_tail"}


def is_blocked(kind: str, source: str) -> bool:
    return kind.strip().lower() in _KINDS or source.strip().lower() in _SOURCES


BLOCKS_MAX = 8
TEXT_BYTES_MAX = 8_192

_KEY = re.compile(r"sk-[A-Za-z0-9_-]{6,}")
_COMPOUND = re.compile(r"(?<=[a-z])sk-[a-z]+(?:-[a-z]+)*(?![A-Za-z0-9_-])")
_BEARER = re.compile(r"\b(Bearer)[ \t]+[A-Za-z0-9._-]{8,}", re.IGNORECASE | re.ASCII)


class ServiceBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One memory as returned by a service; every member may be missing."""

    text: str = ""
    score: float = 0.0
    kind: str = ""
    source: str = ""
    ts: str = ""


class GovernedBlocks(msgspec.Struct, frozen=True):
    """Accepted blocks in the order they came, and the number of dropped ones."""

    blocks: tuple[ServiceBlock, ...]
    removed: int


def govern(blocks: Sequence[ServiceBlock]) -> GovernedBlocks:
    """Drop blocks copied from transcripts, blocks that are empty after redaction, and what exceeds the budget. A
    smaller block may still fit after one that did not; a redacted block does not count as removed."""
    kept: list[ServiceBlock] = []
    size = 0
    for block in blocks:
        if is_blocked(block.kind, block.source):
            continue
        text = redact_outgoing(block.text.strip())[0]
        text_size = len(text.encode("utf-8", "replace"))
        if not text or len(kept) == BLOCKS_MAX or size + text_size > TEXT_BYTES_MAX:
            continue
        kept.append(msgspec.structs.replace(block, text=text))
        size += text_size
    return GovernedBlocks(tuple(kept), len(blocks) - len(kept))


def redact_outgoing(text: str) -> tuple[str, int]:
    """The text without secrets, and how many there were."""
    count = 0

    def without_key(found: re.Match[str]) -> str:
        nonlocal count
        if _COMPOUND.match(text, found.start()):
            return found[0]
        count += 1
        return "[redacted-secret]"

    keyless = _KEY.sub(without_key, text)
    tokenless, tokens = _BEARER.subn(r"\1 [redacted]", keyless)
    rest = redact(tokenless, CLAWDAPUS)
    return rest.text, count + tokens + len(rest.findings)


def redact_outgoing_tree(value: Any) -> tuple[Any, int]:
    """The same for every string in a JSON-like value; a string under a name such as `password` is judged by that name
    too."""
    root: list[Any] = [None]
    pending: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    count = 0
    while pending:
        parent, place, item = pending.pop()
        copy = item
        if isinstance(item, str):
            copy, found = redact_outgoing(item)
            count += found
        elif isinstance(item, dict):
            copy = dict.fromkeys(item)
            pending.extend((copy, key, member) for key, member in item.items())
        elif isinstance(item, list):
            copy = [None] * len(item)
            pending.extend((copy, index, member) for index, member in enumerate(item))
        parent[place] = copy
    named, more = redact_tree(root[0], CLAWDAPUS, named=True)
    return named, count + more
