"""Detect the format of a document: from its content type, its name or its content."""

import re
import zipfile
from io import BytesIO
from typing import Final

from memplane.documents.text import decoded, is_text
from memplane.errors import DocumentUnreadable

PLAIN: Final = "text/plain"
MARKDOWN: Final = "text/markdown"
HTML: Final = "text/html"
PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

MEDIA_TYPES: Final = (PLAIN, MARKDOWN, HTML, PDF, DOCX)
"""Supported types."""

_READ = "plain text, Markdown, HTML, PDF and DOCX are read"
_SYNONYMS = {
    "text/x-markdown": MARKDOWN,
    "application/xhtml+xml": HTML,
    "application/x-pdf": PDF,
}
_BY_NAME = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys(
        [
            ".c",
            ".cfg",
            ".conf",
            ".cpp",
            ".csv",
            ".go",
            ".h",
            ".ini",
            ".java",
            ".js",
            ".json",
            ".jsonl",
            ".log",
            ".pl",
            ".py",
            ".r",
            ".rb",
            ".rs",
            ".sh",
            ".sql",
            ".tex",
            ".toml",
            ".ts",
            ".tsv",
            ".yaml",
            ".yml",
        ],
        PLAIN,
    ),
}
"""Where the extension is more reliable than the content: a comment in a program begins like a heading. `.txt` says
nothing."""
_SNIFFED_CHARS = 16_384
"""HTML or Markdown is recognisable early in a text."""
_PDF_SIGN_WITHIN = 1_024
"""PDF readers allow this much before the signature, and so do we."""
_HTML_SIGN = re.compile(
    r"\s*+(?:<\?xml\b[^>]*+>\s*+)?(?:<!--.*?-->\s*+)?<(?:!doctype\s++html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_SIGNS = (
    re.compile(r"\n {0,3}#{1,6}[ \t]+\S"),
    re.compile(r"\n(?:`{3}|~{3})"),
    re.compile(r"\n[^\s|][^\r\n]*+\r?\n(?:={3,}|-{3,})[ \t]*+(?=[\r\n]|\Z)"),
    re.compile(r"\n {0,3}\|?[ \t]*+:?-{3,}:?[ \t]*+\|"),
    re.compile(r"\[[^\[\]\r\n]{1,200}\]\([^()\s]{1,500}\)"),
    re.compile(r"\n {0,3}[-*+] \S[^\r\n]*+\r?\n(?:\r?\n)? {0,3}[-*+] \S"),
    re.compile(r"\n> \S"),
    re.compile(r"\*\*[^\s*][^*\r\n]{0,200}\*\*"),
)
"""Each begins with its own letter, which makes it fast to find; so the text to be checked begins with a line end."""
_CLEAR_SIGNS = 2
"""The first two patterns are sufficient alone; two of the others are needed."""


def media_type_of(content: str | bytes, *, name: str = "", given: str | None = None) -> str:
    """One of `MEDIA_TYPES`: from the content type, else from the first bytes, the extension and the text. Raises
    `DocumentUnreadable` for anything else."""
    if given is not None and (kind := _declared_type(given)) is not None:
        return kind
    if isinstance(content, bytes):
        if (kind := _by_first_bytes(content)) is not None:
            return kind
        if not is_text(content):
            raise DocumentUnreadable(f"the document is in no format that is known here; {_READ}")
        content = decoded(content[: 4 * _SNIFFED_CHARS])
    return _by_name(name) or _by_words(content[:_SNIFFED_CHARS])


def _declared_type(media_type: str) -> str | None:
    """The meaning of a `Content-Type`; None if it says nothing (`application/octet-stream`)."""
    bare = media_type.partition(";")[0].strip().lower()
    bare = _SYNONYMS.get(bare, bare)
    if bare in MEDIA_TYPES:
        return bare
    if not bare or bare in {"application/octet-stream", "binary/octet-stream"}:
        return None
    if bare.startswith("text/"):
        return PLAIN
    raise DocumentUnreadable(f"documents of type {bare[:100]!r} cannot be read; {_READ}")


def _by_first_bytes(content: bytes) -> str | None:
    if b"%PDF-" in content[:_PDF_SIGN_WITHIN]:
        return PDF
    if content.startswith(b"PK\x03\x04"):
        if not _holds_word(content):
            raise DocumentUnreadable(f"the document is a zip archive, but not a DOCX; {_READ}")
        return DOCX
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentUnreadable(
            "the document is in Word's old format, or locked with a password; save it as DOCX"
        )
    return None


def _holds_word(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return "word/document.xml" in archive.NameToInfo or "[Content_Types].xml" in archive.NameToInfo
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError):
        return False


def _by_name(name: str) -> str | None:
    return _BY_NAME.get(name[name.rfind(".") :].lower()) if "." in name else None


def _by_words(text: str) -> str:
    """HTML declares itself at its beginning. Markdown is recognised by constructs that prose does not have."""
    if _HTML_SIGN.match(text):
        return HTML
    text = "\n" + text
    if any(sign.search(text) for sign in _MARKDOWN_SIGNS[:_CLEAR_SIGNS]):
        return MARKDOWN
    return (
        MARKDOWN if sum(sign.search(text) is not None for sign in _MARKDOWN_SIGNS) >= _CLEAR_SIGNS else PLAIN
    )
