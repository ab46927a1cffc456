"""What we put into a prompt is fenced, and what is fenced is never remembered again.

Without this, recalled text is retained with the next turn, recalled again, and breeds.
"""

import re

BEGIN = "--- BEGIN MEMORY (from {service}) ---"
END = "--- END MEMORY ---"
SERVICE = "memplane"

BRIEF_TITLE = "## Memory Context"
BRIEF_INTRODUCTION = "The following memories were loaded from prior sessions."

_BLOCK = re.compile(
    r"^[ \t]*--- BEGIN MEMORY \(from [^\n]*\) ---[ \t\r]*$.*?(?:^[ \t]*--- END MEMORY ---[ \t\r]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_BRIEF = re.compile(
    rf"^{re.escape(BRIEF_TITLE)}\r?\n\r?\n{re.escape(BRIEF_INTRODUCTION)}\r?\n"
    r"(?:\r?\n|### (?:Behavioral Preferences|Known Facts)\r?\n|> [^\n]*\n|- [^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
_MARKER = re.compile(r"-{3}(?=\s*(?:BEGIN|END)\s+MEMORY)", re.IGNORECASE)


def strip_injected(text: str) -> str:
    """The text without anything we (or another memory service) put there."""
    if "MEMORY" not in text and BRIEF_TITLE not in text:
        return text
    return _BRIEF.sub("", _BLOCK.sub("", text)).strip()


def fence(body: str, service: str = SERVICE) -> str:
    return f"{BEGIN.format(service=service)}\n{body}\n{END}"


def defang(text: str) -> str:
    """A memory cannot close the fence it stands in."""
    return _MARKER.sub("\u2013\u2013\u2013", text)
