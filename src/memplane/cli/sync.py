"""Sync a space with other machines through shared storage."""

import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import RenderableType

from memplane.errors import InvalidRequest, RemoteError, StorageBusy
from memplane.space import Space
from memplane.sync.link import Progress
from memplane.sync.manifest import KEY as MANIFEST
from memplane.sync.opening import check_local, open_store
from memplane.sync.pull import PullCounts
from memplane.sync.readable_files import FilePullCounts
from memplane.sync.remote_state import save_target, target_of
from memplane.sync.store import ObjectStore
from memplane.sync.sync import PushReport, Sync, SyncStatus
from memplane.sync.watch import INTERVAL_S, PushRound, SyncWatcher, WatchStopped
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG, MENDABLE, NothingToImport
from memplane.terminal.options import SpaceArgument, Yes
from memplane.terminal.output import counted, line, pairs

# Places in object storage that a command takes something in from.


def require_something(store: ObjectStore) -> None:
    """Reject an empty location: importing nothing would look like success, and the URL is probably mistyped."""
    if not any(True for prefix in (MANIFEST, "") for _ in store.list(prefix)):
        raise NothingToImport(f"{store.url} is empty; check the URL, or push or export to it first")


app = typer.Typer()
sync = typer.Typer(help="Sync a space with other machines through object storage.", no_args_is_help=True)
app.add_typer(sync, name="sync")

_KIB = 1_024
_INTERVAL_S_MIN = 1.0

To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URL",
        help="Storage: a directory, file://, az://, s3:// or gs:// (default: the last one used).",
    ),
]
Interval = Annotated[
    bool,
    typer.Option("--look", help="Also import files edited by hand (one extra request)."),
]
LedgerOnly = Annotated[
    bool,
    typer.Option("--ledger-only", help="Sync only the ledger, without readable files."),
]
KeepLocal = Annotated[
    bool,
    typer.Option("--keep-memory-local", help="Reject storage that is not on this machine."),
]


@command(
    sync,
    examples=[
        "memplane sync push alice --to az://account/container/alice",
        "memplane sync push alice                         # to the last location",
    ],
)
def push(
    call: CommandContext,
    name: SpaceArgument = None,
    to: To = None,
    look: Interval = False,
    ledger_only: LedgerOnly = False,
    keep_memory_local: KeepLocal = False,
    yes: Yes = False,
) -> None:
    """Pull from the storage, then push local changes.

    The first push to an empty location shows the size and asks. Exit code 3 if data in the storage is damaged.
    """
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local)
    with _linked(call, options) as (link, listen):
        _make_sure(call, link, yes=yes)
        with call.out.progress("Syncing") as advance:
            listen(lambda _what, done, total: advance(done, total))
            pushed = link.push(look=look)
    call.out.answer(pushed, *_push_json(pushed))
    if pushed.idle:
        _say_idle(call, look=look)
    _end(call, pushed.taken, pushed.files_taken)


@command(
    sync,
    examples=[
        "memplane sync pull alice --to az://account/container/alice",
        "memplane sync pull alice --json",
    ],
)
def pull(
    call: CommandContext,
    name: SpaceArgument = None,
    to: To = None,
    look: Interval = False,
    ledger_only: LedgerOnly = False,
    keep_memory_local: KeepLocal = False,
) -> None:
    """Pull changes of other machines. Creates the space if it does not exist.

    Exit code 3 if data in the storage is damaged.
    """
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local, takes=to is not None)
    with (
        _linked(call, options) as (link, listen),
        call.out.progress("Syncing") as advance,
    ):
        listen(lambda _what, done, total: advance(done, total))
        pulled = link.pull(look=look)
    call.out.answer(pulled, *_pull_json(pulled.taken), *_files_json(pulled.files))
    if pulled.idle:
        _say_idle(call, look=look)
    _end(call, pulled.taken, pulled.files)


