"""Runs server processes on one socket and one data directory, and restarts each one that exits or is stuck."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import structlog

_CHECK_INTERVAL_S = 0.1
_YOUNG_S = 5.0
"""A process that exits sooner is restarted after a delay."""
_WAIT_FIRST_S = 0.5
_WAIT_MAX_S = 30.0
_REPORTED = range(1, 5)
"""Exit codes of a reported error; a restart would fail the same way."""

STUCK = -signal.SIGALRM if hasattr(signal, "SIGALRM") else None
"""Exit code of a process killed by its watchdog."""

Start = Callable[[], "subprocess.Popen[bytes]"]


class _Seat:
    """A slot for one process, which may be restarted."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.process = start()
        self.since = time.monotonic()
        self.failures = 0
        self.again_at = 0.0
        self.empty = False

    def vacate(self, now: float) -> None:
        self.empty = True
        self.failures = self.failures + 1 if now - self.since < _YOUNG_S else 0
        wait = 0.0 if not self.failures else min(_WAIT_MAX_S, _WAIT_FIRST_S * 2.0 ** (self.failures - 1))
        self.again_at = now + wait

    def fill(self, now: float) -> None:
        self.process = self._start()
        self.since = now
        self.empty = False


class Supervisor:
    """Keeps `count` processes running until it is stopped, then waits for them to exit."""

    def __init__(
        self,
        start: Start,
        count: int,
        *,
        patience_s: float,
        ended: Callable[[int], None] = lambda _pid: None,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is called for each process that exited, `ending` once before all are stopped."""
        self._start = start
        self._count = count
        self._patience_s = patience_s
        self._ended = ended
        self._ending = ending
        self._stopping = threading.Event()
        self._log = structlog.get_logger()

    def run(self, greet: Callable[[], None] = lambda: None) -> int:
        """Return 0, or the exit code of a process that cannot start. `greet` is called once the supervisor can be
        stopped."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        seats: list[_Seat] = []
        try:
            greet()
            seats.extend(_Seat(self._start) for _ in range(self._count))
            code = self._watch(seats)
        finally:
            self._end(seats)
            for number, handler in before.items():
                signal.signal(number, handler)
        return code

    def _watch(self, seats: Sequence[_Seat]) -> int:
        served = False
        while not self._stopping.wait(_CHECK_INTERVAL_S):
            now = time.monotonic()
            served = served or now - min(seat.since for seat in seats) > _YOUNG_S
            for seat in seats:
                if seat.empty:
                    if now >= seat.again_at:
                        seat.fill(now)
                    continue
                code = seat.process.poll()
                if code is None:
                    continue
                if code in _REPORTED and not served:
                    return code
                self._ended(seat.process.pid)
                event = "worker stuck" if code == STUCK else "worker ended"
                self._log.error(event, pid=seat.process.pid, code=code)
                seat.vacate(now)
        return 0

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def _end(self, seats: Sequence[_Seat]) -> None:
        self._ending()
        running = [seat.process for seat in seats if seat.process.poll() is None]
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + self._patience_s
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
