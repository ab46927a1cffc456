"""`memplane memory forget`: a service forgets, and it is written down that it did. Real files, a real service; the messages are
those of `claw`."""

import json

import pytest

from clawdapus import entry_line, later
from memory_service import answering


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
