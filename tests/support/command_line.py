"""Two ways to the command line: the real console script in a process of its own, and the same app in this one."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer import testing
from typer.testing import CliRunner

from memplane.__main__ import open_plane as open_from_environment
from memplane.cli.app import assembled
from memplane.terminal.call import Wiring
from preloaded import Preloaded, Started

SCRIPT = Path(sys.executable).with_name("memplane")

# Typer makes all commands anew whenever one is invoked, which takes longer than what most of them do.
testing._get_command = cache(testing._get_command)
the_app = cache(assembled)


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as the one document it must be."""
        return json.loads(self.out)


class Shell:
    """Runs `memplane` as a script would: without a terminal, on a data directory of its own. The installed one where
    the environment is said or the process is wanted itself, otherwise one that has loaded everything already."""

    def __init__(self, folder: Path, commands: Preloaded) -> None:
        self._commands = commands
        self.data = folder / "data"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "MEMPLANE_DATA": str(self.data),
        }

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Done:
        if not environment:
            code, out, err = self._commands.run(arguments, environment=self.environment, stdin=stdin)
            return Done(code, out.decode(), err.decode())
        done = subprocess.run(
            [SCRIPT, *arguments],
            input=stdin,
            env=self.environment | environment,
            capture_output=True,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def fork(self, *arguments: str, **streams: int) -> Started:
        """One that goes on, of those that have loaded everything."""
        return self._commands.start(arguments, environment=self.environment, **streams)

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        # A job in the background ignores Ctrl-C and hands that on; a person's terminal does not.
        return subprocess.Popen(
            [SCRIPT, *arguments], env=self.environment, preexec_fn=_heed_interrupts, **streams
        )


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Inside:
    """Invokes the app in this process, wired as the entry point wires it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.wiring = Wiring(
            open=open_from_environment, environment={"MEMPLANE_DATA": str(self.data)}, actor="tester"
        )

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Done:
        result = CliRunner(env={"COLUMNS": "200"}).invoke(
            the_app(),
            list(arguments),
            input=stdin,
            obj=self.wiring,
            prog_name="memplane",
            catch_exceptions=False,
        )
        return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def shell(tmp_path: Path, commands: Preloaded) -> Shell:
    return Shell(tmp_path, commands)


@pytest.fixture
def cli(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cli = Inside(tmp_path_factory.mktemp("filled"))
    cli("retain", "I moved to Lisbon last week", "--conversation", "c1")
    cli("store", "preference", "Prefers tea", "--tag", "drinks")
    cli("put", "preferences/theme", "dark")
    cli("put", "preferences/theme", "light")
    cli("retain", "A slip of the tongue", "--conversation", "c2")
    cli("forget", "--conversation", "c2", "--reason", "asked")
    return cli.data


@pytest.fixture
def filled(cli: Inside, filled_once: Path) -> Inside:
    """A space with something of everything in it."""
    shutil.copytree(filled_once, cli.data)
    return cli
