"""The recall playground: enter a turn to see what an agent would receive, the ranking and the timings."""

from datetime import datetime

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.clock import DAY, to_datetime, to_instant
from memplane.console import links
from memplane.console.forms import parse_day
from memplane.console.views import Row, space_of, space_page
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall, RecallHit
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space

TAB = "recall"

_HITS_LISTED = 30
_SEEN_MIN = 0.005
_LIMITS = Limits(turns=_HITS_LISTED, facts=_HITS_LISTED)
_QUERY = (
    Query(name="q", default=""),
    Query(name="conversation", default=""),
    Query(name="project", default=""),
    Query(name="as_of", default=""),
    Query(name="superseded", default=""),
)


class RankedRow(msgspec.Struct, frozen=True):
    """One ranked result, as a row shows it."""

    hit: RecallHit
    told: bool
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
    recall = space.recall(_request(asked), limits=_LIMITS, counted=False) if asked["q"].strip() else None
    span = _span(space)
    return space_page(
        call,
        "playground.html",
        TAB,
        space,
        asked=asked,
        recall=recall,
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


def _ranked(space: Space, recall: Recall) -> list[RankedRow]:
    told = {block.id for block in recall.blocks}
    return [
        RankedRow(
            hit,
            hit.id in told,
            hit.memory.line if hit.memory is not None else hit.turn.text if hit.turn is not None else "",
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
