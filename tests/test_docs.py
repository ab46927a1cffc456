"""Every example in the documentation runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from http_server import OWNER
from preloaded import PROGRAM

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTHING = re.compile(r"^(.*?) +# nothing$")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_id(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if PYTHON.search(page.read_text("utf-8"))], ids=page_id
)
def test_python_examples_run(page, tmp_path, request, commands):
    """
    The Python blocks of a page, one after another, run as they stand; those that ask a server are given one.
    """
    program = "\n".join(PYTHON.findall(page.read_text("utf-8")))
    environment = dict(os.environ)
    if "MEMPLANE_TOKEN" in program:
        url = request.getfixturevalue("server").url
        environment |= {"MEMPLANE_URL": url, "MEMPLANE_TOKEN": OWNER, "NO_PROXY": "127.0.0.1"}

    code, _, errors = commands.run([PROGRAM, program], environment=environment, folder=tmp_path)

    assert code == 0, errors.decode()


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        ROOT / "docs/quickstart.md",
        ROOT / "docs/guides/backup.md",
        ROOT / "docs/guides/portable-memory.md",
        ROOT / "docs/guides/sync.md",
    ],
    ids=page_id,
)
def test_shell_examples_run(page, tmp_path, commands):
    """
    The shell blocks of a page run from top to bottom in a shell that stops at the first failure; where a comment says that
    nothing comes, nothing does.
    """
    lines = "\n".join(SHELL.findall(page.read_text("utf-8"))).splitlines()
    script = "\n".join(
        NOTHING.sub(r'test -z "$(\1)"', line)
        for line in lines
        if not line.startswith(("make ", "export PATH"))
    )
    environment = {
        "PATH": f"{commands.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MEMPLANE_DATA": str(tmp_path / "data"),
        "TMPDIR": str(tmp_path),
    }

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
