"""Kinds and sources of recalled blocks that a proxy of the memory plane drops: transcripts are not memory."""

_SOURCES = frozenset({"raw_transcript", "session_tail"})
_KINDS = _SOURCES | {"transcript_tail"}


def is_blocked(kind: str, source: str) -> bool:
    return kind.strip().lower() in _KINDS or source.strip().lower() in _SOURCES
