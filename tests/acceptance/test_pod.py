"""The operator's commands for a Clawdapus pod: `up`, `memory backfill`, `memory forget`, `audit`. Real files, a real service;
the messages are those of `claw`."""

import contextlib
import json
import os
import stat

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clawdapus import entry_line, later
from memory_service import ReferenceMemory, answering, hanging_up
from memplane.errors import InvalidRequest
from memplane.history import Recorder
from memplane.pod.descriptor import DescriptorInvalid, parse_descriptor
from memplane.pod.interpolate import interpolate, read_env_file
from memplane.pod.podfile import PodInvalid, parse_pod

SECRET = "sk-" + "abcdef123456"
DESCRIPTOR = {
    "version": 2,
    "memory": {name: {"path": f"/{name}"} for name in ("recall", "retain", "forget")},
}
POD = """
x-claw:
  pod: desk
  memory-defaults:
    service: mem-svc
    timeout-ms: 2000
services:
  analyst:
    image: analyst
    environment: {TZ: America/New_York}
    x-claw: {agent: ./AGENTS.md, cllama: passthrough, type: openclaw}
  researcher:
    x-claw:
      cllama: passthrough
      memory: {service: mem-svc}
  loner:
    x-claw: {cllama: passthrough, memory: null}
  plain:
    image: nginx
  mem-svc:
    build: {context: ./mem}
    expose: ["8080"]
"""


class PodFixture:
    def __init__(self, folder, cli):
        self.path = folder / "pod"
        self.path.mkdir()
        (self.path / "mem").mkdir()
        self.cli = cli
        self.describe(DESCRIPTOR)
        self.write(POD)

    def write(self, text):
        (self.path / "claw-pod.yml").write_text(text)

    def describe(self, document):
        (self.path / "mem" / ".claw-describe.json").write_text(json.dumps(document))

    def run(self, *arguments, **more):
        return self.cli(*arguments, "--file", str(self.path / "claw-pod.yml"), **more)

    def context(self, agent, name):
        return self.path / ".claw-runtime" / "context" / agent / name

    def manifest(self, agent):
        return json.loads(self.context(agent, "memory.json").read_text())

    def record(self, agent, *lines, **options):
        recorder = Recorder(self.path / ".claw-session-history", **options)
        for line in lines:
            recorder.append(agent, line.line)

    def tombstones(self, agent):
        path = self.path / ".claw-memory-tombstones" / agent / "tombstones.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def files(self):
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def pod(tmp_path, cli):
    return PodFixture(tmp_path, cli)


@pytest.fixture
def service(tmp_path):
    made = ReferenceMemory(tmp_path / "reference")
    yield made
    made.close()


@pytest.fixture
def running(pod, service):
    """A compiled pod, two of whose agents have a history of three turns each."""
    assert pod.run("up").code == 0
    for agent in ("analyst", "researcher"):
        lines = [
            entry_line(f"{agent} asks {it}", f"answer {it}", at=later(it), claw_id=agent) for it in range(3)
        ]
        pod.record(agent, *lines)
    pod.lines = {
        agent: [
            entry_line(f"{agent} asks {it}", f"answer {it}", at=later(it), claw_id=agent) for it in range(3)
        ]
        for agent in ("analyst", "researcher")
    }
    return pod


