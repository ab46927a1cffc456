"""The facts door over real HTTP. The upstream tests it re-expresses are named where they differ from what they ask.

Upstream: api/memory_test, packs/facts_test and facts_engine_test, builtin/memory_store_test and memory_forget_test,
memory_test, audit_test, defaults_test.
"""

from datetime import timedelta

import msgspec
import pytest

from facts_callers import People, record_plans, record_runs, store
from memplane.errors import StorageFull
from memplane.space import Space

MEMORY = "/api/v1/memory"
PACKS = "/api/v1/packs"


@pytest.fixture
def people(server):
    return People(server)


def error_of(answer):
    """Both parts of the envelope, once it is seen to hold no more than those."""
    body = answer.json()
    assert set(body) == {"error", "message"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.text.endswith("\n")
    return answer.status_code, body["error"], body["message"]


# ── store: facts_test, facts_engine_test, api/memory_test ────────────────────────────────────────────────────────


def test_store_happy_path(people):
    """
    A fact lands under the caller, in the default category, for ninety days; the answer ends in a newline.
    """
    answer = people.alice.post(
        f"{MEMORY}/store", json={"key": " preferences/frontend-framework ", "value": " React over Vue\n"}
    )

    assert answer.status_code == 200
    assert answer.json() == {
        "key": "preferences/frontend-framework",
        "category": "user_facts",
        "expires_at": "2027-02-13T08:30:00Z",
    }
    assert answer.text.endswith("}\n")
    assert people.server.plane.space("alice").get("preferences/frontend-framework").text == "React over Vue"


def test_store_without_a_subject_lands_under_unknown(people):
    """
    A token without a subject is the caller `unknown`.
    """
    store(people.nobody, "k", "v")

    assert people.server.plane.space("unknown").get("k").text == "v"


def test_store_custom_category_and_tags(people):
    """
    Category and tags are kept as they are given.
    """
    answer = store(
        people.alice, "konflux/deploy", "never kubectl", category=" project_conventions ", tags=["a b", "ÄÖ"]
    )

    fact = people.server.plane.space("alice").get("konflux/deploy")
    assert answer["category"] == fact.category == "project_conventions"
    assert fact.tags == ("a b", "ÄÖ")
    assert store(people.alice, "konflux/deploy", "never oc")["category"] == "user_facts"


@pytest.mark.parametrize(
    ("ttl", "days"), [(None, 90), (0, 90), (3_600, 1 / 24), (31_536_000, 365), (86_400, 1)]
)
def test_store_ttl_bounds_are_inclusive(people, clock, ttl, days):
    """
    Zero and nothing are ninety days; an hour and a year are the first and the last that are taken.
    """
    answer = store(people.alice, "k", "v", ttl_seconds=ttl)

    due = clock.moment + timedelta(days=days)
    assert answer["expires_at"] == due.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("ttl", "message"),
    [
        (30, "ttl too short; minimum is 1h0m0s"),
        (1, "ttl too short; minimum is 1h0m0s"),
        (3_599, "ttl too short; minimum is 1h0m0s"),
        (-5, "ttl too short; minimum is 1h0m0s"),
        (31_536_001, "ttl too long; maximum is 8760h0m0s"),
        (400 * 86_400, "ttl too long; maximum is 8760h0m0s"),
    ],
)
def test_store_ttl_out_of_bounds(people, ttl, message):
    """
    Anything else is refused in Helmdeck's words.
    """
    answer = people.alice.post(f"{MEMORY}/store", json={"key": "k", "value": "v", "ttl_seconds": ttl})

    assert error_of(answer) == (400, "invalid_input", message)


@pytest.mark.parametrize("category", ["pack_history", "pipeline_history", "plan_history"])
def test_store_reserved_categories(people, category):
    """
    What the engine writes about runs cannot be written by a client.
    """
    answer = people.alice.post(f"{MEMORY}/store", json={"key": "k", "value": "v", "category": category})

    assert error_of(answer) == (
        400,
        "invalid_input",
        (
            f'category "{category}" is reserved for engine-written audit rows; pick a different name '
            "(e.g. user_facts, project_conventions, preferences)"
        ),
    )
    assert people.alice.get(f"{MEMORY}/callers").json() == {"callers": None}


