"""`memplane serve` in processes of its own, with tokens minted as Helmdeck's own script mints them."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt

SECRET = "a secret of at least thirty-two bytes"


def minted(subject, **claims):
    now = int(time.time())
    claims = {"sub": subject, "iss": "helmdeck", "iat": now, "nbf": now - 60, "exp": now + 3_600} | claims
    return jwt.encode(claims, SECRET, algorithm=claims.pop("alg", "HS256"))


@contextmanager
def serve_process(data, *arguments, **environment):
    """The address of a server that is up; it is told to end when the block does, and must do so in order."""
    source = Path(__file__).parents[1] / "src"
    process = subprocess.Popen(
        [sys.executable, "-m", "memplane", "serve", "--json", "--port", "0", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(data),
            "PYTHONPATH": str(source),
            "MEMPLANE_DATA": str(data),
            "MEMPLANE_EMBEDDING": "none",
            "MEMPLANE_JWT_SECRET": SECRET,
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        greeting = b""
        while True:
            greeting += process.stdout.readline()
            assert process.poll() is None, greeting
            try:
                url = json.loads(greeting)["url"]
                break
            except ValueError:
                continue
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            assert client.get("/healthz").status_code == 200
        yield url
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