class TestUp:
    def test_the_manifest_is_that_of_the_compiler(self, pod):
        """
        Two blanks of indent, the timeout on recall only, absent auth left out, a newline at the end.
        """
        done = pod.run("up")

        assert (done.code, done.err) == (0, "")
        assert pod.context("analyst", "memory.json").read_text() == (
            "{\n"
            '  "version": 1,\n'
            '  "service": "mem-svc",\n'
            '  "base_url": "http://mem-svc:8080",\n'
            '  "recall": {\n    "path": "/recall",\n    "timeout_ms": 2000\n  },\n'
            '  "retain": {\n    "path": "/retain"\n  },\n'
            '  "forget": {\n    "path": "/forget"\n  }\n'
            "}\n"
        )

    def test_defaults_are_replaced_and_never_mixed(self, pod):
        """
        A service with a memory of its own has 300 ms, not the default's; null has none; others are no agents.
        """
        pod.run("up")

        assert pod.manifest("researcher")["recall"]["timeout_ms"] == 300
        assert not pod.context("loner", "memory.json").exists()
        assert not pod.context("plain", "").exists()
        assert not pod.context("mem-svc", "").exists()

    def test_copies_have_a_context_each(self, pod):
        """
        `count: N` names them with a number from 0.
        """
        pod.write(POD.replace("type: openclaw", "type: openclaw, count: 2"))
        pod.run("up")

        assert pod.manifest("analyst-0") == pod.manifest("analyst-1")
        assert json.loads(pod.context("analyst-1", "metadata.json").read_text())["service"] == "analyst"

    def test_modes(self, pod):
        """
        The manifest is 0644 in a directory of 0700; credentials are 0600.
        """
        umask = os.umask(0o077)
        try:
            pod.run("up")
        finally:
            os.umask(umask)

        modes = {
            name: stat.S_IMODE(pod.context("analyst", name).stat().st_mode)
            for name in ("", "memory.json", "metadata.json", "service-auth/cllama-history.json")
        }
        assert list(modes.values()) == [0o700, 0o644, 0o600, 0o600]

    def test_replay_credentials(self, pod):
        """
        The memory service gets where, with what and for whom; each subscriber's context the same token.
        """
        pod.run("up")
        compose = yaml.safe_load((pod.path / "compose.generated.yml").read_text())
        given = compose["services"]["mem-svc"]
        token = given["environment"]["CLAW_HISTORY_TOKEN"]

        assert given["environment"]["CLAW_HISTORY_URL"] == "http://cllama:8080/history"
        assert given["environment"]["CLAW_HISTORY_AGENT_IDS"] == "analyst,researcher"
        assert given["networks"] == ["default", "claw-internal"]
        assert token.startswith("mem-svc-history:")
        assert len(token.partition(":")[2]) == 48
        for agent in ("analyst", "researcher"):
            assert json.loads(pod.context(agent, "service-auth/cllama-history.json").read_text()) == {
                "service": "cllama-history",
                "auth_type": "bearer",
                "token": token,
                "principal": "mem-svc",
            }
        assert "x-claw" not in json.dumps(compose)

    def test_metadata(self, pod):
        """
        What a memory service is told about an agent, and the agent's own token.
        """
        pod.run("up")
        metadata = json.loads(pod.context("analyst", "metadata.json").read_text())
        token = metadata.pop("token")

        assert metadata == {
            "pod": "desk",
            "service": "analyst",
            "type": "openclaw",
            "timezone": "America/New_York",
        }
        assert token.startswith("analyst:")
        assert len(token) == len("analyst:") + 48

    def test_compiling_again_changes_nothing(self, pod):
        """
        Tokens stay, and what another program put into metadata.json stays too.
        """
        pod.run("up")
        path = pod.context("analyst", "metadata.json")
        path.write_text(
            json.dumps(json.loads(path.read_text()) | {"handles": {"discord": 1}}, indent=2) + "\n"
        )
        before = pod.files()

        assert pod.run("up").code == 0
        assert pod.files() == before

    def test_who_unsubscribes_loses_the_manifest(self, pod):
        """
        Turns of an agent that no longer subscribes, or no longer is, go nowhere.
        """
        pod.run("up")
        pod.write(POD.replace("memory: {service: mem-svc}", "memory: null").replace("analyst:", "trader:"))
        pod.run("up")

        for agent in ("analyst", "researcher"):
            assert not pod.context(agent, "memory.json").exists()
            assert not pod.context(agent, "service-auth/cllama-history.json").exists()
        assert pod.context("trader", "memory.json").exists()

    def test_a_token_comes_from_the_consumers_environment(self, pod):
        """
        The descriptor names the variable, the subscriber holds it, with variables filled in from .env.
        """
        pod.describe(DESCRIPTOR | {"auth": {"type": "Bearer", "env": "MEM_TOKEN"}})
        pod.write(POD.replace("environment: {TZ", "environment: {MEM_TOKEN: '${OUTER}-x', TZ"))
        (pod.path / ".env").write_text("OUTER='hush'\n")

        done = pod.run("up")

        assert done.code == 1
        assert done.err == (
            'memplane: feed auth: service env has no value for "MEM_TOKEN" '
            "(required by descriptor auth.env for bearer auth)\n"
        )
        assert not (pod.path / ".claw-runtime").exists()

        pod.write(
            POD.replace("environment: {TZ", "environment: {MEM_TOKEN: '${OUTER}-x', TZ").replace(
                "      memory: {service: mem-svc}", "      memory: null"
            )
        )
        assert pod.run("up").code == 0
        assert pod.manifest("analyst")["auth"] == {"type": "bearer", "token": "hush-x"}

    def test_a_token_given_for_the_service_comes_first(self, pod):
        """
        `service-auth/<service>.json` wins over the environment.
        """
        folder = pod.context("analyst", "service-auth")
        folder.mkdir(parents=True)
        (folder / "mem-svc.json").write_text('{"service":"mem-svc","auth_type":"bearer","token":"given"}')
        pod.run("up")

        assert pod.manifest("analyst")["auth"] == {"type": "bearer", "token": "given"}
        assert "auth" not in pod.manifest("researcher")

    @pytest.mark.parametrize(
        ("compose", "port"),
        [
            ('expose: ["8080"]', 8080),
            ('ports: ["9000:8081"]', 8081),
            ('ports: ["127.0.0.1:9000:8082/tcp"]', 8082),
            ('ports: [{"target": 8083, "published": 9000}]', 8083),
            ("ports: [8084]", 8084),
            ('ports: ["3000-3005"]', 3000),
            ('expose: ["7000"]\n    ports: ["9000:8081"]', 7000),
            ("restart: always", 80),
        ],
    )
    def test_the_port_is_the_first_it_exposes(self, pod, compose, port):
        """
        Exposed, else published, else that of the web.
        """
        pod.write(POD.replace('expose: ["8080"]', compose))
        pod.run("up")

        assert pod.manifest("analyst")["base_url"] == f"http://mem-svc:{port}"

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "service: mem-svc}",
                "timeout-ms: 5}",
                'service "researcher": x-claw.memory: service is required',
            ),
            (
                "service: mem-svc}",
                "service: mem-svc, timeout-ms: 0}",
                'service "researcher": x-claw.memory: timeout-ms must be > 0',
            ),
            ("timeout-ms: 2000", "timeout-ms: -1", "x-claw.memory-defaults: timeout-ms must be > 0"),
            ("service: mem-svc}", "service: nobody}", 'memory targets unknown service "nobody"'),
            (
                "service: mem-svc}",
                "service: plain}",
                'service "researcher": memory target "plain" has no descriptor',
            ),
            ("memory: {service: mem-svc}", "memory: mem-svc", "x-claw.memory must be a mapping"),
            (
                "cllama: passthrough\n      memory: {",
                "memory: {",
                (
                    'service "researcher": x-claw.memory require x-claw.cllama on the consuming service; '
                    "native projection for non-cllama services is not implemented"
                ),
            ),
            ("services:", "services:\n  ../evil:\n    x-claw: {cllama: x}", "is no name of a file"),
            ("services:", "services:\n  analyst: {}", 'mapping key "analyst" already defined'),
            ("services:", "services: [", "parse claw-pod.yml: "),
            ("x-claw:\n", "x-claw: !!python/object/apply:os.system ['true']\nx:\n", "parse claw-pod.yml: "),
        ],
    )
    def test_a_pod_that_breaks_a_rule_is_refused(self, pod, old, new, message):
        """
        In the original's words, before anything is written.
        """
        assert old in POD
        pod.write(POD.replace(old, new, 1))
        before = pod.files()

        done = pod.run("up")

        assert (done.code, done.out) == (1, "")
        assert message in done.err
        assert pod.files() == before

    def test_a_service_without_memory_is_no_target(self, pod):
        """
        A descriptor that declares none.
        """
        pod.describe({"version": 2})

        done = pod.run("up")

        assert done.code == 1
        assert 'service "analyst": memory target "mem-svc" does not declare a memory capability' in done.err

    def test_tool_servers_are_left_out_of_the_defaults(self, pod):
        """
        A server over its own pipes has no proxy, and gets no default.
        """
        pod.write(POD + "  tools:\n    x-claw: {mcp-stdio: {command: x}}\n")

        assert pod.run("up").code == 0

    def test_our_own_image_needs_no_descriptor(self, pod):
        """
        Memplane knows what Memplane offers; it asks for a token.
        """
        pod.write(POD.replace("build: {context: ./mem}", "image: registry.example/team/memplane:1"))

        assert '"MEMPLANE_TOKEN"' in pod.run("up").err

    def test_a_descriptor_can_be_given(self, pod, tmp_path):
        """
        For an image that is not built here.
        """
        pod.write(POD.replace("build: {context: ./mem}", "image: other"))
        (tmp_path / "d.json").write_text(json.dumps(DESCRIPTOR))

        assert pod.run("up").code == 1
        assert pod.run("up", "--describe", f"mem-svc={tmp_path / 'd.json'}").code == 0

    def test_a_compose_file_of_somebody_else_is_left_alone(self, pod):
        """
        What `claw up` wrote holds more than we know.
        """
        (pod.path / "compose.generated.yml").write_text("services: {}\n")

        done = pod.run("up")

        assert done.code == 0
        assert "left as it is" in done.err
        assert (pod.path / "compose.generated.yml").read_text() == "services: {}\n"

    @pytest.mark.parametrize(
        "linked", [".claw-runtime", ".claw-runtime/context", ".claw-runtime/context/analyst"]
    )
    def test_no_link_is_followed(self, pod, tmp_path, linked):
        """
        Nothing is written outside the pod's directory, wherever a link in it leads.
        """
        outside = tmp_path / "outside"
        outside.mkdir()
        (pod.path / linked).parent.mkdir(parents=True, exist_ok=True)
        (pod.path / linked).symlink_to(outside)

        done = pod.run("up")

        assert done.code == 4
        assert "link" in done.err
        assert list(outside.iterdir()) == []

    def test_a_link_in_place_of_a_file_is_replaced(self, pod, tmp_path):
        """
        An agent that makes its manifest a link does not get a file of the host overwritten.
        """
        pod.run("up")
        victim = tmp_path / "victim"
        victim.write_text("mine")
        pod.context("analyst", "memory.json").unlink()
        pod.context("analyst", "memory.json").symlink_to(victim)

        assert pod.run("up").code == 0
        assert victim.read_text() == "mine"
        assert pod.manifest("analyst")["service"] == "mem-svc"

    def test_json(self, pod):
        """
        One document: the pod, its agents and their memory.
        """
        done = pod.run("up", "--json")

        assert done.json["pod"] == "desk"
        assert done.json["agents"][0] == {"agent": "analyst", "service": "analyst", "memory": "mem-svc"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "descriptor version must be 1 or 2, got 0"),
        ({"version": 3}, "descriptor version must be 1 or 2, got 3"),
        ({"version": 1, "memory": {}}, "descriptor version 1 does not support memory"),
        ({"version": 2, "memory": {}}, "memory: at least one of recall or retain must be declared"),
        (
            {"version": 2, "memory": {"forget": {"path": "/f"}}},
            "memory: at least one of recall or retain must be declared",
        ),
        ({"version": 2, "memory": {"recall": {}}}, "memory.recall.path is required"),
        (
            {"version": 2, "memory": {"retain": {"path": "x"}}},
            "memory.retain.path \"x\" must start with '/'",
        ),
        ({"version": 2, "auth": {"type": "basic"}}, "auth.type must be bearer, header or none, got basic"),
    ],
)
def test_a_descriptor_that_breaks_a_rule_is_refused(document, message):
    """
    In the original's words.
    """
    with pytest.raises(DescriptorInvalid) as refused:
        parse_descriptor(json.dumps(document).encode())

    assert str(refused.value) == message


