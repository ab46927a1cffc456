"""Kinds and sources of recalled blocks that a proxy of the memory plane drops: transcripts are not memory."""

BLOCKED = frozenset({"raw_transcript", "session_tail", "transcript_tail"})


def is_blocked(kind: str, source: str) -> bool:
    return kind.strip().lower() in BLOCKED or source.strip().lower() in BLOCKED
