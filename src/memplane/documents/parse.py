"""From what was uploaded to a text and its structure."""

from memplane.documents.limits import ParseLimits
from memplane.documents.markdown import parse_markdown
from memplane.documents.media import MARKDOWN
from memplane.documents.parsed import Parsed
from memplane.documents.plain import parse_plain

UNLIMITED = ParseLimits(bytes=1 << 40, chars=1 << 40, pages=1 << 30, seconds=1e9)


def parse(content: str | bytes, media_type: str, *, limits: ParseLimits = UNLIMITED) -> Parsed:
    """Raises `DocumentUnreadable`."""
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    return parse_markdown(text) if media_type == MARKDOWN else parse_plain(text)
