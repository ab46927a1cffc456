"""DOCX documents."""

from memplane.documents.limits import Budget, ParseLimits
from memplane.documents.parsed import Parsed
from memplane.errors import DocumentUnreadable


def parse_docx(content: bytes, limits: ParseLimits, budget: Budget) -> Parsed:
    """Not read yet."""
    budget.check(len(content) - limits.bytes)
    raise DocumentUnreadable("this format is not read yet")
