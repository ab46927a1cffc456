"""Keyed facts, as Helmdeck's users know them: trimming, defaults, bounds, reserved names, expiry, learned defaults."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.conftest import counted

from engines import both_if_thorough
from memplane import Kind, State
from memplane.errors import InvalidRequest, NotFound
from memplane.memory.runs import PackRun, PipelineRun, RunFinding, findings_in, learnable
from memplane.types import RESERVED_CATEGORIES

pytestmark = both_if_thorough

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)
TICK = timedelta(microseconds=1)


def keys(space, *args, **kwargs) -> list[str]:
    return [fact.key for fact in space.facts.list(*args, **kwargs)]


# ── putting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_put_trims_and_fills_in_defaults(space, clock):
    """Key, value and category lose the space around them; category and life have defaults."""
    fact = space.put("  preferences/theme ", "\n dark \t")

    assert (fact.key, fact.text, fact.category) == ("preferences/theme", "dark", "user_facts")
    assert fact.kind is Kind.FACT
    assert fact.expires_at == clock.moment + timedelta(days=90)
    assert space.get("preferences/theme") == space.get("  preferences/theme  ") == fact


def test_put_keeps_what_is_given(space, clock):
    """Category trimmed, tags verbatim, time to live as asked, inner space untouched."""
    fact = space.put("a b/c", "x  y\nz", category=" preferences ", tags=["Ä", "b c"], ttl=timedelta(days=2))

    assert (fact.key, fact.text, fact.category, fact.tags) == (
        "a b/c",
        "x  y\nz",
        "preferences",
        ("Ä", "b c"),
    )
    assert fact.expires_at == clock.moment + timedelta(days=2)


@pytest.mark.parametrize(("key", "value"), [("", "v"), ("  ", "v"), ("\n\t", "v"), ("k", ""), ("k", " \n")])
def test_put_needs_a_key_and_a_value(space, key, value):
    """The key is looked at first, and the message says which is missing."""
    with pytest.raises(InvalidRequest) as caught:
        space.put(key, value)

    assert caught.value.field == ("value" if key.strip() else "key")
    assert "is required" in str(caught.value)
    assert space.ledger.entries() == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"key": "\ud800", "value": "v"}, "key"),
        ({"key": "a\x00b", "value": "v"}, "key"),
        ({"key": "k", "value": "\udfff"}, "value"),
        ({"key": "k", "value": "a\x00b"}, "value"),
        ({"key": "k", "value": "v", "category": "\ud800"}, "category"),
        ({"key": 1, "value": "v"}, "key"),
        ({"key": "k", "value": None}, "value"),
        ({"key": "k", "value": "v", "category": 3}, "category"),
        ({"key": "k", "value": "x" * (8 * 1024 * 1024 + 1)}, "value"),
    ],
)
def test_put_refuses_what_is_no_text(space, arguments, field):
    """Half a character, NUL, another type, or more than an entry holds."""
    with pytest.raises(InvalidRequest) as caught:
        space.put(**arguments)

    assert caught.value.field == field
    assert space.ledger.entries() == []


@pytest.mark.parametrize("category", RESERVED_CATEGORIES)
def test_reserved_categories_are_the_engines(space, category):
    """Also with space around them; but letter case makes another word."""
    for spelling in (category, f"  {category}\n"):
        with pytest.raises(InvalidRequest, match=f'category "{category}" is reserved'):
            space.put("k", "v", category=spelling)

    assert space.put("k", "v", category=category.upper()).category == category.upper()


@pytest.mark.parametrize("category", RESERVED_CATEGORIES)
def test_reserved_prefixes_are_the_engines(space, category):
    """A key that looks like the engine's own row is refused whatever its category; a name that only begins like it
    is not."""
    for key in (f"{category}/x/1", f" {category}/", f"{category}/"):
        with pytest.raises(InvalidRequest, match="reserved"):
            space.put(key, "v", category="mine")

    for key in (category, f"{category}s/x", f"my/{category}/x", f"{category.upper()}/x"):
        assert space.put(key, "v").key == key
    assert space.facts.defaults().recent == ()


@pytest.mark.parametrize("ttl", [HOUR, YEAR, 3_600, 31_536_000, 3_600.0, HOUR + TICK])
def test_ttl_bounds_are_inclusive(space, clock, ttl):
    """One hour and one year are both fine."""
    life = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)

    assert space.put("k", "v", ttl=ttl).expires_at == clock.moment + life


@pytest.mark.parametrize(
    ("ttl", "message"),
    [
        (HOUR - TICK, "ttl too short; minimum is 1h0m0s"),
        (1, "ttl too short; minimum is 1h0m0s"),
        (-1, "ttl too short; minimum is 1h0m0s"),
        (YEAR + TICK, "ttl too long; maximum is 8760h0m0s"),
        (400 * 86_400, "ttl too long; maximum is 8760h0m0s"),
        (1e300, "not a length of time"),
        (float("nan"), "not a length of time"),
        ("soon", "not a length of time"),
    ],
)
def test_ttl_outside_the_bounds_is_refused(space, ttl, message):
    """In Helmdeck's words."""
    with pytest.raises(InvalidRequest, match=message) as caught:
        space.put("k", "v", ttl=ttl)

    assert caught.value.field == "ttl"
    assert space.ledger.entries() == []


