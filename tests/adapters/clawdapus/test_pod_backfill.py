"""`memplane memory backfill`: a history told to a memory service once more. Real files, a real service; the messages are
those of `claw`."""

import json
import os

import pytest

from clawdapus import entry_line, later
from memory_service import answering, hanging_up
from pod_directory import POD, SECRET


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

    def test_a_refusal_without_words_has_those_of_its_status(self, running, service):
        """
        As the original says it; a status that nobody knows says nothing more.
        """
        service.plan = [answering(502), answering(599)]

        refused = [running.run("memory", "backfill", "mem-svc", "--url", service.url).err for _ in range(2)]

        assert refused == [
            'memplane: backfill "analyst": retain returned status 502: Bad Gateway\n',
            'memplane: backfill "analyst": retain returned status 599\n',
        ]

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
        assert "analyst: 1 line skipped; history.jsonl line 4" in done.err

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
