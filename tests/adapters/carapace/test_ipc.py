"""The ipc door over its wire, asked as Carapace's `ipc` client asks. Tests are named after the titles of Carapace's own
suites (memory-store, memory-handler) where they restate one; what the
engine's tests state already is looked at here once, through the socket."""

import json
import re

import pytest

from ipc_client import Ended, contents, failed

TYPES = {"preference": True, "instruction": True, "correction": True, "fact": False, "context": False}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


# ── the wire ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delimiter", [[b""], []], ids=["three frames", "two frames"])
def test_a_response_has_its_envelope(host, clock, delimiter):
    """
    Id, version, type, the request's topic and correlation, who and which group by the host's word, payload.
    """
    with host.dealer("c1") as dealer:
        dealer.send(*delimiter, b'{"topic":"tool.invoke.memory_brief","correlation":"x","arguments":{}}')
        response = dealer.receive()

    assert re.fullmatch(UUID, response.pop("id"))
    assert response == {
        "version": 1,
        "type": "response",
        "topic": "tool.invoke.memory_brief",
        "source": "container-6331",
        "correlation": "x",
        "timestamp": "2026-11-15T08:30:00.000Z",
        "group": "default",
        "payload": {
            "result": {
                "entries": [],
                "generated_at": "2026-11-15T08:30:00.000Z",
                "entry_count": 0,
                "brief_count": 0,
            },
            "error": None,
        },
    }


def test_an_error_before_the_tool_comes_from_core(host):
    """
    Error replies of the pipeline have source `core` and no group.
    """
    with host.dealer() as dealer:
        dealer.ask("tool.invoke.nope", {})
        response = dealer.receive()

    assert (response["source"], response["group"], response["payload"]["result"]) == ("core", "", None)


LIVE = [
    ("tool.invoke.nope", {}, "UNKNOWN_TOOL", 'Unknown tool: "nope"', {"stage": 2}),
    (
        "memory_store",
        {},
        "UNKNOWN_TOOL",
        'Malformed topic: "memory_store" (expected "tool.invoke.<name>")',
        {"stage": 2},
    ),
    (
        "tool.invoke.",
        {},
        "UNKNOWN_TOOL",
        'Malformed topic: "tool.invoke." (tool name is empty)',
        {"stage": 2},
    ),
    (
        "tool.invoke.memory_store",
        {"type": "note", "content": "x"},
        "VALIDATION_FAILED",
        "Argument validation failed: /type: must be equal to one of the allowed values",
        {"stage": 3, "field": "type"},
    ),
    (
        "tool.invoke.memory_store",
        {"type": "fact", "content": "x", "behavioral": True},
        "VALIDATION_FAILED",
        "Argument validation failed: /: must NOT have additional properties",
        {"stage": 3},
    ),
    (
        "tool.invoke.memory_store",
        {"content": "x"},
        "VALIDATION_FAILED",
        "Argument validation failed: /: must have required property 'type'",
        {"stage": 3},
    ),
    (
        "tool.invoke.memory_store",
        {"type": "fact", "content": "x" * 2_001},
        "VALIDATION_FAILED",
        "Argument validation failed: /content: must NOT have more than 2000 characters",
        {"stage": 3, "field": "content"},
    ),
    (
        "tool.invoke.memory_store",
        {"type": "fact", "content": "x", "supersedes": None},
        "VALIDATION_FAILED",
        "Argument validation failed: /supersedes: must be string",
        {"stage": 3, "field": "supersedes"},
    ),
    (
        "tool.invoke.memory_search",
        {"limit": 101, "query": "x" * 501},
        "VALIDATION_FAILED",
        (
            "Argument validation failed: /query: must NOT have more than 500 characters; /limit: must be <= 100"
        ),
        {"stage": 3, "field": "query"},
    ),
    (
        "tool.invoke.memory_delete",
        "x",
        "VALIDATION_FAILED",
        "Argument validation failed: /: must be object",
        {"stage": 3},
    ),
    (7, {}, "VALIDATION_FAILED", "topic: must be string", {"stage": 1, "field": "topic"}),
    (
        "tool.invoke.memory_search",
        {"query": "x" * 102_400},
        "VALIDATION_FAILED",
        'Argument field "query" exceeds field size limit: 102402 bytes > 102400 byte limit',
        {"stage": 1, "field": "query"},
    ),
]