@pytest.mark.parametrize("ttl", [None, 0, 0.0, timedelta(0)])
def test_no_ttl_is_the_default(space, clock, ttl):
    """Nothing lives for ever."""
    assert space.put("k", "v", ttl=ttl).expires_at == clock.moment + timedelta(days=90)


def test_an_echo_is_no_fact(space):
    """A value that is nothing but recalled memory is refused."""
    space.put("city", "Lisbon")

    with pytest.raises(InvalidRequest) as caught:
        space.put("copy", space.recall("Lisbon").text)

    assert caught.value.field == "value"
    assert keys(space) == ["city"]


# ── putting again ────────────────────────────────────────────────────────────────────────────────────────────────


def test_upsert_replaces_all_but_the_beginning(space, clock):
    """A second put replaces value, category, tags and expiry, and keeps when the key began."""
    first = space.put("k", "one", category="a", tags=["t"], ttl=HOUR)
    began = clock.moment
    clock.advance(minutes=30)
    second = space.put("k", "two", category="b", ttl=2 * HOUR)

    assert second == space.get("k")
    assert (second.text, second.category, second.tags) == ("two", "b", ())
    assert (second.created_at, second.updated_at) == (began, clock.moment)
    assert second.expires_at == clock.moment + 2 * HOUR
    assert second.supersedes == first.id
    assert [fact.text for fact in space.facts.list()] == ["two"]


def test_a_key_keeps_its_category(space, clock):
    """Where none is given; an empty one is the default, and so is that of a key whose value is over."""
    space.put("k", "one", category="preferences", ttl=HOUR)

    assert space.put("k", "two", ttl=HOUR).category == "preferences"
    assert space.put("k", "three", category="").category == "user_facts"
    space.put("k", "four", category="preferences", ttl=HOUR)
    clock.advance(hours=2)
    assert space.put("k", "five").category == "user_facts"


def test_upsert_keeps_the_trajectory(space, clock):
    """Every value the key had, oldest first; only the last is live."""
    for value in ("one", "two", "three"):
        space.put("k", value)
        clock.advance(seconds=1)

    history = space.history(" k ")
    assert [fact.text for fact in history] == ["one", "two", "three"]
    assert [fact.state for fact in history] == [State.SUPERSEDED, State.SUPERSEDED, State.ACTIVE]
    assert [fact.superseded_by for fact in history] == [history[1].id, history[2].id, None]
    assert len({fact.created_at for fact in history}) == 1
    assert space.history("other") == []


def test_the_beginning_of_a_key_outlives_its_first_value(space, clock):
    """Forgetting the first value does not change when the key began, and neither does a replay after it."""
    began = clock.moment
    first = space.put("k", "one")
    clock.advance(seconds=1)
    space.put("k", "two")
    space.forget(entries=[first.entry_id])
    before = space.get("k")
    space.ledger.replay()

    assert before.created_at == began
    assert space.get("k") == before


