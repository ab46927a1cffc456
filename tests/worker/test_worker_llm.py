"""The worker with a language model, through a real server: what it says is recorded once, paid for once, and forgotten
with what it was read out of."""

from contextlib import ExitStack

import pytest
from tests.support.stub_embedder_enrich import BagOfWords

from llm_server import TOKENS, LLMServer, claim, hangs_up, says, status
from memplane import Memplane
from memplane.ledger.payloads import DerivePayload, ForgetPayload, decode, encode
from memplane.models.llm import LLMFailed, LLMUnavailable
from memplane.storage.filter import Filter
from memplane.types import NewEntry, Op, State

ROME = "I live in Rome"
BY_MODEL = "llm/m/"
BY_RULES = "rules-1"


@pytest.fixture
def server():
    server = LLMServer()
    yield server
    server.close()


@pytest.fixture
def open_space(tmp_path, clock):
    with ExitStack() as opened:

        def open_(llm):
            plane = Memplane.open(tmp_path, embedder=BagOfWords(), llm=llm, clock=clock)
            return opened.enter_context(plane).space("alice")

        yield open_


@pytest.fixture(params=["openai", "anthropic"])
def space(request, server, open_space):
    return open_space(server.llm(request.param))


def derived(space):
    with space._context.read() as reader:
        found = reader.memories.find(Filter(now=0, include_superseded=True), limit=1_000)
    return [memory for memory in reversed(found) if memory.derived]


def records(space):
    return [entry for entry in space.ledger.entries() if entry.op is Op.DERIVE]


def notes(space):
    with space._context.read() as reader:
        return tuple(int(reader.state.note(name) or 0) for name in ("tokens_in", "tokens_out"))


def test_what_a_model_said_is_recorded_once(server, space):
    """One request for what was said together, one record for each entry that it read, and memories that quote it."""
    ids = [space.retain(text).id for text in (ROME, "Well, I live in Oslo", "Nothing to see")]
    space.enrich()
    space.enrich()
    found = [decode(entry) for entry in records(space)]

    assert len(server.requests) == 1
    assert [record.entry for record in found if isinstance(record, DerivePayload)] == ids
    assert [memory.quote for memory in derived(space)] == [ROME, "I live in Oslo"]
    assert all(memory.extractor.startswith(BY_MODEL) for memory in derived(space))
    assert space.overview.enrichment().waiting.nothing


def test_a_replay_asks_no_model(server, space, open_space):
    """Not the one that read it, and no other: the records are enough, with the server gone and with none at all."""
    space.retain(ROME)
    space.retain("I live in Oslo")
    space.enrich()
    before = derived(space)
    server.close()
    space.ledger.replay()
    space.enrich()
    after = derived(space)
    plain = open_space(None)
    plain.ledger.replay()
    plain.enrich()

    assert len(server.requests) == 1
    assert before
    assert after == before == derived(plain)


def test_a_replay_does_not_ask_about_what_the_rules_read(server, space, open_space):
    """What was read without a model, or in spite of one, stays as it was: a replay costs nothing."""
    plain = open_space(None)
    plain.retain("I live in Lisbon")
    plain.enrich()
    server.plan = [says("la la la")] * 2
    space.retain("I like jazz")
    space.enrich()
    before = derived(space)
    asked = len(server.requests)
    space.ledger.replay()
    space.enrich()

    assert [memory.extractor for memory in before] == [BY_RULES, BY_RULES]
    assert derived(space) == before
    assert len(server.requests) == asked
    assert records(space) == []


def test_the_record_is_forgotten_with_its_source(space):
    """What a model read out of a turn is as forgotten as the turn; the count that was announced is the one that is
    on the receipt."""
    gone, kept = (space.retain(f"I live in {place}").id for place in ("Lighthouse", "Rome"))
    space.enrich()
    dry = space.forget(entries=[gone], dry_run=True)
    receipt = space.forget(entries=[gone])
    left = [decode(entry) for entry in records(space) if entry.body]
    space.ledger.replay()
    space.enrich()

    assert [record.entry for record in left if isinstance(record, DerivePayload)] == [kept]
    assert [memory.entry_id for memory in derived(space)] == [kept]
    assert all(b"Lighthouse" not in (entry.body or b"") for entry in space.ledger.entries())
    assert receipt.counts == dry.counts
    assert space.ledger.verify().problems == ()


def test_what_a_forgotten_statement_decided_stays_decided(space, clock):
    """By the place of its record, which is where its memories were filed."""
    ids = []
    for place in ("Lisbon", "Rome", "Lisbon"):
        ids.append(space.retain(f"I live in {place}").id)
        space.enrich()
        clock.advance(days=2)
    space.forget(entries=[ids[1]])
    before = [(memory.entry_id, memory.state) for memory in derived(space)]
    space.ledger.replay()
    space.enrich()

    assert before == [(ids[0], State.SUPERSEDED), (ids[2], State.ACTIVE)]
    assert [(memory.entry_id, memory.state) for memory in derived(space)] == before