def test_a_descriptor_is_read_leniently():
    """
    Unknown keys are passed over; one operation is enough.
    """
    found = parse_descriptor(
        b'{"version":2,"x":1,"memory":{"recall":{"path":"/r"}},"auth":{"type":"HEADER"}}'
    )

    assert (found.memory, found.auth_type) == ({"recall": "/r"}, "header")


def test_a_yaml_bomb_does_not_explode():
    """
    Aliases of aliases stay what they are: references.
    """
    levels = "\n".join(f"l{it}: &l{it} [{', '.join([f'*l{it - 1}'] * 9)}]" for it in range(1, 12))

    with pytest.raises(PodInvalid):
        parse_pod(f"l0: &l0 [x]\n{levels}\nservices: *l11\n".encode(), {}, default_name="x")


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "x-claw",
                    "services",
                    "memory",
                    "memory-defaults",
                    "service",
                    "timeout-ms",
                    "cllama",
                    "count",
                    "environment",
                    "expose",
                    "ports",
                    "build",
                    "labels",
                    "a",
                    "b",
                    "target",
                    "pod",
                    "type",
                    "mcp-stdio",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(SHAPES)
def test_any_pod_file_is_read_or_refused(document):
    """
    Whatever shape it has, there is a pod or one sentence, and never a crash.
    """
    with contextlib.suppress(InvalidRequest):
        assert parse_pod(yaml.safe_dump(document).encode(), {}, default_name="x").name


