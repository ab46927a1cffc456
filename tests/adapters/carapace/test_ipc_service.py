"""The router as a service: many at once, too much at once, nonsense, and the end."""

import json
import os
import signal
import socket
import stat
from contextlib import contextmanager
from threading import Event, Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import fresh_folder
from ipc_client import Dealer, Host, ipc
from memplane import Memplane
from memplane.__main__ import open_plane
from memplane.adapters.carapace.groups import Groups
from memplane.adapters.carapace.router import RouterLimits
from memplane.cli.app import main
from memplane.errors import SettingsInvalid
from memplane.terminal.call import Wiring

BRIEF = "tool.invoke.memory_brief"
SLOW = Groups({b"slow": "slow"})


class Gate:
    """A plane whose group `slow` answers when the gate is opened."""

    def __init__(self, plane):
        self._plane = plane
        self._lock = Lock()
        self.open = Event()
        self.entered = Event()
        self.at_once = 0
        self.at_once_most = 0

    def space(self, owner, **rest):
        if owner == "slow":
            with self._lock:
                self.at_once += 1
                self.at_once_most = max(self.at_once_most, self.at_once)
            self.entered.set()
            assert self.open.wait(60)
            with self._lock:
                self.at_once -= 1
        return self._plane.space(owner, **rest)


@pytest.fixture
def gate(plane):
    gate = Gate(plane)
    yield gate
    gate.open.set()


@contextmanager
def serving(plane, folder, **options):
    host = Host(plane, folder, **options)
    try:
        yield host
    finally:
        host.stop()


def test_a_slow_call_does_not_block_others(gate, tmp_path):
    """
    While one connection waits for its answer, others are served, and its own requests keep their order.
    """
    with serving(gate, tmp_path, groups=SLOW) as host, host.dealer("slow") as slow:
        asked = [slow.ask(BRIEF, {}) for _ in range(5)]
        gate.entered.wait()
        for number in range(20):
            assert host.tool("memory_brief", {}, identity=f"c{number}").code == 0
        gate.open.set()

        assert [slow.receive()["correlation"] for _ in asked] == asked
        assert gate.at_once_most == 1


def test_too_many_requests_of_one_connection_are_rate_limited(gate, tmp_path):
    """
    What cannot wait any more is answered at once, retriable; what waits is carried out later.
    """
    bounds = RouterLimits(waiting_per_identity_max=2)
    with serving(gate, tmp_path, groups=SLOW, bounds=bounds) as host, host.dealer("slow") as slow:
        asked = [slow.ask(BRIEF, {}) for _ in range(5)]
        refused = [slow.receive(), slow.receive()]
        gate.open.set()
        answered = [slow.receive() for _ in range(3)]

    assert [response["correlation"] for response in refused + answered] == asked[3:] + asked[:3]
    assert refused[0]["payload"]["error"] == {
        "code": "RATE_LIMITED",
        "message": "2 requests of this connection are already queued; try again.",
        "retriable": True,
        "stage": 4,
        "retry_after": 1,
    }
    assert all(response["payload"]["error"] is None for response in answered)


@pytest.mark.parametrize("bounds", [RouterLimits(waiting_max=1), RouterLimits(waiting_bytes_max=200)])
def test_too_many_requests_in_all_are_turned_away(gate, tmp_path, bounds):
    """
    What waits in all is bounded, in number and in bytes.
    """
    with serving(gate, tmp_path, groups=SLOW, bounds=bounds) as host, host.dealer("slow") as slow:
        asked = [slow.ask(BRIEF, {}) for _ in range(3)]
        refused = slow.receive()
        assert refused["correlation"] == asked[2]
        assert refused["payload"]["error"]["code"] == "PLUGIN_UNAVAILABLE"
        assert refused["payload"]["error"]["retriable"] is True
        gate.open.set()


def test_nobody_waits_for_ever(gate, tmp_path):
    """
    A call that takes too long is answered with PLUGIN_TIMEOUT, once.
    """
    with (
        serving(gate, tmp_path, groups=SLOW, bounds=RouterLimits(call_s_max=0.02)) as host,
        host.dealer("slow") as slow,
    ):
        first = slow.ask(BRIEF, {})
        late = slow.receive()
        gate.open.set()
        second = slow.ask(BRIEF, {})
        answers = [slow.receive()]

    assert (late["correlation"], answers[0]["correlation"]) == (first, second)
    assert (late["payload"]["error"]["code"], late["payload"]["error"]["retriable"]) == (
        "PLUGIN_TIMEOUT",
        True,
    )


