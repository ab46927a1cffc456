"""The recall playground: enter a turn to see what an agent would receive, the ranking and the timings."""

from datetime import datetime

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.clock import DAY, to_datetime, to_instant
from memplane.console import links
from memplane.console.forms import parse_day
from memplane.console.views import Row, space_of, space_page
from memplane.recall.explain import need_explained, probability_text, returned_text
from memplane.recall.request import RecallRequest
from memplane.recall.result import Recall, RecallHit, RecallLine
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space

TAB = "recall"

_SEEN_MIN = 0.005
_QUERY = (
    Query(name="q", default=""),
    Query(name="conversation", default=""),
    Query(name="project", default=""),
    Query(name="as_of", default=""),
    Query(name="superseded", default=""),
)


class TextLine(msgspec.Struct, frozen=True):
    """One line of the agent's text, with a link to what it was made from."""

    text: str
    link: str = ""


class RankedRow(msgspec.Struct, frozen=True):
    """One ranked result, as a row shows it."""

    hit: RecallHit
    returned: str
    """Where an agent gets it; empty if it does not."""
    probability: str
    text: str
    link: str
    sort: str
    channels: tuple[tuple[str, float], ...]
    """Channels that contributed, highest score first."""


class Slider(msgspec.Struct, frozen=True):
    """The number of days, and the slider's position; the last position means now."""

    days: int
    at: int


def show(call: HttpCall) -> Response:
    space = space_of(call)
    asked = _recall_query(call)
    recall = space.recall(_request(asked), counted=False) if asked["q"].strip() else None
    span = _span(space)
    return space_page(
        call,
        "playground.html",
        TAB,
        space,
        asked=asked,
        recall=recall,
        need="" if recall is None else need_explained(recall),
        lines=[] if recall is None else _lines(space, recall),
        ranked=[] if recall is None else _ranked(space, recall),
        span=span,
        slider=_slider(span, asked["as_of"]),
    )


def why_not(call: HttpCall) -> Response:
    """Explain in one sentence why an expected item was not recalled."""
    space = space_of(call)
    asked, expected = _recall_query(call), call.query["id"].strip()
    reason = ""
    if expected and asked["q"].strip():
        reason = space.why_not(_request(asked), expected)
    return space_page(call, "why_not.html", TAB, space, asked=asked, expected=expected, reason=reason)


def _recall_query(call: HttpCall) -> dict[str, str]:
    return {query.name: call.query[query.name] for query in _QUERY}


def _request(asked: dict[str, str]) -> RecallRequest:
    return RecallRequest(
        query=asked["q"],
        conversation=asked["conversation"] or None,
        project=asked["project"] or None,
        as_of=_moment(asked["as_of"]),
        include_superseded=bool(asked["superseded"]),
    )


def _moment(text: str) -> str | None:
    """A date without a time means the end of that day."""
    if not text:
        return None
    return f"{text}T23:59:59Z" if "T" not in text else text


def _lines(space: Space, recall: Recall) -> list[TextLine]:
    """The text line by line; headings and the fence have no source."""
    sources = list(recall.lines)
    lines: list[TextLine] = []
    for text in recall.text.split("\n") if recall.text else ():
        known = bool(sources) and sources[0].text == text
        lines.append(TextLine(text, _source_link(space, recall, sources.pop(0)) if known else ""))
    return lines


def _source_link(space: Space, recall: Recall, line: RecallLine) -> str:
    """Of a conflict the newer side; its page names the other."""
    id_ = line.ids[0]
    if line.kind == "span":
        span = next(hit.span for hit in recall.spans if hit.span.id == id_)
        page = links.space_link(space.owner, f"documents/{links.named(span.document)}", span=id_)
        return f"{page}#span-{span.ordinal}"
    page = {"turn": "timeline", "document": "documents"}.get(line.kind, "memories")
    return links.space_link(space.owner, f"{page}/{links.named(id_)}")


def _ranked(space: Space, recall: Recall) -> list[RankedRow]:
    return [
        RankedRow(
            hit,
            returned_text(recall, hit),
            "" if hit.flags else probability_text(hit.probability),
            hit.statement,
            links.space_link(
                space.owner,
                f"{'memories' if hit.memory is not None else 'timeline'}/{links.named(hit.id)}",
            ),
            "memory" if hit.memory is not None else "turn",
            _channels(hit),
        )
        for hit in (*recall.hits, *recall.suspects)
    ]


def _channels(hit: RecallHit) -> tuple[tuple[str, float], ...]:
    """Return the channels that ranked the result or contributed a visible score."""
    given = [
        (name, score) for name, score in hit.channels.items() if name in hit.ranks or abs(score) >= _SEEN_MIN
    ]
    return tuple(sorted(given, key=lambda each: -abs(each[1])))


def _span(space: Space) -> tuple[datetime, datetime]:
    """Return the range of the slider: from the first entry to now."""
    first, now = space.overview.first_moment(), space.now()
    return to_datetime(now if first is None else min(first, now)), to_datetime(now)


def _slider(span: tuple[datetime, datetime], as_of: str) -> Slider:
    """Return the slider's position for the selected date."""
    first, last = (to_instant(moment) // DAY for moment in span)
    days = max(1, last - first + 1)
    day = parse_day(as_of, field="as_of")
    return Slider(days, days if day is None else min(max(day - first, 0), days))


def rows() -> list[Row]:
    return [
        ("GET", "/space/{space}/recall", show, Right.READ, _QUERY),
        (
            "GET",
            "/space/{space}/recall/why-not",
            why_not,
            Right.READ,
            (*_QUERY, Query(name="id", default="")),
        ),
    ]