@pytest.mark.parametrize(("topic", "arguments", "code", "message", "more"), LIVE)
def test_what_is_refused_before_the_tool(host, topic, arguments, code, message, more):
    """
    Code, words, stage and field as Carapace's own host gives them; the command ends with 1.
    """
    with host.dealer() as dealer:
        dealer.ask(topic, arguments)
        error = dealer.receive()["payload"]["error"]

    assert error == {"code": code, "message": message, "retriable": False, **more}


def test_messages_have_a_size_and_a_depth(host):
    """
    One megabyte and 64 levels; what is beyond is told so, and what is far beyond ends the connection only.
    """
    deep = current = []
    for _ in range(62):
        current.append([])
        current = current[0]
    assert host.tool("memory_search", {"tags": deep}).stderr["stage"] == 1
    assert host.tool("memory_search", {"tags": deep[0]}).stderr["stage"] == 3
    assert host.tool("memory_search", {"tags": deep}).stderr["message"] == (
        "Message exceeds JSON nesting depth limit: 65 levels > 64 level limit"
    )
    large = host.tool("memory_search", {"query": "x" * 1_048_576}).stderr
    assert re.fullmatch(
        r"Message exceeds raw byte size limit: \d+ bytes > 1048576 byte limit", large["message"]
    )
    with host.dealer("flood") as dealer:
        dealer.send(b"", b" " * 20_000_000)
        assert host.result("memory_search", {}) == {"results": []}


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"", b""],
        [b"", b"{"],
        [b"", b"\xff\xfe"],
        [b"", b"[1]"],
        [b"", b"null"],
        [b"", b'"x"'],
        [b"", b"{}"],
        [b"", b'{"topic":"tool.invoke.memory_brief","arguments":{}}'],
        [b"", b'{"topic":"tool.invoke.memory_brief","correlation":7,"arguments":{}}'],
        [
            b"",
            b'{"topic":"tool.invoke.memory_brief","correlation":"x","arguments":{"include_provenance":NaN}}',
        ],
        [b"", b"[" * 200_000],
        [b"", b"", b'{"topic":"tool.invoke.memory_brief","correlation":"x","arguments":{}}'],
        [b"y", b'{"topic":"tool.invoke.memory_brief","correlation":"x","arguments":{}}'],
    ],
)
def test_what_is_no_request_is_dropped_silently(host, frames):
    """
    Unparsable frames, and those whose answer could not be told apart, get no answer; the connection goes on.
    """
    with host.dealer() as dealer:
        dealer.send(*frames)
        correlation = dealer.ask("tool.invoke.memory_brief", {})

        assert dealer.receive()["correlation"] == correlation


def test_half_a_character_is_refused_in_words(host):
    """
    What JavaScript can send and no file can hold is answered, also in what is echoed.
    """
    ended = host.tool("memory_store", {"type": "fact", "content": "cut \ud83d"})
    assert (ended.code, ended.stderr["code"]) == (1, "HANDLER_ERROR")
    assert "half a character" in ended.stderr["message"]

    assert host.tool("\ud83d", {}).stderr["message"] == 'Unknown tool: "\ud83d"'


def test_the_same_request_again_gets_the_same_answer(host):
    """
    A replayed correlation writes nothing twice; another connection with the same words is another request.
    """
    wire = json.dumps(
        {
            "topic": "tool.invoke.memory_store",
            "correlation": "once",
            "arguments": {"type": "fact", "content": "x"},
        }
    ).encode()
    answers = []
    for identity in ("c1", "c1", "c2"):
        with host.dealer(identity) as dealer:
            dealer.send(b"", wire)
            answers.append(dealer.receive())

    assert answers[0] == answers[1]
    assert answers[2]["payload"]["result"]["session_id"] == "container-6332"
    assert len(host.result("memory_search", {})["results"]) == 2


