"""Content is data, never formatting: what could break out of a line, a list or a fence is made harmless."""

import re

# One space for a run of anything that ends a line.
_NEWLINES = re.compile("[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]+")
# Control characters, direction overrides and isolates, invisible tags, interlinear marks, the byte-order mark.
# Joiners stay: Indic scripts, Persian and emoji need them.
_HARMFUL = re.compile(
    "[\\x00-\\x08\\x0e-\\x1b\\x1f\\x7f-\\x84\\x86-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e"
    "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff9-\\ufffb"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]+"
)


def visible(text: str) -> str:
    """The text without what no reader sees; lines stay lines."""
    return text if text.isprintable() else _HARMFUL.sub("", text)


def harmful_spans(text: str) -> list[tuple[int, int]]:
    """Where `visible` takes something out."""
    return [] if text.isprintable() else [found.span() for found in _HARMFUL.finditer(text)]


def one_line(text: str) -> str:
    """The text on one line, without characters that steer a terminal, a reader's eye or a parser."""
    return _HARMFUL.sub("", _NEWLINES.sub(" ", text)).replace("\t", " ")


def shortened(text: str, chars_max: int) -> str:
    """At most so many characters; the last one says that there were more."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def encodable(text: str) -> str:
    """Half a character is legal in a Python string and in no encoding; it is shown as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """As `one_line`, but keeps ordinary line breaks."""
    return "\n".join(one_line(line) for line in text.splitlines())
