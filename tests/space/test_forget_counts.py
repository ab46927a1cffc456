"""A receipt counts what is gone: no more, no less, whatever a space has been through and whatever is forgotten of it."""

from contextlib import ExitStack
from datetime import timedelta

from hypothesis import given, note
from hypothesis import strategies as st
from tests.conftest import HandClock, costly, counted

from engines import HOME, both_engines
from memplane import Memplane, Settings

pytestmark = both_engines

ROWS = {
    "entries": "payload JOIN ledger USING (position) WHERE op IN "
    "('turn', 'history', 'store', 'put', 'run', 'derive', 'document', 'collect', 'distil')",
    "turns": "turn",
    "memories": "memory WHERE key IS NULL AND kind <> 'episode'",
    "facts": "memory WHERE key IS NOT NULL AND category NOT LIKE '%_history'",
    "runs": "memory WHERE key IS NOT NULL AND category LIKE '%_history'",
    "claims": "(SELECT id FROM memory WHERE extractor IS NOT NULL AND kind <> 'episode' "
    "UNION ALL SELECT id FROM evidence)",
    "episodes": "memory WHERE kind = 'episode'",
    "conflicts": "conflict",
    "documents": "document",
    "spans": "span",
    "collections": "collection",
}

SAID = [
    "I live in {city}.",
    "I live in {city}.",
    "Actually, I live in {city} now.",
    "I no longer live in {city}.",
    "My favourite city is {city}, where I work at a bakery by the river.",
    "We walked through {city} for a long time and talked about the weather.",
]
CITIES = ["Rome", "Oslo"]
PLACE = st.sampled_from([None, "a", "b"])
SAY = st.tuples(
    st.just("say"),
    st.sampled_from(SAID),
    st.sampled_from(CITIES),
    PLACE,
    PLACE,
    st.sampled_from([0, 0, 1, 50]),
)
STEP = st.one_of(
    SAY,
    SAY,
    SAY,
    st.tuples(st.just("scoped"), st.sampled_from(SAID), st.sampled_from(CITIES), st.sampled_from("ab")),
    st.tuples(st.sampled_from(["store", "put", "upload", "wait", "enrich", "enrich"])),
)
FORGET = st.one_of(
    st.fixed_dictionaries({"conversation": st.sampled_from("ab")}),
    st.fixed_dictionaries({"project": st.sampled_from("ab")}),
    st.fixed_dictionaries({"conversation": st.sampled_from("ab"), "project": st.sampled_from("ab")}),
    st.fixed_dictionaries({"hours": st.tuples(st.integers(-60, 60), st.integers(1, 60))}),
    st.fixed_dictionaries({"entry": st.integers(0, 99)}),
    st.just({"everything": True}),
)


def rows_of(data) -> dict[str, int]:
    counts = ", ".join(f"(SELECT count(*) FROM {of})" for of in ROWS.values())
    return dict(zip(ROWS, HOME.rows(data, "alice", f"SELECT {counts}")[0], strict=True))


def live(space, clock: HandClock, step) -> None:
    match step:
        case ("say", text, city, conversation, project, back):
            at = clock.moment - timedelta(hours=back)
            space.retain(text.format(city=city), conversation=conversation, project=project, at=at)
        case ("scoped", text, city, project):
            space.retain(text.format(city=city), project=project, conversation="a", scope="project")
        case ("store",):
            space.store("fact", "Lives in Rome", conversation="a", project="b")
        case ("put",):
            space.put("k", "v")
        case ("upload",):
            space.documents.upload("# Rome\n\nA city.\n\n# Oslo\n\nAnother.", name="cities", project="a")
        case ("wait",):
            clock.advance(hours=3)
        case ("enrich",):
            space.enrich()


def scope_of(space, clock: HandClock, asked: dict) -> dict:
    if "hours" in asked:
        begin, length = asked["hours"]
        since = clock.moment + timedelta(hours=begin)
        return {"since": since, "until": since + timedelta(hours=length)}
    if "entry" in asked:
        entries = [entry.id for entry in space.ledger.entries()]
        return {"entries": [entries[asked["entry"] % len(entries)] if entries else "nobody"]}
    return asked


@costly(25)
@given(st.lists(STEP, min_size=3, max_size=24), st.lists(FORGET, min_size=1, max_size=3))
def test_a_receipt_counts_what_is_gone(steps, forgets):
    """By place, by time, by entry and altogether; a dry run says the same before."""
    with ExitStack() as opened:
        data, clock = opened.enter_context(HOME.fresh()), HandClock()
        options = Settings(recall_work_ms=0)
        plane = Memplane.open(data, embedder=None, clock=clock, settings=options)
        space = opened.enter_context(plane).space("alice")
        for step in steps:
            live(space, clock, step)
        space.enrich()
        for asked in forgets:
            scope = scope_of(space, clock, asked)
            before, dry = rows_of(data), space.forget(**scope, dry_run=True)
            receipt = space.forget(**scope)
            after = rows_of(data)

            note(f"{scope}: {receipt.counts}")
            assert receipt.counts == {name: before[name] - after[name] for name in ROWS}
            assert dry.counts == receipt.counts
            assert space.ledger.receipts()[-1].counts == receipt.counts


def test_a_fact_that_was_said_elsewhere_too_is_still_there(space):
    """The place is gone and counted as a claim; the memory is not."""
    first = space.retain("I live in Rome.")
    space.retain("I live in Rome.")
    space.enrich()

    assert space.forget(entries=[first.id]).counts == counted(entries=1, turns=1, claims=1)
    assert space.forget(everything=True).counts == counted(entries=1, turns=1, memories=1, claims=1)


def test_a_conflict_ends_with_its_last_evidence(space):
    """As long as both sides are said somewhere it stays open, and is not counted."""
    first, second = (space.retain("I live in Oslo.") for _ in range(2))
    space.retain("I live in Rome.")
    space.enrich()
    (conflict,) = space.review.conflicts()
    places = [len(space.evidence(side.id)) for side in (conflict.left, conflict.right)]
    kept = space.forget(entries=[first.id])
    ended = space.forget(entries=[second.id])

    assert sorted(places) == [1, 2]
    assert kept.counts == counted(entries=1, turns=1, claims=1)
    assert ended.counts == counted(entries=1, turns=1, memories=1, claims=1, conflicts=1)
    assert space.review.conflicts() == []


def test_episodes_of_a_conversation_that_lost_a_turn_are_gone(space, clock: HandClock):
    """What is left of it is told anew, without what was forgotten."""
    kept = [
        space.retain(f"We talked about the orchard and its apples, part {number}.", conversation="c")
        for number in range(6)
    ]
    clock.advance(hours=3)
    space.enrich()
    receipt = space.forget(entries=[kept[0].id])
    space.enrich()

    assert receipt.counts["episodes"] == 1
    assert len(space.recall("orchard", conversation="c").episodes) == 1
