"""The attack suite: what a hostile environment does to a server, in a short form and in a long one.

`make test` runs the short form. `make attack` sets the variables below, runs the long form and prints a table of what was tried.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

KILLS = int(os.environ.get("MEMPLANE_ATTACK_KILLS", "12"))
"""Kills on each engine."""
SOAK_SECONDS = float(os.environ.get("MEMPLANE_ATTACK_SOAK_SECONDS", "2"))
SEEDS = int(os.environ.get("MEMPLANE_ATTACK_SEEDS", "3"))
SPACES = int(os.environ.get("MEMPLANE_ATTACK_SPACES", "210"))
SHOW_TABLE = "MEMPLANE_ATTACK_TABLE" in os.environ

_FIGURES = "attack"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """`figures(kills=12, lost=0)` adds a row to the table of this run."""

    def add(**some: Any) -> None:
        told = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in some.items())
        request.node.user_properties.append((_FIGURES, told))

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, in the form that docs/concepts/threat-model.md has it."""
    if not SHOW_TABLE:
        return
    rows = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            told = [value for name, value in report.user_properties if name == _FIGURES]
            if told:
                name = report.nodeid.partition("tests/attack/")[2]
                rows.append(f"| `{name}` | {outcome} | {'; '.join(told)} |")
    terminalreporter.section("attack")
    terminalreporter.write_line("| attack | outcome | figures |")
    terminalreporter.write_line("|---|---|---|")
    for row in sorted(rows):
        terminalreporter.write_line(row)