def test_store_reserved_prefix(people):
    """
    Nor under a key that looks like one of those rows: upstream's hole, closed.
    """
    answer = people.alice.post(f"{MEMORY}/store", json={"key": "pack_history/x/1", "value": "{}"})

    assert error_of(answer)[:2] == (400, "invalid_input")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"key": "k"},
        {"value": "v"},
        {"key": " \t", "value": "v"},
        {"key": "k", "value": " \n"},
        {"key": None, "value": "v"},
    ],
)
def test_store_missing_fields(people, body):
    """
    Key and value are needed, the key is looked at first.
    """
    status, code, message = error_of(people.alice.post(f"{MEMORY}/store", json=body))

    assert (status, code) == (400, "invalid_input")
    wanted = "value" if str(body.get("key") or "").strip() else "key"
    assert message.startswith(f"{wanted} is required")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b'{"key":1,"value":"v"}',
        b'{"key":"k","value":"v","ttl_seconds":3600.0}',
        b'{"key":"k","value":"v","ttl_seconds":"3600"}',
        b'{"key":"k","value":"v","ttl_seconds":true}',
        b'{"key":"k","value":"v","tags":[1]}',
        b'{"key":"k","value":"v","tags":"x"}',
        b'{"key":"k","value":"\xff"}',
        b'{"key":"k","value":NaN}',
        b"[" * 100_000,
        b'{"ttl_seconds":' + b"9" * 10_000 + b"}",
    ],
)
def test_store_bad_json(people, body):
    """
    What is not JSON of that shape is refused, and says so.
    """
    answer = people.alice.post(f"{MEMORY}/store", content=body, headers={"content-type": "application/json"})

    status, code, message = error_of(answer)
    assert (status, code) == (400, "invalid_input")
    assert message.startswith("body must be JSON: ")


@pytest.mark.parametrize(
    "body",
    [
        b'{"KEY":"k","Value":"v","other":{"deep":[1]}}',
        b'{"key":"k","value":"v","category":null,"tags":null,"ttl_seconds":null}',
        b'  {"key":"k","value":"v"} trailing',
        b'{"key":"k","value":"v","key":"k"}',
        b'{"Key":"other","key":"k","value":"v"}',
    ],
)
def test_store_reads_as_go_does(people, body):
    """
    Names in any case, unknown ones ignored, null as good as nothing, what follows the object not looked at; and no
    content type is needed.
    """
    assert people.alice.post(f"{MEMORY}/store", content=body).status_code == 200

    assert people.server.plane.space("alice").get("k").text == "v"


def test_store_replaces_and_keeps_the_trajectory(people, clock):
    """
    One row a key, created when it first was; the values it had are told, oldest first.
    """
    store(people.alice, "preferences/theme", "dark")
    clock.advance(hours=1.5)
    store(people.alice, "preferences/theme", "light", category="preferences", tags=["ui"])

    (fact,) = people.alice.get(f"{MEMORY}/facts").json()["facts"]
    assert fact == {
        "key": "preferences/theme",
        "value": "light",
        "category": "preferences",
        "tags": ["ui"],
        "created_at": "2026-11-15T08:30:00Z",
        "updated_at": "2026-11-15T10:00:00Z",
        "expires_at": "2027-02-13T10:00:00Z",
    }
    history = people.alice.get(f"{MEMORY}/history/preferences/theme").json()
    assert [(value["value"], value["state"], value["replaced_at"]) for value in history["history"]] == [
        ("dark", "superseded", "2026-11-15T10:00:00Z"),
        ("light", "active", None),
    ]


def test_store_backend_failure_says_so_and_names_no_file(people, monkeypatch):
    """
    facts_engine_test: a backend error is wrapped. Upstream's code for it is `invalid_input`, with a 500.
    """

    def put(*_arguments, **_named):
        raise StorageFull("/var/lib/private/alice.db: no room")

    monkeypatch.setattr(Space, "put", put)
    answer = people.alice.post(f"{MEMORY}/store", json={"key": "k", "value": "v"})

    status, code, message = error_of(answer)
    assert (status, code) == (500, "invalid_input")
    assert message.startswith("store: No room is left on the device")
    assert "private" not in message