def test_one_value_under_simultaneous_puts(space):
    """Concurrent puts of one key leave one live value and lose none from the trajectory."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: space.put("k", f"{n}"), range(24)))

    assert len(space.facts.list()) == 1
    assert len(space.history("k")) == 24


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_get_is_exact(space):
    """A key is matched whole, with its case, and `%` and `_` are letters."""
    for key in ("a_b", "axb", "A_B", "100%", "a"):
        space.put(key, f"value of {key}")

    for key in ("a_b", "axb", "A_B", "100%", "a"):
        assert space.get(key).text == f"value of {key}"
    for key in ("a%", "A", "_", "%", ""):
        with pytest.raises(NotFound):
            space.get(key)


def test_prefix_listing_is_literal_and_newest_first(space, clock):
    """`facts(prefix)` lists by the beginning of the key, letter by letter."""
    for key in ("p/a", "p/b", "p_c", "P/d", "q"):
        space.put(key, "v")
        clock.advance(seconds=1)
    space.put("p/a", "again")
    space.store("fact", "has no key")

    assert keys(space, "p/") == ["p/a", "p/b"]
    assert keys(space, "p") == ["p/a", "p_c", "p/b"]
    assert keys(space, "p%") == []
    assert keys(space) == ["p/a", "q", "P/d", "p_c", "p/b"]
    assert keys(space, limit=2) == ["p/a", "q"]


def test_listing_by_category(space):
    """A category narrows, before the limit."""
    space.put("k/1", "v", category="a")
    for number in range(9):
        space.put(f"k/x{number}", "v", category="b")

    assert keys(space, "k/", category="a", limit=1) == ["k/1"]
    assert keys(space, category="A") == []


def test_categories_name_their_newest_keys(space, clock):
    """Alphabetical; each with its count and at most five keys, written last first; runs are not facts."""
    for number in range(7):
        space.put(f"pref/{number}", "v", category="preferences")
        clock.advance(seconds=1)
    space.put("pref/0", "v2", category="preferences")
    space.put("fact", "v")
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))

    one, two = space.facts.categories()
    assert (one.name, one.count) == ("preferences", 7)
    assert one.recent_keys == ("pref/0", "pref/6", "pref/5", "pref/4", "pref/3")
    assert (two.name, two.count, two.recent_keys) == ("user_facts", 1, ("fact",))


def test_facts_are_recalled_with_their_key(space):
    """A fact is found by its key, its value, its tags and is told with its key."""
    space.put("preferences/editor", "Helix", tags=["tools"])

    for query in ("editor", "helix", "tools", "preferences/editor"):
        assert [hit.text for hit in space.search(query)] == ["Helix"]
    assert "preferences/editor: Helix" in space.recall("editor").text
    assert "preferences/editor: Helix" in space.brief().markdown


@pytest.mark.parametrize("name", ["\ud800", "a\x00b"])
def test_reading_by_a_broken_name_is_a_bad_request(space, name):
    """What can be no key, id or place is refused as such, by every read, never with a codec's error."""
    space.put("k", "v")

    for read in (
        space.get,
        space.history,
        space.facts.list,
        space.memory,
        space.turns,
        space.delete,
        lambda name: space.facts.list(category=name),
        lambda name: space.search("v", conversation=name),
        lambda name: space.search("v", project=name),
        lambda name: space.search("v", category=name),
        lambda name: space.search("v", tags=[name]),
        lambda name: space.recall("v", conversation=name),
    ):
        with pytest.raises(InvalidRequest):
            read(name)


# ── expiry ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fact_is_gone_at_exactly_its_expiry(space, clock):
    """One microsecond before, it is there; at `expires_at`, no read returns it."""
    fact = space.put("k", "zebra", category="c", ttl=HOUR)
    clock.set(fact.expires_at - TICK)
    assert space.get("k").text == "zebra"

    clock.advance(TICK)
    with pytest.raises(NotFound):
        space.get("k")
    assert space.facts.list() == space.facts.categories() == space.search("zebra") == space.search() == []
    assert space.search(include_superseded=True) == []
    assert space.recall("zebra").text == space.brief().markdown == ""
    assert space.memory(fact.id).state is State.EXPIRED
    assert [old.state for old in space.history("k")] == [State.EXPIRED]
    assert space.overview.stats().expired == 1