def test_one_connection_may_ask_many_things(host):
    """
    Answers come in the order of the questions.
    """
    with host.dealer() as dealer:
        asked = [dealer.ask("tool.invoke.memory_search", {"query": str(n)}) for n in range(40)]

        assert [dealer.receive()["correlation"] for _ in asked] == asked


def test_a_connection_without_identity_is_served(host):
    """
    ZeroMQ gives it one.
    """
    stored = host.store("x", identity=None)

    assert re.fullmatch("container-00[0-9a-f]{8}", stored["session_id"])


def test_a_container_calls_again_and_again(host):
    """
    Each call of the command is a new connection under the same identity.
    """
    for _ in range(50):
        assert host.result("memory_brief", {})["entry_count"] == 0


# ── MemoryHandler.memory_store ───────────────────────────────────────────────────────────────────────────────────────


def test_stores_a_valid_entry_and_returns_it(host):
    """
    Also: MemoryStore.store creates an entry with generated id and timestamp. Flat, as Carapace's code answers.
    """
    ended = host.tool("memory_store", {"type": "fact", "content": "User's dog is named Luna"})

    assert ended.code == 0
    assert re.fullmatch(f"mem-{UUID}", ended.stdout.pop("id"))
    assert ended.stdout == {
        "type": "fact",
        "content": "User's dog is named Luna",
        "behavioral": False,
        "tags": [],
        "supersedes": None,
        "superseded_by": None,
        "session_id": "container-6331",
        "group": "default",
        "created_at": "2026-11-15T08:30:00.000Z",
    }


@pytest.mark.parametrize(("type_", "behavioral"), TYPES.items())
def test_derives_behavioral_from_type(host, type_, behavioral):
    """
    derives behavioral=true / false for … type; behavioral flag matches type, not wire-supplied value.
    """
    assert host.store("x", type=type_)["behavioral"] is behavioral


def test_populates_provenance_from_context_not_arguments(host, plane):
    """
    Also: provenance comes from context, ignoring any args. Nothing else on the wire is trusted.
    """
    claimed = {"group": "admin", "source": "someone", "session_id": "s", "id": "mem-1", "type": "x"}
    ended = host.tool("memory_store", {"type": "fact", "content": "x"}, **claimed)

    assert (ended.stdout["group"], ended.stdout["session_id"]) == ("default", "container-6331")
    assert list(plane.spaces()) == ["default"]
    for name in ("session_id", "group", "created_at", "id"):
        assert host.tool("memory_store", {"type": "fact", "content": "x", name: "y"}).code == 1


def test_stores_with_tags(host):
    """
    stores tags as JSON array.
    """
    assert host.store("x", tags=["coding", "typescript"])["tags"] == ["coding", "typescript"]


def test_handles_supersession(host):
    """
    Also: handles supersession chain. Who names what was replaced already replaces the newest.
    """
    first = host.store("one")
    second = host.store("two", supersedes=first["id"])
    third = host.store("three", supersedes=first["id"])

    assert (second["supersedes"], third["supersedes"]) == (first["id"], second["id"])
    assert contents(host.result("memory_search", {})) == ["three"]


def test_returns_error_when_superseding_non_existent_entry(host):
    """
    Also: throws when superseding a non-existent entry.
    """
    ended = host.tool("memory_store", {"type": "fact", "content": "x", "supersedes": "mem-nope"})

    assert ended == failed("HANDLER_ERROR", 'Superseded entry "mem-nope" not found')


@pytest.mark.parametrize("type_", ["episode", "Fact", "", "note", "fact; DROP TABLE memory"])
def test_returns_error_on_invalid_entry_type(host, type_):
    """
    Also: throws on invalid entry type; PRAGMA injection in entry type does not execute.
    """
    assert host.tool("memory_store", {"type": type_, "content": "x"}).stderr["field"] == "type"


