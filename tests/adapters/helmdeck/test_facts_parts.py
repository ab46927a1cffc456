"""The facts door in parts: reading as Go reads, streams of clients that take nothing, what the engine adds for it."""

import asyncio
import json
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.helmdeck.packs import PACKS, pack_named
from memplane.adapters.helmdeck.qmd import query
from memplane.adapters.helmdeck.relay import SessionRelay
from memplane.adapters.helmdeck.rpc import answer
from memplane.adapters.helmdeck.sessions import DeliveryOutcome, SseSessions, worker_of
from memplane.adapters.helmdeck.streams import Streams
from memplane.adapters.helmdeck.wire import (
    BadBody,
    StoreArguments,
    nanoseconds,
    read_body,
    read_json,
    seconds,
)
from memplane.auth.principal import Principal, Right
from memplane.memory.runs import PackRun, PlanRun, PlanStep, group_plans
from memplane.server.errors import HttpError

ALICE = Principal(tenant="default", subject="alice", rights=frozenset({Right.READ}))
BOB = Principal(tenant="default", subject="bob", rights=frozenset({Right.READ}))


# ── the wire ─────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.binary())
def test_any_bytes_are_read_or_refused(raw):
    """
    Nothing a client sends raises anything but our own error.
    """
    with suppress(BadBody):
        read_json(raw)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_gets_an_answer(value):
    """
    Whatever JSON a session is sent, the answer is none or one object of the protocol.
    """
    said = answer(json.dumps(value).encode(), {"x": lambda params: params})

    assert said is None or json.loads(said)["jsonrpc"] == "2.0"


def test_half_a_character_becomes_the_replacement():
    """
    As Go reads it, so that nothing that cannot be written reaches the engine.
    """
    assert read_body(b'{"key":"a\\ud83d","value":"\\ud83d\\ude00"}', StoreArguments) == StoreArguments(
        key="a\ufffd", value="😀"
    )


def test_an_exact_name_wins():
    """
    Whichever comes first; without one, the last in another case does.
    """
    assert read_body(b'{"KEY":"a","key":"b","Key":"c"}', StoreArguments).key == "b"
    assert read_body(b'{"KEY":"a","Key":"c"}', StoreArguments).key == "c"


def test_times_are_spelled_as_go_spells_them():
    """
    Seconds for what expires; for the rest as many digits as there are.
    """
    moment = datetime(2026, 8, 29, 12, 34, 56, tzinfo=UTC)

    assert seconds(moment) == nanoseconds(moment) == "2026-08-29T12:34:56Z"
    assert nanoseconds(moment.replace(microsecond=385_000)) == "2026-08-29T12:34:56.385Z"
    assert nanoseconds(moment.replace(microsecond=1)) == "2026-08-29T12:34:56.000001Z"


def test_aliases_lead_to_packs_and_nothing_else_does():
    """
    A name that only resembles one is unknown.
    """
    assert pack_named("helmdeck__memory_forget") is PACKS["helmdeck.memory_forget"]
    assert [pack_named(name) for name in ("", "store", "helmdeck.", "helmdeck.memory_store.x", "memory")] == [
        None
    ] * 5


# ── sessions and streams ─────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_bounded_and_owned():
    """
    By caller and in all; a closed one makes room, once.
    """
    sessions = SseSessions(total_max=3, per_principal_max=2)
    first, _ = (sessions.open("/p", ALICE, lambda raw: raw) for _ in range(2))
    with pytest.raises(HttpError):
        sessions.open("/p", ALICE, lambda raw: raw)
    sessions.open("/p", BOB, lambda raw: raw)
    with pytest.raises(HttpError):
        sessions.open("/p", BOB, lambda raw: raw)
    sessions.close(first)
    sessions.close(first)
    again = sessions.open("/p", ALICE, lambda raw: raw)

    assert len(sessions) == 3
    assert worker_of(again.id) == sessions.worker
    assert sessions.deliver(again.id, "/p", BOB, b"x") is DeliveryOutcome.UNKNOWN
    assert sessions.deliver(again.id, "/other", ALICE, b"x") is DeliveryOutcome.UNKNOWN
    assert sessions.deliver(first.id, "/p", ALICE, b"x") is DeliveryOutcome.UNKNOWN
    assert sessions.deliver(again.id, "/p", ALICE, b"x") is DeliveryOutcome.ACCEPTED


def test_what_waits_in_a_session_is_bounded():
    """
    In number and in bytes; what was answered makes room.
    """

    async def work():
        session = SseSessions().open("/p", ALICE, lambda raw: raw)
        large = 0
        while session.enqueue(b"x" * (1 << 20)):
            large += 1
        await session.next()
        small = 0
        while session.enqueue(b"x"):
            small += 1
        return large, small

    assert asyncio.run(work()) == (4, 61)


class Wire:
    """The two ends an application is given; `send` takes `takes` messages and then never returns."""

    def __init__(self, takes=10_000, principal=ALICE, **scope):
        self.sent = []
        self.takes = takes
        self.begun = asyncio.Event()
        self.gone = asyncio.Event()
        self.scope = {
            "type": "http",
            "method": "GET",
            "query_string": b"",
            "memplane.principal": principal,
            "memplane.again": self.again,
            "memplane.turn": nullcontext(),
            **scope,
        }

    async def again(self):
        return ALICE

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if len(self.sent) == self.takes:
            await asyncio.Event().wait()
        self.sent.append(message)
        if len(self.sent) > 1:
            self.begun.set()


