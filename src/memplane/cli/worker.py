"""Worker processes that enrich a database, and their status."""

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
worker = typer.Typer(help="Run workers for a PostgreSQL database, and show their status.")
app.add_typer(worker, name="worker")

_DEAD_LISTED_MAX = 1_000


class WorkerView(msgspec.Struct, kw_only=True):
    """A worker process."""

    holder: str
    began_at: datetime
    seen_at: datetime
    ended: bool
    taken: int
    steps: int
    failures: int
    lost: int


class DeadSpaceView(msgspec.Struct, kw_only=True):
    """A space that failed too often."""

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
    """Run a worker for a PostgreSQL database, until SIGTERM or Ctrl-C. You can run any number of them."""
    settings = settings_from(call.wiring.environment)
    from memplane.server.logs import set_up_logs, set_up_memory_log  # imports the server's libraries

    with _ending() as ended:
        work = work_of(call)
        with suppress(
            StorageUnreachable, StorageBusy
        ):  # a worker waits for these; other errors end the command at once
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
                line("Worker ", (holder, "bold"), f" is running on {call.place}"),
            )
            sys.stdout.flush()
            ended.wait()


@command(worker, examples=["memplane worker status", "memplane worker status --json"])
def status(call: CommandContext) -> None:
    """Show pending work and running workers."""
    work = work_of(call)
    backlog, done = work.backlog(), work.worked()
    workers = [_worker_view(colleague) for colleague in work.colleagues(silent=SILENT)]
    figures = figures_of(backlog, done)
    call.out.answer({**figures, "workers": workers}, pairs(figures.items()))
    if workers:
        rows = [
            (
                it.holder,
                "stopped" if it.ended else "running",
                when(it.seen_at),
                it.taken,
                it.steps,
                it.failures,
            )
            for it in workers
        ]
        call.out.print_part(table("worker", "status", "seen", "taken", "steps", "failures", rows=rows))
    else:
        call.out.empty("No workers; start one with `memplane worker`.")


@command(worker, examples=["memplane worker dead", "memplane worker dead --json"])
def dead(call: CommandContext) -> None:
    """List spaces that failed too often. Fix the cause, then run `memplane worker retry`."""
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
        table("tenant", "space", "error", "attempts", "since", rows=rows) if rows else line("No dead spaces.")
    )
    call.out.answer({"dead": found}, shown)


@command(worker, examples=["memplane worker retry --space alice", "memplane worker retry --all"])
def retry(
    call: CommandContext,
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="NAME", help="Tenant of the space.")
    ] = TENANT_DEFAULT,
    everything: Annotated[bool, typer.Option("--all", help="Retry every failing or dead space.")] = False,
) -> None:
    """Retry a failing or dead space now."""
    owner = call.space_option
    if everything == (owner is not None):
        raise InvalidRequest("give --space NAME or --all")
    work = work_of(call)
    retried = work.retry() if owner is None else work.retry(tenant, owner)
    if owner is not None and not retried and not call.plane.has_space(owner, tenant=tenant):
        raise SpaceMissing(f"no space {owner!r} of the tenant {tenant!r} in {call.place}", field="space")
    work.ring()
    call.out.answer({"retried": retried}, line(f"Retrying {counted(retried, 'space', 'spaces')}"))
    if not retried:
        call.out.empty("No failing or dead space; see `memplane worker status`.")


@command(worker, examples=["memplane worker index", "memplane worker index --json"])
def index(call: CommandContext) -> None:
    """Build vector indexes for large spaces. Workers do this every hour."""
    work_of(call)
    done = call.plane.index_large_spaces()
    call.out.answer({"indexed": done}, line(f"Indexed {counted(done, 'space', 'spaces')}."))


def work_of(call: CommandContext) -> Work:
    """Return the shared work queue; raise for a data directory, which has none."""
    work = call.plane.work
    if work is None:
        raise SettingsInvalid(
            f"workers need a PostgreSQL database (--data postgresql://…), and {call.place} is a data directory; "
            "use `memplane serve` or `memplane enrich`"
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
    """Set an event on SIGTERM and Ctrl-C, so that the worker finishes its step and releases its space."""
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
