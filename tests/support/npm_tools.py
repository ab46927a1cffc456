"""Programs that come from npm, installed by name, once, into a folder beside the tests. Without npm, or where the
registry cannot be reached or has no such thing, whoever needs one is skipped.

A run of all tests installs them aside from the start, so that few wait for it; whoever comes too early waits for that
and does not begin another.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

NEEDED = (("azurite", "3.37.0"), ("mcporter", "0.9.0"), ("axe-core", "4.14.0"))
"""What a run of all tests is going to ask for."""
_PATIENCE_S = 280
"""A little less than a test may take: a registry that is slower counts as one that cannot be reached."""
_PLACE = Path(__file__).parents[2] / ".conformance"
_ABSENT = (
    "ENOTFOUND",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "EAI_AGAIN",
    "E403",
    "E404",
    "E503",
    "ETARGET",
)


def installed(package, version, *, folder=None):
    """The folder with `node_modules`; made aside and given its name when it is whole."""
    place = _PLACE / f"{folder or package}-{version}"
    if (place / "node_modules").exists():
        return place
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip(f"node and npm are not installed, and {package} comes from there")
    _PLACE.mkdir(exist_ok=True)
    with _alone(place):
        if not (place / "node_modules").exists():
            _install(npm, package, version, place)
    return place


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Nobody else installs it meanwhile; the lock goes with whoever has it, however that ends."""
    until = time.monotonic() + _PATIENCE_S
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    pytest.skip(f"{place.name} is still being installed")
                time.sleep(0.1)
        yield


def _install(npm, package, version, place):
    aside = Path(tempfile.mkdtemp(dir=_PLACE))
    try:
        try:
            done = subprocess.run(
                [npm, "install", "--prefix", aside, "--no-audit", "--no-fund", f"{package}@{version}"],
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{package} {version} cannot be installed here in {_PATIENCE_S} s")
        if done.returncode and any(sign in done.stderr for sign in _ABSENT):
            reason = next((line for line in done.stderr.splitlines() if "code" in line), "no reason given")
            pytest.skip(f"{package} {version} cannot be installed here: {reason}")
        assert done.returncode == 0, done.stderr
        aside.rename(place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def command(package, version, name):
    """A program of a package."""
    return installed(package, version) / "node_modules" / ".bin" / name


@contextmanager
def installing() -> Iterator[None]:
    """All of them are installed meanwhile, in a process of its own, unless they are there."""
    if all((_PLACE / f"{package}-{version}" / "node_modules").exists() for package, version in NEEDED):
        yield
        return
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whoever needed something has waited for it
        process.wait()


if __name__ == "__main__":
    for needed in NEEDED:
        with suppress(Exception, pytest.skip.Exception):  # whoever needs it says what is wrong
            installed(*needed)
