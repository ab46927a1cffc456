"""Closed word classes, kept as data in words.toml."""

import tomllib
from functools import cache
from importlib.resources import files


def word_class(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files(__package__) / "words.toml").read_text("utf-8"))
