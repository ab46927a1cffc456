"""The text of a mark."""

import re

_FORGED = re.compile(
    r"\((?=since replaced\b|not settled\)|said \d+ times\)|from (?:a|the) (?:tool|document|assistant)\)|imported\))",
    re.IGNORECASE,
)
_NOW_CHARS_MAX = 200
"""The current statement is quoted up to this length; it also has a line of its own."""


def mark_text(*, replaced: bool, now: str | None, contested: bool) -> str:
    """The mark as it follows a text; empty if the text is current and not contradicted."""
    if replaced:
        return f" (since replaced; now: {_quoted(now)})" if now else " (since replaced)"
    return " (not settled)" if contested else ""


def _quoted(now: str) -> str:
    line = " ".join(now.split())
    return line if len(line) <= _NOW_CHARS_MAX else f"{line[: _NOW_CHARS_MAX - 1]}…"


def without_marks(text: str) -> str:
    """A text cannot mark itself: what looks like a mark begins with another bracket."""
    return _FORGED.sub("[", text)
