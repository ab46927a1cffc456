"""Carapace's `ipc` client as far as its wire goes: a DEALER that asks one thing, and how the command would end."""

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple, Self

import zmq

from memplane.adapters.carapace.groups import Groups
from memplane.adapters.carapace.pipeline import Pipeline
from memplane.adapters.carapace.router import IpcRouter

TIMEOUT_MS = 35_000


class Ended(NamedTuple):
    """How a call of the command ends."""

    code: int
    stdout: Any = None
    stderr: Any = None


class Dealer:
    """One connection. The command makes one per call."""

    def __init__(self, address: str, identity: str | bytes | None = None) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        if identity is not None:
            self._socket.routing_id = identity.encode() if isinstance(identity, str) else identity
        self._socket.connect(address)

    def send(self, *frames: bytes) -> None:
        self._socket.send_multipart(frames)

    def ask(self, topic: Any, arguments: Any, **more: Any) -> str:
        """Send a request the way the client does; returns its correlation."""
        correlation = str(uuid.uuid4())
        wire = {"topic": topic, "correlation": correlation, "arguments": arguments, **more}
        self.send(b"", json.dumps(wire).encode())
        return correlation

    def receive(self, timeout_ms: int = TIMEOUT_MS) -> Any:
        """The next response, or None; the client takes the last frame."""
        if not self._socket.poll(timeout_ms):
            return None
        frames = self._socket.recv_multipart()
        assert frames[:-1] == [b""]
        return json.loads(frames[-1])

    def close(self) -> None:
        self._socket.close()
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ipc(
    address: str, topic: Any, arguments: Any, *, identity: str | bytes | None = "c1", **more: Any
) -> Ended:
    """`ipc TOPIC JSON`: result on stdout and 0, or error on stderr and 1."""
    with Dealer(address, identity) as dealer:
        correlation = dealer.ask(topic, arguments, **more)
        response = dealer.receive()
    if response is None:
        return Ended(1, stderr={"code": "IPC_ERROR", "message": "timeout", "retriable": False})
    assert response["correlation"] == correlation
    payload = response["payload"]
    if payload["error"] is not None:
        assert payload["result"] is None
        return Ended(1, stderr=payload["error"])
    return Ended(0, stdout=payload["result"])


class Host:
    """A router in a thread."""

    def __init__(
        self, plane: Any, folder: Any, *, groups: Groups | None = None, bounds: Any = None, **rest: Any
    ):
        self.address = f"ipc://{folder}/memplane.sock"
        self.router = IpcRouter(Pipeline(plane, groups or Groups(), **rest), self.address, bounds=bounds)
        self._failed: list[BaseException] = []
        self._ready = Event()
        self._thread = Thread(target=self._serve)
        self._thread.start()
        self._ready.wait()
        if self._failed:
            raise self._failed[0]

    def _serve(self) -> None:
        try:
            self.router.serve(lambda _address: self._ready.set())
        except BaseException as exc:  # noqa: BLE001 - the test that opened it is told
            self._failed.append(exc)
        finally:
            self._ready.set()

    def dealer(self, identity: str | bytes | None = "c1") -> Dealer:
        return Dealer(self.address, identity)

    def tool(self, name: str, arguments: Any, *, identity: str | bytes | None = "c1", **more: Any) -> Ended:
        return ipc(self.address, f"tool.invoke.{name}", arguments, identity=identity, **more)

    def result(self, name: str, arguments: Any, *, identity: str | bytes | None = "c1") -> Any:
        ended = self.tool(name, arguments, identity=identity)
        assert ended.code == 0, ended.stderr
        return ended.stdout

    def store(
        self, content: str, *, type: str = "fact", identity: str | bytes | None = "c1", **rest: Any
    ) -> Any:
        return self.result("memory_store", {"type": type, "content": content, **rest}, identity=identity)

    def stop(self) -> None:
        self.router.stop()
        self._thread.join()


@contextmanager
def hosts(open_plane: Any, folder: Any, clock: Any) -> Iterator[Any]:
    """Opens hosts, over a plane of its own unless one is given, and stops all in the end."""
    with ExitStack() as opened:

        def open_(plane: Any = None, settings: Any = None, **options: Any) -> Host:
            host = Host(plane or open_plane(**settings or {}), folder, **{"clock": clock, **options})
            opened.callback(host.stop)
            return host

        yield open_


def failed(code: str, message: str, *, retriable: bool = False, **rest: Any) -> Ended:
    return Ended(1, stderr={"code": code, "message": message, "retriable": retriable, **rest})


def contents(found: Any) -> list[str]:
    return [entry["content"] for entry in found.get("results", found.get("entries"))]
