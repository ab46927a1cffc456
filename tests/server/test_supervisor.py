"""The supervisor, with processes that do nothing but end."""

import os
import signal
import subprocess
import sys
import threading

from memplane.server.supervisor import Supervisor

LIVES = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)\nwhile True: signal.pause()"


class Started:
    """Starts processes, and remembers them; after `enough` it asks the supervisor to end."""

    def __init__(self, *programs, enough=None):
        self._programs = programs
        self._enough = enough
        self.processes = []

    def __call__(self):
        program = self._programs[min(len(self.processes), len(self._programs) - 1)]
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        self.processes.append(process)
        if program is DEAF:
            process.stdout.readline()
        process.stdout.close()
        if len(self.processes) == self._enough:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return process


def test_one_that_ends_is_started_again():
    """
    Killed or crashed, its place is filled; in the end all are told to end, and waited for.
    """
    ended = []
    started = Started("import os; os.kill(os.getpid(), 9)", LIVES, enough=3)

    assert Supervisor(started, 2, patience_s=30, ended=ended.append).run() == 0
    assert ended == [started.processes[0].pid]
    assert [process.returncode for process in started.processes] == [-9, -15, -15]


def test_one_that_says_what_is_wrong_ends_all():
    """
    The next would say the same, so its exit code is everybody's.
    """
    started = Started("raise SystemExit(4)", LIVES)

    assert Supervisor(started, 2, patience_s=30).run() == 4
    assert all(process.returncode is not None for process in started.processes)


def test_one_that_does_not_listen_is_ended_all_the_same():
    """
    Patience has an end.
    """
    started = Started(DEAF, enough=1)

    assert Supervisor(started, 1, patience_s=0.05).run() == 0
    assert started.processes[0].returncode == -9