@given(st.binary(max_size=60) | SHAPES.map(lambda it: json.dumps(it, default=str).encode()))
def test_any_descriptor_is_read_or_refused(raw):
    """
    The same for descriptors, and for bytes that are none.
    """
    with contextlib.suppress(InvalidRequest):
        parse_descriptor(raw)
    with contextlib.suppress(InvalidRequest):
        parse_pod(raw, {}, default_name="x")


def test_what_is_merged_in_may_be_overridden(pod):
    """
    Anchors and merges are common in compose files; a key given twice is not.
    """
    pod.write(
        "x-base: &base {image: a, x-claw: {cllama: x}}\n" + POD + "  more:\n    <<: *base\n    image: b\n"
    )

    assert pod.run("up").code == 0
    assert pod.manifest("more")["service"] == "mem-svc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$A-${A}", "1-1"),
        ("${B:-x}${C:-y}${C-z}", "xy"),
        ("${A:+set}${D+no}", "set"),
        ("$$A ${D}", "$A "),
    ],
)
def test_variables_are_those_of_compose(text, expected):
    """
    Defaults, alternatives, and a dollar that is one.
    """
    assert interpolate(text, {"A": "1", "C": ""}) == expected


def test_an_env_file():
    """
    Quotes go, comments too.
    """
    raw = b"# no\nA=1 # why\nexport B='x # y'\nC=\nnonsense\n"

    assert read_env_file(raw) == {"A": "1", "B": "x # y", "C": ""}