@pytest.mark.parametrize("content", ["", "   "])
def test_throws_for_empty_content(host, content):
    """
    enforceContentLength: a memory says something.
    """
    ended = host.tool("memory_store", {"type": "fact", "content": content})

    assert ended == failed("HANDLER_ERROR", "content is empty; give some text")


def test_enforces_max_20_stores_per_session(host):
    """
    Only calls that succeed count; rate limits are per-session, not global.
    """
    for number in range(20):
        host.store(str(number))
        host.tool("memory_store", {"type": "fact", "content": "x", "supersedes": "mem-nope"})

    ended = host.tool("memory_store", {"type": "fact", "content": "x"})
    assert ended == failed("RATE_LIMITED", "Maximum 20 memory_store calls per session reached.")
    assert host.store("x", identity="c2")["content"] == "x"
    assert host.tool("memory_search", {}).code == 0


def test_enforces_max_5_supersedes_per_session(host):
    """
    The sixth is refused; a store that replaces nothing is not.
    """
    last = host.store("0")["id"]
    for number in range(5):
        last = host.store(str(number), supersedes=last)["id"]

    ended = host.tool("memory_store", {"type": "fact", "content": "x", "supersedes": last})
    assert ended == failed("RATE_LIMITED", "Maximum 5 supersedes per session reached.")
    assert host.store("x")["supersedes"] is None


def test_errors_can_be_told_as_the_original_tells_them(open_host):
    """
    What a tool refuses is then a result, exit code 0; what never reached the tool is an error all the same.
    """
    host = open_host(errors_in_result=True)

    assert host.tool("memory_delete", {"id": "x"}) == Ended(
        0,
        {"error": {"code": "HANDLER_ERROR", "message": 'Memory entry "x" not found.', "retriable": False}},
    )
    assert host.tool("memory_delete", {}).code == 1


# ── MemoryHandler.memory_search ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def filled(host, clock):
    for number, (type_, tags) in enumerate(
        [("fact", ["pets"]), ("preference", ["pets", "food"]), ("context", ["food"])]
    ):
        host.store(f"Luna likes bread {number}", type=type_, tags=tags)
        clock.advance(seconds=1)
    return host


def test_returns_empty_results_for_empty_store(host):
    """
    Nothing known, nothing found.
    """
    assert host.result("memory_search", {}) == {"results": []}


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "  "}])
def test_returns_recent_entries_with_no_query(filled, arguments):
    """
    Also: returns results sorted by created_at descending when no query; score 0.
    """
    results = filled.result("memory_search", arguments)["results"]

    assert [result["content"][-1] for result in results] == ["2", "1", "0"]
    assert set(results[0]) == {
        "id",
        "type",
        "content",
        "behavioral",
        "tags",
        "created_at",
        "relevance_score",
    }
    assert {result["relevance_score"] for result in results} == {0}


def test_searches_by_fts5_text_query(filled):
    """
    Also: returns relevance_score for FTS5 queries, between 0 and 1.
    """
    filled.store("Something else")
    results = filled.result("memory_search", {"query": "luna bread"})["results"]

    assert len(results) == 3
    assert all(0 < result["relevance_score"] <= 1 for result in results)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"type": "fact"}, "0"),
        ({"tags": ["pets"]}, "10"),
        ({"tags": ["pets", "food"]}, "1"),
        ({"tags": ["nope"]}, ""),
        ({"limit": 1}, "2"),
        ({"limit": 2.0}, "21"),
        ({"limit": 0}, ""),
        ({"limit": -1}, "210"),
        ({"query": "bread", "type": "context"}, "2"),
        ({"query": "bread", "tags": ["food"], "limit": 1, "type": "preference"}, "1"),
    ],
    ids=str,
)
def test_filters_by_type_and_tags_and_respects_limit_parameter(filled, arguments, found):
    """
    Also: filters by tags (AND logic), combines text query with type filter. Filters narrow before the limit does.
    """
    assert "".join(text[-1] for text in contents(filled.result("memory_search", arguments))) == found