@command(sync, examples=["memplane sync status alice", "memplane sync status alice --json"])
def status(
    call: CommandContext, name: SpaceArgument = None, to: To = None, keep_memory_local: KeepLocal = False
) -> None:
    """Show what is pending on both sides, without changes. Exit code 3 if they are not in sync."""
    call.name_space(name)
    with _linked(call, _Options(to, keep_memory_local=keep_memory_local)) as (link, _):
        status = link.status()
    document = {**msgspec.to_builtins(status), "even": status.even}
    call.out.answer(document, *_status_json(status))
    if not status.even:
        raise typer.Exit(FOUND_WRONG)


@command(
    sync,
    examples=[
        "memplane sync watch alice --to s3://bucket/alice",
        "memplane sync watch alice --every 300",
    ],
)
def watch(
    call: CommandContext,
    name: SpaceArgument = None,
    to: To = None,
    every: Annotated[
        float,
        typer.Option("--every", min=_INTERVAL_S_MIN, metavar="SECONDS", help="Approximate interval."),
    ] = INTERVAL_S,
    ledger_only: LedgerOnly = False,
    keep_memory_local: KeepLocal = False,
    yes: Yes = False,
) -> None:
    """Sync repeatedly until SIGTERM or Ctrl-C. Waits while the storage is unreachable."""
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local)
    with _linked(call, options) as (link, listen):
        _make_sure(call, link, yes=yes)
        stop = threading.Event()

        def check(_what: str, _done: int, _total: int) -> None:
            if stop.is_set():
                raise WatchStopped("stopped")

        listen(check)
        watching = SyncWatcher(
            link,
            wait=stop.wait,
            report=lambda done: _report_round(call, done),
            interval_s=every,
            rng=random.SystemRandom(),
        )
        with _stopping(stop):
            call.out.note(f"Syncing {call.space_name} with {link.url}; Ctrl-C stops.")
            watching.run()


class _Options(msgspec.Struct, frozen=True):
    """Options shared by the sync commands."""

    to: str | None
    files: bool = True
    keep_memory_local: bool = False
    takes: bool = False
    """A pull: the storage must not be empty, but the space may be missing."""


@contextmanager
def _linked(call: CommandContext, options: _Options) -> Iterator[tuple[Sync, Callable[[Progress], None]]]:
    """Yield the sync and a function that adds a progress listener; on success, remember the location."""
    space, store = _ends(call, options)
    listener: list[Progress] = []

    def progress(what: str, done: int, total: int) -> None:
        for listening in listener:
            listening(what, done, total)

    data = call.plane.settings.folder
    yield Sync(space, store, data, progress=progress, files=options.files), listener.append
    to = options.to
    if to is not None:
        kept = remembered(to)
        save_target(space, kept)
        if "?" in to and "?" not in kept:
            call.out.note("The URL's token is not saved; set AZURE_STORAGE_SAS_TOKEN for later syncs.")


def _ends(call: CommandContext, options: _Options) -> tuple[Space, ObjectStore]:
    """Return the space and the storage. A mistyped URL must not create a space or be remembered."""
    if options.takes and options.to is not None:
        store = _opened(call, options.to, options)
        require_something(store)
        return call.space(), store
    space = call.existing_space()
    given = options.to if options.to is not None else target_of(space)
    if given is None:
        raise InvalidRequest(f"{call.space_name!r} was never synced; give `--to URL`", field="to")
    return space, _opened(call, given, options)


def _opened(call: CommandContext, url: str, options: _Options) -> ObjectStore:
    store = open_store(url, call.wiring.environment)
    if options.keep_memory_local or call.plane.settings.keep_memory_local:
        check_local(store)
    return store


def remembered(url: str) -> str:
    """Return the URL without credentials after the `?`, or the absolute path of a directory."""
    if "://" not in url:
        return str(Path(url).expanduser().absolute())
    return url.partition("?")[0] if url.startswith(("http:", "https:")) else url


def _make_sure(call: CommandContext, link: Sync, *, yes: bool) -> None:
    """Ask before the first upload to an empty location."""
    if yes:
        return
    status = link.status()
    if not status.empty or not status.unpushed:
        return
    size = f"{_entries(status.unpushed)} (~{_kib(link.unpushed_bytes()):,} KB)"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest(
            f"{status.url} is empty; {size} of {call.space_name!r} would be uploaded. Add --yes to confirm"
        )
    question = f"This will upload {size} of {call.space_name!r} to {status.url}. Continue?"
    if not call.out.confirm(question):
        call.out.note("Nothing was uploaded.")
        raise typer.Exit(MENDABLE)