class TestBackfill:
    def test_every_agents_history_is_replayed(self, running, service):
        """
        In file order, agent after agent, in the shape of a live retain, under the ids of the ledger.
        """
        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert (done.code, done.err) == (0, "")
        assert done.out == (
            "Replayed 3 entries for analyst\n"
            "Replayed 3 entries for researcher\n"
            f"Backfilled 6 entries across 2 agents to {service.url}/retain\n"
        )
        bodies = service.bodies("/retain")
        assert [body["entry"]["id"] for body in bodies] == [
            line.id for agent in ("analyst", "researcher") for line in running.lines[agent]
        ]
        assert bodies[0]["metadata"] == {
            "path": "retain",
            "requested_model": "openai/gpt-4o",
            "service": "analyst",
            "timezone": "America/New_York",
            "type": "openclaw",
        }

    def test_agents_and_singulars(self, running, service):
        """
        `--agent` may hold several; one is said as one; who has no history is skipped.
        """
        running.write(POD.replace("loner:", "third:\n    x-claw: {cllama: x}\n  loner:"))
        running.run("up")
        done = running.run(
            "memory", "backfill", "mem-svc", "--url", service.url, "--limit", "1", "--agent", "analyst, third"
        )

        assert done.out == (
            "Replayed 1 entry for analyst\n"
            f"Backfilled 1 entry across 1 agent to {service.url}/retain\n"
            "Skipped 1 agent with no eligible history entries\n"
        )

    def test_after_and_limit(self, running, service):
        """
        Strictly after; the limit is for each agent; a second run tells the same again.
        """
        for _ in range(2):
            service.asked.clear()
            options = ["--after", later(0).isoformat(), "--limit", "1", "--url", service.url]
            assert running.run("memory", "backfill", "mem-svc", *options).code == 0
            assert [body["entry"]["id"] for body in service.bodies("/retain")] == [
                running.lines[agent][1].id for agent in ("analyst", "researcher")
            ]
        assert (running.path / ".claw-session-history/analyst/history.index.json").exists()

    def test_rotated_files_are_replayed(self, pod, service):
        """
        The original leaves them out.
        """
        pod.run("up")
        lines = [entry_line(f"turn {it}", at=later(it)) for it in range(7)]
        pod.record("analyst", *lines, max_bytes=2_000)

        pod.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert (pod.path / ".claw-session-history/analyst/history.jsonl.2").exists()
        assert [body["entry"]["id"] for body in service.bodies("/retain")] == [line.id for line in lines]

    def test_secrets_are_scrubbed(self, pod, service):
        """
        The original sends them as they are.
        """
        pod.run("up")
        pod.record("analyst", entry_line(f"use {SECRET}", "ok"))
        pod.run("memory", "backfill", "mem-svc", "--url", service.url)

        (body,) = service.bodies("/retain")
        assert SECRET not in json.dumps(body)
        assert body["metadata"]["policy_removed"] == 2

    def test_what_was_forgotten_or_failed_is_not_replayed(self, running, service):
        """
        Tombstones of this service count, those of another do not; failed turns were never retained.
        """
        first, second, _ = running.lines["analyst"]
        folder = running.path / ".claw-memory-tombstones" / "analyst"
        folder.mkdir(parents=True)
        stone = {
            "version": 1,
            "ts": "2026-04-03T12:00:00Z",
            "agent_id": "analyst",
            "memory_service": "mem-svc",
        }
        lines = [stone | {"entry_id": first.id}, stone | {"entry_id": second.id, "memory_service": "other"}]
        (folder / "tombstones.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        running.record("analyst", entry_line("broken", at=later(9), status="error"))

        done = running.run(
            "memory", "backfill", "mem-svc", "--url", service.url, "--agent", "analyst", "--json"
        )

        assert done.json["agents"][0] | {"agent": ""} == {
            "agent": "",
            "replayed": 2,
            "resumed": False,
            "tombstoned": 1,
            "failed_turns": 1,
            "scrubbed": 0,
            "rejected": 0,
        }

    def test_a_tombstone_that_cannot_be_read_stops_it(self, running, service):
        """
        It may be the one that matters.
        """
        folder = running.path / ".claw-memory-tombstones" / "analyst"
        folder.mkdir(parents=True)
        (folder / "tombstones.jsonl").write_text("nonsense\n")

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert done.code == 1
        assert done.err.startswith("memplane: parse tombstone entry: ")
        assert service.asked == []

    def test_the_first_refusal_stops_everything(self, running, service):
        """
        With the status and what the service said.
        """
        service.plan = [answering(202), answering(502, b"boom\n")]

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert (done.code, len(service.asked)) == (1, 2)
        assert done.err == 'memplane: backfill "analyst": retain returned status 502: boom\n'

    @pytest.mark.parametrize("step", [answering(500), hanging_up])
    def test_the_next_run_goes_on_behind_the_last(self, running, service, step):
        """
        What was taken is not told again; once all is told, a new run begins anew.
        """
        service.plan = [answering(202), answering(202), step]
        assert running.run("memory", "backfill", "mem-svc", "--url", service.url).code == 1
        service.asked.clear()

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert done.out.startswith("Replayed 1 entry for analyst\nReplayed 3 entries for researcher\n")
        assert service.bodies("/retain")[0]["entry"]["id"] == running.lines["analyst"][2].id

        assert (
            "Backfilled 6 entries" in running.run("memory", "backfill", "mem-svc", "--url", service.url).out
        )

    def test_a_run_can_begin_anew(self, running, service):
        """
        `--restart`, or another address, leaves the mark of a broken run aside.
        """
        service.plan = [answering(202), answering(500)]
        running.run("memory", "backfill", "mem-svc", "--url", service.url)

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url, "--restart")

        assert "Backfilled 6 entries" in done.out

    def test_a_mark_whose_entry_is_gone_is_no_mark(self, running, service):
        """
        Rather everything twice than anything not at all.
        """
        service.plan = [answering(202), answering(500)]
        running.run("memory", "backfill", "mem-svc", "--url", service.url)
        path = running.path / ".claw-session-history/analyst/history.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert done.out.startswith("Replayed 2 entries for analyst\n")

    def test_bad_lines_are_passed_over_and_said(self, running, service):
        """
        Exit code 3, and everything else was told.
        """
        with (running.path / ".claw-session-history/analyst/history.jsonl").open("ab") as file:
            file.write(b"nonsense\n")

        done = running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert done.code == 3
        assert "Backfilled 6 entries" in done.out
        assert "analyst: 1 line passed over; history.jsonl line 4" in done.err

    def test_a_published_port_is_found(self, running, service):
        """
        Without --url, the compose file says where the service is on this machine.
        """
        port = service.url.rpartition(":")[2]
        running.write(POD.replace('expose: ["8080"]', f'ports: ["0.0.0.0:{port}:8080"]'))
        running.run("up")

        done = running.run("memory", "backfill", "mem-svc")

        assert f"to http://127.0.0.1:{port}/retain\n" in done.out

    def test_a_path_in_the_url_is_taken_as_it_is(self, running, service):
        """
        An empty path or `/` gets the manifest's, any other is meant.
        """
        service.plan = [answering(202)] * 12
        for url in (f"{service.url}/", f"{service.url}/else"):
            running.run("memory", "backfill", "mem-svc", "--url", url)

        assert {path for path, _, _ in service.asked} == {"/retain", "/else"}

    def test_the_token(self, running, service):
        """
        An operator's token instead of the manifest's.
        """
        service.token = "t0ken"

        assert "status 401" in running.run("memory", "backfill", "mem-svc", "--url", service.url).err
        assert (
            running.run("memory", "backfill", "mem-svc", "--url", service.url, "--auth-token", "t0ken").code
            == 0
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["mem-svc", "--limit", "-1"], "limit must be >= 0"),
            (["mem-svc", "--after", "yesterday"], "after must be RFC3339"),
            (["mem-svc", "--after", "2026-04-01T00:00:00"], "after must be RFC3339"),
            (["mem-svc", "--url", "127.0.0.1:80"], "--url must include scheme and host"),
            (["other"], 'no agents subscribe to memory service "other"'),
            (
                ["mem-svc", "--agent", "x,loner"],
                'memory service "mem-svc" is not subscribed by agent(s) loner, x',
            ),
            (["mem-svc"], "(pass --url to override)"),
        ],
    )
    def test_what_cannot_be_done_is_said(self, running, arguments, message):
        """
        In claw's words, with exit code 1.
        """
        done = running.run("memory", "backfill", *arguments)

        assert (done.code, done.out) == (1, "")
        assert message in done.err

    def test_it_needs_a_compiled_pod(self, pod):
        """
        Nothing compiled, or compiled from another state of the pod file.
        """
        assert (
            f'no compose.generated.yml found in "{pod.path}" '
            "(rerun from pod directory or pass --file <path-to-claw-pod.yml>)"
        ) in pod.run("memory", "backfill", "mem-svc").err
        (pod.path / "compose.generated.yml").write_text("services: {}\n")
        os.utime(pod.path / "claw-pod.yml", (0, 0))
        assert "no generated agent context found in " in pod.run("memory", "backfill", "mem-svc").err
        os.utime(pod.path / "compose.generated.yml", (0, 0))
        os.utime(pod.path / "claw-pod.yml", (9, 9))
        assert (
            "claw-pod.yml is newer than compose.generated.yml — run 'memplane up' to regenerate"
        ) in pod.run("memory", "backfill", "mem-svc").err

    def test_an_operation_must_be_declared(self, pod):
        """
        A service that only recalls takes no replay.
        """
        pod.describe({"version": 2, "memory": {"recall": {"path": "/recall"}}})
        pod.run("up")

        done = pod.run("memory", "backfill", "mem-svc", "--agent", "analyst")

        assert 'memory service "mem-svc" has no retain endpoint for agent "analyst"' in done.err

    def test_the_mark_lies_below_the_pod(self, running, service):
        """
        The mark of a run is kept below the pod and nowhere else.
        """
        service.plan = [answering(202), answering(500)]
        running.run("memory", "backfill", "mem-svc", "--url", service.url)

        (mark,) = (running.path / ".claw-memory-backfill").rglob("*.json")
        assert json.loads(mark.read_text())["id"] == running.lines["analyst"][0].id


