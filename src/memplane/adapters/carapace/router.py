"""The ZeroMQ ROUTER: one thread reads and writes the socket, and a pool executes requests.

Requests of one connection run in order; connections do not wait for each other. The queue is bounded, and requests
beyond the limit are rejected at once.
"""

import ipaddress
import logging
import math
import os
import re
import socket
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec
import zmq

from memplane.adapters.carapace.failure import Code, IpcError, Stage
from memplane.adapters.carapace.pipeline import Pipeline
from memplane.adapters.carapace.wire import MESSAGE_BYTES_MAX, split
from memplane.errors import SettingsInvalid

# The listen address: a socket file that only its owner can open, or a local port.


_TCP = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+):(\d{1,5}|\*)")
_PREFIX = "ipc://"


@contextmanager
def listening(router: "zmq.Socket[bytes]", address: str) -> Iterator[str]:
    """Bind, and yield the actual address, since the system may have chosen the port. The socket file is removed at
    the end."""
    if address.startswith(_PREFIX):
        path = _socket_path(address)
        _prepare(path)
        with _bound_file(router, address, path):
            yield address
    else:
        _check_tcp(address)
        _bind(router, address)
        yield router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")


def _socket_path(address: str) -> Path:
    name = address.removeprefix(_PREFIX)
    if not name or name.startswith(("@", "*")):
        raise SettingsInvalid(
            f"--socket {address}: must name a file; other users could open an abstract socket"
        )
    return Path(name)


def _prepare(path: Path) -> None:
    """Create the directory, and remove the socket of a killed server. The socket of a running server is not touched."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise SettingsInvalid(f"--socket {path}: {exc.strerror}") from exc
    if not stat.S_ISSOCK(mode):
        raise SettingsInvalid(f"--socket {path} exists and is not a socket; use another file")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise SettingsInvalid(f"--socket {path} is in use; stop that server or use another file")


@contextmanager
def _bound_file(router: "zmq.Socket[bytes]", address: str, path: Path) -> Iterator[None]:
    mask = os.umask(0o177)
    try:
        _bind(router, address)
    finally:
        os.umask(mask)
    made = path.lstat().st_ino
    try:
        yield
    finally:
        with suppress(OSError):
            if path.lstat().st_ino == made:
                path.unlink()


def _check_tcp(address: str) -> None:
    """This protocol has no credentials: every process that can reach the port has access."""
    found = _TCP.fullmatch(address)
    if found is None:
        raise SettingsInvalid(f"--socket {address}: use ipc://PATH or tcp://127.0.0.1:PORT")
    try:
        loopback = ipaddress.ip_address(found[1].strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise SettingsInvalid(f"--socket {address}: only loopback addresses such as 127.0.0.1 are allowed")


def _bind(router: "zmq.Socket[bytes]", address: str) -> None:
    try:
        router.bind(address)
    except zmq.ZMQError as exc:
        raise SettingsInvalid(f"--socket {address} cannot be bound: {exc}") from exc


_FRAME_BYTES_MAX = 2 * MESSAGE_BYTES_MAX
"""A larger frame closes its connection unread; a smaller one gets a response."""
_REFUSED_BYTES_MAX = 64 * 1024
"""Under overload, a larger request is not even parsed for its correlation."""
_FRAMES_PER_TURN = 64
_FRAMES_PER_PEER_MAX = 64
_REPLIES_PER_PEER_MAX = 256
_LINGER_MS = 1_000

_log = logging.getLogger("memplane.ipc")


class RouterLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on concurrent and queued requests."""

    workers: int = 4
    waiting_per_identity_max: int = 64
    waiting_max: int = 1_024
    waiting_bytes_max: int = 64 * 1024 * 1024
    call_s_max: float = 30.0


class _Running(msgspec.Struct):
    """A running request."""

    payload: bytes
    deadline: float
    overdue: bool = False
    """A `PLUGIN_TIMEOUT` response was already sent."""


