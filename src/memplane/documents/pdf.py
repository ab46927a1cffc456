"""PDF: the text of its pages, with headings from its outline or, if it has none, from font sizes."""

import logging
import math
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import msgspec
import pypdf
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, WrongPasswordError
from pypdf.generic import DictionaryObject
from pypdf.generic._font import Font

from memplane.documents.parsed import (
    BlockKind,
    DocumentBlock,
    Heading,
    ParseBudget,
    ParsedDocument,
    ParseLimits,
)
from memplane.documents.text import cleaned, paragraphs
from memplane.errors import DocumentUnreadable

# Font sizes in memory. Before the first letter of a page all of its fonts are read, once per name, and those of every
# form on it: a kilobyte of names may take gigabytes.


_SIGNS_MAX = 2_000_000
"""The limit for all fonts in memory at once; a Chinese font has about ten thousand glyphs."""


class Fonts:
    """Measures each font and each form of a document once."""

    def __init__(self, budget: ParseBudget) -> None:
        self._budget = budget
        self._weighed: dict[int, tuple[object, int]] = {}
        """The object is kept, so that its id stays unique."""

    def check(self, page: Any) -> None:
        """Reject a page whose fonts are too large."""
        self._weight_of(page)

    def _weight_of(self, holder: Any) -> int:
        """The glyphs of the fonts of a page or form, including its heaviest nested form."""
        resources = _dictionary(holder.get_inherited("/Resources"))
        weight = 0
        for font in _members(resources, "/Font"):
            weight += self._once(font, self._signs_of)
            _check(weight)
        forms = [form for form in _members(resources, "/XObject") if form.get("/Subtype") == "/Form"]
        weight += max((self._once(form, self._weight_of) for form in forms), default=0)
        _check(weight)
        return weight

    def _signs_of(self, font: DictionaryObject) -> int:
        self._budget.check(0)
        try:
            read = Font.from_font_resource(font)
        except (AttributeError, TypeError):  # also skipped when the page is read
            return 1
        return 1 + len(read.character_map) + len(read.character_widths)

    def _once(self, thing: DictionaryObject, weigh: Any) -> int:
        known = self._weighed.get(id(thing))
        if known is None:
            self._weighed[id(thing)] = (thing, 0)  # a form nested in itself is not read again
            known = self._weighed[id(thing)] = (thing, weigh(thing))
        return known[1]


def _check(weight: int) -> None:
    if weight > _SIGNS_MAX:
        raise DocumentUnreadable(
            f"a page of the PDF has fonts with more than {_SIGNS_MAX:,} signs; print it anew and upload that"
        )


def _members(resources: DictionaryObject, name: str) -> list[DictionaryObject]:
    found = (each.get_object() for each in _dictionary(resources.get(name)).values())
    return [each for each in found if isinstance(each, DictionaryObject)]


def _dictionary(thing: Any) -> DictionaryObject:
    there = None if thing is None else thing.get_object()
    return there if isinstance(there, DictionaryObject) else DictionaryObject()


_STREAM_BYTES_MAX = 32 << 20
_OPERATIONS_MAX = 1_000_000
"""The limit per page; a dense page has some thousands."""
_OUTLINE_MAX = 10_000
_OUTLINE_DEPTH_MAX = 32
_LEVEL_MAX = 6
_LARGER = 1.15
"""How much larger than body text a heading's letters are."""
_HEADING_CHARS_MAX = 200
_HEADING_LINES_MAX = 4
_HEADING_SHARE_MAX = 0.25
"""If more of the text than this is large, size is no sign of a heading. Lines do not count: in a contract every
second one may be a heading."""
_LOCKED = "the PDF is locked with a password; save a copy without one and upload that"

# pypdf logs what it repaired, in words that may quote the document.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class _Page(msgspec.Struct):
    number: int
    text: str
    sizes: dict[str, float]
    """The letter size of each line."""


class _Line(msgspec.Struct):
    start: int
    end: int
    words: str
    size: float
    page: int


