"""SQL lives in files of an engine's package, one named block per query, readable without Python."""

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def load(package: str, *files: str) -> dict[str, str]:
    folder = resources.files(package)
    text = "\n".join(folder.joinpath(file).read_text(encoding="utf-8") for file in files or ("queries.sql",))
    parts = _NAME.split(text)[1:]
    return {name: sql.strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
