"""What SQLite does behind a statement's back, and must not do here."""

import apsw
import pytest

from memplane import Memplane
from memplane.storage import conditions
from memplane.storage.filter import Filter
from memplane.storage.sqlite.connection import connect
from memplane.storage.sqlite.statements import SQL
from memplane.types import Tier


@pytest.fixture
def file(tmp_path):
    with Memplane.open(tmp_path, embedder=None) as plane:
        plane.space("alice").retain("Tea is in the cupboard.")
    return next(tmp_path.rglob("alice*.db"))


def test_a_statement_is_prepared_once(file):
    """
    Statements that name partial indexes' columns are not prepared anew for every value they are given.
    """
    connection = connect(file, None)
    wanted = conditions.of_memories(Filter(now=1))
    sql = SQL["hot"].replace("{where}", str(wanted))
    looked_at = []  # SQLite asks what a statement may do whenever it prepares it
    connection.authorizer = lambda *what: looked_at.append(what) or apsw.SQLITE_OK
    counts = []
    for now in range(4):
        connection.execute(sql, {**wanted.parameters, "now": now, "limit": 3}).fetchall()
        counts.append(len(looked_at))
    connection.close()

    assert counts == [counts[0]] * 4


def test_those_always_told_are_listed_by_their_index(file):
    """
    A listing of one tier need not look at the others.
    """
    connection = connect(file, None)
    wanted = conditions.of_memories(Filter(now=1, tier=Tier.HOT))
    sql = "EXPLAIN QUERY PLAN " + SQL["memories"].replace("{where}", str(wanted))
    plan = connection.execute(sql, {**wanted.parameters, "limit": 3, "offset": 0}).fetchall()
    connection.close()

    assert any("memory_hot" in step[3] for step in plan)
