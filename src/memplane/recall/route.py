"""How a question is understood: what it asks for, of whom, and when."""

import re

from memplane.clock import to_datetime
from memplane.enrich.catalog import Catalog
from memplane.recall.asked import Asked
from memplane.recall.result import Routing

PREDICATES_MAX = 2
"""So many of those a question may ask for are looked up."""
_CHARS_READ_MAX = 2_000
"""What a question asks for stands at its beginning; what follows is pasted."""
_WHEN = re.compile(r"\b(?:when|what (?:date|day|time|year|month)|how long ago|since when)\b", re.IGNORECASE)
_LIST = re.compile(
    r"\b(?:list|all(?: of)? (?:my|the|their)|every|which .{0,80}s\b|what (?:\w+ )?(?:things|kinds|sorts|types)|how many)\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:used to|before|previously|formerly|over time|history of|how .{0,80} changed|earlier)\b",
    re.IGNORECASE,
)


def route(question: str, asked: Asked, catalog: Catalog, *, has_vectors: bool) -> Routing:
    question = question[:_CHARS_READ_MAX]
    predicates = tuple(catalog.asked_for(question)[:PREDICATES_MAX])
    when = _WHEN.search(question) is not None
    ranged = bool(asked.ranges or asked.dates)
    return Routing(
        mode=_mode(question, when=when),
        kinds=tuple(dict.fromkeys(catalog[name].kind.value for name in predicates)),
        predicates=predicates,
        speakers=tuple(sorted(asked.speakers)),
        temporal_intent="when" if when else "range" if ranged else None,
        ranges=tuple((to_datetime(begin), to_datetime(until)) for begin, until in asked.ranges),
        channels=(
            *(("predicate",) if predicates else ()),
            *(("vector",) if has_vectors else ()),
            "keyword",
            *(("temporal",) if ranged else ()),
            "hot",
            "recent",
        ),
    )


def _mode(question: str, *, when: bool) -> str:
    if when:
        return "temporal"
    if _HISTORY.search(question):
        return "history"
    return "list" if _LIST.search(question) else "single"