def test_facts_expire(people, clock):
    """
    memory_test, TTL with a fake clock: what has expired is not there, and its key is free.
    """
    store(people.alice, "k", "v", ttl_seconds=3_600)
    clock.advance(hours=1)

    assert people.alice.get(f"{MEMORY}/facts").json()["facts"] == []
    assert people.alice.get(f"{MEMORY}/facts/k").status_code == 404


# ── reading: what the original lacks ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "key", ["a", "a/b", "a/b/history", "history", "a//b", "a/", "100%", "a b", "ä/é", "a?b=c", "#x", "a/../b"]
)
def test_any_key_can_be_read_back(people, key):
    """
    A key with slashes, dots, percent signs or the word history in it is read from its own path, and so is its history.
    """
    store(people.alice, key, "here")
    path = "".join(
        c if c.isalnum() and c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in key
    )

    assert people.alice.get(f"{MEMORY}/facts/{path}").json()["key"] == key
    assert people.alice.get(f"{MEMORY}/history/{path}").json()["history"][0]["value"] == "here"
    assert [
        fact["key"] for fact in people.alice.get(f"{MEMORY}/facts", params={"key": key}).json()["facts"]
    ] == [key]


def test_slashes_need_no_escape(people):
    """
    The usual keys are written into the path as they are.
    """
    store(people.alice, "preferences/lang/backend", "Go")

    assert people.alice.get(f"{MEMORY}/facts/preferences/lang/backend").json()["value"] == "Go"


def test_facts_are_listed_by_prefix_and_category(people, clock):
    """
    Newest first; `%` and `_` are ordinary characters and letter case counts (memory_test: DeletePrefix and List).
    """
    for number, key in enumerate(["p/a", "p/b", "P/c", "p%/d", "p_/e"]):
        clock.advance(seconds=1)
        store(people.alice, key, f"v{number}", category="odd" if number % 2 else "even")

    def keys(**query):
        return [fact["key"] for fact in people.alice.get(f"{MEMORY}/facts", params=query).json()["facts"]]

    assert keys(prefix="p/") == ["p/b", "p/a"]
    assert keys(prefix="p%") == ["p%/d"]
    assert keys(prefix="p_") == ["p_/e"]
    assert keys(category="even") == ["p_/e", "P/c", "p/a"]
    limited = people.alice.get(f"{MEMORY}/facts", params={"limit": 2}).json()
    assert (len(limited["facts"]), limited["more"], limited["scope"]) == (2, True, "caller=alice")


@pytest.mark.parametrize("limit", ["0", "-1", "10001", "many", ""])
def test_a_limit_that_cannot_be(people, limit):
    """
    Bad limits are refused like all bad input.
    """
    assert error_of(people.alice.get(f"{MEMORY}/facts", params={"limit": limit}))[:2] == (
        400,
        "invalid_input",
    )


def test_what_is_not_there(people):
    """
    memory_test, ErrNotFound: unknown keys are 404, for a caller without any facts too, and looking creates nothing.
    """
    for path in ("facts/none", "history/none", "facts/"):
        assert error_of(people.alice.get(f"{MEMORY}/{path}"))[:2] == (404, "not_found")

    assert people.alice.get(f"{MEMORY}/facts").json() == {"scope": "caller=alice", "facts": [], "more": False}
    assert list(people.server.plane.spaces()) == []


def test_secrets_in_values_are_not_told(people):
    """
    What looks like a secret is redacted wherever a fact is told.
    """
    secret = "ghp_" + "a1B2" * 9
    store(people.alice, "k", f"the token is {secret}")

    assert secret not in people.alice.get(f"{MEMORY}/facts").text
    assert secret not in people.alice.get(f"{MEMORY}/history/k").text


# ── forget: api/memory_test, builtin/memory_forget_test ──────────────────────────────────────────────────────────


