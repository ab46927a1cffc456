"""`memplane audit` of a pod: what its proxies logged, with all about memory."""

import json

import pytest

from clawdapus import entry_line, later


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

        assert "pass --log FILE" in pod.run("audit").err
