"""Kills this process if its event loop stands still.

A computation that keeps the interpreter's lock stops everything else: requests, health checks, even the handlers of
signals. So the kernel watches: a timer, set anew by every beat of the event loop, ends the process when no beat comes.
The supervisor starts another one; what was acknowledged is on disk.
"""

import faulthandler
import signal
import time

_BEAT_S = 1.0
_BEATS_MIN = 4
"""How many beats fit into the limit at least."""


class Watchdog:
    """For the main thread, which alone may change signal handlers."""

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._next = 0.0
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the default action needs no interpreter

    def beat(self) -> None:
        """Show that the event loop runs. The stacks of all threads are printed shortly before the end."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + min(_BEAT_S, self._seconds_max / _BEATS_MIN)
            signal.setitimer(signal.ITIMER_REAL, self._seconds_max)
            faulthandler.dump_traceback_later(self._seconds_max * 0.9)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
