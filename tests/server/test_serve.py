"""`memplane serve` as a process: it starts, says where it is, survives the death of its workers, and ends in order."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from memplane.errors import SettingsInvalid
from memplane.server.serve import listen
from serve_process import PATIENCE_SECONDS, serve


def test_the_first_start_shows_the_owners_key_once(tmp_path, commands):
    """
    The key works, the second start shows none, and the first key works still.
    """
    with serve(tmp_path) as first:
        key = first.greeting["owner_key"]
        assert first.get("/metrics").status_code == 200
        assert first.end()[0] == 0
    with serve(tmp_path, commands=commands) as second:
        assert second.greeting["owner_key"] is None
        assert second.get("/metrics", key=key).status_code == 200
        assert second.get("/metrics", key="wrong").status_code == 401


needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="there is no curl to try the commands with"
)


def told_by(commands, data, *arguments):
    """A server that speaks to people, and the lines that it greeted them with."""
    process = commands.start(
        ["serve", "--port", "0", "--data", str(data), *arguments],
        environment={**os.environ, "MEMPLANE_EMBEDDING": "none", "MEMPLANE_RECALL_ANSWER_MS": "60000"},
        stderr=subprocess.DEVNULL,
    )
    told = [process.stdout.readline().decode()]
    while sum("curl" in line for line in told) < 3:
        told.append(process.stdout.readline().decode())
    return process, told


@needs_curl
@pytest.mark.parametrize("auth", [[], ["--no-auth"]])
def test_people_are_told_where_it_is_and_what_to_try(tmp_path, commands, auth):
    """
    Without `--json`: the address, the key, and three commands that work as they stand.
    """
    process, told = told_by(commands, tmp_path / "data", *auth)
    script = "\n".join(line for line in told if line.startswith("  "))
    tried = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True)
    process.terminate()
    rest, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert re.match(r"Memplane is running at http://127\.0\.0\.1:\d+ ", told[0])
    assert ("export MEMPLANE_TOKEN=mp_" in script) is (not auth)
    assert '"key":"preferences/drink"' in tried.stdout
    assert "She drinks green tea" in tried.stdout
    assert '"openapi":"3.1.0"' in tried.stdout
    assert (rest, process.returncode) == (b"", 0)


@needs_curl
def test_a_later_start_says_how_to_make_a_key(tmp_path, commands):
    """
    The owner's key is shown once. The command that is named instead works as it stands, and its key for what to try.
    """
    with serve(tmp_path, commands=commands):
        pass
    process, told = told_by(commands, tmp_path / "data")
    make = re.search(r"Create an API key with `memplane (key create .*)`", "".join(told))[1]
    made = commands.run(["--data", str(tmp_path / "data"), *make.split()], environment=os.environ)
    tried = subprocess.run(
        ["bash", "-euc", "\n".join(line for line in told if line.startswith("  "))],
        env={**os.environ, "MEMPLANE_TOKEN": made[1].decode().strip()},
        capture_output=True,
        text=True,
        check=True,
    )
    process.terminate()
    process.communicate(timeout=PATIENCE_SECONDS)

    assert made[0] == 0
    assert tried.stdout.count("She drinks green tea") == 1


def test_no_auth_is_for_this_machine_only(tmp_path, commands):
    """
    Refused on an address that others can reach; on loopback nobody is asked for a key.
    """
    code, _, errors = commands.run(
        ["serve", "--no-auth", "--host", "0.0.0.0", "--data", str(tmp_path)], environment=os.environ
    )
    with serve(tmp_path, "--no-auth", commands=commands) as served:
        assert (
            httpx.get(f"{served.url}/metrics", timeout=PATIENCE_SECONDS, trust_env=False).status_code == 200
        )

    assert code == 1
    assert b"--no-auth" in errors


def test_a_port_in_use_is_said(tmp_path, commands):
    """
    One line that says what to do; no key is made that nobody could use.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, errors = commands.run(
            ["serve", "--data", str(tmp_path), "--port", port], environment=os.environ
        )

    assert code == 1
    assert errors.startswith(b"memplane: ")
    assert b"another --port" in errors
    assert not (tmp_path / "catalog.db").exists()


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
def test_an_address_of_another_machine_is_said(host):
    """
    Another port would not help.
    """
    with pytest.raises(SettingsInvalid, match="another --host"):
        listen(host, 0)


SLOW = (
    b"POST /api/v1/nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n"
)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_under_way_is_finished_after_sigterm(tmp_path, commands, workers):
    """
    The answer comes, then the process ends with 0; new connections are refused meanwhile.
    """
    with serve(tmp_path, "--workers", workers, commands=commands) as served:
        assert served.get("/healthz").status_code == 200
        port = int(served.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(SLOW)
            waiting = connection.recv(65_536)  # it says that it waits for the body
            connection.sendall(b"ab")
            served.process.send_signal(signal.SIGTERM)
            while _is_open(port):
                pass
            connection.sendall(b"cd")
            answer = connection.recv(65_536)
        code = served.process.wait(PATIENCE_SECONDS)

    assert waiting.startswith(b"HTTP/1.1 100 Continue")
    assert answer.startswith(b"HTTP/1.1 404")
    assert code == 0


def _is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_worker_that_dies_is_replaced(tmp_path):
    """
    Killed without warning: the other answers meanwhile, a new one comes, and everything counted stays counted.
    """
    with serve(tmp_path, "--workers", "2") as served:
        assert served.get("/metrics").status_code == 200
        before = served.workers()
        os.kill(before[0], signal.SIGKILL)
        while len(set(served.workers()) - {before[0]}) < 2:
            assert served.get("/healthz").status_code == 200
        figures = served.get("/metrics").text
        after = served.workers()
        code, log = served.end()

    assert len(before) == len(after) == 2
    assert re.search(r'memplane_http_requests_total\{.*route="/metrics".*\} \d', figures)
    assert any(json.loads(line)["event"] == "worker ended" for line in log)
    assert code == 0


def test_workers_do_not_outlive_their_supervisor(tmp_path, commands):
    """
    Killed without warning itself: they notice, finish, and go.
    """
    with serve(tmp_path, "--workers", "2", commands=commands) as served:
        assert served.get("/healthz").status_code == 200
        port = int(served.url.rpartition(":")[2])
        workers = served.workers()
        served.process.kill()
        served.process.wait()
        while any(_is_running(pid) for pid in workers):
            threading.Event().wait(0.05)

        assert not _is_open(port)


def _is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_log_is_one_json_line_a_request_and_holds_no_secret(tmp_path, commands):
    """
    Id, method, template, status, milliseconds; never a key, a query, a name from a path or a body.
    """
    with serve(tmp_path, commands=commands) as served:
        key = served.greeting["owner_key"]
        with served.client() as client:
            client.get("/healthz?token=secret-query", headers={"x-request-id": "r-1"})
            client.post("/nothing/secret-path", json={"text": "secret-body"})
        _, log = served.end()

    lines = [json.loads(line) for line in log]
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("GET", "/healthz", 200),
        ("POST", None, 404),
    ]
    assert requests[0]["id"] == "r-1"
    assert requests[0]["ms"] >= 0
    assert not any(secret in "".join(log) for secret in (key, "secret-query", "secret-path", "secret-body"))