def forget(client, scope=None, **options):
    body = {} if scope is None else {"json": {"scope": scope}}
    answer = client.post(f"{MEMORY}/forget", **body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def keys_of(client):
    return {fact["key"] for fact in client.get(f"{MEMORY}/facts").json()["facts"]}


@pytest.mark.parametrize("options", [{}, {"json": {}}, {"json": {"scope": ""}}, {"content": b"null"}])
def test_forget_all_is_the_default(people, clock, options):
    """
    An empty body or scope is `all`. Upstream kept facts and plans; its page says audit and facts, so all go.
    """
    record_runs(people.server.plane, clock)
    record_plans(people.server.plane, clock)
    store(people.alice, "a/b", "v")
    store(people.alice, "a/b", "w")
    store(people.bob, "a/b", "bob's")

    answer = people.alice.post(f"{MEMORY}/forget", **options)

    assert answer.json() == {"scope": "all", "deleted": 10}
    assert keys_of(people.alice) == set()
    assert people.alice.get(f"{MEMORY}/defaults").json()["recent"] == []
    assert people.server.plane.space("alice").facts.plans() == []
    assert keys_of(people.bob) == {"a/b"}


def test_forget_all_leaves_what_other_doors_wrote(people):
    """
    `all` is all that has a key: turns and typed memories are not this door's.
    """
    space = people.server.plane.space("alice")
    space.retain("I moved to Lisbon", conversation="c1")
    space.store("preference", "Prefers tea")
    store(people.alice, "k")

    assert forget(people.alice, "all")["deleted"] == 1
    assert len(space.turns()) == 1
    assert [hit.text for hit in space.search("tea", turns=False)] == ["Prefers tea"]


def test_forget_by_kind_keeps_facts(people, clock):
    """
    `packs` and `pipelines` delete runs of their kind and no fact.
    """
    record_runs(people.server.plane, clock)
    store(people.alice, "k")

    assert forget(people.alice, "packs") == {"scope": "packs", "deleted": 4}
    assert forget(people.alice, "packs")["deleted"] == 0
    assert forget(people.alice, "pipelines") == {"scope": "pipelines", "deleted": 2}
    assert keys_of(people.alice) == {"k"}


def test_forget_one_pack_or_pipeline(people, clock):
    """
    memory_test: pack scope deletes its rows and keeps the others.
    """
    record_runs(people.server.plane, clock)

    assert forget(people.alice, "pack:blog.publish") == {"scope": "pack:blog.publish", "deleted": 3}
    assert forget(people.alice, "pipeline:builtin.brief") == {"scope": "pipeline:builtin.brief", "deleted": 2}
    assert [run["id"] for run in people.alice.get(f"{MEMORY}/defaults").json()["recent"]] == [
        "hyperframes.lint"
    ]


def test_forget_one_pack_does_not_reach_its_namesakes(people, clock):
    """
    `pack:blog` is not `pack:blog.publish`.
    """
    record_runs(people.server.plane, clock)

    assert forget(people.alice, "pack:blog")["deleted"] == 0
    assert forget(people.alice, "pack:%")["deleted"] == 0


def test_forget_key_is_exact(people):
    """
    `key:prefs/a` leaves `prefs/ab`: the page says exact key, upstream deleted by prefix.
    """
    for key in ("prefs/a", "prefs/ab", "prefs/a/b", "PREFS/A"):
        store(people.alice, key)
    store(people.bob, "prefs/a")

    assert forget(people.alice, "key:prefs/a") == {"scope": "key:prefs/a", "deleted": 1}
    assert forget(people.alice, "key:prefs/a")["deleted"] == 0
    assert keys_of(people.alice) == {"prefs/ab", "prefs/a/b", "PREFS/A"}
    assert keys_of(people.bob) == {"prefs/a"}


def test_a_forgotten_fact_has_no_history(people):
    """
    All values of the key go.
    """
    store(people.alice, "k", "one")
    store(people.alice, "k", "two")

    assert forget(people.alice, "key:k")["deleted"] == 1
    assert people.alice.get(f"{MEMORY}/history/k").status_code == 404


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("pack:", 'scope "pack:": missing pack id'),
        ("pipeline:", 'scope "pipeline:": missing pipeline id'),
        ("key:", 'scope "key:": missing key'),
        (
            "nope",
            'unknown scope "nope" (valid: all, packs, pipelines, pack:<id>, pipeline:<id>, key:<exact-key>)',
        ),
    ],
)
def test_forget_bad_scopes(people, scope, message):
    """
    An unknown scope forgets nothing.
    """
    store(people.alice, "k")

    answer = people.alice.post(f"{MEMORY}/forget", json={"scope": scope})

    assert error_of(answer) == (400, "invalid_input", message)
    assert keys_of(people.alice) == {"k"}


