"""Documents and collections: what can be looked up in, with a passage marked where a link points to it."""

import msgspec

from memplane.doors.http.console import links
from memplane.doors.http.console.views import Row, space_of, space_page
from memplane.doors.http.endpoint import Call, Query, Response
from memplane.identity.principal import Right
from memplane.types import Section, Span

TAB = "documents"

_PAGE_SIZE = 50
_SPANS_PER_PAGE = 200


class Part(msgspec.Struct, frozen=True):
    """A section and those of its spans that this page shows."""

    section: Section
    spans: tuple[Span, ...]


def listing(call: Call) -> Response:
    space = space_of(call)
    number = max(1, call.query["page"])
    found = space.documents(
        collection=call.query["collection"] or None, limit=_PAGE_SIZE, offset=(number - 1) * _PAGE_SIZE
    )
    return space_page(
        call,
        "documents.html",
        TAB,
        space,
        documents=found,
        collections=space.collections(),
        collection=call.query["collection"],
        total=space.document_count(collection=call.query["collection"] or None),
        number=number,
        pages=_PAGE_SIZE,
    )


def one(call: Call) -> Response:
    space = space_of(call)
    document = space.document(links.owner_of(call.path["document"]))
    first = max(0, call.query["first"])
    sections = {section.ordinal: section for section in space.sections(document.id)}
    spans = space.spans(document.id, first=first, limit=_SPANS_PER_PAGE)
    parts = [
        Part(sections[ordinal], tuple(span for span in spans if span.section == ordinal))
        for ordinal in dict.fromkeys(span.section for span in spans)
    ]
    return space_page(
        call,
        "document.html",
        TAB,
        space,
        document=document,
        parts=parts,
        marked=call.query["span"],
        first=first,
        following=first + _SPANS_PER_PAGE if document.spans > first + _SPANS_PER_PAGE else None,
    )


def rows() -> list[Row]:
    return [
        (
            "GET",
            "/space/{space}/documents",
            listing,
            Right.READ,
            (Query(name="collection", default=""), Query(name="page", type=int, default=1)),
        ),
        (
            "GET",
            "/space/{space}/documents/{document}",
            one,
            Right.READ,
            (Query(name="first", type=int, default=0), Query(name="span", default="")),
        ),
    ]