def parse_pdf(content: bytes, limits: ParseLimits, budget: ParseBudget) -> ParsedDocument:
    with pypdf.apply_configuration(
        zlib_maximum_output_length=_STREAM_BYTES_MAX,
        lzw_maximum_output_length=_STREAM_BYTES_MAX,
        run_length_maximum_output_length=_STREAM_BYTES_MAX,
        brotli_maximum_output_length=_STREAM_BYTES_MAX,
        array_based_stream_maximum_output_length=_STREAM_BYTES_MAX,
        stream_decoding_work_maximum_length=2 * _STREAM_BYTES_MAX,
        stream_parsing_work_maximum_count=_OPERATIONS_MAX,
        page_tree_maximum_entries=4 * limits.pages,
        outline_maximum_entries=_OUTLINE_MAX,
        outline_maximum_depth=_OUTLINE_DEPTH_MAX,
        jbig2dec_binary=None,
        disable_legacy_handling=True,
    ):
        try:
            reader = _opened(content)
            pages = list(_pages(reader, limits, budget))
            outline = list(_outline(reader))
            title = _title(reader)
        except (FileNotDecryptedError, WrongPasswordError, DependencyError) as exc:
            raise DocumentUnreadable(_LOCKED) from exc
        except LimitReachedError as exc:
            raise DocumentUnreadable(
                "the PDF unpacks to far more than a document does; print it anew and upload that"
            ) from exc
    return _put_together(pages, outline, title, budget)


