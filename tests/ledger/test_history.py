"""Reading the session history: ids, lines, files."""

import hashlib
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memplane.clock import iso
from memplane.ledger.history import LINE_BYTES_MAX, BadLine, HistoryLine, entry_id, parse_line

GO_ID = "hist1_8f732461c2307549ace1ef26b1ba11c270785d0397fabf3aa6c6bf8376e17360"
GO_REST = (
    b'"ts":"2026-01-01T00:00:00Z","claw_id":"","path":"","requested_model":"","effective_provider":"",'
    b'"effective_model":"","status_code":0,"stream":false,"response":{"format":"sse"},"usage":{}}'
)
GO_LINE = b'{"version":1,"id":"' + GO_ID.encode() + b'",' + GO_REST
LEGACY_LINE = b'{"version":1,' + GO_REST

STRINGS = st.text(alphabet=st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | STRINGS
    | st.sampled_from(['"id":"x",', "{", "}", ",", "\\"]),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.just("id") | STRINGS, values, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = st.dictionaries(STRINGS.filter(lambda key: key not in {"id", "ts", "version"}), VALUES, max_size=4)


def digest(text: str | bytes) -> str:
    """The id rule in one line, apart from the code under test."""
    return "hist1_" + hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def spell(members: list[tuple[str, object]]) -> str:
    spelled = (f"{json.dumps(k, ensure_ascii=False)}:{json.dumps(v, ensure_ascii=False)}" for k, v in members)
    return "{" + ",".join(spelled) + "}"


def legacy_line(number: int = 0, **members: object) -> bytes:
    ts = f"2026-11-15T06:{number // 60:02}:{number % 60:02}Z"
    return json.dumps({"version": 1, "ts": ts, "number": number, **members}).encode()


def test_the_id_of_a_line_that_go_wrote():
    """
    A real Go program gave this line this id.
    """
    assert entry_id(GO_LINE) == GO_ID
    assert entry_id(b" " + GO_LINE + b"\r\n") == GO_ID


def test_a_line_without_id_is_hashed_as_it_is():
    """
    The id of a legacy line is the hash of its bytes without surrounding whitespace.
    """
    assert entry_id(b"\t" + LEGACY_LINE + b"\n") == digest(LEGACY_LINE) == GO_ID
    assert entry_id(b'{ "version": 1 }') == digest(b'{ "version": 1 }')


@settings(deadline=None)
@given(MEMBERS, st.data())
def test_only_the_top_level_id_is_removed(members, data):
    """
    Wherever the id stands and whatever is nested before or after it, the hash is that of the other members.
    """
    others = [("version", 1), *members.items()]
    position = data.draw(st.integers(0, len(others)))
    value = data.draw(STRINGS | st.just("hist1_" + "0" * 64))
    with_id = [*others[:position], ("id", value), *others[position:]]

    assert entry_id(spell(with_id).encode()) == digest(spell(others))


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ('{"id":"x"}', "{}"),
        ('{"id":"x","a":1}', '{"a":1}'),
        ('{"a":1,"id":"x"}', '{"a":1}'),
        ('{"a":1,"id":"x","b":2}', '{"a":1,"b":2}'),
        ('{"id":"x", "a" : 1 }', '{ "a" : 1 }'),
        ('{"a":{"id":"y"},"id":"x","b":2}', '{"a":{"id":"y"},"b":2}'),
        ('{"a":["id",{"id":"y"}],"id":"x"}', '{"a":["id",{"id":"y"}]}'),
        ('{"a":"\\"id\\":\\"y\\",","id":"x","b":2}', '{"a":"\\"id\\":\\"y\\",","b":2}'),
        ('{"a":"id","id":"x","b":2}', '{"a":"id","b":2}'),
        ('{"a":"\\\\","id":"x","b":2}', '{"a":"\\\\","b":2}'),
        ('{"version":1,"id":"hist1_quote\\"","ts":1}', '{"version":1,"ts":1}'),
    ],
)
def test_the_id_is_removed_with_one_comma(line, rest):
    """
    First, last, alone or in between: what remains is the object without it.
    """
    assert entry_id(line.encode()) == digest(rest)


