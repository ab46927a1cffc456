"""Workers: processes that enrich what comes into a database, and how their work stands."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Annotated

import msgspec
import typer

from memplane.clock import SECOND, to_datetime
from memplane.config import settings_from
from memplane.errors import InvalidRequest, SettingsInvalid, StorageBusy, StorageUnreachable
from memplane.main import Memplane
from memplane.storage.work import Backlog, Work, WorkerCounts, WorkerInfo
from memplane.telemetry import log_event
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command, default
from memplane.terminal.exits import SpaceMissing
from memplane.terminal.output import counted, line, pairs, table, when
from memplane.types import TENANT_DEFAULT
from memplane.worker.cluster import SILENT

app = typer.Typer()
worker = typer.Typer(help="Enrich what comes into a database; see how the work stands.")
app.add_typer(worker, name="worker")

_DEAD_LISTED_MAX = 1_000


class WorkerView(msgspec.Struct, kw_only=True):
    """One of the processes that work."""

    holder: str
    began_at: datetime
    seen_at: datetime
    ended: bool
    taken: int
    steps: int
    failures: int
    lost: int


class DeadSpaceView(msgspec.Struct, kw_only=True):
    """A space that waits for a person."""

    tenant: str
    space: str
    attempts: int
    error: str
    since: datetime


@default(
    worker,
    examples=[
        "memplane worker --data postgresql://memplane@db.example/memplane",
        "memplane worker status",
        "memplane worker dead",
        "memplane worker retry --space alice",
    ],
)
def run(call: CommandContext) -> None:
    """Enrich what comes into a database, beside any number of others, until SIGTERM or Ctrl-C."""
    settings = settings_from(call.wiring.environment)
    from memplane.server.logs import set_up_logs, set_up_memory_log  # brings the server's libraries

    with _ending() as ended:
        work = work_of(call)
        with suppress(
            StorageUnreachable, StorageBusy
        ):  # it is waited for; what will not mend itself is said at once
            work.backlog()
        set_up_logs(settings.log_level)
        set_up_memory_log(settings.memory_log)
        opened = call.wiring.open_served
        assert opened is not None, "this program was not wired to work"
        environment = {**call.wiring.environment, "MEMPLANE_SERVE_ENRICHES": "true"}
        with opened(call.data, environment, log_event) as plane:
            holder = _holder(plane)
            call.out.answer(
                {"worker": holder, "data": call.place},
                line("A worker of ", (call.place, "bold"), f", known to the others as {holder}"),
            )
            sys.stdout.flush()
            ended.wait()


@command(worker, examples=["memplane worker status", "memplane worker status --json"])
def status(call: CommandContext) -> None:
    """What waits, since when, and who works."""
    work = work_of(call)
    backlog, done = work.backlog(), work.worked()
    workers = [_worker_view(colleague) for colleague in work.colleagues(silent=SILENT)]
    figures = figures_of(backlog, done)
    call.out.answer({**figures, "workers": workers}, pairs(figures.items()))
    if workers:
        rows = [
            (it.holder, "ended" if it.ended else "works", when(it.seen_at), it.taken, it.steps, it.failures)
            for it in workers
        ]
        call.out.tell(table("worker", "", "seen", "taken", "steps", "failures", rows=rows))
    else:
        call.out.note("Nobody works; start one with `memplane worker`.")


@command(worker, examples=["memplane worker dead", "memplane worker dead --json"])
def dead(call: CommandContext) -> None:
    """Spaces that failed too often and wait for you: mend what the code says, then `memplane worker retry`."""
    found = [
        DeadSpaceView(
            tenant=it.tenant,
            space=it.owner,
            attempts=it.attempts,
            error=it.error,
            since=to_datetime(it.since),
        )
        for it in work_of(call).dead(limit=_DEAD_LISTED_MAX)
    ]
    rows = [(it.tenant, it.space, it.error, it.attempts, when(it.since)) for it in found]
    shown = (
        table("tenant", "space", "error", "attempts", "since", rows=rows)
        if rows
        else line("Nothing is dead.")
    )
    call.out.answer({"dead": found}, shown)


@command(worker, examples=["memplane worker retry --space alice", "memplane worker retry --all"])
def retry(
    call: CommandContext,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose space.")] = TENANT_DEFAULT,
    everything: Annotated[bool, typer.Option("--all", help="Every space that does not get on.")] = False,
) -> None:
    """Try a space again that is dead, or waits after a failure."""
    owner = call.space_given
    if everything == (owner is not None):
        raise InvalidRequest("say which space with --space NAME, or --all")
    work = work_of(call)
    retried = work.retry() if owner is None else work.retry(tenant, owner)
    if owner is not None and not retried and not call.plane.has_space(owner, tenant=tenant):
        raise SpaceMissing(f"no space {owner!r} of the tenant {tenant!r} in {call.place}", field="space")
    work.ring()
    call.out.answer({"retried": retried}, line(f"{counted(retried, 'space is', 'spaces are')} tried again"))
    if not retried:
        call.out.note("None is dead or waits after a failure; see `memplane worker status`.")


@command(worker, examples=["memplane worker index", "memplane worker index --json"])
def index(call: CommandContext) -> None:
    """Give spaces that have grown large an index of their vectors. Workers do this themselves, every hour."""
    work_of(call)
    done = call.plane.index_large_spaces()
    call.out.answer({"indexed": done}, line(f"{counted(done, 'space', 'spaces')} got an index of vectors."))


def work_of(call: CommandContext) -> Work:
    """The work that machines share; a data directory has none."""
    work = call.plane.work
    if work is None:
        raise SettingsInvalid(
            f"{call.place} is a data directory, which the process that serves it enriches: run `memplane serve`, or "
            "`memplane enrich` once. Workers are for a database: --data postgresql://…"
        )
    return work


def figures_of(backlog: Backlog, done: WorkerCounts) -> dict[str, int | float]:
    return {
        "waiting": backlog.waiting,
        "held": backlog.held,
        "resting": backlog.resting,
        "failing": backlog.failing,
        "dead": backlog.dead,
        "oldest_seconds": round(backlog.oldest / SECOND, 3),
        "entries_behind": backlog.behind,
        **msgspec.structs.asdict(done),
    }


def _worker_view(colleague: WorkerInfo) -> WorkerView:
    return WorkerView(
        holder=colleague.holder,
        began_at=to_datetime(colleague.began),
        seen_at=to_datetime(colleague.seen),
        ended=colleague.ended,
        **msgspec.structs.asdict(colleague.done),
    )


def _holder(plane: Memplane) -> str:
    return plane.worker_name or ""


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """SIGTERM and Ctrl-C from the first moment on: the step at hand is finished, and the space given back."""
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
