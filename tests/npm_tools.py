"""Programs that come from npm, installed by name, once, into a folder beside the tests. Without npm, or where the
registry cannot be reached or has no such thing, whoever needs one is skipped."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_PLACE = Path(__file__).parents[1] / ".conformance"
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
    """The folder with `node_modules`; made aside and given its name when it is whole, so that two may try at once."""
    place = _PLACE / f"{folder or package}-{version}"
    if (place / "node_modules").exists():
        return place
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip(f"node and npm are not installed, and {package} comes from there")
    _PLACE.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=_PLACE))
    try:
        done = subprocess.run(
            [npm, "install", "--prefix", aside, "--no-audit", "--no-fund", f"{package}@{version}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        if done.returncode and any(sign in done.stderr for sign in _ABSENT):
            reason = next((line for line in done.stderr.splitlines() if "code" in line), "no reason given")
            pytest.skip(f"{package} {version} cannot be installed here: {reason}")
        assert done.returncode == 0, done.stderr
        try:
            aside.rename(place)
        except OSError:
            assert (place / "node_modules").exists()
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return place


def command(package, version, name):
    """A program of a package."""
    return installed(package, version) / "node_modules" / ".bin" / name
