"""Where the router listens: a socket file that only its owner can open, or a port of this machine."""

import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import zmq

from memplane.errors import SettingsInvalid

_TCP = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+):(\d{1,5}|\*)")
_PREFIX = "ipc://"


@contextmanager
def listening(router: "zmq.Socket[bytes]", address: str) -> Iterator[str]:
    """Bind; gives the address as it came out (a port may have been left to the system). Removes what it made."""
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
        raise SettingsInvalid(f"--socket {address}: name a file; others could open a socket without one")
    return Path(name)


def _prepare(path: Path) -> None:
    """Make the folder, and take away what a server left that was killed; one that lives is left alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise SettingsInvalid(f"--socket {path}: {exc.strerror}") from exc
    if not stat.S_ISSOCK(mode):
        raise SettingsInvalid(f"--socket {path} is there and is no socket; name another file")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise SettingsInvalid(f"--socket {path} is served already; stop that server or name another file")


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
    """There is no credential on this wire: who reaches the port is in."""
    found = _TCP.fullmatch(address)
    if found is None:
        raise SettingsInvalid(f"--socket {address}: give ipc://PATH or tcp://127.0.0.1:PORT")
    try:
        loopback = ipaddress.ip_address(found[1].strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise SettingsInvalid(f"--socket {address}: only a loopback address such as 127.0.0.1 is served")


def _bind(router: "zmq.Socket[bytes]", address: str) -> None:
    try:
        router.bind(address)
    except zmq.ZMQError as exc:
        raise SettingsInvalid(f"--socket {address} cannot be served: {exc}") from exc
