"""The documents pages: documents, collections and search. A link to a passage marks it."""

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import links
from memplane.console.views import Row, space_of, space_page
from memplane.documents.result import SpanHit
from memplane.recall.result import Limits
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space
from memplane.storage.numbers import span_ordinal
from memplane.types import Document, Section, Span

TAB = "documents"

_PAGE_SIZE = 50
_SPANS_PER_PAGE = 200
_PASSAGES = Limits(turns=0, facts=0, spans=20)


class SectionView(msgspec.Struct, frozen=True):
    """A section and the spans of it that this page shows."""

    section: Section
    spans: tuple[Span, ...]


def listing(call: HttpCall) -> Response:
    space = space_of(call)
    number = max(1, call.query["page"])
    asked = call.query["q"].strip()
    found = space.documents.list(
        collection=call.query["collection"] or None, limit=_PAGE_SIZE, offset=(number - 1) * _PAGE_SIZE
    )
    return space_page(
        call,
        "documents.html",
        TAB,
        space,
        documents=found,
        collections=space.documents.collections(),
        collection=call.query["collection"],
        q=call.query["q"],
        passages=_passages(space, asked, call.query["collection"] or None) if asked else [],
        total=space.documents.count(collection=call.query["collection"] or None),
        number=number,
        pages=_PAGE_SIZE,
    )


def one(call: HttpCall) -> Response:
    space = space_of(call)
    document = space.documents.get(links.owner_of(call.path_params["document"]))
    marked = call.query["span"]
    first = _first(document, marked) if call.query["first"] is None else max(0, call.query["first"])
    sections = {section.ordinal: section for section in space.documents.sections(document.id)}
    spans = space.documents.spans(document.id, first=first, limit=_SPANS_PER_PAGE)
    parts = [
        SectionView(sections[ordinal], tuple(span for span in spans if span.section == ordinal))
        for ordinal in dict.fromkeys(span.section for span in spans)
    ]
    return space_page(
        call,
        "document.html",
        TAB,
        space,
        document=document,
        parts=parts,
        marked=marked,
        preceding=max(0, first - _SPANS_PER_PAGE) if first else None,
        first=first,
        following=first + _SPANS_PER_PAGE if document.spans > first + _SPANS_PER_PAGE else None,
    )


def _passages(space: Space, asked: str, collection: str | None) -> Sequence[SpanHit]:
    """Return the passages that match the query, best first."""
    return space.recall(asked, collection=collection, limits=_PASSAGES, counted=False).spans


def _first(document: Document, marked: str) -> int:
    """Return the first span of the page that contains the passage."""
    at = span_ordinal(document.entry_id, marked)
    return 0 if at is None or at >= document.spans else at // _SPANS_PER_PAGE * _SPANS_PER_PAGE


def rows() -> list[Row]:
    return [
        (
            "GET",
            "/space/{space}/documents",
            listing,
            Right.READ,
            (
                Query(name="collection", default=""),
                Query(name="page", type=int, default=1),
                Query(name="q", default=""),
            ),
        ),
        (
            "GET",
            "/space/{space}/documents/{document}",
            one,
            Right.READ,
            (Query(name="first", type=int, default=None), Query(name="span", default="")),
        ),
    ]
