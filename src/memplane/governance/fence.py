"""What we put into a prompt is fenced, and what is fenced is never remembered again.

Without this, recalled text is retained with the next turn, recalled again, and breeds.
"""

import re

BEGIN = "--- BEGIN MEMORY (from {service}) ---"
END = "--- END MEMORY ---"
SERVICE = "memplane"

BRIEF_TITLE = "## Memory Context"
BRIEF_INTRODUCTION = "The following memories were loaded from prior sessions."

# A block that is closed, wherever it stands and however it was quoted; one that is not, if it begins a line.
_BLOCK = re.compile(
    r"--- BEGIN MEMORY \(from [^\n]{0,200}?\) ---.*?--- END MEMORY ---"
    r"|^[^\w\n]{0,16}--- BEGIN MEMORY \(from [^\n]{0,200}?\) ---[ \t\r]*$(?!.*--- END MEMORY ---).*\Z",
    re.MULTILINE | re.DOTALL,
)
_BRIEF = re.compile(
    rf"^{re.escape(BRIEF_TITLE)}\r?\n\r?\n{re.escape(BRIEF_INTRODUCTION)}\r?\n"
    r"(?:\r?\n|### (?:Behavioral Preferences|Known Facts)\r?\n|> [^\n]*\n|- [^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
_JOINERS = "\u200c\u200d\ufe0f"  # the invisible characters that stay, because scripts and emoji need them
_MARKER = re.compile(
    rf"-(?:[{_JOINERS}]*-){{2}}(?=[\s{_JOINERS}]*(?:BEGIN|END)[\s{_JOINERS}]+MEMORY)", re.IGNORECASE
)


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
