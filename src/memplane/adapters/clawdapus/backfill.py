"""Automatic backfill: fetch missing session history from the proxy that Clawdapus names.

The proxy pages by time in whole seconds and sorts entries by when a turn ended, but their timestamps are start times.
So each page overlaps the previous one, and entries with a known id are skipped.
"""

import logging
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from memplane.adapters.clawdapus.importer import append_lines
from memplane.clock import SECOND, Instant, parse_instant
from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import MemplaneError, SettingsInvalid
from memplane.ledger.history import LINE_BYTES_MAX, BadLine, HistoryLine, format_timestamp, parse_line
from memplane.ledger.history_text import scrub_line
from memplane.models.http import LinesClient, NoResponse, retry_delays
from memplane.space import Space
from memplane.types import Caller

if sys.platform != "win32":
    import fcntl

PAGE_LINES = 500
PAGE_LINES_MAX = 1_000
"""The proxy's maximum page size."""
_LINES_MAX = 20_000
"""A server that does not split a second across pages may send more entries than requested."""
_OVERLAP = 900 * SECOND
"""Longer than any turn takes."""
_OVERLAP_SHRINKS = 8
_ATTEMPTS_MAX = 10
_TIMEOUT_S = 60.0
_CLOSING_S = 5.0
"""A proxy that does not respond must not delay shutdown."""
_CALLER = Caller(actor="backfill", adapter="plane")

_log = logging.getLogger("memplane.backfill")

Wait = Callable[[threading.Event, float], bool]


class BackfillProgress(msgspec.Struct, kw_only=True):
    """The backfill progress of one agent."""

    agent: str
    state: str = "waiting"
    """`waiting`, `running`, `done`, `failed`, `stopped`, or `elsewhere` if another server process runs the backfill."""
    added: int = 0
    known: int = 0
    forgotten: int = 0
    rejected: int = 0
    error: str = ""


