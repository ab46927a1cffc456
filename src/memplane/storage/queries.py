"""SQL lives in `queries.sql`, one named block per query, readable without Python.

An engine may bring its own blocks for what it spells differently; the rest is shared.
"""

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def load(package: str, file: str = "queries.sql") -> dict[str, str]:
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    return {name: sql.strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