class IpcRouter:
    """`serve` until `stop` is called, from another thread or a signal handler."""

    def __init__(
        self,
        pipeline: Pipeline,
        address: str,
        *,
        bounds: RouterLimits | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._address = address
        self._bounds = bounds or RouterLimits()
        self._now = now
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._done: SimpleQueue[tuple[bytes, bytes | None]] = SimpleQueue()
        self._running: dict[bytes, _Running] = {}
        self._waiting: dict[bytes, deque[bytes]] = {}
        self._waiting_count = 0
        self._waiting_bytes = 0

    def serve(self, ready: Callable[[str], None] = lambda _address: None) -> None:
        """Serve requests until stopped. Calls `ready` with the address once clients can connect."""
        context = zmq.Context()
        try:
            with context.socket(zmq.ROUTER) as router:
                _configure(router)
                with listening(router, self._address) as address, self._pool() as pool:
                    ready(address)
                    self._loop(router, pool)
        finally:
            context.term()
            ends = self._wake_read, self._wake_write
            self._wake_read = self._wake_write = -1
            for end in ends:
                os.close(end)

    @property
    def wake_descriptor(self) -> int:
        """For `signal.set_wakeup_fd`: a signal received by another thread also wakes the polling thread."""
        return self._wake_write

    def stop(self) -> None:
        """Finish running requests and send their responses; queued requests get an error and may be retried."""
        self._stopping = True
        self._wake()

    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._bounds.workers, thread_name_prefix="memplane-ipc")

    def _loop(self, router: "zmq.Socket[bytes]", pool: ThreadPoolExecutor) -> None:
        poller = zmq.Poller()
        poller.register(router, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        while not self._stopping or self._running:
            poller.poll(self._patience_ms())
            self._rest()
            self._finish(router, pool)
            self._answer_overdue(router)
            self._read(router, pool)
            if self._stopping:
                self._turn_away(router)

    def _read(self, router: "zmq.Socket[bytes]", pool: ThreadPoolExecutor) -> None:
        """Read incoming requests, but limit the batch so that responses are not delayed."""
        for _ in range(_FRAMES_PER_TURN):
            try:
                frames = router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            found = split(frames)
            if found is not None:
                self._receive(router, pool, *found)

    def _receive(
        self, router: "zmq.Socket[bytes]", pool: ThreadPoolExecutor, identity: bytes, payload: bytes
    ) -> None:
        if identity not in self._running and not self._stopping:
            self._start(pool, identity, payload)
            return
        refusal = self._refusal(identity, payload)
        if refusal is not None:
            self._refuse(router, identity, payload, refusal)
            return
        self._waiting.setdefault(identity, deque()).append(payload)
        self._waiting_count += 1
        self._waiting_bytes += len(payload)

    def _refusal(self, identity: bytes, payload: bytes) -> IpcError | None:
        """The reason why a request cannot be queued."""
        bounds = self._bounds
        if self._stopping:
            return _unavailable("The host is shutting down; try again.")
        if len(self._waiting.get(identity, ())) >= bounds.waiting_per_identity_max:
            return IpcError(
                Stage.AUTHORIZE,
                Code.RATE_LIMITED,
                f"{bounds.waiting_per_identity_max} requests of this connection are already queued; try again.",
                retriable=True,
                retry_after=1,
            )
        full = self._waiting_count >= bounds.waiting_max
        if full or self._waiting_bytes + len(payload) > bounds.waiting_bytes_max:
            return _unavailable("The host is overloaded; try again.")
        return None

    def _start(self, pool: ThreadPoolExecutor, identity: bytes, payload: bytes) -> None:
        self._running[identity] = _Running(payload, self._now() + self._bounds.call_s_max)
        pool.submit(self._work, identity, payload)

    def _work(self, identity: bytes, payload: bytes) -> None:
        """Runs in a thread of the pool."""
        reply = None
        try:
            reply = self._pipeline.answer(identity, payload)
        except Exception:  # noqa: BLE001 - one request must not stop the service
            _log.exception("a request failed unexpectedly")
        finally:
            self._done.put((identity, reply))
            self._wake()

    def _finish(self, router: "zmq.Socket[bytes]", pool: ThreadPoolExecutor) -> None:
        """Send completed responses, and start the next request of each connection."""
        while True:
            try:
                identity, reply = self._done.get_nowait()
            except Empty:
                return
            running = self._running.pop(identity)
            if reply is not None and not running.overdue:
                _send(router, identity, reply)
            waiting = self._waiting.get(identity)
            if waiting and not self._stopping:
                self._start(pool, identity, self._next(identity, waiting))

    def _next(self, identity: bytes, waiting: deque[bytes]) -> bytes:
        payload = waiting.popleft()
        self._waiting_count -= 1
        self._waiting_bytes -= len(payload)
        if not waiting:
            del self._waiting[identity]
        return payload

    def _answer_overdue(self, router: "zmq.Socket[bytes]") -> None:
        """A running call cannot be interrupted, but its client gets a timeout response. The call may still complete."""
        now = self._now()
        for identity, running in self._running.items():
            if running.deadline <= now and not running.overdue:
                running.overdue = True
                message = f"The call takes over {self._bounds.call_s_max:g} s; it may still complete."
                late = IpcError(Stage.ROUTE, Code.PLUGIN_TIMEOUT, message, retriable=True)
                self._refuse(router, identity, running.payload, late)

    def _turn_away(self, router: "zmq.Socket[bytes]") -> None:
        refusal = _unavailable("The host is shutting down; try again.")
        for identity in list(self._waiting):
            waiting = self._waiting[identity]
            while waiting:
                self._refuse(router, identity, self._next(identity, waiting), refusal)

    def _refuse(
        self, router: "zmq.Socket[bytes]", identity: bytes, payload: bytes, refusal: IpcError
    ) -> None:
        if len(payload) > _REFUSED_BYTES_MAX:
            return
        reply = self._pipeline.refuse(identity, payload, refusal)
        if reply is not None:
            _send(router, identity, reply)

    def _patience_ms(self) -> int | None:
        deadlines = [running.deadline for running in self._running.values() if not running.overdue]
        return max(0, math.ceil((min(deadlines) - self._now()) * 1_000)) if deadlines else None

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            return  # the pipe is full, so the thread wakes anyway, or it has ended

    def _rest(self) -> None:
        try:
            os.read(self._wake_read, 4_096)
        except BlockingIOError:
            return


def _configure(router: "zmq.Socket[bytes]") -> None:
    router.setsockopt(zmq.LINGER, _LINGER_MS)
    # Each `ipc` call opens a new connection with the same identity, often before the previous one is closed.
    router.setsockopt(zmq.ROUTER_HANDOVER, 1)
    router.setsockopt(zmq.MAXMSGSIZE, _FRAME_BYTES_MAX)
    router.setsockopt(zmq.RCVHWM, _FRAMES_PER_PEER_MAX)
    router.setsockopt(zmq.SNDHWM, _REPLIES_PER_PEER_MAX)


def _send(router: "zmq.Socket[bytes]", identity: bytes, reply: bytes) -> None:
    """Replies to disconnected peers are dropped, as are replies beyond the buffer of a peer that does not read."""
    try:
        router.send_multipart([identity, b"", reply], zmq.NOBLOCK)
    except zmq.ZMQError:
        _log.debug("a reply could not be sent", exc_info=True)


def _unavailable(message: str) -> IpcError:
    return IpcError(Stage.AUTHORIZE, Code.PLUGIN_UNAVAILABLE, message, retriable=True, retry_after=1)
