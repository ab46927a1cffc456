"""What a command loads: hundreds of tests and every hook of an agent start one and wait for it."""

import json
import subprocess
import sys

import pytest

_RUN = """
import json, sys
from memplane.__main__ import run
try:
    run()
except SystemExit as end:
    loaded = sorted({name.partition(".")[0] for name in sys.modules})
    print(json.dumps([end.code, loaded, len(sys.modules)]), file=sys.stderr)
"""
SERVING = {"uvicorn", "starlette", "jinja2", "mcp", "opentelemetry", "prometheus_client"}
MODULES_MAX = 900
OTHERS = {
    "aiohttp",
    "httpx",
    "openai",
    "anthropic",
    "psycopg",
    "zmq",
    "cryptography",
    "joserfc",
    "onnxruntime",
}


def loaded(tmp_path, *arguments):
    """The packages, and how many modules, that a command ends with."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": ":".join(sys.path),
            "HOME": str(tmp_path),
            "MEMPLANE_DATA": str(tmp_path / "data"),
        },
    )
    code, packages, count = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(packages), count


@pytest.mark.parametrize("arguments", [["--version"], ["put", "theme", "dark"]], ids=" ".join)
def test_a_command_loads_what_it_needs(tmp_path, arguments):
    """
    Nothing that serves, talks to others, or signs tokens; neither parsers of formats that are not read.
    """
    packages, count = loaded(tmp_path, *arguments)

    assert packages & (SERVING | OTHERS | {"yaml", "pypdf", "docx"}) == set()
    assert count < MODULES_MAX
