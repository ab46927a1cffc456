"""Go's spelling of JSON. Every expected spelling in a table here was printed by a real Go (1.19 and 1.27)."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.errors import InvalidRequest
from memplane.ledger import gojson

GO_FLOATS = [
    (0.0, "0"),
    (-0.0, "-0"),
    (1.0, "1"),
    (-1.0, "-1"),
    (100.0, "100"),
    (0.1, "0.1"),
    (0.3, "0.3"),
    (1 / 3, "0.3333333333333333"),
    (4.35, "4.35"),
    (7.5e-05, "0.000075"),
    (2.5e-06, "0.0000025"),
    (1e-6, "0.000001"),
    (9.9e-7, "9.9e-7"),
    (1e-7, "1e-7"),
    (-1.5e-8, "-1.5e-8"),
    (1e-10, "1e-10"),
    (5e-324, "5e-324"),
    (1e6, "1000000"),
    (1e15, "1000000000000000"),
    (1e16, "10000000000000000"),
    (1e17, "100000000000000000"),
    (1e20, "100000000000000000000"),
    (123456789012345678901.0, "123456789012345680000"),
    (999999999999999900000.0, "999999999999999900000"),
    (1e21, "1e+21"),
    (1.5e22, "1.5e+22"),
    (1e100, "1e+100"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
]

GO_STRINGS = [
    ("", '""'),
    ("plain", '"plain"'),
    ('a"b\\c/d', r'"a\"b\\c/d"'),
    ("<b>&amp;</b>", r'"\u003cb\u003e\u0026amp;\u003c/b\u003e"'),
    ("line\nfeed\ttab\rreturn", r'"line\nfeed\ttab\rreturn"'),
    ("\x00\x01\x1f\x7f", '"\\u0000\\u0001\\u001f\x7f"'),
    ("\u2028\u2029", r'"\u2028\u2029"'),
    ("é漢😀\ufffd\ufeff", '"é漢😀\ufffd\ufeff"'),
    ("\u0080\u009f", '"\u0080\u009f"'),
    ("\b\f", r'"\b\f"'),  # since Go 1.22
]

GO_RAW = [
    (
        ' { "b" : 1.50 , "a" : [ 1E+05 , -0 , 1e400 ] , "b" : null }\n',
        '{"b":1.50,"a":[1E+05,-0,1e400],"b":null}',
    ),
    (r'"<\u003C\/ & \ud83d \\ud83d"', r'"\u003c\u003C\/ \u0026 \ud83d \\ud83d"'),
    ('[ " spaced  out \\" , : { " , "\u2028" ]', '[" spaced  out \\" , : { ","\\u2028"]'),
    ("\t[\r\n]\t", "[]"),
    (r'{"<k>":"\u0026"}', r'{"\u003ck\u003e":"\u0026"}'),
]

NOT_JSON = [
    b"",
    b" ",
    b"{",
    b"[1,]",
    b'{"a":1,}',
    b"01",
    b"1.",
    b"+1",
    b"nul",
    b"NaN",
    b'"a\nb"',
    b'"\\x"',
    b'"\\u12"',
    b"1 2",
    b'"\xff"',
    b'{"\xed\xa0\x80":1}',
    b"[" * 100_000,
]

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("value", "spelled"), GO_FLOATS)
def test_a_float_is_spelled_as_go_spells_it(value, spelled):
    """
    Floats have the digits and the exponent that Go printed for them.
    """
    assert gojson.encode(value) == spelled.encode()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_the_same(value):
    """
    No spelling loses a bit, not even the sign of zero.
    """
    again = float(gojson.format_float(value))

    assert again == value
    assert math.copysign(1, again) == math.copysign(1, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(value):
    """
    Go has no spelling for NaN and the infinities, and neither have we.
    """
    with pytest.raises(InvalidRequest):
        gojson.encode({"cost": value})


@pytest.mark.parametrize(("text", "spelled"), GO_STRINGS)
def test_a_string_is_spelled_as_go_spells_it(text, spelled):
    """
    Control and HTML characters are escaped, all others stand as UTF-8.
    """
    assert gojson.encode(text) == spelled.encode()


def test_a_lone_surrogate_becomes_the_replacement_character():
    """
    What cannot be UTF-8 is replaced, one character for each byte that was wrong.
    """
    assert gojson.encode("a\ud83db") == '"a\ufffdb"'.encode()
    assert gojson.encode(b"\xff\xe9!".decode(errors="surrogateescape")) == '"\ufffd\ufffd!"'.encode()


def test_a_map_is_sorted_as_go_sorts_it():
    """
    Keys are in the order of their UTF-8 bytes at every level, and only when asked for.
    """
    value = {"b": 1.0, "a": [True, None, "x"], "é": {"z": 1e-7, "A": 1e21}, "😀": 2.0, "\uffff": 3.0}

    sorted_text = gojson.encode(value, sort_keys=True).decode()

    assert sorted_text == '{"a":[true,null,"x"],"b":1,"é":{"A":1e+21,"z":1e-7},"\uffff":3,"😀":2}'
    assert gojson.encode({"b": 1, "a": 2}) == b'{"b":1,"a":2}'


def test_bytes_are_raw_json_within_a_value():
    """
    A raw member keeps its own spelling, compacted, wherever it stands.
    """
    value = {"z": [b' { "n" : 1.50 } '], "a": 10**30}

    assert gojson.encode(value) == b'{"z":[{"n":1.50}],"a":1000000000000000000000000000000}'


@given(JSON_VALUES)
def test_encoded_values_read_back_equal(value):
    """
    Whatever is written is JSON for the same value, and compacting it changes nothing.
    """
    encoded = gojson.encode(value)

    assert json.loads(encoded, parse_int=float) == value
    assert gojson.compact(encoded) == encoded


@pytest.mark.parametrize(("raw", "compacted"), GO_RAW)
def test_raw_json_is_compacted_as_go_compacts_it(raw, compacted):
    """
    Key order, duplicate keys, numbers and escapes stay; only space outside strings goes.
    """
    assert gojson.compact(raw.encode()) == compacted.encode()


@given(JSON_VALUES, st.sampled_from([None, 1, "\t", "\r\n"]), st.booleans())
def test_whitespace_does_not_matter(value, indent, ensure_ascii):
    """
    Any two layouts of the same tokens compact to the same bytes.
    """
    separators = (" ,\t", "\r\n: ") if indent is None else None
    spread = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ensure_ascii)
    dense = json.dumps(value, separators=(",", ":"), ensure_ascii=ensure_ascii)

    assert gojson.compact(f" {spread}\n".encode()) == gojson.compact(dense.encode())


@pytest.mark.parametrize("raw", NOT_JSON)
def test_what_is_not_json_is_refused(raw):
    """
    Malformed text, invalid UTF-8 and bottomless nesting are refused rather than passed on.
    """
    with pytest.raises(gojson.NotJson):
        gojson.compact(raw)


@settings(deadline=None)
@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:\\u d8e1.-', max_size=40).map(str.encode))
def test_compacting_arbitrary_bytes_is_refused_or_json(raw):
    """
    Compacting raises nothing but `NotJson`, and what it returns is JSON.
    """
    try:
        compacted = gojson.compact(raw)
    except gojson.NotJson:
        return

    assert json.loads(compacted) == json.loads(raw)


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDC00\uD83D"', rb'"\ufffd\ufffd"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (b'"plain"', b'"plain"'),
    ],
)
def test_only_unpaired_surrogates_are_mended(raw, mended):
    """
    A pair stays the character it is, and an escaped backslash is no escape of what follows.
    """
    assert gojson.mend_surrogates(raw) == mended


def test_decode_takes_the_unpaired_surrogate_that_go_takes():
    """
    Half an emoji does not make a line unreadable.
    """
    assert gojson.decode(rb'{"text":"\ud83d!"}', msgspec.json.Decoder()) == {"text": "\ufffd!"}


def test_decode_tells_a_wrong_shape_from_what_is_not_json():
    """
    A JSON of another shape raises msgspec's own error, so that the caller can say what is wrong with it.
    """
    decoder = msgspec.json.Decoder(dict[str, int])

    with pytest.raises(msgspec.ValidationError):
        gojson.decode(b"[1]", decoder)
    with pytest.raises(gojson.NotJson):
        gojson.decode(b'{"a":', decoder)


def test_a_bottomless_value_is_refused():
    """
    A value nested beyond what can be written is the caller's error, not a crash.
    """
    value: list = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(InvalidRequest):
        gojson.encode(value)
