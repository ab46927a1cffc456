"""How PostgreSQL carries out what the hot paths say, and how often they say something."""

from collections.abc import Collection, Iterator
from typing import Any

import psycopg
import pytest

from memplane import Memplane, Space
from memplane.storage.postgres.migrate import SCHEMA, tables
from statement_watch import Said, copied, explaining, nodes, trips, watched
from stub_embedder import StubEmbedder

WHOLE = (
    "DELETE FROM pinned",
    "DELETE FROM memory_vector WHERE NOT EXISTS",
    "SELECT count(*) FROM memory",
    "SELECT name, value FROM meta",
)
"""Those that are about everything in a space, and said once in a while."""


@pytest.fixture
def plane(postgres_url: str) -> Iterator[Memplane]:
    with Memplane.open(postgres_url, embedder=StubEmbedder()) as opened:
        yield opened


def _filled(plane: Memplane) -> Space:
    space = plane.space("alice")
    for number in range(20):
        space.retain(
            f"I bought a bicycle in Rome with Kori{number}. My favourite colour is {number}.",
            conversation=f"c{number // 7}",
            project="p",
        )
    space.store("fact", "the office is in Milan", tags=["work"])
    space.put("home/street", "Via Roma")
    space.enrich()
    return space


def _used(space: Space) -> None:
    space.retain("I sold the bicycle in Rome", conversation="c1", project="p")
    stored = space.store("fact", "the garden is in Turin", tags=["work", "home"], conversation="c1")
    space.put("home/city", "Rome")
    space.get("home/city")
    space.enrich()
    space.recall("Where did I buy the bicycle with Kori7 last week?", conversation="c1", project="p")
    space.search("bicycle office", limit=5)
    space.search("office", kinds=["fact"], tags=["work"])
    space.brief()
    space.forget(key="home/city")
    space.forget(conversation="c2")
    space.delete(stored.id)


@pytest.mark.parametrize(
    "sizes",
    [{"spaces": 4, "times": 10}, {"spaces": 300, "times": 200, "alike": False}],
    ids=["alike", "one large among many small"],
)
def test_no_hot_statement_reads_a_whole_table_or_a_whole_space(plane, postgres_url, sizes):
    """
    Under row-level security, with generic plans, over many spaces: every table is looked into by an index that begins
    with the tenant and the space, and goes on with what is asked for, or gives the first few rows in order.
    """
    space = _filled(plane)
    with watched() as said:
        _used(space)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        copied(connection, **sizes)
        of_spaces = frozenset(tables(connection))
        placed = _indexes_by_place(connection)
        filled = _filled_tables(connection)

    found = []
    with explaining(postgres_url, tenant=1, space=1) as plan:
        for statement in _distinct(said):
            steps = list(nodes(plan(statement)))
            problems = [
                _problem(step, of_spaces, placed, whole=filled if not _first_few(steps) else ())
                for step in steps
            ]
            found += [(problem, statement[0]) for problem in problems if problem]

    assert [(problem, text) for problem, text in found if not text.startswith(WHOLE)] == []


def test_a_search_for_many_words_looks_at_each_of_their_holders_once(plane, postgres_url):
    """
    Where whatever holds a word is compared with every word, a page pasted into a search takes minutes of the database.
    """
    space = _filled(plane)
    with watched() as said:
        space.search("lamp kettle teapot window garden")
    with explaining(postgres_url, tenant=1, space=1) as plan:
        matching = [statement for statement in _distinct(said) if "WITH hit" in statement[0]]
        steps = [step for statement in matching for step in nodes(plan(statement))]

    assert steps
    assert [step["Join Filter"] for step in steps if "stem" in step.get("Join Filter", "")] == []


def _distinct(said: list[Said]) -> list[Said]:
    plannable = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
    kept = {text: (text, given) for text, given in said if text.startswith(plannable)}
    return list(kept.values())


def _filled_tables(connection: psycopg.Connection[Any]) -> frozenset[str]:
    """Those with more than a few rows: of an empty one, any index is as good as another."""
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND reltuples > 500",
        (SCHEMA,),
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _indexes_by_place(connection: psycopg.Connection[Any]) -> frozenset[str]:
    """Indexes whose first two columns are the tenant and the space."""
    rows = connection.execute(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
        "JOIN pg_attribute b ON b.attrelid = i.indrelid AND b.attnum = i.indkey[1] "
        "WHERE c.relnamespace = %s::regnamespace AND a.attname = 'tenant' AND b.attname = 'space'",
        (SCHEMA,),
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _first_few(steps: list[dict[str, Any]]) -> bool:
    """Whether it ends with the first rows that an index gives in order."""
    return steps[0]["Node Type"] == "Limit" and all(step["Node Type"] != "Sort" for step in steps)


def _problem(
    node: dict[str, Any], of_spaces: frozenset[str], placed: frozenset[str], *, whole: Collection[str]
) -> str | None:
    """`whole` are the tables that must not be read from the first row of a space to the last."""
    kind, table = node["Node Type"], node.get("Relation Name")
    each_with_each = "Join Filter" in node and any(_reads_all(step, whole) for step in nodes(node))
    if each_with_each or kind in {"Hash Join", "Merge Join"}:
        return f"{kind} by {node.get('Join Filter')}"
    if table not in of_spaces:
        return None
    if kind == "Seq Scan":
        return f"{kind} of {table}"
    asked = node.get("Index Cond", "")
    if kind not in {"Index Scan", "Index Only Scan"}:
        return None
    if node["Index Name"] not in placed or "tenant = " not in asked or "space = " not in asked:
        return f"{node['Index Name']}: {asked}"
    all_read = "Filter" in node and _reads_all(node, whole)
    return f"{node['Index Name']} reads all, and leaves out by {node['Filter']}" if all_read else None


def _reads_all(node: dict[str, Any], whole: Collection[str]) -> bool:
    """Whether nothing is said to the index but the space."""
    return node.get("Relation Name") in whole and node.get("Index Cond", "").count(" AND ") == 1


def test_a_recall_and_a_retain_take_few_round_trips(plane):
    """
    What somebody waits for is bounded: so many trips, however much there is.
    """
    space = _filled(plane)
    for number in range(3):
        space.recall(f"Which bicycle did I buy with Kori{number}?")

    with trips() as recalled:
        space.recall("Which bicycle did I buy with Kori5?", conversation="c1")
    with trips() as retained:
        space.retain("We met at the museum", conversation="c1")

    assert len(recalled) <= 12, recalled
    assert len(retained) <= 8