def streams(sessions, tmp_path, **limits):
    relay = SessionRelay(tmp_path, sessions.worker, sessions.deliver)
    return Streams(
        sessions, relay, lambda _principal: {"ping": lambda _params: {}}, message_path="/m", **limits
    )


@pytest.mark.parametrize("takes", [0, 1, 2, 3])
def test_a_client_that_takes_nothing_is_dropped(tmp_path, takes):
    """
    Wherever it stops taking: at the head, the first event, a keepalive. Its session goes with it.
    """

    async def work():
        sessions, wire = SseSessions(), Wire(takes)
        served = streams(sessions, tmp_path, keepalive_seconds=0.001, send_seconds_max=0.01)
        await served.events(wire.scope, wire.receive, wire.send)
        return len(sessions), len(wire.sent)

    assert asyncio.run(work()) == (0, takes)


def test_a_client_that_is_gone_has_no_session(tmp_path):
    """
    The stream ends when the client hangs up, also while nothing is said.
    """

    async def work():
        sessions, wire = SseSessions(), Wire()
        served = streams(sessions, tmp_path)
        stream = asyncio.create_task(served.events(wire.scope, wire.receive, wire.send))
        await wire.begun.wait()
        there = len(sessions)
        wire.gone.set()
        await stream
        return there, len(sessions), wire.sent[0]["status"]

    assert asyncio.run(work()) == (1, 0, 200)


def test_a_websocket_whose_client_is_gone_is_no_fault(tmp_path):
    """
    An answer that nobody takes any more ends the session, and is no error of ours.
    """

    async def work():
        sessions, wire = SseSessions(), Wire(type="websocket")
        said = [
            {"type": "websocket.connect"},
            {"type": "websocket.receive", "text": '{"id":1,"method":"ping"}'},
        ]

        async def receive():
            return said.pop(0)

        async def send(message):
            if message["type"] == "websocket.send":
                raise ConnectionResetError

        await streams(sessions, tmp_path).websocket(wire.scope, receive, send)
        return len(sessions)

    assert asyncio.run(work()) == 0


def test_head_opens_no_session(tmp_path):
    """
    Only the headers are asked for.
    """

    async def work():
        sessions, wire = SseSessions(), Wire(method="HEAD")
        await streams(sessions, tmp_path).events(wire.scope, wire.receive, wire.send)
        return len(sessions), [message["type"] for message in wire.sent]

    assert asyncio.run(work()) == (0, ["http.response.start", "http.response.body"])


# ── the engine's part ────────────────────────────────────────────────────────────────────────────────────────────


def test_has_space_creates_none(plane):
    """
    Asking is not creating.
    """
    assert not plane.has_space("alice")
    plane.space("alice").put("k", "v")

    assert plane.has_space("alice")
    assert not plane.has_space("alice", tenant="other")
    assert list(plane.spaces()) == ["alice"]


def test_facts_with_runs(space):
    """
    What the engine keeps about runs and plans is listed when it is asked for, and never otherwise.
    """
    space.put("k", "v")
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    space.facts.record_run(PlanRun(intent_sha="aa", outcome="ok", at_unix=1))

    assert [fact.key for fact in space.facts.list()] == ["k"]
    assert {fact.category for fact in space.facts.list(runs=True)} == {
        "user_facts",
        "pack_history",
        "plan_history",
    }
    assert [hit for hit in space.search("aa") if hit.memory] == []


def test_plans_are_grouped():
    """
    By intent; count, then last, then sha; five tools and three models at most; twenty-five groups.
    """
    rows = [
        PlanRun(
            intent_sha=f"{number % 30:02d}",
            outcome="ok",
            at_unix=number,
            model=f"m{number % 4}",
            steps=tuple(PlanStep(order=n, tool=f"t{n}") for n in range(8)),
        )
        for number in range(60)
    ]
    groups = group_plans(
        [*(msgspec.json.encode(row).decode() for row in rows), "not json", '{"intent_sha":1}']
    )

    assert len(groups) == 25
    assert [group.intent_sha for group in groups[:2]] == ["29", "28"]
    assert groups[0] == msgspec.structs.replace(
        groups[0],
        count=2,
        top_tools=("t0", "t1", "t2", "t3", "t4"),
        last_unix=59,
        models=("m1", "m3"),
        complexity="",
    )


def test_rows_nobody_can_read_are_said_to_be_so(space):
    """
    A run whose value is damaged is still found by its key, and unreadable.
    """
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    (row,) = space.facts.list(runs=True)
    damaged = msgspec.structs.replace(row, text="{")

    (found,) = query([damaged], "", 20)
    assert found.snippet == f"## {row.key}\n\n(audit row unreadable)"
    assert found.file == "audit/pack/p"
    assert query([msgspec.structs.replace(row, category=None)], "", 20) == []
