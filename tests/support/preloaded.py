"""The `memplane` command without the wait: a process that has loaded everything forks for each command line.

What a command reads and says goes through real streams, of a process of its own; only the start of the interpreter is
left out, which takes longer than most commands. Some tests start real ones all the same.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn, Self

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    socket.send_fds(there, [b"."], [0, 1, 2])
    there.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())
    there.shutdown(socket.SHUT_WR)
    there.recv(4)
    answer = there.recv(1)
os._exit(answer[0] if answer else 70)
"""
PROGRAM = "-c"
"""Instead of the arguments of `memplane`: the text of a Python program follows."""
_PID = struct.Struct("!i")
_APART = "memplane.adapters.anthropic"
"""No command needs it, and the library that it is for takes as long as all others together."""


class Started:
    """A command that runs: as much of `subprocess.Popen` as tests ask for."""

    def __init__(
        self, there: socket.socket, stdin: int | None, stdout: int | None, stderr: int | None
    ) -> None:
        self._there = there
        self.pid: int = _PID.unpack(there.recv(_PID.size, socket.MSG_WAITALL))[0]
        self._ending = os.pidfd_open(self.pid)
        self.stdin, self.stdout, self.stderr = (
            None if end is None else os.fdopen(end, mode)
            for end, mode in ((stdin, "wb"), (stdout, "rb"), (stderr, "rb"))
        )
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._waited(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._waited(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("memplane", timeout or 0)
        return code

    def _waited(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], timeout)[0]:
            said = b""  # of one that was killed
            with self._there, suppress(BlockingIOError):
                said = self._there.recv(1, socket.MSG_DONTWAIT)
            self.returncode = said[0] if said else -signal.SIGKILL
            os.close(self._ending)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        if self.stdin is not None:
            self.stdin.close()
        said: dict[IO[bytes], bytes] = {}
        read = [
            threading.Thread(target=lambda one=one: said.update({one: one.read()}))
            for one in (self.stdout, self.stderr)
            if one is not None
        ]
        for thread in read:
            thread.start()
        self.wait(timeout)
        for thread in read:
            thread.join()
        for one in said:
            one.close()
        return tuple(b"" if one is None else said[one] for one in (self.stdout, self.stderr))

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ending, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


class Preloaded:
    """Commands that are asked of a running process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """What goes first on a PATH for `memplane` to be one of these."""
        self._address = str(folder / "socket")

    def run(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        folder: Path | None = None,
    ) -> tuple[int, bytes, bytes]:
        """The exit code, what was said, and what went wrong."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as said,
            tempfile.TemporaryFile() as errors,
        ):
            given.write(stdin)
            given.seek(0)
            streams = (given.fileno(), said.fileno(), errors.fileno())
            with self._asked(streams) as there:
                there.recv(_PID.size, socket.MSG_WAITALL)
                _say(there, arguments, environment, folder)
                answer = there.recv(1)
            assert answer, "it ended without a word"
            said.seek(0)
            errors.seek(0)
            return answer[0], said.read(), errors.read()

    def start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> Started:
        """One that goes on. A stream is a pipe, nothing, or whatever has that number."""
        theirs, ours = zip(*(_ends(stdin, 0), _ends(stdout, 1), _ends(stderr, 1)), strict=True)
        there = self._asked(theirs)
        for end, given in zip(theirs, (stdin, stdout, stderr), strict=True):
            if end != given:
                os.close(end)
        started = Started(there, *ours)  # before it knows what to do, or it might be through already
        _say(there, arguments, environment, None)
        return started

    def _asked(self, streams: Sequence[int]) -> socket.socket:
        there = socket.socket(socket.AF_UNIX)
        there.connect(self._address)
        socket.send_fds(there, [b"."], streams)
        return there


def _say(
    there: socket.socket, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None
) -> None:
    there.sendall(json.dumps([list(arguments), dict(environment), str(folder or Path.cwd())]).encode())
    there.shutdown(socket.SHUT_WR)


def _ends(wanted: int, writes: int) -> tuple[int, int | None]:
    """Of a stream: theirs, and ours where there is one."""
    if wanted == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    if wanted != subprocess.PIPE:
        return wanted, None
    ends = os.pipe()
    return ends[writes], ends[1 - writes]


@contextmanager
def preloaded(folder: Path) -> Iterator[Preloaded]:
    """Whoever asks before everything is loaded waits in the queue of the socket, and nobody else does."""
    address = str(folder / "socket")
    script = folder / "memplane"
    script.write_text(CLIENT.format(python=sys.executable, address=address), "utf-8")
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    assert process.stdin is not None
    try:
        yield Preloaded(folder)
    finally:
        process.stdin.close()
        process.wait(60)


# ── the process ──────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(listener: socket.socket) -> None:
    """Until stdin ends, which it does with whoever started this."""
    run = _loaded()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here: they answer for themselves
    with listener:
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            there, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(there, run)
            there.close()


def _loaded() -> Callable[[], None]:
    """Everything that any command would load, and how to run one."""
    import memplane

    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # as whoever loads the runtime does
    for module in pkgutil.walk_packages(memplane.__path__, "memplane."):
        if not module.name.startswith(_APART):
            importlib.import_module(module.name)
    for name in ("tokenizers", "uvicorn.protocols.http.httptools_impl", "uvicorn.lifespan.on"):
        importlib.import_module(name)
    run: Callable[[], None] = importlib.import_module("memplane.__main__").run
    gc.collect()
    gc.freeze()
    return run


def _answer(there: socket.socket, run: Callable[[], None]) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # A job in the background ignores Ctrl-C and hands that on; a person's terminal does not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    there.sendall(_PID.pack(os.getpid()))
    _, streams, _, _ = socket.recv_fds(there, 1, 3)
    raw = b""
    while more := there.recv(1 << 16):
        raw += more
    arguments, environment, folder = json.loads(raw)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None
    sys.argv = ["memplane", *arguments]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True
    )
    code = 0
    try:
        if arguments[:1] == [PROGRAM]:
            _run_program(arguments[1])
        else:
            run()
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        there.sendall(bytes([code]))
        os._exit(code)


def _run_program(text: str) -> None:
    """As `python -c` would."""
    sys.path.insert(0, "")
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(text, "<string>", "exec"), vars(module))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
