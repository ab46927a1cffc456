"""Session history over HTTP: one entry per line, in pages that skip no entry."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response

from memplane.adapters.clawdapus.wire import bad_request
from memplane.adapters.importers import scrubbed_lines
from memplane.clock import Instant, to_datetime, to_instant
from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.server.responses import NDJSON
from memplane.space import Space

LIMIT_DEFAULT = 100
LIMIT_MAX = 1_000

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_LEADING_INTEGER = re.compile(r"\s*([+-]?\d{1,18})", re.ASCII)
_CURSOR = re.compile(r"\d{1,18}", re.ASCII)
_BEFORE_ALL: Instant = to_instant(datetime.min.replace(tzinfo=UTC)) - 1
_PIECE_BYTES = 64 * 1024


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries in ledger order, and the query parameters of the next page."""

    seqs: list[int]
    following: dict[str, str] = {}
    """Empty on the last page."""
    cursor: str = ""


def own_history(call: HttpCall) -> Response:
    """Handle `GET /history`. Only a credential for a single agent has a history."""
    principal = call.principal
    if principal.spaces is None or principal.subject not in principal.spaces:
        raise HttpError(401, "unauthenticated", "invalid bearer token")
    return _answer(call, principal.subject, "/history")


def history_of(call: HttpCall) -> Response:
    """Handle `GET /history/{agent}`."""
    agent = call.path_params["agent"]
    return _answer(call, agent, f"/history/{quote(agent, safe='')}")


def _answer(call: HttpCall, agent: str, path: str) -> Response:
    space = call.existing_space(agent)
    if space is None:
        raise HttpError(404, "not_found", "agent context not found")
    limit = parse_limit(call.query["limit"])
    page = page_of(space, call.query["after"], call.query["cursor"], limit)
    headers = {"x-next-cursor": page.cursor} if page.cursor else {}
    if page.following:
        headers["link"] = f'<{path}?{urlencode({**page.following, "limit": limit})}>; rel="next"'
    space.ledger.add_audit("export", target="history", outcome="ok", detail=f"{len(page.seqs)} entries")
    return call.stream(_pieces(space, page.seqs), media=NDJSON, headers=headers)


def page_of(space: Space, after: str | None, cursor: str | None, limit: int) -> HistoryPage:
    """`after` pages in order of event time. `cursor` pages in order of arrival, so entries that arrive late are not
    missed."""
    since = parse_after(after)
    if cursor is None:
        found = space.ledger.turn_seqs_since(since, limit=limit)
        following = {"after": _timestamp(found.entries[-1].at)} if found.more else {}
        return HistoryPage(seqs=[said.seq for said in found.entries], following=following)
    if after:
        raise bad_request("use after or cursor, not both")
    place = _parse_cursor(cursor)
    seqs = space.ledger.turn_seqs(after=place, limit=limit)
    last = str(seqs[-1] if seqs else place)
    return HistoryPage(seqs=seqs, following={"cursor": last} if len(seqs) == limit else {}, cursor=last)


def parse_after(text: str | None) -> Instant:
    if not text:
        return _BEFORE_ALL
    try:
        if not _RFC3339.fullmatch(text):
            raise ValueError(text)
        return to_instant(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as exc:
        raise bad_request("after must be RFC3339") from exc


def parse_limit(text: str | None) -> int:
    """Parse the leading number, as the reference service does."""
    if not text:
        return LIMIT_DEFAULT
    found = _LEADING_INTEGER.match(text)
    if found is None:
        raise bad_request("limit must be an integer")
    limit = int(found[1])
    if limit <= 0:
        raise bad_request("limit must be > 0")
    return min(limit, LIMIT_MAX)


def _timestamp(at: Instant) -> str:
    """Full precision, because a rounded time could return the same page forever."""
    return to_datetime(at).isoformat().replace("+00:00", "Z")


def _parse_cursor(text: str) -> int:
    """A ledger position from an earlier page; empty means the beginning."""
    if text and not _CURSOR.fullmatch(text):
        raise bad_request("cursor must be one that an earlier page gave, or empty")
    return int(text or 0)


def _pieces(space: Space, seqs: list[int]) -> Iterator[bytes]:
    """Send many lines per chunk, because sending costs more than encoding."""
    waiting: list[bytes] = []
    size = 0
    for line in scrubbed_lines(space, seqs):
        waiting += line, b"\n"
        size += len(line)
        if size >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
