"""`memplane memory backfill`: send the session histories of a pod's agents to a memory service again.

Entries are scrubbed like a live retain; forgotten and failed entries are skipped. An interrupted run leaves a
checkpoint, and the next run continues after it. A completed run removes it, so that an emptied service can be filled
again.
"""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated

import msgspec

from memplane.adapters.clawdapus.memory_client import BlockingMemoryClient, ServiceRetainRequest
from memplane.adapters.clawdapus.outcome import ServiceOutcome
from memplane.adapters.clawdapus.pod.directory import PodDirectory
from memplane.adapters.clawdapus.pod.targets import Target
from memplane.adapters.clawdapus.pod.tombstones import tombstoned_ids
from memplane.adapters.clawdapus.session_history import agent_directory_name, read_session
from memplane.clock import Instant, to_instant, zoned_instant
from memplane.errors import InvalidRequest
from memplane.ledger.history import HistoryLine, RejectedLine, format_timestamp
from memplane.ledger.history_text import FAILED
from memplane.safety.safe_directory import SafeDirectory

_MARK_EVERY = 64
_MARK_BYTES_MAX = 4_096

Advance = Callable[[str, int, int], None]
"""Agent, bytes read, total bytes."""


class ReplayResult(msgspec.Struct, kw_only=True):
    """The entries sent for one agent."""

    agent: str
    replayed: int = 0
    resumed: bool = False
    """Whether the run continued after an earlier run's checkpoint."""
    buried: int = 0
    failed_turns: int = 0
    scrubbed: int = 0
    rejected: list[RejectedLine] = []


class _Mark(msgspec.Struct, kw_only=True, frozen=True):
    """The checkpoint of an interrupted run."""

    task: str
    id: str
    ts: str


class _Head(msgspec.Struct):
    requested_model: str | None = None
    status: str | None = None


class _Moment(msgspec.Struct):
    at: Annotated[datetime, msgspec.Meta(tz=True)]


_MARK = msgspec.json.Decoder(_Mark)
_HEAD = msgspec.json.Decoder(_Head)


class PodBackfill:
    """One run against one URL."""

    def __init__(
        self,
        directory: PodDirectory,
        service: str,
        url: str,
        *,
        after: Instant | None = None,
        limit: int = 0,
        restart: bool = False,
        advance: Advance = lambda _agent, _done, _total: None,
    ) -> None:
        self._directory = directory
        self._service = service
        self._url = url
        self._after = after
        self._limit = limit
        self._restart = restart
        self._advance = advance
        # A checkpoint belongs to one task: another URL or another start time has its own.
        self._task = sha256(repr((url, after)).encode()).hexdigest()[:16]

    def run(self, client: BlockingMemoryClient, target: Target) -> ReplayResult:
        """Send the entries in file order. Raises `InvalidRequest` at the first one that the service rejects."""
        result = ReplayResult(agent=target.agent)
        history = self._directory.history(target.agent)
        if history is None:
            return result
        buried = tombstoned_ids(self._directory, target.agent, self._service)
        with history, self._directory.backfills(self._service) as marks:
            name = f"{agent_directory_name(target.agent)}.json"
            mark = None if self._restart else self._mark(marks, name)
            if mark is not None and not self._exists(history, mark):
                mark = None
            result.resumed = mark is not None
            self._replay(client, target, history, buried, result, _Marks(marks, name, self._task, mark))
        return result

    def _replay(
        self,
        client: BlockingMemoryClient,
        target: Target,
        history: SafeDirectory,
        buried: set[str],
        result: ReplayResult,
        marks: "_Marks",
    ) -> None:
        reader = read_session(history, after=self._after, near=marks.begin(self._after))
        try:
            for item in reader:
                self._advance(target.agent, reader.bytes_read, reader.bytes_total)
                if isinstance(item, RejectedLine):
                    result.rejected.append(item)
                    continue
                if marks.skips(item):
                    continue
                if item.id in buried:
                    result.buried += 1
                    continue
                head = _head(item.line)
                if head.status == FAILED:
                    result.failed_turns += 1
                    continue
                if self._limit and result.replayed == self._limit:
                    break
                outcome = client.retain(target.manifest, _request(target, item, head), url=self._url)
                if not outcome.ok:
                    marks.save()
                    raise InvalidRequest(f'backfill "{target.agent}": {refusal(outcome)}')
                result.replayed += 1
                result.scrubbed += outcome.removed
                marks.reach(item)
        except BaseException:
            marks.save()
            raise
        finally:
            reader.close()
        marks.clear()

    def _mark(self, marks: SafeDirectory, name: str) -> _Mark | None:
        raw = marks.read(name, bytes_max=_MARK_BYTES_MAX)
        try:
            mark = None if raw is None else _MARK.decode(raw)
            return mark if mark is not None and mark.task == self._task and zoned_instant(mark.ts) else None
        except (msgspec.DecodeError, ValueError):
            return None

    def _exists(self, history: SafeDirectory, mark: _Mark) -> bool:
        """A checkpoint whose entry no longer exists cannot be used."""
        reader = read_session(history, near=zoned_instant(mark.ts))
        try:
            return any(isinstance(item, HistoryLine) and item.id == mark.id for item in reader)
        finally:
            reader.close()


