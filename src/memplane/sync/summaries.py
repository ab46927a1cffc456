"""The daily summary for the person an agent works for: open questions, answered questions, and threads the agent
started.

The rules are fixed and use no model, so the same day always gives the same summary.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from typing import Any, Final, TypedDict

import msgspec

from memplane.sync.backend import TextBackend
from memplane.sync.interactions import TERMINAL, checked_day, key_of, logged_in

PREFIX: Final = "summaries/"
HOUR: Final = 17
ZONE: Final = timezone(timedelta(hours=-7))
"""Pacific daylight time all year round: a summary that comes an hour early in winter is better than one that is skipped
or comes twice when clocks change."""

_NOTHING = "—"
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_TITLES = (("needs_you", "Needs you"), ("handled", "Handled"), ("heads_up", "Heads-up"))


class Buckets(TypedDict):
    """Lines of the day's log, sorted by what they ask of the reader."""

    needs_you: list[dict[str, Any]]
    handled: list[dict[str, Any]]
    heads_up: list[dict[str, Any]]


class SummaryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a day. `archive` is the key of its page."""

    day: str
    counts: dict[str, int]
    archive: str
    html: str


def triage(entries: Iterable[Mapping[str, Any]], *, agent: str | None = None) -> Buckets:
    """Sort a day's lines by the thread they belong to. What comes in from the agent's own address is its own mail, read
    back, and is left out."""
    own = (agent or "").casefold()
    threads: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        if own and entry.get("direction") == "inbound" and _text(entry, "sender").casefold() == own:
            continue
        threads.setdefault((_text(entry, "channel"), _counterparty(entry)), []).append(dict(entry))
    buckets = Buckets(needs_you=[], handled=[], heads_up=[])
    for thread in threads.values():
        _sort(thread, buckets)
    return buckets


def _sort(thread: list[dict[str, Any]], buckets: Buckets) -> None:
    """One thread gives at most what was said last in each direction."""
    ordered = sorted(thread, key=_when)
    incoming = [entry for entry in ordered if entry.get("direction") == "inbound"]
    outgoing = [entry for entry in ordered if entry.get("direction") == "outbound"]
    if not outgoing:
        buckets["needs_you"] += incoming[-1:]
        return
    if not incoming:
        buckets["heads_up"].append(outgoing[-1])
        return
    buckets["handled"].append(outgoing[-1])
    if _when(incoming[-1]) > _when(outgoing[-1]):
        buckets["needs_you"].append(incoming[-1])


def _counterparty(entry: Mapping[str, Any]) -> str:
    """The counterparty: a chat in Teams, a person elsewhere, the user at a terminal."""
    metadata = entry.get("metadata")
    chat = _text(metadata, "chat_id") if isinstance(metadata, Mapping) else ""
    channel = _text(entry, "channel")
    if channel == TERMINAL:
        return chat
    if entry.get("direction") != "inbound":
        return _text(entry, "recipient")
    return (chat if channel.startswith("teams") else "") or _text(entry, "sender")


def _when(entry: Mapping[str, Any]) -> datetime:
    """A line without a time that exists was there before all others."""
    try:
        moment = datetime.fromisoformat(_text(entry, "ts"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _EARLIEST


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def render(buckets: Buckets, *, day: str) -> str:
    """A page that can be sent as a mail: no script, no address, everything that was said escaped."""
    body = "".join(_section(title, entries) for title, entries in sections(buckets))
    return (
        '<div style="font-family: sans-serif; max-width: 40em">\n'
        f"<h1>Daily summary — {escape(day)}</h1>\n"
        f"{body}"
        "<hr>\n"
        "<p><small>To calibrate what lands where, reply to this mail: say what should be told in more detail, what in "
        "less, and what belongs under another heading.</small></p>\n"
        "</div>\n"
    )


def sections(buckets: Buckets) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each with its title, as a person reads them."""
    return [(title, _bucket(buckets, name)) for name, title in _TITLES]


def _bucket(buckets: Buckets, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dict(buckets)[name]  # type: ignore[assignment]
    return found


def _section(title: str, entries: list[dict[str, Any]]) -> str:
    if not entries:
        return f"<h2>{title}</h2>\n<p>{_NOTHING}</p>\n"
    items = "".join(_item(entry) for entry in entries)
    return f"<h2>{title}</h2>\n<ul>\n{items}</ul>\n"


def _item(entry: Mapping[str, Any]) -> str:
    who = _text(entry, "sender") or _text(entry, "recipient") or "?"
    moment = _when(entry)
    at = _text(entry, "ts") if moment is _EARLIEST else f"{moment:%H:%M}Z"
    where = " · ".join(part for part in (_text(entry, "channel"), at) if part)
    return (
        f"<li><strong>{escape(who)}</strong> <em>({escape(where)})</em><br>"
        f"{escape(_text(entry, 'summary'))}</li>\n"
    )


def counts_of(buckets: Buckets) -> dict[str, int]:
    return {name: len(_bucket(buckets, name)) for name, _ in _TITLES}


def sidecar(day: str, buckets: Buckets) -> str:
    """The day's numbers, for programs."""
    return json.dumps({"day": day, "counts": counts_of(buckets)}, indent=2)


def html_key(day: str) -> str:
    return f"{PREFIX}{day}.html"


def json_key(day: str) -> str:
    return f"{PREFIX}{day}.json"


def archive(backend: TextBackend, *, day: str, html: str, buckets: Buckets) -> str:
    """Keep the page and its numbers; returns the key of the page."""
    key = html_key(checked_day(day))
    backend.write_text(key, html)
    backend.write_text(json_key(day), sidecar(day, buckets))
    return key


def summarize(backend: TextBackend, day: str, *, agent: str | None = None) -> SummaryResult:
    """Read a day's log, sort it and keep the result. Doing it again replaces it."""
    text = backend.read_text(key_of(checked_day(day)))
    buckets = triage(logged_in(text or ""), agent=agent)
    html = render(buckets, day=day)
    key = archive(backend, day=day, html=html, buckets=buckets)
    return SummaryResult(day=day, counts=counts_of(buckets), archive=key, html=html)


def next_run_at(now: datetime, *, hour: int = HOUR) -> datetime:
    """When the next summary is due: always later than `now`, so that none runs twice."""
    here = (now if now.tzinfo else now.replace(tzinfo=UTC)).astimezone(ZONE)
    due = here.replace(hour=hour, minute=0, second=0, microsecond=0)
    return (due if due > here else due + timedelta(days=1)).astimezone(UTC)
