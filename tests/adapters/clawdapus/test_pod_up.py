"""`memplane up`: what a pod is compiled to. Real files; the messages are those of `claw`."""

import json
import os
import stat

import pytest
import yaml

from pod_directory import DESCRIPTOR, POD


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
        assert "was not changed" in done.err
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


def test_what_is_merged_in_may_be_overridden(pod):
    """
    Anchors and merges are common in compose files; a key given twice is not.
    """
    pod.write(
        "x-base: &base {image: a, x-claw: {cllama: x}}\n" + POD + "  more:\n    <<: *base\n    image: b\n"
    )

    assert pod.run("up").code == 0
    assert pod.manifest("more")["service"] == "mem-svc"