@pytest.mark.parametrize("on_record", [True, False], ids=["with its forget", "alone"])
def test_an_imported_forget_takes_the_record_along(space, on_record):
    """A tombstone that arrives from elsewhere is a forget like any other: what was read out of the entry goes, and what
    was said elsewhere, too, is still known."""
    gone = space.retain("I live in Lighthouse").id
    again = space.retain("Yes, I live in Lighthouse!", conversation="c").id
    space.enrich()
    if on_record:
        said = ForgetPayload(receipt="receipt-elsewhere", at=1, scope={}, counts={})
        space.ledger.load([NewEntry("receipt-elsewhere", Op.FORGET, encode(said))])
    space.ledger.add_tombstones({"receipt-elsewhere": {gone: "asked to"}})
    heirs = [memory.entry_id for memory in derived(space)]
    space.ledger.add_tombstones({"receipt-elsewhere": {again: "asked to"}})

    assert heirs == [again]
    assert derived(space) == []
    assert all(b"Lighthouse" not in (entry.body or b"") for entry in space.ledger.entries())


def test_tokens_are_metered(server, space):
    """Every answer counts, those of no use too, and a replay adds nothing."""
    space.retain(ROME)
    space.enrich()
    one = notes(space)
    server.plan = [says("la la la"), says("la la la")]
    space.retain("I live in Oslo")
    space.enrich()
    two = notes(space)
    space.ledger.replay()
    space.enrich()

    assert one == TOKENS
    assert two == notes(space) == tuple(3 * tokens for tokens in TOKENS)
    record = decode(records(space)[0])
    assert isinstance(record, DerivePayload)
    assert (record.tokens_in, record.tokens_out) == TOKENS


def test_a_model_that_is_away_loses_nothing(server, space):
    """The entry waits, everything else is done, a recall answers and says what is missing; later it is read."""
    server.plan = [status(503)] * 40
    space.retain("I live in Rome, near the old lighthouse")
    with pytest.raises(LLMUnavailable):
        space.enrich()
    lag = space.overview.enrichment().waiting
    told = space.recall("lighthouse")
    server.plan = []
    space.enrich()

    assert (lag.entries, lag.turns) == (1, False)
    assert "lighthouse" in told.text
    assert any("enrichment" in reason for reason in told.degraded)
    assert [memory.quote for memory in derived(space)] == ["I live in Rome"]
    assert space.overview.enrichment().waiting.nothing
    assert len(records(space)) == 1


def test_a_model_that_hangs_up_halfway_is_asked_for_the_rest(server, space):
    """What it answered before is kept and not paid for again."""
    for number in range(30):  # more than one request holds
        space.retain(f"I live in Town{number:02}")
    server.plan = [lambda exchange: says({"claims": exchange.claims()})(exchange)] + [hangs_up] * 40
    with pytest.raises(LLMUnavailable):
        space.enrich()
    first = len(records(space))
    server.plan = []
    space.enrich()
    sent = [message["text"] for exchange in server.requests for message in exchange.messages]

    assert first == 12
    assert len(records(space)) == 30
    assert len(derived(space)) == 30
    assert sent.count("I live in Town00") == 1
    assert space.overview.enrichment().waiting.nothing


def test_what_a_model_makes_nothing_of_the_rules_read(server, space):
    """Answers of no use are no reason to know nothing."""
    server.plan = [says("la la la")] * 2
    space.retain(ROME)
    space.enrich()

    assert [(memory.quote, memory.extractor) for memory in derived(space)] == [(ROME, BY_RULES)]
    assert records(space) == []


def test_a_wrong_key_loses_nothing(server, space):
    """Until somebody mends it, facts wait and recall says so; then the model reads everything."""
    server.plan = [status(401)]
    space.retain(ROME)
    with pytest.raises(LLMFailed):
        space.enrich()
    waiting = space.recall("where do I live?").degraded

    space.enrich()

    assert any(reason.startswith("enrichment: 1 ") for reason in waiting)
    assert [memory.quote for memory in derived(space)] == [ROME]
    assert len(records(space)) == 1


def test_an_invented_quote_is_no_memory(server, space):
    """Only what the entry says, to the letter, can come of it."""
    server.plan = [
        lambda exchange: says({"claims": [*exchange.claims(), *invented(exchange)]})(exchange),
    ]
    space.retain(ROME)
    space.enrich()

    assert [memory.quote for memory in derived(space)] == [ROME]


def invented(exchange):
    return [
        claim(message["message"], "I live in Atlantis", object="Atlantis") for message in exchange.messages
    ]