def test_stopping_finishes_what_runs_and_turns_away_what_waits(gate, tmp_path):
    """
    Whoever was asked for is answered; the socket file is gone afterwards.
    """
    host = Host(gate, tmp_path, groups=SLOW)
    with host.dealer("slow") as slow:
        asked = [slow.ask(BRIEF, {}) for _ in range(3)]
        gate.entered.wait()
        assert host.tool("memory_brief", {}).code == 0
        host.router.stop()
        turned_away = [slow.receive(), slow.receive()]
        gate.open.set()
        finished = slow.receive()
        host.stop()

    assert [response["correlation"] for response in [finished, *turned_away]] == asked
    assert finished["payload"]["error"] is None
    assert {response["payload"]["error"]["code"] for response in turned_away} == {"PLUGIN_UNAVAILABLE"}
    assert list(tmp_path.glob("*.sock")) == []


# ── nonsense ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def enduring():
    """One host for all examples: nothing that is sent to it may end it."""
    with (
        fresh_folder() as folder,
        Memplane.open(folder / "data", embedder=None) as plane,
        serving(plane, folder) as host,
    ):
        yield host


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=15,
)
TOPICS = st.sampled_from(["memory_store", "memory_search", "memory_brief", "memory_delete", "nope", ""])
NAMES = st.sampled_from(["type", "content", "tags", "supersedes", "query", "limit", "id", "group"])


@given(frames=st.lists(st.binary(max_size=60), min_size=1, max_size=4), identity=st.binary(max_size=20))
def test_random_frames_never_end_the_service(enduring, frames, identity):
    """
    Whatever one connection sends, another is served.
    """
    identity = identity.lstrip(b"\0") or None
    with enduring.dealer(identity) as nonsense:
        nonsense.send(*frames)
        assert enduring.tool("memory_brief", {}, identity="good").code == 0


@given(
    topic=st.builds("tool.invoke.{}".format, TOPICS) | JSON,
    arguments=st.dictionaries(NAMES, JSON | st.sampled_from(["fact", "preference"]), max_size=5) | JSON,
    more=st.dictionaries(st.sampled_from(["group", "source", "id", "type"]), JSON, max_size=3),
)
def test_random_requests_are_answered(enduring, topic, arguments, more):
    """
    Every request with a correlation gets one response, with a result or an error and never a bug.
    """
    with enduring.dealer("fuzz") as dealer:
        correlation = dealer.ask(topic, arguments, **more)
        response = dealer.receive()

    payload = response["payload"]
    assert (response["correlation"], response["version"], response["type"]) == (correlation, 1, "response")
    assert (payload["result"] is None) != (payload["error"] is None)
    assert payload["error"] is None or payload["error"]["code"] in {
        "UNKNOWN_TOOL",
        "VALIDATION_FAILED",
        "HANDLER_ERROR",
        "RATE_LIMITED",
    }


