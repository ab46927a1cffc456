"""`memplane serve` in processes of its own, and tokens minted as Helmdeck's own script mints them."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt

PATIENCE_SECONDS = 240
"""Several processes load everything at once, and others want the processor too."""
SECRET = "a secret of at least thirty-two bytes"


def minted(subject, **claims):
    now = int(time.time())
    claims = {"sub": subject, "iss": "helmdeck", "iat": now, "nbf": now - 60, "exp": now + 3_600} | claims
    return jwt.encode(claims, SECRET, algorithm=claims.pop("alg", "HS256"))


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
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, **options
        )

    def get(self, path, **options):
        with self.client(**options) as client:
            return client.get(path)

    def end(self, number=signal.SIGTERM):
        """The exit code, and what was logged."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        return code, self.log()

    def log(self):
        return self._errors.read_text("utf-8").splitlines()

    def workers(self):
        """The processes below the one that was started."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


@contextmanager
def serve(folder, *arguments, environment=None, data=None, commands=None):
    """With `commands`, forked from the process that has loaded everything."""
    errors = folder / "stderr.txt"
    arguments = ["serve", "--json", "--port", "0", "--data", str(data or folder / "data"), *arguments]
    environment = {**os.environ, "MEMPLANE_EMBEDDING": "none", **(environment or {})}
    with errors.open("wb") as stderr:
        if commands is not None:
            process = commands.start(arguments, environment=environment, stderr=stderr.fileno())
        else:
            process = subprocess.Popen(
                [sys.executable, "-m", "memplane", *arguments],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
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


@contextmanager
def serve_process(folder, *arguments, commands=None, **environment):
    """The address of a server that takes `minted` tokens; it is told to end when the block does, and must do so in order."""
    environment = {"MEMPLANE_JWT_SECRET": SECRET, **environment}
    with serve(folder, *arguments, environment=environment, commands=commands) as served:
        yield served.url
        assert served.end()[0] == 0
