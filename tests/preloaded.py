"""The `memplane` command without the wait: a process that has loaded everything forks for each command line.

What a command reads and says goes through real streams, of a process of its own; only the start of the interpreter is
left out, which takes longer than most commands. Some tests start real ones all the same.
"""

import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    socket.send_fds(there, [b"."], [0, 1, 2])
    there.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())
    there.shutdown(socket.SHUT_WR)
    answer = there.recv(1)
os._exit(answer[0] if answer else 70)
"""


class Preloaded:
    """Commands that are asked of a running process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """What goes first on a PATH for `memplane` to be one of these."""
        self._address = str(folder / "socket")
        script = folder / "memplane"
        script.write_text(CLIENT.format(python=sys.executable, address=self._address), "utf-8")
        script.chmod(0o755)

    def run(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        """The exit code, what was said, and what went wrong."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as said,
            tempfile.TemporaryFile() as errors,
            socket.socket(socket.AF_UNIX) as there,
        ):
            given.write(stdin)
            given.seek(0)
            there.connect(self._address)
            socket.send_fds(there, [b"."], [given.fileno(), said.fileno(), errors.fileno()])
            there.sendall(json.dumps([list(arguments), dict(environment), str(Path.cwd())]).encode())
            there.shutdown(socket.SHUT_WR)
            answer = there.recv(1)
            assert answer, "it ended without a word"
            said.seek(0)
            errors.seek(0)
            return answer[0], said.read(), errors.read()


@contextmanager
def preloaded(folder: Path) -> Iterator[Preloaded]:
    asked = Preloaded(folder)
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder / "socket")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline(), "it did not start"
        yield asked
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


# ── the process ──────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(address: str) -> None:
    """Until stdin ends, which it does with whoever started this."""
    from memplane.__main__ import run  # noqa: PLC0415 - only the process needs it

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here: they answer for themselves
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)  # noqa: T201 - that is how it is said
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            there, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(there, run)
            there.close()


def _answer(there: socket.socket, run) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
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
    code = 70
    try:
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


if __name__ == "__main__":
    serve(sys.argv[1])