class HistoryBackfill:
    """One thread fetches the history of each agent in turn. Requests do not wait for it, and a new thread continues
    where this one stopped."""

    def __init__(
        self,
        plane: Engine,
        settings: Settings,
        *,
        wait: Wait = threading.Event.wait,
        page_lines: int = PAGE_LINES,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._plane = plane
        self._settings = settings
        self._wait = wait
        self._page_lines = page_lines
        self._timeout_s = timeout_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memplane-backfill", daemon=True)
        agents = dict.fromkeys(agent for agent in settings.claw_history_agent_ids if agent)
        self._progress = [BackfillProgress(agent=agent) for agent in agents]

    @classmethod
    def of(cls, plane: Engine, settings: Settings) -> "HistoryBackfill | None":
        """None if no history is configured."""
        return cls(plane, settings) if settings.claw_history_url and settings.claw_history_agent_ids else None

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop after the current page, or abandon the page; the next run requests it again."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_S)

    def degraded(self) -> tuple[str, ...]:
        """Codes of incomplete backfills for the readiness check. The server counts as ready in this state."""
        states = {progress.state for progress in self._progress}
        running = ("backfill",) if states & {"waiting", "running"} else ()
        return running + (("backfill_failed",) if "failed" in states else ())

    def _run(self) -> None:
        try:
            client = self._client()
        except SettingsInvalid as exc:
            self._all("failed", f"CLAW_HISTORY_URL or CLAW_HISTORY_TOKEN: {exc}")
            _log.error("backfill cannot start: %s", exc)
            return
        with _only_one(self._plane.settings.folder) as mine:
            if mine:
                self._pull_all(client)
            else:
                self._all("elsewhere")

    def _all(self, state: str, error: str = "") -> None:
        for progress in self._progress:
            progress.state, progress.error = state, error

    def _pull_all(self, client: LinesClient) -> None:
        for progress in self._progress:
            if self._stop.is_set():
                progress.state = "stopped"
                continue
            self._pull(client, progress)
            said = (progress.agent, progress.state, progress.added, progress.known, progress.rejected)
            _log.info("backfill of %r %s: %d added, %d known, %d rejected", *said)

    def _client(self) -> LinesClient:
        token = self._settings.claw_history_token
        return LinesClient(
            self._settings.claw_history_url or "",
            headers={"Accept": "application/x-ndjson"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
            timeout_s=self._timeout_s,
            line_bytes_max=LINE_BYTES_MAX,
            lines_max=_LINES_MAX,
        )

    def _pull(self, client: LinesClient, progress: BackfillProgress) -> None:
        progress.state = "running"
        try:
            space = self._plane.space(progress.agent, caller=_CALLER)
            mark = f"backfill:{sha256(client.place.encode()).hexdigest()[:16]}"
            done = self._pages(client, space, mark, progress)
            progress.state = "done" if done else "stopped"
        except (NoResponse, MemplaneError) as exc:
            progress.state, progress.error = "failed", str(exc)
            _log.warning("backfill of %r aborted: %s", progress.agent, exc)
        except Exception as exc:  # noqa: BLE001 - top of a thread: one agent's failure must not stop the next
            progress.state, progress.error = "failed", type(exc).__name__
            _log.exception("backfill of %r failed", progress.agent)

    def _pages(self, client: LinesClient, space: Space, mark: str, progress: BackfillProgress) -> bool:
        """Fetch page after page. Returns True at the end of the history and False if stopped."""
        place = _Place(space.ledger.bookmark(mark), self._page_lines)
        patience = _RetryBudget(self._stop, self._wait)
        while not self._stop.is_set():
            try:
                page = client.get(_path(progress.agent, place.after, place.limit))
                found = list(self._parsed(page.lines, progress))
                self._store(space, found, progress)
            except (NoResponse, MemplaneError) as failed:
                patience.lose(failed)
                continue
            fresh = place.advance(found)
            if place.newest is not None:
                space.ledger.set_bookmark(mark, format_timestamp(place.newest))
            if fresh:
                patience = _RetryBudget(self._stop, self._wait)
            if page.broken is not None:
                patience.lose(page.broken)
            elif page.count < place.limit:
                return True
            elif not place.step_on(fresh=fresh):
                raise NoResponse(f"{client.place} returns the same page repeatedly", retryable=False)
        return False

    def _parsed(self, lines: Iterable[bytes], progress: BackfillProgress) -> Iterator[HistoryLine]:
        """Count and skip a line that is not an entry."""
        for number, raw in enumerate(lines, start=1):
            try:
                line = parse_line(raw, trust_ids=True, line_bytes_max=self._settings.entry_bytes_max)
            except BadLine as exc:
                progress.rejected += 1
                _log.warning("backfill of %r: line %d of a page: %s", progress.agent, number, exc.reason)
                continue
            if self._settings.redact_ledger:
                line = msgspec.structs.replace(line, line=scrub_line(line.line)[0])
            yield line

    def _store(self, space: Space, lines: list[HistoryLine], progress: BackfillProgress) -> None:
        if not lines:
            return
        loaded = append_lines(space, lines)
        if loaded.added:
            space.ledger.catch_up()
        progress.added += loaded.added
        progress.known += loaded.known
        progress.forgotten += loaded.forgotten


@contextmanager
def _only_one(data: Path) -> Iterator[bool]:
    """Whether no other process on the same data runs the backfill. If locking is not possible, every process runs it,
    and each skips entries that another one has stored."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = (data / "backfill.lock").open("w")
    except OSError:
        yield True
        return
    with file:
        yield _locked(file.fileno())


def _locked(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _path(agent: str, after: Instant | None, limit: int) -> str:
    asked = {"limit": str(limit)} | ({} if after is None else {"after": format_timestamp(after)})
    return f"/{urllib.parse.quote(agent, safe='')}?{urllib.parse.urlencode(asked)}"


class _Place:
    """The position of the next page in a history."""

    def __init__(self, bookmark: str | None, limit: int) -> None:
        self.limit = limit
        self.newest = None if bookmark is None else parse_instant(bookmark, field="bookmark")
        self.after = None if self.newest is None else self.newest - _OVERLAP
        self._overlap = _OVERLAP
        self._seen: dict[str, Instant] = {}

    def advance(self, lines: list[HistoryLine]) -> bool:
        """Record a page. Returns whether it contained requested entries that no earlier page had."""
        fresh = any(
            line.id not in self._seen and (self.after is None or line.at > self.after) for line in lines
        )
        self._seen |= {line.id: line.at for line in lines}
        times = [line.at for line in lines]
        self.newest = max(times if self.newest is None else [*times, self.newest], default=self.newest)
        return fresh

    def step_on(self, *, fresh: bool) -> bool:
        """If a page does not reach past the overlap, request larger pages; at the maximum size, shrink the overlap.
        Returns False if neither is possible."""
        if self.newest is None:
            return False
        if not fresh and self.limit < PAGE_LINES_MAX:
            self.limit = min(2 * self.limit, PAGE_LINES_MAX)
            return True
        self._overlap = _OVERLAP if fresh else self._overlap // _OVERLAP_SHRINKS // SECOND * SECOND
        before, self.after = self.after, self.newest - self.newest % SECOND - self._overlap
        self._seen = {id_: at for id_, at in self._seen.items() if at > self.after}
        return fresh or self.after != before


class _RetryBudget:
    """The number of failed attempts allowed."""

    def __init__(self, stop: threading.Event, wait: Wait) -> None:
        self._stop = stop
        self._wait = wait
        self._pauses = retry_delays()
        self._attempts = 0

    def lose(self, failed: NoResponse | MemplaneError) -> None:
        """Wait before the next attempt; raise the failure if no attempt is left."""
        self._attempts += 1
        if not failed.retryable or self._attempts == _ATTEMPTS_MAX:
            raise failed
        asked = failed.wait_s if isinstance(failed, NoResponse) else None
        pause = next(self._pauses)
        self._wait(self._stop, pause if asked is None else min(asked, 60.0))