def test_excludes_superseded_entries_by_default_and_includes_them_when_requested(host, clock):
    """
    Replaced memories are history.
    """
    old = host.store("old")
    clock.advance(seconds=1)
    host.store("new", supersedes=old["id"])

    assert contents(host.result("memory_search", {})) == ["new"]
    assert contents(host.result("memory_search", {"include_superseded": True})) == ["new", "old"]


def test_defaults_to_limit_of_20(host, plane):
    """
    Twenty unless asked otherwise, a hundred at most.
    """
    for number in range(105):
        plane.space("default").store("fact", str(number))

    assert len(host.result("memory_search", {})["results"]) == 20
    assert len(host.result("memory_search", {"limit": 100})["results"]) == 100


def test_what_other_doors_remember_is_found(host, plane):
    """
    Keyed facts say their key, and however long a value is, the answer is not; episodes and turns are not memories here.
    """
    space = plane.space("default")
    space.put("colour", "green " + "x" * 5_000)
    space.retain("I said green once")

    (found,) = host.result("memory_search", {"query": "green"})["results"]
    assert found["content"].startswith("colour: green xx")
    assert (len(found["content"]), found["type"]) == (2_000, "fact")


# ── MemoryHandler.memory_brief ───────────────────────────────────────────────────────────────────────────────────────


def test_returns_entries_with_behavioral_flag_and_stripped_newlines(host):
    """
    Also: strips \\r\\n, \\r, and unicode line separators; strips all Unicode newline variants from brief content.
    """
    host.store("a\nb\r\nc\rd\u2028e\u2029f\x0bg\x0ch\x85i", type="preference")

    (entry,) = host.result("memory_brief", {})["entries"]
    assert (entry["content"], entry["behavioral"]) == ("a b c d e f g h i", True)


def test_brief_entries_have_their_fields(host, clock):
    """
    includes age_days in entries; sorts behavioral entries before non-behavioral; excludes superseded entries; includes
    provenance when include_provenance=true.
    """
    fact = host.store("old", tags=["t"])
    host.store("new", tags=["t"], supersedes=fact["id"])
    host.store("tea", type="preference")
    clock.advance(days=3)

    brief = host.result("memory_brief", {})
    assert contents(brief) == ["tea", "new"]
    assert (brief["entry_count"], brief["brief_count"]) == (3, 2)
    assert {key: value for key, value in brief["entries"][1].items() if key != "id"} == {
        "type": "fact",
        "content": "new",
        "behavioral": False,
        "tags": ["t"],
        "age_days": 3,
    }
    told = host.result("memory_brief", {"include_provenance": True})["entries"][0]
    assert (told["session_id"], told["group"]) == ("container-6331", "default")


def test_respects_max_brief_entries_limit_and_max_brief_chars_limit(open_host):
    """
    Whichever is reached first.
    """
    host = open_host(settings={"brief_entries_max": 2, "brief_chars_max": 10})
    for text in ("1234567890", "12", "34"):
        host.store(text)

    assert contents(host.result("memory_brief", {})) == ["34", "12"]


# ── MemoryHandler.memory_delete ──────────────────────────────────────────────────────────────────────────────────────


def test_deletes_an_existing_entry(host):
    """
    Also: entry is removed from FTS5 index after delete.
    """
    stored = host.store("Luna")

    assert host.result("memory_delete", {"id": stored["id"]}) == {"deleted": True, "id": stored["id"]}
    assert host.result("memory_search", {"query": "Luna"}) == {"results": []}


def test_returns_error_for_non_existent_entry(host):
    """
    returns false for non-existent entry.
    """
    assert host.tool("memory_delete", {"id": "x"}) == failed("HANDLER_ERROR", 'Memory entry "x" not found.')


def test_enforces_max_5_deletes_per_session(host):
    """
    Also: rate limits are per-session.
    """
    ids = [host.store(str(number))["id"] for number in range(7)]
    for id_ in ids[:5]:
        host.result("memory_delete", {"id": id_})

    ended = host.tool("memory_delete", {"id": ids[5]})
    assert ended == failed("RATE_LIMITED", "Maximum 5 memory_delete calls per session reached.")
    assert host.tool("memory_delete", {"id": ids[6]}, identity="c2").code == 0
