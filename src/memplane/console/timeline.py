"""The timeline of a space: the ledger, live. For one entry: the memories derived from it and a recall for it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memplane.auth.principal import Right
from memplane.clock import parse_instant
from memplane.console import links
from memplane.console.cookies import credential_of
from memplane.console.pages import environment, plain
from memplane.console.sign_in import ADAPTER
from memplane.console.views import Row, space_of, space_page
from memplane.engine import Engine
from memplane.errors import MemplaneError, NotFound
from memplane.server.access import existing_space
from memplane.server.endpoint import AsgiRoute, HttpCall, Query
from memplane.space import Space
from memplane.space.timeline import TimelineEvent
from memplane.storage.filter import EntryFilter
from memplane.types import Memory, Op, Role, Turn

TAB = "timeline"

_PAGE_SIZE = 50
_POLL_INTERVAL_S = 1.0
_LIVE_MAX = 200
"""Maximum rows of one event. If more entries arrived at once, reload the page to see all of them."""
_MOMENT = timedelta(microseconds=1)
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_LISTING = (
    Query(name="conversation", default=""),
    Query(name="door", default=""),
    Query(name="role", default=""),
    Query(name="op", default=""),
    Query(name="since", default=""),
    Query(name="until", default=""),
    Query(name="before", type=int, default=None),
)


class MarkedTurn(msgspec.Struct, frozen=True):
    """A turn split into pieces: quoted by a memory, or not."""

    turn: Turn
    pieces: tuple[tuple[str, str | None], ...]
    """Text, and the ID of the memory that quotes it."""


def listing(call: HttpCall) -> Response:
    space = space_of(call)
    asked = {query.name: call.query[query.name] for query in _LISTING if query.name != "before"}
    found = space.overview.timeline(_narrowed(asked), before=call.query["before"], limit=_PAGE_SIZE)
    conversations, adapters = space.overview.recent_names()
    return space_page(
        call,
        "timeline.html",
        TAB,
        space,
        asked=asked,
        happenings=found,
        before=found[-1].seq if len(found) == _PAGE_SIZE else None,
        live=call.query["before"] is None and not any(asked.values()),
        last=found[0].seq if found else 0,
        narrowed=any(asked.values()),
        conversations=_offered(conversations),
        adapters=_offered(adapters),
        ops=list(Op),
        roles=list(Role),
    )


def one(call: HttpCall) -> Response:
    space = space_of(call)
    happening = space.overview.timeline_entry(links.owner_of(call.path_params["entry"]))
    derived = space.overview.memories_from(happening.id)
    return space_page(
        call,
        "entry.html",
        TAB,
        space,
        happening=happening,
        turns=[_marked(turn, derived) for turn in happening.turns],
        derived=derived,
        recalled=_recalled(space, happening),
        may_write=call.principal.allows(Right.WRITE, adapter=call.endpoint.adapter, space=space.owner),
    )


def _offered(names: list[str]) -> list[str]:
    """Return the names for a field's suggestions, without names that contain invisible characters."""
    return [name for name in names if plain(name) == name]


def _narrowed(asked: dict[str, str]) -> EntryFilter:
    return EntryFilter(
        ops=frozenset([Op(asked["op"])]) if asked["op"] in set(Op) else frozenset(),
        conversation=asked["conversation"] or None,
        adapter=asked["door"] or None,
        role=asked["role"] or None,
        since=parse_instant(asked["since"], field="since") if asked["since"] else None,
        until=parse_instant(asked["until"], field="until") if asked["until"] else None,
    )


def _marked(turn: Turn, derived: list[Memory]) -> MarkedTurn:
    """Split the text by its quotes; overlapping quotes are cut where the previous one ends."""
    pieces: list[tuple[str, str | None]] = []
    at = 0
    quoting = [
        memory
        for memory in derived
        if memory.quote is not None
        and (memory.ordinal or 0) == turn.ordinal
        and turn.text[memory.start : memory.end] == memory.quote
    ]
    for memory in sorted(quoting, key=lambda memory: (memory.start, -memory.end)):
        if memory.end <= at:
            continue
        start = max(at, memory.start)
        pieces += [(turn.text[at:start], None), (turn.text[start : memory.end], memory.id)]
        at = memory.end
    pieces.append((turn.text[at:], None))
    return MarkedTurn(turn, tuple(piece for piece in pieces if piece[0]))


def _recalled(space: Space, happening: TimelineEvent) -> str:
    """Return what a recall returns today for a user's turn, from earlier entries. What the agent received at the time
    is not recorded."""
    asked = next((turn for turn in happening.turns if turn.role == Role.USER), None)
    if asked is None:
        return ""
    return space.recall(
        asked.text,
        conversation=asked.conversation,
        project=asked.project,
        reference_time=asked.at,
        as_of=asked.at - _MOMENT,
        counted=False,
    ).text


class LiveTimeline:
    """Send new entries to an open page as server-sent events. Each event contains one row."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        space = await self._in_turn(scope, partial(self._space, scope))
        after = _after(scope["query_string"])
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_disconnect, receive, tasks.cancel_scope)
            while await _still_valid(scope["memplane.again"]):
                rows, after = await self._in_turn(scope, partial(_since, space, after))
                text = "".join(_event(row) for row in rows) or ": still here\n\n"
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                await anyio.sleep(_POLL_INTERVAL_S)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body"})

    async def _in_turn(self, scope: Scope, work: Callable[[], Any]) -> Any:
        async with scope["memplane.turn"]:
            return await anyio.to_thread.run_sync(work)

    def _space(self, scope: Scope) -> Space:
        owner = links.owner_of(scope["path_params"]["space"])
        found = existing_space(
            self._plane, scope["memplane.principal"], Right.READ, adapter=ADAPTER, owner=owner
        )
        if found is None:
            raise NotFound("space", owner, place="this installation")
        return found


def _since(space: Space, after: int) -> tuple[list[str], int]:
    """Return the rows of new entries, oldest first, and the position of the last."""
    new = [happening for happening in space.overview.timeline(limit=_LIVE_MAX) if happening.seq > after]
    template = environment().get_template("happening.html")
    rows = [template.render(happening=happening, owner=space.owner) for happening in reversed(new)]
    return rows, max((happening.seq for happening in new), default=after)


def _event(row: str) -> str:
    return "".join(f"data: {line}\n" for line in row.splitlines()) + "\n"


def _after(query: bytes) -> int:
    _, _, number = query.partition(b"after=")
    return int(number) if number.isdigit() else 0


async def _until_disconnect(receive: Receive, waiting: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    waiting.cancel()


async def _still_valid(again: Callable[[], Awaitable[object]]) -> bool:
    try:
        await again()
    except MemplaneError:
        return False
    return True


def rows() -> list[Row]:
    return [
        ("GET", "/space/{space}/timeline", listing, Right.READ, _LISTING),
        ("GET", "/space/{space}/timeline/{entry}", one, Right.READ, ()),
    ]


def stream(plane: Engine) -> AsgiRoute:
    return AsgiRoute(
        path=f"{links.ROOT}/space/{{space}}/live",
        adapter=ADAPTER,
        summary="Stream new entries of a space",
        app=LiveTimeline(plane),
        right=Right.READ,
        credential=credential_of,
        lasting=True,
    )
