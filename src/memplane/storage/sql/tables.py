"""The statements of a move, made from what it knows of tables: the same few for each."""

from collections.abc import Sequence

from memplane.storage.moving import CATALOG_TABLES, SPACE_TABLES, Table

_QUOTED = frozenset({"end"})


def statements_of(tables: Sequence[Table]) -> dict[str, str]:
    """By name, as `load` takes them."""
    found: dict[str, str] = {}
    for table in tables:
        found.update(_of(table))
    counts = ", ".join(f"(SELECT count(*) FROM {table.name}{_only(table)})" for table in tables)
    return found | {"copy_counts": f"SELECT {counts}"}


def _of(table: Table) -> dict[str, str]:
    name, columns, key = table.name, _listed(table.columns), _listed(table.key)
    asked = _listed([f":after_{column}" for column in table.key], quote=False)
    first = _only(table)
    later = f" WHERE ({key}) > ({asked})" + ("" if table.only is None else f" AND {table.only}")
    page = f"ORDER BY {key} LIMIT :limit"
    values = _listed(["?"] * len(table.columns), quote=False)
    matches = " AND ".join(f"{_name(column)} = ?" for column in table.key)
    return {
        f"copy_{name}": f"SELECT {columns} FROM {name}{first} {page}",
        f"copy_{name}_after": f"SELECT {columns} FROM {name}{later} {page}",
        f"copy_{name}_sizes": f"SELECT {_size(table)} FROM {name}{first} {page}",
        f"copy_{name}_sizes_after": f"SELECT {_size(table)} FROM {name}{later} {page}",
        f"copy_{name}_add": f"INSERT INTO {name} ({columns}) VALUES ({values})",
        f"copy_{name}_drop": f"DELETE FROM {name} WHERE {matches}",
    }


def _only(table: Table) -> str:
    return "" if table.only is None else f" WHERE {table.only}"


def _size(table: Table) -> str:
    return "0" if table.heavy is None else f"coalesce(octet_length({_name(table.heavy)}), 0)"


def _listed(names: Sequence[str], *, quote: bool = True) -> str:
    return ", ".join(_name(name) if quote else name for name in names)


def _name(column: str) -> str:
    return f'"{column}"' if column in _QUOTED else column


SPACE_MOVES = statements_of(SPACE_TABLES)
CATALOG_MOVES = statements_of(CATALOG_TABLES)
