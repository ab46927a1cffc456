"""Shared SQL as PostgreSQL hears it."""

import re

import psycopg
import pytest

from memplane.storage.postgres.statements import SQL, spoken

PLACES = re.compile(r"%\((\w+)\)s|%s")


def numbered(sql: str) -> str:
    """With the parameters as the server counts them."""
    names: dict[str, int] = {}
    count = 0

    def number(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1) in names:
            return f"${names[match.group(1)]}"
        count += 1
        if match.group(1):
            names[match.group(1)] = count
        return f"${count}"

    return PLACES.sub(number, sql).replace("%%", "%")


def test_every_statement_is_understood(postgres_url):
    """
    The server parses each of them; whose types only a value can tell, it says so.
    """
    wrong = {}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path = memplane, public")
        for name, sql in SQL.items():
            if "SAVEPOINT" in sql:  # PREPARE takes none, though the protocol does
                continue
            try:
                connection.execute(f"PREPARE p_{name} AS {numbered(sql.replace('{where}', 'TRUE'))}".encode())
            except psycopg.errors.IndeterminateDatatype:
                pass
            except psycopg.Error as exc:
                wrong[name] = str(exc)

    assert wrong == {}


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        ("a = :name AND b = :name2", "a = %(name)s AND b = %(name2)s"),
        ("x ::text = :x::text[]", "x ::text = %(x)s::text[]"),
        ("VALUES (?, ?)", "VALUES (%s, %s)"),
        ("a = ?1 OR b = ?1", "a = %(_1)s OR b = %(_1)s"),
        ("n % 256", "n %% 256"),
        ("t LIKE 'import:%?' AND s = ':name'", "t LIKE 'import:%%?' AND s = ':name'"),
        ("s = 'it''s :x'", "s = 'it''s :x'"),
    ],
)
def test_parameters_are_told_from_everything_else(written, heard):
    """
    Nothing inside of quotes is a parameter, and a percent sign is one.
    """
    assert spoken(written) == heard
