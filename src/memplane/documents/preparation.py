"""Prepare a document for storage: parse it, redact it, and cut it into sections and spans that together are its text."""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from memplane.documents.chunk import chunks_of, sections_of
from memplane.documents.parse import parse
from memplane.documents.parsed import Heading, ParsedDocument, ParsedSection, ParseLimits
from memplane.ledger.payloads import DocumentPayload
from memplane.safety.redact import NATIVE, redact
from memplane.safety.sanitize import harmful_spans, visible
from memplane.storage.documents import PreparedDocument
from memplane.storage.numbers import section_id, span_id
from memplane.types import Section, Span

LEAD_CHARS_MAX = 300
_MARKS = "#=-*_ "
"""The marker of a Markdown heading."""
_UNLIMITED = ParseLimits(
    bytes=1 << 62,
    chars=1 << 62,
    blocks=1 << 62,
    headings=1 << 62,
    pages=1 << 62,
    depth=1 << 62,
    marks=1 << 62,
    seconds=float("inf"),
    expansion=1 << 62,
)


def prepare_document(
    entry_id: str, uploaded: DocumentPayload, limits: ParseLimits = _UNLIMITED
) -> PreparedDocument:
    """The prepared upload. The limits apply to new uploads; documents in the ledger were within them."""
    content = uploaded.data if uploaded.text is None else uploaded.text
    assert content is not None
    parsed = cleaned(parse(content, uploaded.media_type, limits=limits))
    parts = sections_of(parsed)
    spans = tuple(
        Span(
            id=span_id(entry_id, ordinal),
            document=uploaded.document,
            ordinal=ordinal,
            section=piece.section,
            start=piece.start,
            end=piece.end,
            text=parsed.text[piece.start : piece.end],
            place=_place(parsed, piece.start),
        )
        for ordinal, piece in enumerate(chunks_of(parsed, parts))
    )
    return PreparedDocument(
        text=parsed.text,
        sections=tuple(_section(entry_id, ordinal, part) for ordinal, part in enumerate(parts)),
        spans=spans,
        leads=tuple(_lead(uploaded.name, part) for part in parts),
    )


def cleaned(parsed: ParsedDocument) -> ParsedDocument:
    """Without secrets and invisible characters, with all positions adjusted. Invisible characters are removed first:
    they could hide a secret from the redactor."""
    unseen = [(start, end, "") for start, end in harmful_spans(parsed.text)]
    parsed = _spliced(parsed, unseen)
    findings = redact(parsed.text).findings
    return _spliced(
        _titled(parsed, [(found.start, found.end) for found in findings]),
        [(found.start, found.end, NATIVE.placeholder.format(type=found.type)) for found in findings],
    )


def _titled(parsed: ParsedDocument, secrets: Sequence[tuple[int, int]]) -> ParsedDocument:
    """With redacted titles. A title is not the exact slice of its heading: removed markup may have separated the
    letters of a secret, or been part of it. If the slice contains a secret, the redacted slice is the title."""

    def title_of(heading: Heading) -> str:
        after = bisect_right(secrets, (heading.start, heading.start))
        ends = secrets[after - 1][1] if after else 0
        begins = secrets[after][0] if after < len(secrets) else heading.end
        if ends <= heading.start and begins >= heading.end:
            return _clean(heading.title)
        return " ".join(_clean(parsed.text[heading.start : heading.end]).split()).strip(_MARKS)[
            :LEAD_CHARS_MAX
        ]

    headings = (msgspec.structs.replace(heading, title=title_of(heading)) for heading in parsed.headings)
    return msgspec.structs.replace(parsed, headings=tuple(headings), title=_clean(parsed.title))


def _clean(words: str) -> str:
    return redact(visible(words)).text


def _spliced(parsed: ParsedDocument, splices: Sequence[tuple[int, int, str]]) -> ParsedDocument:
    """With these parts replaced; a position inside one moves behind it."""
    if not splices:
        return parsed
    parts, at = [], 0
    begins, ends, shifts = [], [], [0]
    for start, end, text in splices:
        parts += [parsed.text[at:start], text]
        at = end
        begins.append(start)
        ends.append(end)
        shifts.append(shifts[-1] + len(text) - (end - start))

    def moved(offset: int) -> int:
        passed = bisect_right(begins, offset - 1)
        return max(offset, ends[passed - 1]) + shifts[passed] if passed else offset

    text = "".join([*parts, parsed.text[at:]])
    blocks = [
        msgspec.structs.replace(block, start=moved(block.start), end=moved(block.end))
        for block in parsed.blocks
    ]
    headings = [
        msgspec.structs.replace(heading, start=moved(heading.start), end=moved(heading.end))
        for heading in parsed.headings
    ]
    return ParsedDocument(
        text=text,
        headings=tuple(heading for heading in headings if heading.start < heading.end),
        blocks=tuple(block for block in blocks if block.start < block.end),
        places=tuple((moved(offset), place) for offset, place in parsed.places),
        title=parsed.title,
    )


def _section(entry_id: str, ordinal: int, part: ParsedSection) -> Section:
    return Section(
        id=section_id(entry_id, ordinal),
        ordinal=ordinal,
        title=part.title or None,
        level=part.level,
        path=part.path,
        start=part.start,
        end=part.end,
    )


def _lead(name: str, part: ParsedSection) -> str:
    """What a span is found by besides its text: the document's name and the titles above it."""
    return " > ".join((_clean(name), *part.path))[:LEAD_CHARS_MAX] + "\n\n"


def _place(parsed: ParsedDocument, offset: int) -> int | None:
    """Its position in the source."""
    known = bisect_right(parsed.places, (offset, 1 << 62))
    return parsed.places[known - 1][1] if known else None