def test_sweep_erases_and_counts(space, clock):
    """Everything that has expired goes, also from disk; what has not stays."""
    space.put("short/1", "zebra one", ttl=HOUR)
    space.put("short/2", "zebra two", ttl=HOUR)
    space.put("long", "lion", ttl=2 * HOUR)
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    assert space.facts.sweep() == 0
    clock.advance(HOUR)

    assert space.facts.sweep() == 2
    assert space.facts.sweep() == 0
    assert keys(space) == ["long"]
    assert space.history("short/1") == []
    assert [entry.body is None for entry in space.ledger.entries()][:3] == [True, True, False]
    clock.advance(days=31)
    assert space.facts.sweep() == 2
    assert space.facts.defaults().recent == ()
    assert space.ledger.verify().ok


def test_an_idle_sweep_leaves_no_entry(space):
    """Nothing expired, nothing recorded."""
    space.put("k", "v")
    space.facts.sweep()

    assert len(space.ledger.entries()) == 1


def test_a_sweep_is_not_undone_by_a_replay(space, clock):
    """What has expired and was swept does not come back."""
    fact = space.put("k", "v", ttl=HOUR)
    clock.advance(HOUR)
    space.facts.sweep()
    space.ledger.replay()

    with pytest.raises(NotFound):
        space.memory(fact.id)
    assert [tombstone.id for tombstone in space.ledger.tombstones()] == [fact.entry_id]


@pytest.mark.parametrize("swept", [False, True])
def test_put_after_expiry_begins_anew(space, clock, swept):
    """An expired fact does not exist: whether the sweeper came by or not, the key starts over."""
    space.put("k", "old", ttl=HOUR)
    clock.advance(HOUR)
    if swept:
        space.facts.sweep()
    fact = space.put("k", "new")

    assert space.get("k") == fact
    assert (fact.text, fact.created_at) == ("new", clock.moment)
    assert keys(space) == ["k"]
    space.facts.sweep()
    assert space.get("k") == fact
    space.ledger.replay()
    assert space.get("k") == fact


def test_an_old_value_expiring_does_not_touch_the_new_one(space, clock):
    """A longer-lived second value outlives the first, and so does the key's beginning."""
    began = clock.moment
    space.put("k", "short", ttl=HOUR)
    clock.advance(minutes=1)
    space.put("k", "long", ttl=3 * HOUR)
    clock.advance(HOUR)
    space.facts.sweep()
    fact = space.get("k")
    space.ledger.replay()

    assert (fact.text, fact.created_at) == ("long", began)
    assert space.get("k") == fact


# ── forgetting by key ────────────────────────────────────────────────────────────────────────────────────────────


def test_forget_key_is_exact(space):
    """The key and all it ever held, and no other key that begins with it."""
    space.put("prefs/a", "one")
    space.put("prefs/a", "two")
    space.put("prefs/ab", "three")

    receipt = space.forget(key="prefs/a")

    assert receipt.counts["facts"] == 2
    assert keys(space) == ["prefs/ab"]
    assert space.history("prefs/a") == []


def test_forget_prefix_takes_all_below(space):
    """Every key that begins with it, literally."""
    for key in ("p/a", "p/b", "p_c", "P/a", "p%d"):
        space.put(key, "v")

    assert space.forget(prefix="p/").counts["facts"] == 2
    assert space.forget(prefix="p%").counts["facts"] == 1
    assert keys(space) == ["P/a", "p_c"]


def test_forget_empty_prefix_takes_keyed_rows_only(space):
    """All facts and runs; turns and typed memories stay."""
    space.put("a", "v")
    space.put("b", "v")
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    space.store("fact", "stays")
    space.retain("stays too")

    receipt = space.forget(prefix="")

    assert receipt.counts == counted(entries=3, facts=2, runs=1)
    assert {hit.text for hit in space.search()} == {"stays", "stays too"}
    assert space.facts.list() == []
    assert space.facts.defaults().recent == ()


def test_a_key_is_free_after_forgetting(space, clock):
    """A new put under a forgotten key has no past."""
    space.put("k", "old")
    space.forget(key="k")
    clock.advance(seconds=1)
    fact = space.put("k", "new")

    assert (fact.supersedes, fact.created_at) == (None, clock.moment)
    assert [old.text for old in space.history("k")] == ["new"]


