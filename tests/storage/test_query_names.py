"""Named statements that all engines share."""

import re
from collections import Counter
from importlib import resources


def test_no_two_shared_statements_have_the_same_name():
    """
    The second would silently replace the first, for a caller that expects other columns.
    """
    folder = resources.files("memplane.storage.queries")
    names = Counter(
        name
        for file in folder.iterdir()
        if file.name.endswith(".sql") and file.name != "catalog.sql"
        for name in re.findall(r"^-- name: (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )

    assert names
    assert [name for name, count in names.items() if count > 1] == []