def _say_idle(call: CommandContext, *, look: bool) -> None:
    more = "" if look else " Use --look to import files edited by hand."
    call.out.note(f"Already in sync.{more}")


def _end(call: CommandContext, taken: PullCounts, files: FilePullCounts) -> None:
    for path, why in files.conflicts:
        call.out.warn(f"{path}: {why}")
    for path, why in files.rejected:
        call.out.warn(f"{path} was not imported: {why}")
    for key in taken.damaged:
        call.out.warn(f"{key} is damaged and was skipped; the machine that wrote it still has its entries")
    for key in taken.missing:
        call.out.warn(f"{key} is missing; a machine that has its entries will push them again")
    if taken.unreadable:
        call.out.warn(
            f"{counted(taken.unreadable, 'line', 'lines')} could not be read; a newer version of Memplane may have written them"
        )
    if taken.damaged or taken.unreadable or files.rejected:
        raise typer.Exit(FOUND_WRONG)


def _push_json(pushed: PushReport) -> Iterator[RenderableType]:
    yield from _pull_json(pushed.taken)
    given = pushed.given
    if given.segments:
        yield line(
            ("Pushed", "green"),
            f" {_entries(given.entries)}, {_segments(given.segments)} ({_kib(given.bytes):,} KB) to {pushed.url}",
        )
    if given.rewritten or given.deleted:
        yield line(f"{_segments(given.rewritten)} replaced, {given.deleted:,} deleted")
    yield from _files_json(pushed.files_taken)
    files = pushed.files_given
    if files.written or files.removed:
        yield line(f"{counted(len(files.written), 'file', 'files')} written, {len(files.removed):,} removed")


def _files_json(files: FilePullCounts) -> Iterator[RenderableType]:
    if files.taken:
        yield line(("Imported", "green"), f" {counted(len(files.taken), 'file', 'files')}")


def _pull_json(taken: PullCounts) -> Iterator[RenderableType]:
    if taken.segments:
        yield line(
            ("Pulled", "green"),
            f" {_entries(taken.added)} from {_segments(taken.segments)} ({_kib(taken.bytes):,} KB)",
        )
    if taken.conflicts:
        yield line((f"{_entries(taken.conflicts)} with an id that already exists; both are kept", "yellow"))


def _status_json(status: SyncStatus) -> Iterator[RenderableType]:
    verdict = ("In sync", "green") if status.even else ("Not in sync", "yellow")
    yield pairs(
        [
            ("storage", status.url),
            ("to push", _entries(status.unpushed)),
            ("to pull", f"{_segments(status.unpulled)} ({_kib(status.unpulled_bytes):,} KB)"),
            ("to clean", f"{_segments(status.foul)} with forgotten data"),
            ("ledger", f"{_segments(status.segments)} ({_kib(status.bytes):,} KB)"),
            ("machines", f"{status.replicas:,}"),
            ("files", f"{status.files:,}"),
            ("replica", status.replica),
        ]
    )
    yield line(verdict)


def _report_round(call: CommandContext, done: PushRound) -> None:
    """Print one line for each round with changes or errors."""
    document: dict[str, Any]
    if done.trouble is not None:
        code = done.trouble.code if isinstance(done.trouble, RemoteError | StorageBusy) else ""
        call.out.warn(f"{done.trouble}; retrying in {done.next_s:.0f} s")
        document = {"error": {"code": code, "message": str(done.trouble)}, "next_s": round(done.next_s, 1)}
        call.out.answer(document)
    elif done.pushed is not None and not done.pushed.idle:
        call.out.answer(done.pushed, *_push_json(done.pushed))
    sys.stdout.flush()


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Set the event on SIGTERM and Ctrl-C; restore the previous handlers afterwards."""
    before = {
        number: signal.signal(number, lambda _number, _frame: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kib(count: int) -> int:
    return -(-count // _KIB)


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")


def _segments(number: int) -> str:
    return counted(number, "segment", "segments")