# ── where it listens ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_its_owner_can_open_the_socket(plane, tmp_path):
    """
    The file is 0600, a folder that is made for it 0700.
    """
    folder = tmp_path / "new" / "run"
    with serving(plane, folder):
        assert stat.S_IMODE((folder / "memplane.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_socket_that_is_served_is_left_alone(plane, tmp_path):
    """
    A second server is refused; what a killed one left behind is taken over; a file is never overwritten.
    """
    with serving(plane, tmp_path) as host:
        with pytest.raises(SettingsInvalid, match="is in use"):
            Host(plane, tmp_path)
        assert host.tool("memory_brief", {}).code == 0

    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "memplane.sock"))
    with serving(plane, tmp_path) as host:
        assert host.tool("memory_brief", {}).code == 0

    (tmp_path / "memplane.sock").write_text("mine")
    with pytest.raises(SettingsInvalid, match="is not a socket"):
        Host(plane, tmp_path)
    assert (tmp_path / "memplane.sock").read_text() == "mine"


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def start(commands, tmp_path):
    @contextmanager
    def started(*arguments):
        process = commands.start(
            ["ipc", "--data", str(tmp_path / "data"), *arguments],
            environment={**os.environ, "MEMPLANE_EMBEDDING": "none"},
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    return started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_is_told_to_stop(tmp_path, start, number):
    """
    It says where it serves, answers, and ends with 0 without a trace; memory and audit log stay.
    """
    path = tmp_path / "run" / "m.sock"
    options = ["--socket", f"ipc://{path}", "--group", "main", "--identity", "c2=other", "--json"]
    with start(*options) as process:
        assert json.loads(process.stdout.readline()) == {"socket": f"ipc://{path}", "group": "main"}
        arguments = {"type": "fact", "content": "Luna"}
        assert ipc(f"ipc://{path}", "tool.invoke.memory_store", arguments).stdout["group"] == "main"
        assert ipc(f"ipc://{path}", BRIEF, {}, identity="c2").stdout["entry_count"] == 0
        process.send_signal(number)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (0, b"", b"")
    assert not path.exists()
    lines = (tmp_path / "data" / "audit" / "main.jsonl").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["routed"]
    with Memplane.open(tmp_path / "data", embedder=None) as plane:
        assert plane.space("main").search("Luna")[0].memory.caller.session == "container-6331"


def test_a_killed_server_loses_nothing_it_acknowledged(tmp_path, start):
    """
    After SIGKILL, the next one takes the socket over and knows what was stored.
    """
    address = f"ipc://{tmp_path}/m.sock"
    for number in range(2):
        with start("--socket", address) as process:
            assert process.stdout.readline() == f"Serving {address}\n".encode()
            assert ipc(address, BRIEF, {}).stdout["entry_count"] == number
            assert ipc(address, "tool.invoke.memory_store", {"type": "fact", "content": "x"}).code == 0
            process.kill()
            process.communicate(timeout=60)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--socket", "tcp://0.0.0.0:5555"],
        ["--socket", "tcp://example.com:5555"],
        ["--socket", "ipc://"],
        ["--socket", "ipc://@abstract"],
        ["--socket", "inproc://x"],
        ["--socket", f"ipc:///nowhere/{'x' * 200}.sock"],
        ["--socket", "ipc:///proc/nowhere/m.sock"],
        ["--socket", "ipc://{tmp}/m.sock", "--group", "../x"],
        ["--socket", "ipc://{tmp}/m.sock", "--identity", "c1"],
        ["--socket", "ipc://{tmp}/m.sock", "--identity", "c1=a", "--identity", "c1=b"],
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(tmp_path, capsys, arguments):
    """
    Exit code 1 and one line on stderr.
    """
    given = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    wiring = Wiring(open=open_plane, environment={"MEMPLANE_DATA": str(tmp_path / "data")})

    assert main(wiring, ["ipc", *given]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_the_plugin_is_written_where_it_is_wanted(tmp_path, capsys):
    """
    `plugins/memory` as Carapace lays it out; without `hooks`, which its own schema of manifests refuses.
    """
    folder = tmp_path / "plugins" / "memory"
    wiring = Wiring(open=open_plane, environment={"MEMPLANE_DATA": str(tmp_path / "data")})

    assert main(wiring, ["ipc", "--write-plugin", str(folder)]) == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest) == {
        "description",
        "version",
        "app_compat",
        "author",
        "provides",
        "subscribes",
        "config_schema",
    }
    assert set(manifest["provides"]) == {"channels", "tools"}
    assert {tool["risk_level"] for tool in manifest["provides"]["tools"]} == {"low"}
    assert (folder / "skill" / "memory.md").read_text().startswith("# Memory\n")
    assert main(wiring, ["ipc"]) == 2
    assert not (tmp_path / "data").exists()


def test_a_port_of_this_machine_can_be_served(start):
    """
    A loopback address, with a port that the system may choose.
    """
    with start("--socket", "tcp://127.0.0.1:*") as process:
        address = process.stdout.readline().decode().split()[1]
        with Dealer(address, "c1") as dealer:
            dealer.ask(BRIEF, {})
            assert dealer.receive()["payload"]["error"] is None
        process.terminate()
        process.communicate(timeout=60)

    assert process.returncode == 0