@pytest.mark.parametrize("second", [b'"id":"other"', b'"id":"' + GO_ID.encode() + b'"'])
def test_a_second_id_is_never_taken_for_the_first(second):
    """
    A line with two ids proves neither of them and is refused.
    """
    line = GO_LINE[:-1] + b"," + second + b"}"

    with pytest.raises(BadLine, match="id does not match"):
        parse_line(line)


def test_an_id_that_is_only_nested_is_no_id():
    """
    A legacy line whose request has an id is still hashed whole.
    """
    line = legacy_line(request_original={"id": GO_ID})

    assert parse_line(line).id == digest(line)
    assert parse_line(line).legacy


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\id', max_size=60).map(str.encode))
@example(b'{"version":1,"id":"hist1_' + b"0" * 64 + b'",')
@example(b'{"id":"')
@example(b"{" * 2000)
def test_any_bytes_have_an_id(raw):
    """
    The id rule is about text and raises on none.
    """
    assert entry_id(raw).startswith("hist1_")


def test_text_made_to_slow_the_id_rule_does_not():
    """
    Unfinished strings and deep nesting are scanned once: a megabyte takes no longer than a blink.
    """
    for hostile in (b'{"id' + b'\\"' * 500_000, b'{"id"' + b'{"id":' * 200_000, b'{"id' + b"\\" * 1_000_001):
        assert entry_id(hostile) == digest(hostile)


def test_parse_keeps_the_line_verbatim():
    """
    What Clawdapus wrote is what is stored, without the line end.
    """
    parsed = parse_line(GO_LINE + b"\r\n")

    assert parsed == HistoryLine(GO_ID, GO_LINE, parsed.at, legacy=False)
    assert iso(parsed.at) == "2026-01-01T00:00:00.000Z"


def test_parse_hydrates_a_legacy_line_where_the_id_belongs():
    """
    The id is put after the version, so a hydrated line is the line Go would have written with it.
    """
    parsed = parse_line(LEGACY_LINE)

    assert parsed == HistoryLine(GO_ID, GO_LINE, parsed.at, legacy=True)


@settings(deadline=None)
@given(MEMBERS, st.permutations(["version", "ts", "more"]), st.sampled_from(["", " ", "\t"]))
def test_hydrating_keeps_the_id(members, order, space):
    """
    However a legacy line is laid out, its id is the hash of its bytes before and after it carries it.
    """
    parts = {"version": [("version", 1)], "ts": [("ts", "2026-11-15T06:28:17Z")], "more": members.items()}
    text = spell([member for name in order for member in parts[name]])
    line = ("{" + space + text[1:-1] + space + "}").encode()

    parsed = parse_line(line)

    assert parsed.legacy
    assert parsed.id == digest(line) == entry_id(parsed.line)
    assert parse_line(parsed.line) == HistoryLine(parsed.id, parsed.line, parsed.at, legacy=False)
    assert json.loads(parsed.line) == {**json.loads(line), "id": parsed.id}