def _opened(content: bytes) -> pypdf.PdfReader:
    reader = pypdf.PdfReader(BytesIO(content), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentUnreadable(_LOCKED)
    return reader


def _pages(reader: pypdf.PdfReader, limits: ParseLimits, budget: ParseBudget) -> Iterator[_Page]:
    declared: Any = reader.root_object.get("/Pages", {}).get("/Count", 0)
    count = declared if isinstance(declared, int) and declared > limits.pages else len(reader.pages)
    if count > limits.pages:
        raise DocumentUnreadable(f"the PDF has {count:,} pages, and {limits.pages:,} is the limit; split it")
    chars, fonts = 0, Fonts(budget)
    for number, page in enumerate(reader.pages, start=1):
        fonts.check(page)
        sizes = _Sizes()
        text = cleaned(_text_of(page, sizes, budget))
        chars += len(text)
        budget.check(chars)
        yield _Page(number, text.strip("\r\n"), sizes.by_line())


class _TimeUp(BaseException):
    """Escapes from a form being read, where ordinary exceptions are swallowed."""

    def __init__(self, refusal: DocumentUnreadable) -> None:
        super().__init__()
        self.refusal = refusal


def _text_of(page: pypdf.PageObject, sizes: "_Sizes", budget: ParseBudget) -> str:
    """The text of a page. Time is checked within it, too: a form may occur on it thousands of times."""

    def watch(*_: object) -> None:
        try:
            budget.check(0)
        except DocumentUnreadable as exc:
            raise _TimeUp(exc) from exc

    try:
        return page.extract_text(visitor_text=sizes, visitor_operand_before=watch)
    except _TimeUp as exc:
        raise exc.refusal from exc


class _Sizes:
    """Records the letter size of each line while a page is read."""

    def __init__(self) -> None:
        self._sizes: dict[str, float] = {}
        self._words: list[str] = []
        self._size = 0.0

    def __call__(
        self, words: str, outer: list[float], matrix: list[float], _font: object, size: float
    ) -> None:
        scale = math.hypot(matrix[2], matrix[3]) * math.hypot(outer[2], outer[3])
        first, *others = words.split("\n")
        self._add(first, abs(size) * scale)
        for line in others:
            self._end_line()
            self._add(line, abs(size) * scale)

    def by_line(self) -> dict[str, float]:
        self._end_line()
        return self._sizes

    def _add(self, words: str, size: float) -> None:
        self._words.append(words)
        if words.strip() and math.isfinite(size):
            self._size = max(self._size, size)

    def _end_line(self) -> None:
        line = cleaned("".join(self._words)).strip()
        if line:
            self._sizes[line] = round(2 * self._size) / 2
        self._words.clear()
        self._size = 0.0


def _outline(reader: pypdf.PdfReader) -> Iterator[tuple[int, str, int]]:
    """(page, title, level) of the bookmarks. A broken outline does not prevent reading the pages."""
    try:
        todo: list[tuple[Any, int]] = [(entry, 1) for entry in reversed(reader.outline)]
        while todo:
            entry, level = todo.pop()
            if isinstance(entry, list):
                todo += [(inner, level + 1) for inner in reversed(entry)]
                continue
            page = reader.get_destination_page_number(entry)
            if page is not None and entry.title:
                yield page + 1, " ".join(cleaned(str(entry.title)).split()), min(level, _LEVEL_MAX)
    except Exception:  # noqa: BLE001 - it is the file's mistake, whatever it is called
        return


def _title(reader: pypdf.PdfReader) -> str:
    try:
        told = reader.metadata.title if reader.metadata else None
    except Exception:  # noqa: BLE001 - as above
        return ""
    return " ".join(cleaned(str(told)).split())[:_HEADING_CHARS_MAX] if told else ""


def _put_together(
    pages: list[_Page], outline: list[tuple[int, str, int]], title: str, budget: ParseBudget
) -> ParsedDocument:
    if not any(page.text.strip() for page in pages):
        raise DocumentUnreadable(
            "the PDF has no text, only pictures of it; run text recognition over it and upload the result"
        )
    text = "\n\n".join(page.text for page in pages) + "\n"
    lines: list[_Line] = []
    places, start = [], 0
    for page in pages:
        places.append((start, page.number))
        lines += _lines(page, start)
        start += len(page.text) + 2
    places = [(offset, number) for offset, number in places if offset < len(text)]
    headings = _bookmarked(lines, outline) or _large(lines)
    budget.check(len(text), headings=len(headings))
    return ParsedDocument(
        text,
        headings=tuple(headings),
        blocks=tuple(_blocks(text, headings, budget)),
        places=tuple(places),
        title=title,
    )


def _lines(page: _Page, start: int) -> Iterator[_Line]:
    for line in page.text.splitlines(keepends=True):
        words = line.strip()
        if words:
            yield _Line(start, start + len(line), words, page.sizes.get(words, 0.0), page.number)
        start += len(line)


def _bookmarked(lines: list[_Line], outline: list[tuple[int, str, int]]) -> list[Heading]:
    """The lines the bookmarks point to: lines of their page with the same text, in order."""
    by_page: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        by_page.setdefault(line.page, []).append(index)
    headings: dict[int, Heading] = {}
    for page, title, level in outline:
        wanted = _bare(title)
        for index in by_page.get(page, ()):
            if index not in headings and wanted and (end := _lines_match(lines, index, wanted)) is not None:
                headings[index] = Heading(lines[index].start, lines[end].end, title, level)
                break
    ordered = [headings[index] for index in sorted(headings)]
    return [
        heading
        for before, heading in zip([None, *ordered], ordered, strict=False)
        if before is None or heading.start >= before.end
    ]


def _lines_match(lines: list[_Line], index: int, wanted: str) -> int | None:
    """The last of the lines that together form the wanted text; None if they do not."""
    said = ""
    for end in range(index, min(index + _HEADING_LINES_MAX, len(lines))):
        said += _bare(lines[end].words)
        if said.endswith(wanted) and len(said) <= len(wanted) + 8:
            return end
        if len(said) > len(wanted) + 8:
            return None
    return None


def _bare(words: str) -> str:
    return "".join(sign for sign in words.lower() if sign.isalnum())


def _large(lines: list[_Line]) -> list[Heading]:
    """Lines in clearly larger letters; adjacent ones of the same size are one heading."""
    weights: Counter[float] = Counter()
    for line in lines:
        weights[line.size] += len(line.words)
    body = weights.most_common(1)[0][0]
    large = [
        line
        for line in lines
        if body
        and line.size >= _LARGER * body
        and len(line.words) <= _HEADING_CHARS_MAX
        and any(map(str.isalpha, line.words))
    ]
    if sum(len(line.words) for line in large) > _HEADING_SHARE_MAX * weights.total():
        return []
    levels = {
        size: min(rank, _LEVEL_MAX)
        for rank, size in enumerate(sorted({line.size for line in large}, reverse=True), 1)
    }
    headings: list[Heading] = []
    last_size = 0.0
    for line in large:
        if headings and headings[-1].end == line.start and line.size == last_size:
            before = headings.pop()
            headings.append(
                Heading(
                    before.start, line.end, f"{before.title} {line.words}"[:_HEADING_CHARS_MAX], before.level
                )
            )
        else:
            headings.append(Heading(line.start, line.end, line.words, levels[line.size]))
        last_size = line.size
    return headings


def _blocks(text: str, headings: list[Heading], budget: ParseBudget) -> Iterator[DocumentBlock]:
    position = 0
    for heading in headings:
        yield from paragraphs(text, position, heading.start, budget)
        yield DocumentBlock(heading.start, heading.end, BlockKind.HEADING)
        position = heading.end
    yield from paragraphs(text, position, len(text), budget)