class TestForget:
    def test_the_seeds_example_works(self, running, service):
        """
        Without --agent: whoever has the entry in their history.
        """
        line = running.lines["analyst"][1]
        done = running.run(
            "memory",
            "forget",
            "mem-svc",
            "--entry-id",
            line.id,
            "--reason",
            "operator request",
            "--url",
            service.url,
        )

        assert (done.code, done.err) == (0, "")
        assert done.out == (
            f"Forgot 1 entry for analyst\nForgot 1 entry across 1 agent via {service.url}/forget\n"
        )
        (body,) = service.bodies("/forget")
        assert (body["agent_id"], body["entry_ids"], body["reason"]) == (
            "analyst",
            [line.id],
            "operator request",
        )
        (stone,) = running.tombstones("analyst")
        assert list(json.loads(stone)) == [
            "version",
            "ts",
            "agent_id",
            "memory_service",
            "entry_id",
            "reason",
        ]
        assert running.tombstones("researcher") == []

    def test_later_backfills_leave_it_out(self, running, service):
        """
        Forgotten stays forgotten.
        """
        line = running.lines["analyst"][1]
        running.run("memory", "forget", "mem-svc", "--entry-id", line.id, "--url", service.url)
        running.run("memory", "backfill", "mem-svc", "--url", service.url)

        assert line.id not in {body["entry"]["id"] for body in service.bodies("/retain")}

    def test_what_is_tombstoned_is_skipped(self, running, service):
        """
        Ids are trimmed and each counts once.
        """
        first, second, _ = (line.id for line in running.lines["analyst"])
        options = ["--agent", "analyst", "--url", service.url]
        running.run("memory", "forget", "mem-svc", "--entry-id", first, *options)
        done = running.run(
            "memory",
            "forget",
            "mem-svc",
            "--entry-id",
            first,
            "--entry-id",
            f" {second} ",
            "--entry-id",
            second,
            *options,
        )

        assert done.out == (
            "Forgot 1 entry for analyst\n"
            f"Forgot 1 entry across 1 agent via {service.url}/forget\n"
            "Skipped 1 already-tombstoned entry\n"
        )
        assert len(running.tombstones("analyst")) == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "at least one --entry-id is required"),
            (["--entry-id", " "], "at least one --entry-id is required"),
            (["--entry-id", "hist1_x"], "history does not contain entry id hist1_x"),
            (
                ["--entry-id", "hist1_x", "--entry-id", "hist1_y", "--agent", "analyst"],
                'forget "analyst": history does not contain entry ids hist1_x, hist1_y',
            ),
        ],
    )
    def test_what_cannot_be_forgotten_is_said(self, running, service, arguments, message):
        """
        Nothing is sent and nothing is written.
        """
        done = running.run("memory", "forget", "mem-svc", "--url", service.url, *arguments)

        assert (done.code, done.err) == (1, f"memplane: {message}\n")
        assert (service.asked, running.tombstones("analyst")) == ([], [])

    def test_a_wrong_id_for_one_agent_leaves_the_others_alone(self, running, service):
        """
        The original had done the first agent by then.
        """
        line = running.lines["analyst"][0]
        done = running.run(
            "memory",
            "forget",
            "mem-svc",
            "--entry-id",
            line.id,
            "--agent",
            "analyst,researcher",
            "--url",
            service.url,
        )

        assert f'forget "researcher": history does not contain entry id {line.id}' in done.err
        assert (service.asked, running.tombstones("analyst")) == ([], [])

    def test_an_agent_without_a_history(self, pod, service):
        """
        Where its history should be.
        """
        pod.run("up")
        done = pod.run(
            "memory", "forget", "mem-svc", "--entry-id", "x", "--agent", "analyst", "--url", service.url
        )

        path = pod.path / ".claw-session-history" / "analyst" / "history.jsonl"
        assert done.err == f'memplane: no session history found at "{path}"\n'

    def test_a_refusal_leaves_no_tombstone(self, running, service):
        """
        Only what the service accepted is noted.
        """
        service.plan = [answering(500, b"boom")]
        done = running.run(
            "memory", "forget", "mem-svc", "--entry-id", running.lines["analyst"][0].id, "--url", service.url
        )

        assert done.err == 'memplane: forget "analyst": forget returned status 500: boom\n'
        assert running.tombstones("analyst") == []

    def test_the_service_must_declare_it(self, pod, service):
        """
        As in the original, there is no forgetting behind a service's back.
        """
        pod.describe({"version": 2, "memory": {"retain": {"path": "/retain"}}})
        pod.run("up")
        done = pod.run("memory", "forget", "mem-svc", "--entry-id", "x", "--agent", "analyst")

        assert done.err == 'memplane: memory service "mem-svc" has no forget endpoint for agent "analyst"\n'

    def test_entries_of_rotated_files_can_be_forgotten(self, pod, service):
        """
        The original looks at the current file only.
        """
        pod.run("up")
        lines = [entry_line(f"turn {it}", at=later(it)) for it in range(5)]
        pod.record("analyst", *lines, max_bytes=1_500)

        done = pod.run("memory", "forget", "mem-svc", "--entry-id", lines[0].id, "--url", service.url)

        assert done.code == 0


