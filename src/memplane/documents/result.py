"""What a recall returns from documents: passages, sections and whole documents, with the reason for each."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from memplane.types import Span


class Strategy(StrEnum):
    """How documents are looked into."""

    LOCAL = "local"
    """For passages, in all of them."""
    SECTION = "section"
    """The question names a section."""
    DOCUMENT = "document"
    """One document is asked for."""
    COLLECTION = "collection"


class SpanHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a document, where it stands, and why it is told."""

    span: Span
    document_name: str
    section: tuple[str, ...] = ()
    """The titles it stands under."""
    updated_at: datetime
    """When its document was uploaded."""
    score: float = 0.0
    channels: Mapping[str, float] = {}
    ranks: Mapping[str, int] = {}


class SectionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A section in short."""

    id: str
    path: tuple[str, ...]
    distillation: str | None


class DocumentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A document in short, and those of its sections that were asked for."""

    id: str
    name: str
    distillation: str | None
    degraded: bool
    """It is not told in short yet."""
    sections: tuple[SectionSummary, ...] = ()
