"""`memplane serve` as a process of its own, for tests."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx


class Served:
    """A running `memplane serve`."""

    def __init__(self, process, greeting, errors):
        self.process = process
        self.greeting = greeting
        self._errors = errors

    @property
    def url(self):
        return self.greeting["url"]

    def client(self, key=None, **options):
        headers = {"authorization": f"Bearer {key or self.greeting['owner_key']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False, **options)

    def get(self, path, **options):
        with self.client(**options) as client:
            return client.get(path)

    def end(self, number=signal.SIGTERM):
        """The exit code, and what was logged."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        return code, self.log()

    def log(self):
        return self._errors.read_text("utf-8").splitlines()

    def workers(self):
        """The processes below the one that was started."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]


@contextmanager
def serve(folder, *arguments, environment=None):
    errors = folder / "stderr.txt"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "memplane",
                "serve",
                "--json",
                "--port",
                "0",
                "--data",
                str(folder / "data"),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "MEMPLANE_EMBEDDING": "none", **(environment or {})},
        )
    try:
        line = process.stdout.readline()
        assert line, errors.read_text("utf-8")
        yield Served(process, json.loads(line), errors)
    finally:
        process.stdout.close()
        if process.poll() is None:
            process.kill()
            process.wait()
