"""Propositions as the ledger keeps them, so that a replay asks no model."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.enrich.proposition import (
    Polarity,
    Proposition,
    Tense,
    decode_propositions,
    encode_propositions,
)
from memplane.errors import InvalidRequest

TEXTS = st.text(max_size=20)
PROPOSITIONS = st.builds(
    Proposition,
    subject=TEXTS,
    predicate=TEXTS,
    object_text=TEXTS,
    relation_phrase=TEXTS,
    start=st.integers(0, 2**31),
    end=st.integers(0, 2**31),
    confidence=st.floats(0, 1),
    polarity=st.sampled_from(Polarity),
    update=st.booleans(),
    topic=TEXTS,
    replaces=TEXTS,
    tense=st.sampled_from(Tense),
    when=TEXTS,
    ordinal=st.none() | st.integers(0, 10**6),
    role=TEXTS,
)
ONE = Proposition(
    subject="user",
    predicate="lives_in",
    object_text="Rome",
    relation_phrase="live in",
    start=0,
    end=4,
    confidence=0.9,
)


@given(st.lists(PROPOSITIONS, max_size=5))
def test_what_is_written_is_read(propositions):
    """
    Nothing is lost or changed, and writing it again gives the same bytes.
    """
    recorded = encode_propositions(propositions)

    assert decode_propositions(recorded) == decode_propositions(recorded.decode()) == propositions
    assert encode_propositions(decode_propositions(recorded)) == recorded


def test_every_field_is_written():
    """
    A default that changes one day does not change what was recorded before.
    """
    (recorded,) = json.loads(encode_propositions([ONE]))

    assert list(recorded) == list(Proposition.__struct_fields__)


def test_a_newer_memplane_may_have_written_more():
    """
    Fields that this one does not know are passed over, and those that have a default may be missing.
    """
    newer = [{**json.loads(encode_propositions([ONE]))[0], "mood": {"of": ["the", "speaker"]}}]
    del newer[0]["tense"]

    assert decode_propositions(json.dumps(newer)) == [ONE]


@pytest.mark.parametrize("recorded", [b"", b"{}", b"[{}]", b"\xff", "[1]", '[{"start": "x"}]', "[" * 9_999])
def test_what_is_no_record_is_refused(recorded):
    """
    Damage is an error of ours, with a message, and never a proposition.
    """
    with pytest.raises(InvalidRequest):
        decode_propositions(recorded)


def test_a_record_is_plain_json():
    """
    Any tool can read a ledger.
    """
    assert msgspec.json.decode(encode_propositions([ONE]))[0]["polarity"] == "positive"
