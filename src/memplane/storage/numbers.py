"""How turns, sections and spans are numbered: by their ledger entry, then by their place in it."""

import re

TURNS_PER_ENTRY_MAX = 256
"""How many turns one ledger entry may hold; the projection joins the rest."""
SPANS_PER_DOCUMENT_MAX = 1 << 20
"""How many spans one document may have."""

_ORDINAL = re.compile("0|[1-9][0-9]{0,9}")


def turn_number(seq: int, ordinal: int) -> int:
    """A turn's number. Turns are in the order of the ledger, those of one entry next to each other."""
    return seq * TURNS_PER_ENTRY_MAX + ordinal


def span_number(seq: int, ordinal: int) -> int:
    """A span's number, and a section's: in the order of the ledger, those of one document next to each other."""
    return seq * SPANS_PER_DOCUMENT_MAX + ordinal


def section_id(entry_id: str, ordinal: int) -> str:
    """A section's id follows from the upload and its place in it, so every replica and every replay agrees on it."""
    return f"{entry_id}.section-{ordinal}"


def span_id(entry_id: str, ordinal: int) -> str:
    """As `section_id`, for a span."""
    return f"{entry_id}.span-{ordinal}"


def span_ordinal(entry_id: str, id_: str) -> int | None:
    """The ordinal in a span's id; None if the id is not that of a span of this entry."""
    ordinal = id_.removeprefix(f"{entry_id}.span-")
    return int(ordinal) if _ORDINAL.fullmatch(ordinal) else None
