"""Command output. Stdout gets only results; stderr gets notes, and progress on a terminal.

Content is untrusted: it reaches a terminal as `Text`, without markup and control characters.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from memplane.safety.sanitize import one_line, printable
from memplane.types import Memory

Advance = Callable[[int, int | None], None]

CELL_CHARS_MAX = 400

_PIPE_COLUMNS = 160

# JSON escapes C0 controls itself. These also affect a terminal or the reading direction, and occur only inside strings.
_STEERING = re.compile("[\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")


class Output:
    """One command's stdout and stderr."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        width = shutil.get_terminal_size((_PIPE_COLUMNS, 0)).columns
        self._stdout = _Console(highlight=False, markup=False, emoji=False, width=width)
        self._stderr = _Console(stderr=True, highlight=False, markup=False, emoji=False)

    def answer(self, document: Any, *shown: RenderableType) -> None:
        """Print the result: one JSON document, or text for people."""
        if self.json:
            write_json(document)
        self.print_part(*shown)

    def print_part(self, *shown: RenderableType) -> None:
        """Print a part of the result for people; with --json, `answer` prints everything at once."""
        if self.json:
            return
        if any(isinstance(part, Table) and not part.row_count for part in shown):
            self.empty("No results.")
            return
        _print(self._stdout, shown)

    def answer_text(self, document: Any, text: str) -> None:
        """Print a result that is text itself, unchanged, for a file or a prompt."""
        if self.json:
            write_json(document)
        elif text:
            sys.stdout.write(printable(text) + "\n")

    def note(self, text: str) -> None:
        """Print a hint, on a terminal only."""
        if sys.stderr.isatty():
            self._stderr.print(Text(one_line(text), style="dim"), soft_wrap=True)

    def empty(self, text: str) -> None:
        """Say that there is nothing to print, so that no output is not mistaken for a failure. JSON says it itself."""
        if not self.json:
            sys.stderr.write(f"{one_line(text)}\n")

    def show(self, *parts: RenderableType) -> None:
        """Print what a person needs to see before a question."""
        _print(self._stderr, parts)

    def warn(self, text: str) -> None:
        """Print a warning, for people and scripts."""
        sys.stderr.write(f"memplane: {one_line(text)}\n")

    def confirm(self, question: str) -> bool:
        """Ask on the terminal; only y and yes confirm."""
        sys.stderr.write(f"{one_line(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    @contextmanager
    def progress(self, label: str) -> Iterator[Advance]:
        """Show a progress bar on stderr while the block runs; yields a function of (done, total or None)."""
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        with Progress(
            *columns,
            console=self._stderr,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not sys.stderr.isatty(),
        ) as progress:
            task = progress.add_task(one_line(label), total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)


class _Console(Console):
    """A console that raises on a closed pipe, where Rich would exit the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _print(console: Console, parts: Iterable[RenderableType]) -> None:
    for part in parts:
        # Only tables wrap. A line of text is not broken, so that ids can be copied.
        console.print(part, soft_wrap=isinstance(part, Text))


def write_json(document: Any) -> None:
    encoded = msgspec.json.encode(document).decode()
    write_line(_STEERING.sub(lambda match: f"\\u{ord(match.group()):04x}", encoded).encode())


def write_line(line: bytes) -> None:
    """Write bytes unchanged, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")


def cell(value: object, *, style: str = "", chars_max: int = CELL_CHARS_MAX) -> Text:
    """Format content on one line, truncated to `chars_max`."""
    text = str(value)
    shown = one_line(text[:chars_max])
    return Text(shown + "…" if len(text) > chars_max else shown, style=style)


def table(*headers: str, rows: Iterable[Iterable[object]]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for header in headers:
        made.add_column(header, overflow="fold")
    for row in rows:
        made.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    return made


def pairs(rows: Iterable[tuple[str, object]]) -> Table:
    """Format names and values, one pair per line."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(Text(name), value if isinstance(value, Text) else cell(value))
    return made


def line(*parts: str | tuple[str, str]) -> Text:
    """Join plain parts and (part, style) pairs to one line."""
    return Text.assemble(
        *(one_line(part) if isinstance(part, str) else (one_line(part[0]), part[1]) for part in parts)
    )


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def path_text(path: Path | str) -> str:
    """Return a path as text for JSON; file names need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def when(moment: datetime | None) -> str:
    """Format a time in UTC, to the minute: `2026-11-15 08:30Z`."""
    return "" if moment is None else moment.isoformat(sep=" ", timespec="minutes").replace("+00:00", "Z")


def feedback_text(memory: Memory) -> str:
    """Format the feedback on a memory: `feedback +0.08 on 0.50 (used 1, not used 0)`."""
    base = memory.importance if memory.importance_base is None else memory.importance_base
    return (
        f"feedback {memory.importance - base:+.2f} on {base:.2f} "
        f"(used {memory.chosen:,}, not used {memory.passed_over:,})"
    )
