"""Segments of the ledger: names that say what is in them, and what is read out of damaged ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.sync import segments
from memplane.sync.segments import SegmentDamaged, SegmentLine
from memplane.transfer.full import line_of

LINE = b'{"memplane":1,"id":"t1","op":"turn","recorded":5,"body":{"role":"user","content":"hi","at":5}}'


def test_what_is_written_is_read(space):
    """
    Entries come out of a segment as they went in.
    """
    space.retain("one\u2028two", id="t1")
    space.store("preference", "Likes tea")
    lines = [segments.written(line_of(entry)) for entry in space.ledger.entries()]

    made = segments.make("abc", 7, lines)

    assert made.key.startswith("ledger/abc/000000000007-")
    assert (segments.replica_of(made.key), segments.first_of(made.key)) == ("abc", 7)
    assert [written.line for written in segments.read(made.key, made.data)] == [it.line for it in lines]


def test_the_same_content_has_the_same_name():
    """
    Whoever writes it again writes nothing new.
    """
    assert segments.make("abc", 1, [SegmentLine(LINE, None)]) == segments.make(
        "abc", 1, [SegmentLine(LINE, None)]
    )


@given(st.integers(0, len(LINE)), st.binary(max_size=3))
def test_damage_is_noticed(place, junk):
    """
    A changed, cut or longer content is not what the name says.
    """
    made = segments.make("abc", 1, [SegmentLine(LINE, None)])
    changed = made.data[:place] + junk
    if changed == made.data:
        return

    with pytest.raises(SegmentDamaged, match="not what was written"):
        segments.read(made.key, changed)


@pytest.mark.parametrize(
    "key",
    ["ledger/x.jsonl", "ledger/../1-00.jsonl", "ledger/abc/1-zz.jsonl", "ledger/ABC/000000000001-.jsonl"],
)
def test_foreign_names_are_refused(key):
    """
    What is called otherwise is no segment, whatever is in it.
    """
    with pytest.raises(SegmentDamaged, match="called"):
        segments.read(key, LINE)

    assert segments.replica_of(key) is None


def test_a_line_that_cannot_be_read_takes_no_other_with_it():
    """
    It is passed over, kept as it is, and known by its id at most.
    """
    strange = b'{"memplane":1,"id":"t9","op":"dream"}'
    made = segments.make(
        "abc", 1, [SegmentLine(strange, None), SegmentLine(b"\xff", None), SegmentLine(LINE, None)]
    )

    read = segments.read(made.key, made.data)

    assert [written.line is None for written in read] == [True, True, False]
    assert [segments.loose_id(written.raw) for written in read] == ["t9", None, "t1"]
    assert segments.make("abc", 1, read) == made
