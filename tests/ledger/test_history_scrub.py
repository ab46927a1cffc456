"""Entries on their way in from a proxy, and on their way out without secrets."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import costly

from clawdapus import entry_line
from conftest import fresh_plane
from memplane.adapters.importers import scrubbed_lines
from memplane.errors import InvalidRequest
from memplane.ledger.history import BadLine, Payload, ToolCall, ToolRound, entry_id
from memplane.ledger.history_text import received_line, reply_text, scrub_line

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
NOW = 1_775_217_600_000_000


def received(entry, **changes):
    raw = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
    return received_line(raw, **({"now": NOW, "line_bytes_max": 1 << 20} | changes))


@given(
    st.text(st.characters(codec="utf-8"), max_size=200), st.text(st.characters(codec="utf-8"), max_size=200)
)
def test_a_line_without_secrets_is_told_byte_for_byte(said, answered):
    """
    Its id still proves it.
    """
    line = entry_line(said, answered)
    told, count = scrub_line(line.line)

    if count == 0:
        assert told == line.line
        assert entry_id(told) == line.id
    assert json.loads(told)["id"] == line.id


@pytest.mark.parametrize(
    "members",
    [
        {"request_original": {"messages": [{"role": "user", "content": f"it is {SECRET}"}]}},
        {"request_original": {"messages": [{"role": "user", "content": [{"type": "text", "text": SECRET}]}]}},
        {"request_effective": {"messages": [{"role": "system", "content": SECRET}]}},
        {"response": Payload(json={"content": [{"type": "text", "text": SECRET}]})},
        {"response": Payload(text=f'data: {{"choices":[{{"delta":{{"content":"{SECRET}"}}}}]}}\n\n')},
        {"tool_trace": [ToolRound(1, tool_calls=(ToolCall("t", arguments={"a": [SECRET]}, result={}),))]},
        {"tool_trace": [ToolRound(1, tool_calls=(ToolCall("t", arguments={}, result=SECRET),))]},
        {"requested_model": SECRET},
    ],
)
def test_a_secret_is_scrubbed_wherever_it_stands(members):
    """
    In every member, tools' among them; the line stays a line, under its id and time.
    """
    line = entry_line(**members)

    told, count = scrub_line(line.line)

    assert count > 0
    assert SECRET.encode() not in told
    assert {name: json.loads(told)[name] for name in ("id", "ts", "version")} == {
        "id": line.id,
        "ts": "2026-04-03T12:00:00Z",
        "version": 1,
    }
    assert b"\n" not in told


def test_a_value_is_judged_by_its_name():
    """
    `{"password": …}` among a tool's arguments.
    """
    call = ToolCall("login", arguments={"password": "hunter2hunter2", "user": "anna"})

    told, _ = scrub_line(entry_line(tool_trace=[ToolRound(1, tool_calls=(call,))]).line)

    assert b"hunter2hunter2" not in told
    assert b'"anna"' in told


def test_a_secret_spread_over_a_stream_is_found():
    """
    No event shows it; all of them together do. Such a stream is told as the reply that it amounts to.
    """
    parts = [f"the key: {SECRET[:9]}", SECRET[9:20], SECRET[20:] + " done"]
    stream = "".join(
        "data: " + json.dumps({"choices": [{"delta": {"content": part}}]}) + "\n\n" for part in parts
    )

    told, count = scrub_line(entry_line(response=Payload(text=stream)).line)

    reply = reply_text(json.loads(told)["response"])
    assert count == 1
    assert SECRET[9:20].encode() not in told
    assert reply.startswith("the key: [REDACTED")
    assert reply.endswith("done")


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "1" * 5_000, "0.1000", "12345678901234567890123"], ids=range(5)
)
def test_numbers_nobody_can_hold_do_not_stop_it(number):
    """
    JSON takes them; a secret beside one still goes.
    """
    raw = entry_line().line.replace(b'"model"', f'"n":{number},"s":"{SECRET}","model"'.encode())

    told, _ = scrub_line(raw)

    assert SECRET.encode() not in told
    assert json.loads(told)["version"] == 1


def test_an_entry_needs_its_id_only():
    """
    Version and time are filled in, an id loses its blanks, the rest stays as it was spelled.
    """
    line = received(b'{ "id" : " x " , "n" : 1.00 }')

    assert line.id == "x"
    assert line.line == b'{"version":1,"id":"x","n":1.00,"ts":"2026-04-03T12:00:00Z"}'


def test_a_whole_entry_stays_as_it_is():
    """
    Byte for byte.
    """
    line = entry_line("a <b> & c")

    assert received(line.line).line == line.line


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b'{"id":7}',
        b'{"id":""}',
        b'{"id":"x","ts":"noon"}',
        b'{"id":"x","version":"1"}',
    ],
)
def test_what_is_no_entry_is_refused(entry):
    """
    With one error, whatever it is.
    """
    with pytest.raises(BadLine):
        received(entry)


def test_an_entry_that_is_too_long_is_refused(space):
    """
    And ids of what we derive ourselves are nobody else's.
    """
    with pytest.raises(BadLine, match="longer than"):
        received(entry_line("x" * 500).line, line_bytes_max=400)
    with pytest.raises(InvalidRequest):
        space.retain_entry(b'{"id":"fact-0011"}')


def test_retaining_an_entry_again_changes_nothing(space):
    """
    And one that was forgotten stays so.
    """
    line = entry_line("The penguin is in Porto")

    first, second = space.retain_entry(line.line), space.retain_entry(line.line)
    space.forget(entries=[line.id])
    third = space.retain_entry(line.line)

    assert (first.deduped, second.deduped, third.suppressed) == (False, True, True)
    assert space.search("penguin") == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "messages", "type", "text", "choices", "message", "json", "password"]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)
MEMBERS = [
    "version",
    "id",
    "ts",
    "status",
    "request_original",
    "request_effective",
    "response",
    "tool_trace",
    "x",
]


@costly(30)
@given(st.lists(st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=9), min_size=1, max_size=6))
def test_whatever_comes_is_taken_or_refused(entries):
    """
    An entry is a shape that others choose: it is kept, found in the history as one line of JSON under its id, and never
    stops anything; or it is refused with an error of ours.
    """
    with fresh_plane() as plane:
        space = plane.space("analyst")
        kept = []
        for number, entry in enumerate(entries):
            with suppress(InvalidRequest):
                named = {"id": f"e{number}", "ts": "2026-04-03T12:00:00Z", "version": 1} if number % 2 else {}
                kept.append(space.retain_entry(json.dumps(entry | named).encode()).id)
        kept = list(dict.fromkeys(kept))
        told = [json.loads(line) for line in scrubbed_lines(space, space.ledger.turn_seqs())]
        space.recall("role content")

    assert [line["id"] for line in told] == kept


@pytest.mark.parametrize("depth", [50, 400, 2_000, 100_000])
def test_depth_is_no_way_in(space, depth):
    """
    An entry that nests without end is refused, or kept and told; nothing breaks.
    """
    deep = b"[" * depth + f'"{SECRET}"'.encode() + b"]" * depth
    line = entry_line().line.replace(b'"model"', b'"deep":' + deep + b',"model"')

    with suppress(InvalidRequest):
        space.retain_entry(line)
    (told,) = scrubbed_lines(space, space.ledger.turn_seqs()) if space.ledger.turn_seqs() else (b"",)

    assert SECRET.encode() not in told
    space.recall("alpha")


def test_a_bookmark_stays(open_plane):
    """
    For whoever goes on later, in another program.
    """
    open_plane().space("alice").ledger.set_bookmark("here", "12")

    assert open_plane().space("alice").ledger.bookmark("here") == "12"
    assert open_plane().space("bob").ledger.bookmark("here") is None


def test_asking_whether_a_space_is_there_makes_none(plane):
    """
    Reads for agents nobody has heard of leave no files.
    """
    assert not plane.has_space("alice")
    plane.space("alice").retain("tea")

    assert plane.has_space("alice")
    assert not plane.has_space("alice", tenant="other")
    assert list(plane.spaces()) == ["alice"]
