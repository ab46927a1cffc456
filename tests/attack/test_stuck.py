"""A server process that does not answer is killed and replaced."""

import os
import signal
import time
from pathlib import Path

import httpx

from serve_process import PATIENCE_SECONDS, serve

_STUCK = Path(__file__).parents[1] / "support" / "stuck_process"


def _answered(served):
    """Wait for a health check to succeed."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            if httpx.get(f"{served.url}/healthz", timeout=PATIENCE_SECONDS, trust_env=False).is_success:
                return
        except httpx.TransportError:
            continue
    raise AssertionError(served.log())


def test_a_stuck_process_is_replaced(tmp_path):
    """
    One computation that keeps the interpreter's lock costs one process, for as long as the setting says, and nothing else.
    """
    environment = {"PYTHONPATH": str(_STUCK), "MEMPLANE_STUCK_SECONDS_MAX": "2"}
    with serve(tmp_path, "--supervise", "--no-auth", environment=environment) as served:
        _answered(served)
        (before,) = served.workers()
        os.kill(before, signal.SIGUSR1)
        _answered(served)
        (after,) = served.workers()
        code, log = served.end()

    assert after != before
    assert code == 0
    assert any("worker stuck" in line for line in log)
    assert any("sitecustomize" in line for line in log), "the log shows where it was stuck"
