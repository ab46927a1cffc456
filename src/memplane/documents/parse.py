"""Parse an upload into a `ParsedDocument`, whatever the format. A parser raises only `DocumentUnreadable`, because
uploads are untrusted."""

from collections.abc import Callable

from memplane.documents.html import parse_html
from memplane.documents.markdown import parse_markdown
from memplane.documents.media import DOCX, HTML, MARKDOWN, PDF, PLAIN, media_type_of
from memplane.documents.parsed import ParseBudget, ParsedDocument, ParseLimits
from memplane.documents.text import cleaned, decoded, is_text, parse_plain
from memplane.errors import DocumentUnreadable

_NAMES = {PLAIN: "text", MARKDOWN: "Markdown", HTML: "HTML", PDF: "PDF", DOCX: "DOCX"}


def parse(content: str | bytes, media_type: str, *, limits: ParseLimits | None = None) -> ParsedDocument:
    """Parse a document. Raises `DocumentUnreadable` with the reason if it is damaged or exceeds a limit."""
    limits = limits or ParseLimits()
    media_type = media_type_of(content, given=media_type)
    if len(content) > limits.bytes:
        raise DocumentUnreadable(f"the document has more than {limits.bytes:,} bytes; split it")
    try:
        parsed = _parse(content, media_type, limits)
    except DocumentUnreadable:
        raise
    except (MemoryError, RecursionError) as exc:
        raise DocumentUnreadable(
            f"the {_NAMES[media_type]} document asks for too much memory; it may be damaged on purpose"
        ) from exc
    except Exception as exc:
        raise DocumentUnreadable(
            f"the {_NAMES[media_type]} document is damaged; open it in a program that can read it, and save it again"
        ) from exc
    if not parsed.text.strip():
        raise DocumentUnreadable("the document has no text in it")
    return parsed


def _parse(content: str | bytes, media_type: str, limits: ParseLimits) -> ParsedDocument:
    budget = ParseBudget(limits)
    if media_type in {PDF, DOCX}:
        if isinstance(content, str):
            raise DocumentUnreadable(f"a {_NAMES[media_type]} document is sent as bytes, not as text")
        return _binary_parser(media_type)(content, limits, budget)
    if isinstance(content, bytes) and not is_text(content):
        raise DocumentUnreadable(
            f"the document is said to be {_NAMES[media_type]} but is no text; name its real type"
        )
    text = (
        cleaned(content.removeprefix("\ufeff"))
        if isinstance(content, str)
        else decoded(content, html=media_type == HTML)
    )
    budget.check(len(text))
    if media_type == HTML:
        return parse_html(text, limits, budget)
    return parse_markdown(text, budget) if media_type == MARKDOWN else parse_plain(text, budget)


def _binary_parser(media_type: str) -> Callable[[bytes, ParseLimits, ParseBudget], ParsedDocument]:
    if media_type == PDF:
        from memplane.documents.pdf import parse_pdf  # pypdf takes longer to load than most commands

        return parse_pdf
    from memplane.documents.docx import parse_docx  # lxml takes longer to load than most commands

    return parse_docx
