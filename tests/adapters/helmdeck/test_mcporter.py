"""mcporter, which OpenClaw runs to ask the QMD corpus, against the QMD endpoint and the main one."""

import json
import os
import subprocess

import pytest

import npm_tools
from facts_callers import People, record_runs, store

VERSION = "0.9.0"


@pytest.fixture(scope="module")
def command():
    return npm_tools.command("mcporter", VERSION, "mcporter")


@pytest.fixture
def people(server):
    return People(server)


@pytest.fixture
def mcporter(command, people, tmp_path):
    """Runs it with a home of its own, in which the configuration stands where OpenClaw's script puts it."""

    def run(*arguments, token="alice-token", path="/api/v1/mcp/qmd/sse"):
        home = tmp_path / "home"
        (home / ".mcporter").mkdir(parents=True, exist_ok=True)
        server = {"baseUrl": people.server.url + path, "headers": {"Authorization": f"Bearer {token}"}}
        config = home / ".mcporter" / "mcporter.json"
        config.write_text(json.dumps({"mcpServers": {"helmdeck": server}}))
        return subprocess.run(
            [command, *arguments],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "NO_COLOR": "1",
                "MCPORTER_OAUTH_TIMEOUT_MS": "1000",  # who is refused is sent to a browser, and there is none
            },
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    return run


def query(mcporter, arguments, **options):
    given = ["--args", json.dumps(arguments), "--output", "json", "--timeout", "30000"]
    done = mcporter("call", "helmdeck.query", *given, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"]


def test_a_query_as_openclaw_asks_it(mcporter, people, clock):
    """
    The searches of its default mode and a collection; the answer is bare results, of the caller.
    """
    store(people.alice, "preferences/frontend", "React over Vue", category="preferences")
    store(people.bob, "preferences/frontend", "React, says bob")
    record_runs(people.server.plane, clock)
    searches = [{"type": kind, "query": "React"} for kind in ("lex", "vec", "hyde")]

    found = query(mcporter, {"searches": searches, "limit": 6, "collections": ["memory-main"]})

    assert found == [
        {
            "docid": "preferences/preferences/frontend",
            "score": 0.9,
            "snippet": "## preferences/frontend\n\nReact over Vue\n\n(category: preferences)",
            "collection": "helmdeck-preferences",
            "file": "facts/preferences/frontend",
        }
    ]
    assert query(mcporter, {"searches": searches}, token="bob-token")[0]["snippet"].count("bob") == 1
    assert query(mcporter, {"searches": [{"type": "lex", "query": "Pack call"}]}, token="bob-token") == []


def test_the_tools_are_listed(mcporter):
    """
    `mcporter list` sees the one tool of the corpus, and the packs of the main server.
    """
    corpus = mcporter("list", "helmdeck", "--json")
    main = mcporter("list", "helmdeck", "--json", path="/api/v1/mcp/sse")

    assert [tool["name"] for tool in json.loads(corpus.stdout)["tools"]] == ["query"]
    assert [tool["name"] for tool in json.loads(main.stdout)["tools"]] == [
        "helmdeck.memory_store",
        "helmdeck.memory_forget",
    ]


def test_a_tool_that_is_not_there(mcporter):
    """
    Its words reach the caller.
    """
    done = mcporter("call", "helmdeck.search", "--args", "{}", "--output", "json")

    assert "unknown tool: search" in done.stdout + done.stderr


def test_a_wrong_token(mcporter):
    """
    It fails and says so, instead of waiting.
    """
    done = mcporter("call", "helmdeck.query", "--args", "{}", "--output", "json", token="wrong")

    assert "results" not in done.stdout
    assert "401" in done.stdout + done.stderr or "auth" in (done.stdout + done.stderr).lower()
