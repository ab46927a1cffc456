"""What a recall returns from documents: passages, sections and whole documents, with the reason for each."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from memplane.types import Span


class Strategy(StrEnum):
    """How documents are searched."""

    LOCAL = "local"
    """Passages from all documents."""
    SECTION = "section"
    """A section named in the query."""
    DOCUMENT = "document"
    """One document."""
    COLLECTION = "collection"


class SpanHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a document, with its position and score."""

    span: Span
    document_name: str
    section: tuple[str, ...] = ()
    """The titles above it."""
    updated_at: datetime
    """When its document was uploaded."""
    score: float = 0.0
    channels: Mapping[str, float] = {}
    ranks: Mapping[str, int] = {}


class SectionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a section."""

    id: str
    path: tuple[str, ...]
    distillation: str | None


class DocumentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a document and of its requested sections."""

    id: str
    name: str
    distillation: str | None
    degraded: bool
    """It has no summary yet."""
    sections: tuple[SectionSummary, ...] = ()
