"""Sessions of the facts door where several processes serve: a POST may reach another one than the GET did."""

import asyncio
import json
import stat
from contextlib import ExitStack

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from facts_callers import People
from http_server import serving
from memplane.adapters.helmdeck.relay import RelayedMessage, SessionRelay
from memplane.adapters.helmdeck.sessions import DeliveryOutcome, SseSessions
from memplane.auth.principal import Principal, Right
from serve_process import PATIENCE_SECONDS, minted, serve_process
from sse_talk import Talk, talking

ALICE = Principal(tenant="default", subject="alice", rights=frozenset({Right.READ}))


def answered(talk, endpoint, client, id_):
    """Post with that client; the answer must come on the stream that was opened with another."""
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/list"}).encode()
    status = client.post(endpoint, content=body).status_code
    if status != 202:
        return status
    _, data = talk.event()
    return json.loads(data)["id"]


def test_a_post_finds_its_stream_in_another_server(plane):
    """
    Two servers on one data directory: the stream is in one, the message goes to the other. Whose it is still counts.
    """
    with serving(plane) as here, serving(plane) as there:
        mine, theirs = People(here), People(there)
        with talking(mine.alice) as talk:
            assert answered(talk, talk.endpoint, theirs.alice, 7) == 7
            assert answered(talk, talk.endpoint, theirs.bob, 8) == 404
            assert answered(talk, talk.endpoint, theirs.admin, 9) == 404
            assert answered(talk, talk.endpoint.replace("/sse/", "/qmd/sse/"), theirs.alice, 10) == 404
            assert answered(talk, talk.endpoint, mine.alice, 11) == 11


def test_a_stream_of_a_server_that_is_gone_is_unknown(plane):
    """
    Nobody answers for it, and its name does not stay behind.
    """
    with serving(plane) as there:
        theirs = People(there)
        with serving(plane) as here, talking(People(here).alice) as talk:
            endpoint = talk.endpoint
        assert theirs.alice.post(endpoint, content=b"{}").status_code == 404


def test_two_workers(tmp_path, commands):
    """
    `serve --workers 2`: sessions live in both, and one connection posts to all of them.
    """
    headers = {"authorization": f"Bearer {minted('alice')}"}
    with serve_process(tmp_path, "--workers", "2", commands=commands) as url, ExitStack() as opened:
        post = opened.enter_context(
            httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)
        )
        by_worker = {}
        while len(by_worker) < 2:  # one may be up long before the other
            with ExitStack() as stack:
                client = stack.enter_context(
                    httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)
                )
                response = stack.enter_context(client.stream("GET", "/api/v1/mcp/sse"))
                talk = Talk(client, response)
                _, talk.endpoint = talk.event()
                worker = talk.endpoint.rpartition("=")[2][:8]
                if worker not in by_worker:
                    by_worker[worker] = talk
                    opened.push(stack.pop_all())

        assert [answered(talk, talk.endpoint, post, n) for n, talk in enumerate(by_worker.values(), 1)] == [
            1,
            2,
        ]

    assert list((tmp_path / "data" / "run").iterdir()) == []


def test_streams_do_not_hold_up_an_orderly_end(tmp_path, commands):
    """
    A server that is told to end does so while clients listen, and they see their streams and sockets end.
    """
    headers = {"authorization": f"Bearer {minted('alice')}"}
    with ExitStack() as outside:
        with serve_process(tmp_path, commands=commands) as url:
            client = outside.enter_context(
                httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)
            )
            talk = outside.enter_context(talking(client))
            address = f"{url.replace('http', 'ws')}/api/v1/mcp/ws"
            socket = outside.enter_context(
                connect(address, additional_headers=headers, open_timeout=PATIENCE_SECONDS)
            )
            assert "tools" in talk.call("tools/list")["result"]

        assert talk.event() is None
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=PATIENCE_SECONDS)
        assert closed.value.rcvd.code in {1001, 1012}


# ── the relay by itself ──────────────────────────────────────────────────────────────────────────────────────────


def parcel(session, principal=ALICE):
    return RelayedMessage(session.id, session.path, principal, b"hello")


async def relayed(folder, work):
    """Two processes' worth of it, in one."""
    one, two = SseSessions(), SseSessions()
    relays = [SessionRelay(folder, sessions.worker, sessions.deliver) for sessions in (one, two)]
    for relay in relays:
        await relay.open()
    try:
        return await work(one, *relays)
    finally:
        for relay in relays:
            await relay.close()


@pytest.mark.parametrize("depth", [0, 20])
def test_messages_are_handed_over_however_deep_the_folder_lies(tmp_path, depth):
    """
    An address of a socket holds about a hundred bytes; a data directory may be longer.
    """
    folder = tmp_path.joinpath(*(["a-folder"] * depth)) / "run"

    async def work(one, _mine, other):
        session = one.open("/path", ALICE, lambda raw: raw)
        outcome = await other.deliver(one.worker, parcel(session))
        return outcome, await session.next()

    assert asyncio.run(relayed(folder, work)) == (DeliveryOutcome.ACCEPTED, b"hello")
    assert list(folder.iterdir()) == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_cannot_be_handed_over(tmp_path):
    """
    Another caller's, a full one, an unknown process, and nonsense on the socket: each has its outcome.
    """

    async def work(one, _mine, other):
        session = one.open("/path", ALICE, lambda raw: raw)
        bob = Principal(tenant="default", subject="bob", rights=ALICE.rights)
        strange = [await other.deliver(one.worker, parcel(session, bob))]
        strange.append(await other.deliver("00000000", parcel(session)))
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / f"{one.worker}.sock"))
        writer.write(b"\x00\x00\x00\x02{}")
        assert await reader.read() == b""
        writer.close()
        _, hasty = await asyncio.open_unix_connection(str(tmp_path / f"{one.worker}.sock"))
        hasty.write(b"\xff\xff\xff\xff")
        hasty.close()
        while session.enqueue(b"x"):
            pass
        return [*strange, await other.deliver(one.worker, parcel(session))]

    assert asyncio.run(relayed(tmp_path, work)) == [
        DeliveryOutcome.UNKNOWN,
        DeliveryOutcome.UNKNOWN,
        DeliveryOutcome.FULL,
    ]


def test_names_of_killed_processes_are_swept(tmp_path):
    """
    A socket file nobody listens on goes when the next process starts; those of the living stay.
    """

    async def work(one, mine, _other):
        mine._server.close()  # as a kill leaves it: nobody listens, the name is there
        mine._server = None
        third = SseSessions()
        relay = SessionRelay(tmp_path, third.worker, third.deliver)
        await relay.open()
        names = {path.stem for path in tmp_path.iterdir()}
        await relay.close()
        return one.worker in names, len(names)

    assert asyncio.run(relayed(tmp_path, work)) == (False, 2)


def test_without_sockets_one_process_serves_its_own(tmp_path):
    """
    Where the folder cannot be had the relay stays closed, and says so to nobody but the log.
    """
    (tmp_path / "run").write_text("in the way")

    async def work(one, _mine, other):
        session = one.open("/path", ALICE, lambda raw: raw)
        return await other.deliver(one.worker, parcel(session))

    assert asyncio.run(relayed(tmp_path / "run", work)) is DeliveryOutcome.UNKNOWN
