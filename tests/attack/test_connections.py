"""Connections: slow, idle and oversized ones are ended, and responses do not tell what they need not."""

import socket
from contextlib import ExitStack

import pytest

from http_server import serving
from memplane import Settings
from memplane.auth.principal import Right
from memplane.server import protocol

_LINE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
def server(plane):
    with serving(plane) as running:
        yield running


def _statuses(connection):
    """The statuses that come until the server closes the connection."""
    answer = b""
    while piece := connection.recv(65_536):
        answer += piece
    return [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def _sent(server, data):
    with server.socket() as connection:
        try:
            connection.sendall(data)
            return _statuses(connection)
        except ConnectionError:  # closed before everything was sent
            return [431]


def _is_ended(connection):
    connection.settimeout(0.02)
    try:
        connection.recv(65_536)
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize(("bytes_", "status"), [(1_000, 200), (40_000, 200), (70_000, 431), (200_000, 431)])
@pytest.mark.parametrize("shape", ["one", "many", "path"])
def test_heads_are_limited(server, bytes_, status, shape):
    """
    A head over 64 KiB is refused, also one that arrives in one piece.
    """
    head = {
        "one": _LINE + b"x: " + b"a" * bytes_ + b"\r\n",
        "many": _LINE + b"x: a\r\n" * (bytes_ // 6),
        "path": b"GET /healthz?a=" + b"a" * bytes_ + b" HTTP/1.1\r\nhost: localhost\r\n",
    }[shape]

    assert _sent(server, head + b"connection: close\r\n\r\n") == [status]


def test_a_second_head_is_limited_too(server):
    """
    A request in front of it does not make room.
    """
    large = _LINE + b"x: " + b"a" * 100_000 + b"\r\n\r\n"

    assert _sent(server, _LINE + b"\r\n" + large)[-1] == 431


def test_slow_heads_are_ended(plane, monkeypatch):
    """
    A head has a fixed time to arrive, however regularly a byte of it does; idle connections have the same.
    """
    monkeypatch.setattr(protocol, "HEAD_SECONDS_MAX", 0.3)
    with serving(plane) as server, ExitStack() as stack:
        idle = [stack.enter_context(server.socket()) for _ in range(200)]
        slow = stack.enter_context(server.socket())
        while not _is_ended(slow):
            slow.send(b"G")

        assert {tuple(_statuses(connection)) for connection in idle} == {(408,)}
        assert server.client(None).get("/healthz").status_code == 200


def test_slow_bodies_are_ended(plane):
    """
    A body has a fixed time to arrive.
    """
    with serving(plane, settings=Settings(body_seconds_max=0.3)) as server, server.socket() as connection:
        connection.sendall(
            b"POST /recall HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner-key\r\n"
            b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )

        assert _statuses(connection) == [408]


def test_a_502_does_not_name_addresses(plane):
    """
    Where the upstream is, and why it cannot be reached there, is the operator's business.
    """
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    settings = Settings(openai_base_url=f"http://127.0.0.1:{port}/v1", openai_api_key="not-a-key")
    with serving(plane, settings=settings) as server:
        answer = server.client().post(
            "/v1/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": "hi"}], "user": "alice"},
        )

    assert answer.status_code == 502
    assert "127.0.0.1" not in answer.text
    assert str(port) not in answer.text


@pytest.mark.parametrize("path", ["/metrics", "/v1/usage/summary", "/v1/usage/breakdown", "/v1/usage/limits"])
def test_figures_about_all_spaces_need_a_key_of_all(server, path):
    """
    A key of one space, one that may not read, and no key at all are not told about the others.
    """
    one = server.keys.add("one-key", subject="alice", spaces={"alice"})
    writer = server.keys.add("writer-key", subject="writer", rights={Right.WRITE})

    assert [server.client(key).get(path).status_code for key in (None, one, writer)] == [401, 403, 403]
    assert server.client().get(path).status_code == 200


def test_metrics_are_those_of_all_tenants(server):
    """
    A key of another tenant does not read them.
    """
    other = server.keys.add("other-key", subject="other", tenant="other")

    assert server.client(other).get("/metrics").status_code == 403


def test_many_idle_connections_keep_nobody_out(server):
    """
    Connections that say nothing take no thread.
    """
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(server.socket())

        assert server.client(None).get("/healthz").status_code == 200