# ── learned defaults ─────────────────────────────────────────────────────────────────────────────────────────────


def run(space, clock, pack="blog", outcome="ok", at=100, **rest):
    clock.advance(microseconds=1)
    return space.facts.record_run(PackRun(pack=pack, outcome=outcome, at_unix=at, **rest))


def pipe(space, clock, pipeline="flow", outcome="succeeded", at=100, **rest):
    clock.advance(microseconds=1)
    return space.facts.record_run(
        PipelineRun(pipeline=pipeline, run_id="r", outcome=outcome, at_unix=at, **rest)
    )


def test_learnable_inputs_are_named_plain_and_not_empty():
    """Eleven names, text only, top level only."""
    inputs = {"persona": "technical", "title": "", "model": 3, "theme": ["x"], "secret": "s", "author": "Ann"}

    assert learnable(inputs) == {"persona": "technical", "author": "Ann"}


def test_defaults_are_what_was_used_most(space, clock):
    """Per pack: calls, last use, the most common value of each input; equals fall to the alphabet."""
    for at, persona in [(300, "technical"), (100, "casual"), (200, "technical")]:
        run(space, clock, at=at, learn_inputs={"persona": persona, "voice": persona})
    run(space, clock, pack="tie", learn_inputs={"angle": "b"})
    run(space, clock, pack="tie", learn_inputs={"angle": "a"})

    blog, tie = space.facts.defaults().packs
    assert (blog.id, blog.runs, blog.last_used_unix) == ("blog", 3, 300)
    assert blog.common_inputs == {"persona": "technical", "voice": "technical"}
    assert tie.common_inputs == {"angle": "a"}


def test_failures_teach_nothing(space, clock):
    """Only successes count: `ok` for packs, `succeeded` or `ok` for pipelines; but all are recent."""
    for outcome in ("ok", "invalid_input", "succeeded", "timeout"):
        run(space, clock, outcome=outcome, learn_inputs={"persona": outcome})
        pipe(space, clock, outcome=outcome, learn_inputs={"persona": outcome})

    defaults = space.facts.defaults()
    assert [(pack.id, pack.runs) for pack in defaults.packs] == [("blog", 1)]
    assert [(pipeline.id, pipeline.runs) for pipeline in defaults.pipelines] == [("flow", 2)]
    assert len(defaults.recent) == 8


def test_defaults_are_ranked_and_bounded(space, clock):
    """Most used first, then last used; twelve at most."""
    for number in range(14):
        run(space, clock, pack=f"p{number:02}", at=number)
    run(space, clock, pack="p03", at=3)

    packs = space.facts.defaults().packs
    assert [pack.id for pack in packs] == ["p03", *(f"p{n:02}" for n in range(13, 1, -1) if n != 3)]
    assert len(packs) == 12


def test_recent_runs_are_newest_first(space, clock):
    """Packs and pipelines together, by when they ran, with everything about them; 200 at most."""
    run(space, clock, at=200, duration_ms=12, learn_inputs={"persona": "x"})
    pipe(space, clock, at=300)
    run(space, clock, at=100, outcome="timeout")

    recent = space.facts.defaults().recent
    assert [(item.kind, item.id, item.outcome, item.at_unix) for item in recent] == [
        ("pipeline", "flow", "succeeded", 300),
        ("pack", "blog", "ok", 200),
        ("pack", "blog", "timeout", 100),
    ]
    assert (recent[1].duration_ms, recent[1].learn_inputs) == (12, {"persona": "x"})
    assert recent[1].key.startswith("pack_history/blog/")


def test_recent_runs_are_bounded(space, clock):
    """Two hundred, the latest."""
    for number in range(205):
        run(space, clock, at=number)

    recent = space.facts.defaults().recent
    assert len(recent) == 200
    assert (recent[0].at_unix, recent[-1].at_unix) == (204, 5)


