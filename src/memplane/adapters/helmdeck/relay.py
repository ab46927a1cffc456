"""Messages between the processes of one server.

A stream belongs to the process that accepted its GET, and a POST may reach another process. So each process listens
on its own socket file in the data directory, and the process with the POST forwards the message. Messages are not
written to disk. Only this user may connect, and a process that has ended does not respond.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from memplane.adapters.helmdeck.rpc import MESSAGE_BYTES_MAX
from memplane.adapters.helmdeck.sessions import DeliveryOutcome
from memplane.auth.principal import Principal

_PARCEL_BYTES_MAX = MESSAGE_BYTES_MAX + (1 << 20)
_ADDRESS_BYTES_MAX = 100
"""The maximum length of a socket address on every system."""
_LENGTH_BYTES = 4
_QUEUED_MAX = 64
_SECONDS_MAX = 10.0

_log = structlog.get_logger("memplane.helmdeck")


class RelayedMessage(msgspec.Struct, frozen=True):
    """A message for a session of another process, and its sender."""

    session: str
    path: str
    principal: Principal
    message: bytes


Deliver = Callable[[str, str, Principal, bytes], DeliveryOutcome]


class SessionRelay:
    """The endpoint of this process. Without socket files, a process serves only its own sessions."""

    def __init__(self, folder: Path, worker: str, deliver: Deliver) -> None:
        self._folder = folder
        self._worker = worker
        self._deliver = deliver
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            self._sweep()
            listening = self._listen()
        except (OSError, AttributeError) as exc:
            _log.warning("facts_relay_closed", reason=type(exc).__name__)
            return
        self._server = await asyncio.start_unix_server(self._answer, sock=listening)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path(self._worker).unlink(missing_ok=True)
            self._server = None
        for task in list(self._answering):
            task.cancel()

    async def deliver(self, worker: str, parcel: RelayedMessage) -> DeliveryOutcome:
        """Forward to the process of the session; unknown if there is no such process."""
        packed = msgspec.msgpack.encode(parcel)
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                with self._address(worker) as address:
                    reader, writer = await asyncio.open_unix_connection(address)
                try:
                    writer.write(len(packed).to_bytes(_LENGTH_BYTES) + packed)
                    await writer.drain()
                    return DeliveryOutcome((await reader.read(64)).decode())
                finally:
                    writer.close()
        except (OSError, ValueError):  # a timeout is an OSError; an invalid outcome is a ValueError
            return DeliveryOutcome.UNKNOWN

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
                if length > _PARCEL_BYTES_MAX:
                    return
                parcel = msgspec.msgpack.decode(await reader.readexactly(length), type=RelayedMessage)
                outcome = self._deliver(parcel.session, parcel.path, parcel.principal, parcel.message)
                writer.write(outcome.value.encode())
                await writer.drain()
        except (OSError, EOFError, msgspec.DecodeError):
            return  # only a process of this user can have sent it; close without a reply
        finally:
            self._answering.discard(task)
            writer.close()

    def _listen(self) -> socket.socket:
        """Name the socket after it listens, so that a name without a listener is known to be stale."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._address(f"{self._worker}.new", suffix="") as address:
                listening.bind(address)
            listening.listen(_QUEUED_MAX)
            listening.setblocking(False)  # noqa: FBT003
            (self._folder / f"{self._worker}.new").rename(self._path(self._worker))
        except OSError:
            listening.close()
            raise
        return listening

    def _sweep(self) -> None:
        """Remove the socket files of killed processes."""
        for path in self._folder.glob("*.sock"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying, suppress(OSError):
                trying.settimeout(1)
                with self._address(path.stem) as address:
                    try:
                        trying.connect(address)
                    except ConnectionRefusedError:
                        path.unlink(missing_ok=True)

    def _path(self, worker: str) -> Path:
        return self._folder / f"{worker}.sock"

    @contextmanager
    def _address(self, worker: str, *, suffix: str = ".sock") -> Iterator[str]:
        """A short path to the file: a socket address is limited to about a hundred bytes, and data directories may be
        deep."""
        path = self._folder / f"{worker}{suffix}"
        if len(os.fsencode(path)) <= _ADDRESS_BYTES_MAX:
            yield str(path)
            return
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{path.name}"
        finally:
            os.close(folder)
