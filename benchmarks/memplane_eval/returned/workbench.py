"""Temporary spaces to measure in: empty, or with a thousand turns of other people's conversations."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from memplane.clock import Clock, to_instant
from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.space import Space
from memplane_eval.product import retain
from memplane_eval.retrieval import EvalTurn

START = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
"""When memories are stored. A fixed time, so that figures do not depend on the day of the run."""
FILLER_TURNS = 970
_OWNER = "case"


class Workbench:
    """Makes spaces in a temporary folder. A filled space is prepared once and copied, because enriching takes longer."""

    def __init__(self, embedder: Embedder | None, filler: Sequence[EvalTurn] = ()) -> None:
        self.filler = filler[:FILLER_TURNS]
        self._embedder = embedder
        self._folder = tempfile.TemporaryDirectory(prefix="memplane-eval-")
        self._filled: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    @contextmanager
    def space(self, *, filled: bool = False) -> Iterator[Space]:
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            if filled:
                shutil.copytree(self._template(), folder, dirs_exist_ok=True)
            with self._opened(Path(folder)) as space:
                yield space

    def _template(self) -> Path:
        if self._filled is None:
            folder = Path(self._folder.name) / "filled"
            with self._opened(folder) as space:
                for turn in self.filler:
                    retain(space, turn)
                space.enrich()
            self._filled = folder
        return self._filled

    @contextmanager
    def _opened(self, folder: Path) -> Iterator[Space]:
        with Memplane.open(folder, embedder=self._embedder, clock=ticking()) as plane:
            yield plane.space(_OWNER)


def ticking() -> Clock:
    """A clock that starts at a fixed time and advances by a millisecond each time it is read."""
    now = to_instant(START)

    def read() -> int:
        nonlocal now
        now += 1_000
        return now

    return read


def days_ago(days: int) -> datetime:
    return START - timedelta(days=days)
