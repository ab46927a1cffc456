"""Content is data, never formatting: what could break out of a line, a list or a fence is made harmless."""

import re

# One space for a run of anything that ends a line.
_NEWLINES = re.compile("[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]+")
# Control characters, direction overrides and isolates, invisible tags, interlinear marks, the byte-order mark.
# Joiners stay: Indic scripts, Persian and emoji need them.
_HARMFUL = re.compile(
    "[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064"
    "\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb\\U000e0000-\\U000e007f]+"
)


def one_line(text: str) -> str:
    """The text on one line, without characters that steer a terminal, a reader's eye or a parser."""
    return _HARMFUL.sub("", _NEWLINES.sub(" ", text)).replace("\t", " ")


def printable(text: str) -> str:
    """As `one_line`, but keeps ordinary line breaks."""
    return "\n".join(one_line(line) for line in text.splitlines())
