"""SQL lives in an engine's `queries.sql`, one named block per query, readable without Python."""

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def load(package: str) -> dict[str, str]:
    text = resources.files(package).joinpath("queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    return {name: sql.strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