@pytest.mark.parametrize("body", [b"{", b'{"scope":1}', b"[]", b"\x00"])
def test_forget_bad_json(people, body):
    """
    A body that cannot be read is no `all`.
    """
    store(people.alice, "k")

    assert error_of(people.alice.post(f"{MEMORY}/forget", content=body))[:2] == (400, "invalid_input")
    assert keys_of(people.alice) == {"k"}


def test_forget_without_anything_stored(people):
    """
    builtin/memory_forget_test, nil store: nothing to forget is no error, and creates nothing.
    """
    assert forget(people.alice)["deleted"] == 0
    assert list(people.server.plane.spaces()) == []


# ── defaults: defaults_test, audit_test ──────────────────────────────────────────────────────────────────────────


def test_defaults_without_history(people):
    """
    Arrays are arrays, and a note says why they are empty.
    """
    assert people.alice.get(f"{MEMORY}/defaults").json() == {
        "scope": "caller=alice",
        "fetched_at": "2026-11-15T08:30:00Z",
        "packs": [],
        "pipelines": [],
        "recent": [],
        "note": "no audit history yet; defaults will fill in as packs/pipelines run under this caller",
    }


def test_defaults_from_history(people, clock):
    """
    The most common persona (two of three), successes only, findings of failures too, recent newest first.
    """
    record_runs(people.server.plane, clock)

    told = people.alice.get(f"{MEMORY}/defaults").json()

    assert told["packs"] == [
        {"id": "blog.publish", "calls": 3, "last_used_unix": 300, "common_inputs": {"persona": "technical"}}
    ]
    assert told["pipelines"] == [
        {
            "id": "builtin.brief",
            "runs": 1,
            "last_used_unix": 1_000,
            "common_inputs": {"persona": "technical"},
        }
    ]
    assert told["common_findings"] == [
        {
            "code": "media_missing_id",
            "pack": "hyperframes.lint",
            "severity": "error",
            "occurrence_count": 1,
            "last_seen_unix": 400,
        }
    ]
    assert [run["at_unix"] for run in told["recent"]] == [1_000, 900, 400, 300, 200, 100]
    newest, failed = told["recent"][0], told["recent"][2]
    assert newest["key"].startswith("pipeline_history/builtin.brief/")
    assert len(newest["key"]) == 51
    assert newest["learn_inputs"] == {"persona": "technical"}
    assert failed["outcome"] == "handler_failed"
    assert "learn_inputs" not in failed
    assert "duration_ms" not in failed
    assert "note" not in told


def test_defaults_are_the_callers_own(people, clock):
    """
    Bob's runs teach alice nothing; `?caller=` is heard from an administrator and from nobody else.
    """
    record_runs(people.server.plane, clock, owner="bob")

    for caller in ("bob", "root", ""):
        told = people.alice.get(f"{MEMORY}/defaults", params={"caller": caller}).json()
        assert (told["scope"], told["recent"]) == ("caller=alice", [])

    told = people.admin.get(f"{MEMORY}/defaults", params={"caller": "bob"}).json()
    assert (told["scope"], len(told["recent"])) == ("caller=bob", 6)
    assert people.admin.get(f"{MEMORY}/defaults").json()["scope"] == "caller=root"


# ── callers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_callers_empty(people):
    """
    Nobody is `null`, as Go writes it.
    """
    assert people.admin.get(f"{MEMORY}/callers").text == '{"callers":null}\n'


def test_callers_busiest_first(people):
    """
    By count, then by name; only for an administrator. Spaces without keyed rows are no callers.
    """
    for client, keys in ((people.bob, "a"), (people.alice, "abc"), (people.nobody, "a")):
        for key in keys:
            store(client, key)
    people.server.plane.space("silent").retain("hello")

    assert people.admin.get(f"{MEMORY}/callers").json()["callers"] == [
        {"namespace": "alice", "count": 3},
        {"namespace": "bob", "count": 1},
        {"namespace": "unknown", "count": 1},
    ]


def test_callers_cannot_be_enumerated(people):
    """
    Everybody else sees themselves, or nobody, whatever they ask for.
    """
    store(people.alice, "k")

    assert people.alice.get(f"{MEMORY}/callers?caller=bob").json() == {
        "callers": [{"namespace": "alice", "count": 1}]
    }
    assert people.bob.get(f"{MEMORY}/callers").json() == {"callers": None}


