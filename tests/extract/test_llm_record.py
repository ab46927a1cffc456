"""Propositions as the ledger keeps them, so that a replay asks no model."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.catalog import load_catalog
from memplane.extract.deriver import Deriver
from memplane.extract.proposition import Polarity, Proposition, Tense
from memplane.ledger.payloads import DerivePayload, decode_body, encode
from memplane.types import Op, Turn

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


DERIVER = Deriver(load_catalog())
TURN = Turn(entry_id="t1", seq=1, role="user", text="Rome it is", at=datetime(2026, 3, 1, tzinfo=UTC))


def written(propositions):
    claims = [msgspec.to_builtins(propositions)]
    return encode(DerivePayload(entry="t1", extractor="llm/m/1", claims=claims))


def read(body):
    return decode_body(Op.DERIVE, body)


@given(st.lists(PROPOSITIONS, max_size=5))
def test_what_is_written_is_read(propositions):
    """
    Nothing is lost or changed, and writing it again gives the same bytes.
    """
    record = read(written(propositions))

    assert msgspec.convert(record.claims, list[list[Proposition]]) == [propositions]
    assert encode(record) == written(propositions)


def test_every_field_is_written():
    """
    A default that changes one day does not change what was recorded before.
    """
    ((claim,),) = json.loads(written([ONE]))["claims"]

    assert list(claim) == list(Proposition.__struct_fields__)
    assert claim["polarity"] == "positive"


def test_a_newer_memplane_may_have_written_more():
    """
    Fields that this one does not know are passed over, and those that have a default may be missing.
    """
    newer = json.loads(written([ONE]))
    newer["claims"][0][0]["mood"] = {"of": ["the", "speaker"]}
    del newer["claims"][0][0]["tense"]

    found = DERIVER.recorded([TURN], read(json.dumps(newer).encode()))

    assert [memory.quote for memory in found] == ["Rome"]
    assert found == DERIVER.recorded([TURN], read(written([ONE])))


@pytest.mark.parametrize("claims", ["1", "[[{}]]", "[[1]]", '[[{"start": "x"}]]', "[" * 9_999])
def test_what_is_no_record_is_refused(claims):
    """
    Damage is an error that the worker knows, and never a memory.
    """
    body = f'{{"entry": "t1", "extractor": "m", "claims": {claims}}}'.encode()

    with pytest.raises((ValueError, RecursionError)):
        DERIVER.recorded([TURN], read(body))