class _Marks:
    """Save where the next run continues. Saved only now and then, because sending an entry twice changes nothing."""

    def __init__(self, folder: SafeDirectory, name: str, task: str, found: _Mark | None) -> None:
        self._folder = folder
        self._name = name
        self._task = task
        self._behind = found
        """Entries before the checkpoint were sent already."""
        self._last: HistoryLine | None = None
        self._unsaved = 0

    def begin(self, after: Instant | None) -> Instant | None:
        """The time to search for the checkpoint from; the index makes that fast."""
        return after if self._behind is None else zoned_instant(self._behind.ts)

    def skips(self, item: HistoryLine) -> bool:
        if self._behind is None:
            return False
        if item.id == self._behind.id:
            self._behind = None
        return True

    def reach(self, item: HistoryLine) -> None:
        self._last = item
        self._unsaved += 1
        if self._unsaved >= _MARK_EVERY:
            self.save()

    def save(self) -> None:
        if self._last is not None and self._unsaved:
            mark = _Mark(task=self._task, id=self._last.id, ts=format_timestamp(self._last.at))
            self._folder.replace(self._name, msgspec.json.encode(mark), mode=0o600, durable=False)
            self._unsaved = 0

    def clear(self) -> None:
        self._folder.remove(self._name)


def refusal(outcome: ServiceOutcome) -> str:
    """`retain returned status 502: boom`: the failure, and the service's explanation."""
    said = " ".join(outcome.detail.split()) or _phrase(outcome.status_code)
    return f"{outcome.error}: {said}" if said else outcome.error


def _phrase(status_code: int) -> str:
    """The meaning of an error status, for a service that does not explain it."""
    try:
        return HTTPStatus(status_code).phrase if status_code // 100 != 2 else ""  # noqa: PLR2004
    except ValueError:  # no status, or a nonstandard one
        return ""


def parse_after(text: str | None) -> Instant | None:
    if text is None:
        return None
    try:
        return to_instant(msgspec.convert({"at": text}, _Moment).at)
    except (msgspec.ValidationError, OverflowError) as exc:
        raise InvalidRequest("after must be RFC3339", field="after") from exc


def _head(line: bytes) -> _Head:
    try:
        return _HEAD.decode(line)
    except msgspec.DecodeError:
        return _Head()


def _request(target: Target, item: HistoryLine, head: _Head) -> ServiceRetainRequest:
    return ServiceRetainRequest(
        context=target.context, line=item.line, requested_model=(head.requested_model or "").strip()
    )