def test_an_administrator_of_some_spaces_sees_those(people):
    """
    An administrator's key may be narrowed to spaces; others are not told of.
    """
    narrow = people.server.client(people.server.keys.add("narrow", subject="ops", spaces={"ops", "bob"}))
    store(people.alice, "k")
    store(people.bob, "k")

    assert narrow.get(f"{MEMORY}/callers").json() == {"callers": [{"namespace": "bob", "count": 1}]}
    assert error_of(narrow.get(f"{MEMORY}/facts?caller=alice"))[:2] == (403, "forbidden")


def test_tenants_do_not_meet(people):
    """
    The same name in another tenant is somebody else, for administrators too.
    """
    other = people.server.client(people.server.keys.add("other", subject="alice", tenant="elsewhere"))
    store(people.alice, "k", "mine")
    store(other, "k", "theirs")

    assert people.alice.get(f"{MEMORY}/facts/k").json()["value"] == "mine"
    assert other.get(f"{MEMORY}/facts/k").json()["value"] == "theirs"
    assert other.get(f"{MEMORY}/callers").json() == {"callers": [{"namespace": "alice", "count": 1}]}


# ── packs: builtin/memory_store_test, memory_forget_test ─────────────────────────────────────────────────────────


def test_pack_store(people):
    """
    The envelope, with nanoseconds in `duration_ms`; the fact is under the bare caller; no audit row is written.
    """
    answer = people.alice.post(
        f"{PACKS}/helmdeck.memory_store", json={"key": "k", "value": "v", "tags": ["t"]}
    )

    body = answer.json()
    assert list(body) == ["pack", "version", "output", "duration_ms"]
    assert (body["pack"], body["version"]) == ("helmdeck.memory_store", "v1")
    assert body["output"] == {"key": "k", "category": "user_facts", "expires_at": "2027-02-13T08:30:00Z"}
    assert body["duration_ms"] > 1_000
    assert people.alice.get(f"{MEMORY}/facts/k").json()["tags"] == ["t"]
    assert people.alice.get(f"{MEMORY}/defaults").json()["recent"] == []


def test_pack_forget(people, clock):
    """
    Scopes are those of the page, `key:` among them, which upstream's pack refused.
    """
    record_runs(people.server.plane, clock)
    store(people.alice, "k")
    store(people.alice, "l")

    def run(**given):
        return people.alice.post(f"{PACKS}/helmdeck.memory_forget", json=given).json()["output"]

    assert run(scope="key:k") == {"scope": "key:k", "deleted": 1}
    assert run(scope="pack:blog.publish")["deleted"] == 3
    assert run(scope="pipelines")["deleted"] == 2
    assert people.alice.post(f"{PACKS}/helmdeck.memory_forget").json()["output"] == {
        "scope": "all",
        "deleted": 2,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, 'missing required field "key"'),
        ({"key": "k"}, 'missing required field "value"'),
        ({"key": None, "value": "v"}, 'field "key": expected string, got null'),
        ({"key": "k", "value": "v", "ttl_seconds": "9"}, 'field "ttl_seconds": expected number, got string'),
        ({"key": "k", "value": "v", "ttl_seconds": None}, 'field "ttl_seconds": expected number, got null'),
        ({"key": "k", "value": "v", "tags": {}}, 'field "tags": expected array, got object'),
        ([], "input must be an object, got array"),
        ({"key": " ", "value": "v"}, 'key is required (e.g. "preferences/frontend-framework")'),
        ({"key": "k", "value": "v", "ttl_seconds": 60}, "ttl too short; minimum is 1h0m0s"),
    ],
)
def test_pack_store_bad_input(people, given, message):
    """
    The schema first, then the fact, all of it `invalid_input`.
    """
    answer = people.alice.post(f"{PACKS}/helmdeck.memory_store", json=given)

    assert error_of(answer) == (400, "invalid_input", message)


def test_pack_forget_bad_scope(people):
    """
    builtin/memory_forget_test: a bad scope is `invalid_input`.
    """
    answer = people.alice.post(f"{PACKS}/helmdeck.memory_forget", json={"scope": "weather"})

    assert error_of(answer)[:2] == (400, "invalid_input")


