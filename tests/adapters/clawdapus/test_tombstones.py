"""The tombstone file. The lines in `GO_LINES` were written by a real Go (1.19 and 1.27 agree)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.clawdapus.pod.tombstones import ServiceTombstone, compose_tombstone, parse_tombstone
from memplane.clock import parse_instant
from memplane.ledger.history import BadLine

AT = parse_instant("2026-04-03T12:00:00Z", field="ts")
GO_HEAD = (
    '{"version":1,"ts":"2026-04-03T12:00:00Z","agent_id":"analyst","memory_service":"mem-svc",'
    '"entry_id":"hist1_ab"'
)
GO_LINES = [
    ("", GO_HEAD + "}"),
    ("policy_redaction", GO_HEAD + ',"reason":"policy_redaction"}'),
    ("asked by <ops> & Zoë\n", GO_HEAD + r',"reason":"asked by \u003cops\u003e \u0026 Zoë\n"}'),
]


@pytest.mark.parametrize(("reason", "line"), GO_LINES)
def test_a_tombstone_is_written_and_read_as_go_does(reason, line):
    """
    The line is that of a real Go program, to the byte, and reads back as what was written.
    """
    tombstone = ServiceTombstone(AT, "analyst", "mem-svc", "hist1_ab", reason)

    assert compose_tombstone(tombstone) == line.encode()
    assert parse_tombstone(f" {line}\r\n".encode()) == tombstone


def test_the_time_is_written_in_whole_seconds():
    """
    A fraction is dropped, not rounded up.
    """
    line = compose_tombstone(ServiceTombstone(AT + 999_999, "a", "m", "hist1_ab"))

    assert parse_tombstone(line).at == AT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "version"),
        ({"version": None}, "version"),
        ({"ts": "2026-04-03"}, "ts"),
        ({"ts": "2026-04-03T12:00:00"}, "timezone"),
        ({"ts": "9999-12-31T23:00:00-10:00"}, "ts is outside the years"),
        ({"agent_id": 7}, "agent_id"),
        ({"memory_service": None}, "memory_service"),
        ({"entry_id": ""}, "entry_id"),
        ({"entry_id": " "}, "entry_id"),
        ({"reason": []}, "reason"),
    ],
)
def test_a_malformed_tombstone_is_never_passed_over(change, reason):
    """
    A tombstone that cannot be honoured is an error that names the member.
    """
    line = json.dumps({**json.loads(GO_HEAD + "}"), **change}).encode()

    with pytest.raises(BadLine, match=f"^parse tombstone entry: .*{reason}"):
        parse_tombstone(line)


@given(st.binary(max_size=60))
def test_parse_raises_nothing_but_bad_line(raw):
    """
    Arbitrary bytes are refused as no tombstone.
    """
    with pytest.raises(BadLine, match=r"^parse tombstone entry: "):
        parse_tombstone(raw)


@given(st.integers(0, len(GO_HEAD)))
def test_a_tombstone_cut_off_anywhere_is_malformed(kept):
    """
    A write that was not finished can be told from a wrong tombstone.
    """
    with pytest.raises(BadLine) as caught:
        parse_tombstone(GO_HEAD[:kept].encode())

    assert caught.value.malformed