def test_findings_that_come_back(space, clock):
    """Counted by code over all outcomes, with pack and severity of the latest; most common first, then by code."""
    run(space, clock, pack="a", at=10, outcome="failed", findings=(RunFinding(code="x", severity="warning"),))
    run(
        space, clock, pack="b", at=30, findings=(RunFinding(code="x", severity="error"), RunFinding(code="z"))
    )
    run(space, clock, pack="c", at=20, findings=(RunFinding(code="x"), RunFinding(code="y")))

    x, y, z = space.facts.defaults().common_findings
    assert (x.code, x.pack, x.severity, x.occurrence_count, x.last_seen_unix) == ("x", "b", "error", 3, 30)
    assert (y.code, z.code) == ("y", "z")


def test_findings_shown_are_bounded(space, clock):
    """Twenty codes at most."""
    run(space, clock, findings=tuple(RunFinding(code=f"{n:02}") for n in range(30)))

    assert [finding.code for finding in space.facts.defaults().common_findings] == [
        f"{n:02}" for n in range(20)
    ]


def test_findings_are_taken_from_where_packs_put_them():
    """At the top or inside lint, inspect and validate; `level` stands in for severity; no code, no finding; fifty."""
    output = {
        "findings": [{"code": "a", "severity": "error", "file": "f.py"}, {"severity": "no code"}, "text"],
        "lint": {"issues": [{"code": "b", "level": "warn"}]},
        "inspect": {"errors": [{"code": "c"}]},
        "validate": {"warnings": [{"code": "d"}], "other": [{"code": "no"}]},
        "elsewhere": {"findings": [{"code": "no"}]},
    }

    assert findings_in(output) == (
        RunFinding(code="a", severity="error", file="f.py"),
        RunFinding(code="b", severity="warn"),
        RunFinding(code="c"),
        RunFinding(code="d"),
    )
    assert len(findings_in({"findings": [{"code": str(n)} for n in range(60)]})) == 50
    assert findings_in({"findings": "text", "lint": []}) == ()


def test_a_call_is_recorded_without_what_is_not_learned_from(space, clock):
    """Of inputs and output, a run keeps what defaults are learned from and nothing else."""
    ran = PackRun.of_call(
        pack="blog",
        outcome="ok",
        at_unix=7,
        inputs={"persona": "technical", "body": "a secret"},
        output={"lint": {"errors": [{"code": "e1", "level": "error"}]}, "text": "a secret"},
    )
    kept = space.facts.record_run(ran)

    assert "secret" not in kept.text
    defaults = space.facts.defaults()
    assert defaults.packs[0].common_inputs == {"persona": "technical"}
    assert [(found.code, found.severity) for found in defaults.common_findings] == [("e1", "error")]


def test_runs_stay_out_of_sight(space, clock):
    """What the engine learned is in defaults only: not in search, recall, brief, facts or categories."""
    run(space, clock, learn_inputs={"persona": "zebra"})

    assert space.search("zebra") == space.search() == space.facts.list() == space.facts.categories() == []
    assert space.recall("zebra").text == space.brief().markdown == ""


def test_runs_live_for_thirty_days(space, clock):
    """Then they teach nothing more."""
    run(space, clock)
    clock.advance(timedelta(days=30) - TICK)
    assert len(space.facts.defaults().packs) == 1

    clock.advance(TICK)
    assert space.facts.defaults().packs == space.facts.defaults().recent == ()


def test_defaults_are_per_space(plane, clock):
    """Nobody learns from another's runs."""
    run(plane.space("alice"), clock)

    assert plane.space("bob").facts.defaults().packs == ()


def test_runs_survive_a_replay(space, clock):
    """What was learned is derived like everything else."""
    run(space, clock, learn_inputs={"persona": "x"})
    pipe(space, clock)
    before = space.facts.defaults()
    space.ledger.replay()

    assert space.facts.defaults() == before


def test_forgetting_runs_by_prefix(space, clock):
    """`packs`, `pipelines` and one pack are prefixes; facts stay."""
    run(space, clock, pack="a")
    run(space, clock, pack="b")
    pipe(space, clock)
    space.put("k", "v")

    assert space.forget(prefix="pack_history/a/").counts["runs"] == 1
    assert [pack.id for pack in space.facts.defaults().packs] == ["b"]
    assert space.forget(prefix="pipeline_history/").counts["runs"] == 1
    assert space.forget(prefix="pack_history/").counts == counted(entries=1, runs=1)
    assert keys(space) == ["k"]