def test_pack_unknown(people):
    """
    There are two packs; aliases lead to the same two.
    """
    assert error_of(people.alice.post(f"{PACKS}/blog.publish", json={}))[:2] == (404, "not_found")
    answer = people.alice.post(f"{PACKS}/helmdeck__memory_store", json={"key": "k", "value": "v"})
    assert answer.json()["pack"] == "helmdeck.memory_store"


# ── isolation, rights and what a credential opens ────────────────────────────────────────────────────────────────


READS = ("facts", "facts/secret/plan", "history/secret/plan", "defaults", "callers", "facts?key=secret/plan")


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("asked", ["", "caller=alice"])
def test_bob_reads_nothing_of_alice(people, clock, path, asked):
    """
    Per-caller isolation on everything that reads, whatever is asked for.
    """
    store(people.alice, "secret/plan", "alice's only", category="private-category")
    record_runs(people.server.plane, clock)

    joined = "&" if "?" in path else "?"
    text = people.bob.get(f"{MEMORY}/{path}{joined}{asked}").text
    assert not [word for word in ("only", "private", "blog", "alice") if word in text]


def test_bob_writes_nothing_of_alices(people):
    """
    A store and a forget reach the caller's own space only, whatever the query says.
    """
    store(people.alice, "k", "alice's")
    people.bob.post(f"{MEMORY}/store?caller=alice", json={"key": "k", "value": "bob's"})
    assert people.bob.post(f"{MEMORY}/forget?caller=alice", json={"scope": "all"}).json()["deleted"] == 1

    assert people.alice.get(f"{MEMORY}/facts/k").json()["value"] == "alice's"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{MEMORY}/store"),
        ("POST", f"{MEMORY}/forget"),
        ("GET", f"{MEMORY}/defaults"),
        ("GET", f"{MEMORY}/callers"),
        ("GET", f"{MEMORY}/facts"),
        ("GET", f"{MEMORY}/facts/k"),
        ("GET", f"{MEMORY}/history/k"),
        ("POST", f"{PACKS}/helmdeck.memory_store"),
        ("POST", f"{PACKS}/helmdeck.memory_forget"),
        ("GET", "/api/v1/mcp/sse"),
        ("POST", "/api/v1/mcp/sse/message?sessionId=00"),
        ("GET", "/api/v1/mcp/qmd/sse"),
        ("POST", "/api/v1/mcp/qmd/sse/message?sessionId=00"),
    ],
)
def test_nothing_opens_without_a_credential(people, method, path):
    """
    jwt_test: 401, its two codes, and the realm.
    """
    without = people.server.client(None).request(method, path)
    wrong = people.server.client("wrong").request(method, path)

    assert error_of(without) == (401, "missing_bearer", "Authorization: Bearer <token> required")
    assert error_of(wrong)[:2] == (401, "invalid_token")
    assert (
        without.headers["www-authenticate"] == wrong.headers["www-authenticate"] == 'Bearer realm="helmdeck"'
    )


def test_rights_and_doors_of_a_key_count(people):
    """
    A key that may only read cannot write, through packs neither; a key of another door opens nothing here.
    """
    keys = people.server.keys
    reader = people.server.client(keys.add("reader", subject="alice", rights={"read"}))
    other = people.server.client(keys.add("other", subject="alice", adapters={"plane"}))
    body = {"key": "k", "value": "v"}

    for path in (
        f"{MEMORY}/store",
        f"{MEMORY}/forget",
        *(f"{PACKS}/{n}" for n in ("helmdeck.memory_store", "memory_store")),
    ):
        assert error_of(reader.post(path, json=body))[:2] == (403, "forbidden")
        assert error_of(other.post(path, json=body))[:2] == (403, "forbidden")
    assert reader.get(f"{MEMORY}/facts").status_code == 200
    assert other.get(f"{MEMORY}/facts").status_code == 403


def test_the_bridge_asks_for_the_version_without_a_token(people):
    """
    `/api/v1/bridge/version` is open.
    """
    told = people.server.client(None).get("/api/v1/bridge/version").json()

    assert told["platform_version"].startswith("v")
    assert told["min_recommended"] == "v0.2.0"


def test_openapi_can_describe_what_is_taken():
    """
    Every struct of this door has a schema.
    """
    from memplane.adapters.helmdeck import wire as shapes

    structs = [
        value
        for value in vars(shapes).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]

    assert msgspec.json.schema_components(structs)