class TestAudit:
    LINES = (
        '{"ts":"2026-04-03T12:00:00Z","claw_id":"analyst","type":"request","model":"openai/gpt-4o"}',
        (
            '{"ts":"2026-04-03T12:00:02Z","claw_id":"analyst","type":"response","model":"openai/gpt-4o",'
            '"latency_ms":900,"status_code":200,"tokens_in":10,"tokens_out":5,"cost_usd":0.25}'
        ),
        (
            '{"ts":"2026-04-03T12:00:01Z","claw_id":"analyst","type":"memory_op","model":"openai/gpt-4o","latency_ms":2,'
            '"status_code":200,"intervention":null,"memory_service":"mem-svc","memory_op":"recall",'
            '"memory_status":"succeeded","memory_blocks":6,"memory_bytes":206,"memory_removed":4}'
        ),
        (
            '{"ts":"2026-04-03T12:00:03Z","claw_id":"researcher","type":"memory_op","error":"retain returned status 502",'
            '"memory_service":"mem-svc","memory_op":"retain","memory_status":"failed"}'
        ),
        '{"type":"request"}',
        "not json",
        '{"ts":"2026-04-03T12:00:03Z"}',
        "",
    )

    @pytest.fixture
    def log(self, tmp_path):
        path = tmp_path / "cllama.log"
        path.write_text("\n".join(self.LINES))
        return str(path)

    def test_every_field_of_memory_is_there(self, cli, log):
        """
        The original's normaliser drops all of them.
        """
        done = cli("audit", "--log", log, "--type", "memory_op", "--json")

        assert done.json["events"] == [
            {
                "timestamp": "2026-04-03T12:00:01Z",
                "claw_id": "analyst",
                "type": "memory_op",
                "model": "openai/gpt-4o",
                "latency_ms": 2,
                "status_code": 200,
                "memory_service": "mem-svc",
                "memory_op": "recall",
                "memory_status": "succeeded",
                "memory_blocks": 6,
                "memory_bytes": 206,
                "memory_removed": 4,
            },
            {
                "timestamp": "2026-04-03T12:00:03Z",
                "claw_id": "researcher",
                "type": "memory_op",
                "error": "retain returned status 502",
                "memory_service": "mem-svc",
                "memory_op": "retain",
                "memory_status": "failed",
            },
        ]

    def test_the_summary(self, cli, log):
        """
        Lines that say neither when nor what are counted; everything is added up for each agent.
        """
        document = cli("audit", "--log", log, "--json").json

        assert list(document) == ["pod", "skipped_lines", "summary", "events"]
        assert document["skipped_lines"] == 3
        analyst, researcher = document["summary"]["agents"]
        assert (analyst["requests"], analyst["tokens_in"], analyst["cost_usd"]) == (1, 10, 0.25)
        assert (analyst["memory_ops"], analyst["memory_removed"], researcher["memory_errors"]) == (1, 4, 1)

    def test_the_table(self, cli, log):
        """
        The original's columns and totals, with memory behind them; then each operation on memory.
        """
        out = cli("audit", "--log", log).out

        header = out.split("\n")[0].split()
        assert header[:11] == [
            "CLAW",
            "REQ",
            "RESP",
            "ERR",
            "INT",
            "TOOLS",
            "TOOL_ERR",
            "TOK_IN",
            "TOK_OUT",
            "COST_USD",
            "MODELS",
        ]
        assert "Totals: req=1 resp=1 err=0 int=0 tools=0/0 tokens=10/5 cost=$0.2500 memory=2/1" in out
        assert "retain returned status 502" in out

    def test_filters(self, cli, log):
        """
        By agent, by moment, from stdin.
        """
        text = "\n".join(self.LINES)

        assert (
            len(cli("audit", "--log", "-", "--claw", "researcher", "--json", stdin=text).json["events"]) == 1
        )
        since = ["--since", "2026-04-03T12:00:02Z"]
        assert len(cli("audit", "--log", log, *since, "--json").json["events"]) == 2
        assert cli("audit", "--log", log, "--since", "1h30m", "--json").json["events"] == []
        assert cli("audit", "--log", log, "--since", "soon").code == 1

    def test_tools_come_from_the_histories(self, running, tmp_path):
        """
        Calls of managed tools stand in the session history, and are events too.
        """
        raw = json.loads(entry_line("tools", at=later(50)).line)
        raw |= {
            "status": "ok",
            "tool_trace": [
                {
                    "round": 1,
                    "tool_calls": [
                        {
                            "name": "svc.quote",
                            "service": "svc",
                            "status": "ok",
                            "latency_ms": 3,
                            "status_code": 200,
                        },
                        {"name": "svc.trade", "service": "svc", "status_code": 500, "duplicate": True},
                    ],
                }
            ],
        }
        del raw["id"]
        with (running.path / ".claw-session-history/analyst/history.jsonl").open("a") as file:
            file.write(json.dumps(raw) + "\n")
        (tmp_path / "empty.log").write_text("")

        document = running.run("audit", "--log", str(tmp_path / "empty.log"), "--json").json

        assert document["pod"] == "desk"
        assert [event["tool_name"] for event in document["events"]] == ["svc.quote", "svc.trade"]
        assert (document["summary"]["tools"], document["summary"]["tool_errors"]) == (2, 1)

    def test_an_operators_forget_is_an_event(self, running, service, tmp_path):
        """
        The commands write their own memory_op lines where they are told to.
        """
        log = str(tmp_path / "ops.jsonl")
        line = running.lines["analyst"][0]
        running.run("memory", "forget", "mem-svc", "--entry-id", line.id, "--url", service.url, "--log", log)

        (event,) = running.cli("audit", "--log", log, "--json").json["events"]
        assert (event["claw_id"], event["memory_op"], event["memory_status"]) == (
            "analyst",
            "forget",
            "succeeded",
        )

    def test_a_space_is_audited_as_before(self, filled):
        """
        Without a pod or a log the command is about a space; options of one are no options of the other.
        """
        assert filled("audit", "--json").json["audit"]
        assert filled("audit", "--claw", "x").code == 1
        assert filled("audit", "--log", "-", "--limit", "3", stdin="").code == 1

    def test_without_docker_a_log_is_asked_for(self, pod, monkeypatch, tmp_path):
        """
        A pod whose logs cannot be had says how to give them.
        """
        monkeypatch.setenv("PATH", str(tmp_path))

        assert "name them with --log FILE" in pod.run("audit").err