@pytest.mark.parametrize(
    ("ts", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1969-12-31T23:59:59Z", -1_000_000),
    ],
)
def test_the_instant_is_that_of_ts(ts, at):
    """
    Any zone and fraction of RFC 3339 is read, though Clawdapus writes whole seconds in UTC.
    """
    assert parse_line(legacy_line(ts=ts)).at == at


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (GO_LINE[:-1], "not JSON"),
        (GO_LINE + b"}", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "version is missing"),
        (b'{"ts":"2026-01-01T00:00:00Z"}', "version is missing"),
        (legacy_line(version=2), "version is 2, not 1"),
        (legacy_line(version="1"), 'version is "1", not 1'),
        (b'{"version":1}', "ts is missing"),
        (legacy_line(ts="yesterday"), 'ts is "yesterday", not an RFC 3339 time'),
        (legacy_line(ts="2026-01-01T00:00:00"), "not an RFC 3339 time with a zone"),
        (legacy_line(ts="2026-02-30T00:00:00Z"), "not an RFC 3339 time"),
        (legacy_line(ts="0001-01-01T00:00:00+10:00"), "outside the years"),
        (legacy_line(ts=7), "ts is 7"),
        (legacy_line(id=""), "id is empty"),
        (legacy_line(id=" "), "id is empty"),
        (legacy_line(id=None), "id is not a string"),
        (legacy_line(id="hist1_x"), "id does not match the content"),
        (GO_LINE.replace(b"false", b"true"), "id does not match the content"),
        (GO_LINE.replace(GO_ID.encode(), GO_ID.upper().encode()), "id does not match the content"),
        (LEGACY_LINE.replace(b'"sse"', b'"\xff"'), "invalid UTF-8 at byte"),
        (LEGACY_LINE.replace(b'"path":""', b'"path":"\x01"'), "not JSON"),
        (LEGACY_LINE + b"\n" + LEGACY_LINE, "more than one line"),
        (LEGACY_LINE[:-1] + b',"x":' + b"[" * 50_000, "nested too deeply"),
        (b'{"version":2,"ts"', "not JSON"),
        (b'{"version":"2","ts"', "not JSON"),
    ],
)
def test_a_line_that_is_no_entry_says_why(raw, reason):
    """
    Each fault has a reason a person can act on.
    """
    with pytest.raises(BadLine, match=reason) as caught:
        parse_line(raw)

    assert caught.value.reason == str(caught.value)


def test_a_line_may_be_as_long_as_the_limit():
    """
    The limit is that of the line itself, eight mebibytes unless told otherwise.
    """
    line = legacy_line()

    assert parse_line(b" " + line + b"\n", line_bytes_max=len(line)).legacy
    with pytest.raises(BadLine, match=f"longer than {len(line) - 1} bytes"):
        parse_line(line, line_bytes_max=len(line) - 1)
    with pytest.raises(BadLine, match="longer than"):
        parse_line(b" " + b"x" * (LINE_BYTES_MAX + 1))


def test_trusted_ids_are_not_compared():
    """
    An entry that was scrubbed on its way keeps the id of the ledger's line.
    """
    scrubbed = GO_LINE.replace(b'"sse"', b'"[redacted]"')

    assert parse_line(scrubbed, trust_ids=True) == HistoryLine(
        GO_ID, scrubbed, parse_line(GO_LINE).at, legacy=False
    )
    assert parse_line(LEGACY_LINE, trust_ids=True).id == GO_ID


def test_half_an_emoji_does_not_cost_the_line():
    """
    Go lets an unpaired surrogate pass into the ledger, so it is read from there, and kept as it is.
    """
    line = LEGACY_LINE[:-1] + rb',"x":"\ud83d"}'

    parsed = parse_line(line)

    assert parsed.id == digest(line)
    assert parse_line(parsed.line).line.endswith(rb',"x":"\ud83d"}')


@settings(deadline=None)
@given(
    st.binary(max_size=80)
    | st.text(alphabet='{}[]",:\\uid1vers tZ-', max_size=60).map(str.encode)
    | st.tuples(st.binary(max_size=9), st.integers(0, len(GO_LINE))).map(
        lambda noise: GO_LINE[: noise[1]] + noise[0] + GO_LINE[noise[1] :]
    ),
    st.booleans(),
)
def test_parse_raises_nothing_but_bad_line(raw, trust_ids):
    """
    Arbitrary bytes, and a good line with noise in it, are an entry that proves its id or a `BadLine`.
    """
    try:
        parsed = parse_line(raw, trust_ids=trust_ids)
    except BadLine:
        return

    assert parsed.line == parsed.line.strip()
    assert trust_ids or entry_id(parsed.line) == parsed.id
