"""Memory that follows you: a space and a place that other machines sync with too."""

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
    """Taking in from a place where nothing is would look like success; mostly the address is mistyped."""
    if not any(True for prefix in (MANIFEST, "") for _ in store.list(prefix)):
        raise NothingToImport(f"nothing is at {store.url}; check the address, or push or export to it first")


app = typer.Typer()
sync = typer.Typer(
    help="Bring a space and a place in object storage to the same state.", no_args_is_help=True
)
app.add_typer(sync, name="sync")

_KIB = 1_024
_INTERVAL_S_MIN = 1.0

To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URL",
        help="A directory, file://, az://, s3:// or gs://; else where the space was synced to last.",
    ),
]
Interval = Annotated[
    bool,
    typer.Option("--look", help="Also look for files that were edited by hand (one request more)."),
]
LedgerOnly = Annotated[
    bool,
    typer.Option("--ledger-only", help="Sync what machines need, without the files that people read."),
]
KeepLocal = Annotated[
    bool,
    typer.Option("--keep-memory-local", help="Refuse whatever is not on this machine."),
]


@command(
    sync,
    examples=[
        "memplane sync push alice --to az://account/container/alice",
        "memplane sync push alice                         # where it was synced to last",
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
    """Take in what other machines pushed, then give out what is new here.

    The first push to an empty place says how much it is and asks. Exit code 3 if something there is damaged.
    """
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local)
    with _linked(call, options) as (link, told):
        _make_sure(call, link, yes=yes)
        with call.out.progress("Syncing") as advance:
            told(lambda _what, done, total: advance(done, total))
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
    """Take in what other machines pushed; the space comes into being where there is none yet.

    Exit code 3 if something there is damaged.
    """
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local, takes=to is not None)
    with (
        _linked(call, options) as (link, told),
        call.out.progress("Syncing") as advance,
    ):
        told(lambda _what, done, total: advance(done, total))
        pulled = link.pull(look=look)
    call.out.answer(pulled, *_pull_json(pulled.taken), *_files_json(pulled.files))
    if pulled.idle:
        _say_idle(call, look=look)
    _end(call, pulled.taken, pulled.files)


@command(sync, examples=["memplane sync status alice", "memplane sync status alice --json"])
def status(
    call: CommandContext, name: SpaceArgument = None, to: To = None, keep_memory_local: KeepLocal = False
) -> None:
    """How far both sides are. Changes nothing; exit code 3 if they are not even."""
    call.name_space(name)
    with _linked(call, _Options(to, keep_memory_local=keep_memory_local)) as (link, _):
        standing = link.status()
    document = {**msgspec.to_builtins(standing), "even": standing.even}
    call.out.answer(document, *_status_json(standing))
    if not standing.even:
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
        typer.Option("--every", min=_INTERVAL_S_MIN, metavar="SECONDS", help="How often, give or take."),
    ] = INTERVAL_S,
    ledger_only: LedgerOnly = False,
    keep_memory_local: KeepLocal = False,
    yes: Yes = False,
) -> None:
    """Push and pull again and again until SIGTERM or Ctrl-C; an outage is waited out."""
    call.name_space(name)
    options = _Options(to, files=not ledger_only, keep_memory_local=keep_memory_local)
    with _linked(call, options) as (link, told):
        _make_sure(call, link, yes=yes)
        stop = threading.Event()

        def check(_what: str, _done: int, _total: int) -> None:
            if stop.is_set():
                raise WatchStopped("stopped")

        told(check)
        watching = SyncWatcher(
            link,
            wait=stop.wait,
            told=lambda done: _report_round(call, done),
            interval_s=every,
            rng=random.SystemRandom(),
        )
        with _stopping(stop):
            call.out.note(f"Keeping {call.space_name} and {link.url} alike; Ctrl-C ends it.")
            watching.run()


class _Options(msgspec.Struct, frozen=True):
    """What all of them are given."""

    to: str | None
    files: bool = True
    keep_memory_local: bool = False
    takes: bool = False
    """Only takes in, so something must be there; the space need not be."""


@contextmanager
def _linked(call: CommandContext, options: _Options) -> Iterator[tuple[Sync, Callable[[Progress], None]]]:
    """The sync, and a way to say who is told of its progress. Where it leads is remembered once it went well."""
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
            call.out.note("The token of the URL is not remembered; give it in AZURE_STORAGE_SAS_TOKEN.")


def _ends(call: CommandContext, options: _Options) -> tuple[Space, ObjectStore]:
    """Here and there. A mistyped address must not make a space, nor be remembered."""
    if options.takes and options.to is not None:
        store = _opened(call, options.to, options)
        require_something(store)
        return call.space(), store
    space = call.existing_space()
    given = options.to if options.to is not None else target_of(space)
    if given is None:
        raise InvalidRequest(
            f"say where to: `--to URL`; {call.space_name!r} was never synced before", field="to"
        )
    return space, _opened(call, given, options)


def _opened(call: CommandContext, url: str, options: _Options) -> ObjectStore:
    store = open_store(url, call.wiring.environment)
    if options.keep_memory_local or call.plane.settings.keep_memory_local:
        check_local(store)
    return store


def remembered(url: str) -> str:
    """What may be remembered: what stands behind the ? is a credential. A directory is remembered as it is from here."""
    if "://" not in url:
        return str(Path(url).expanduser().absolute())
    return url.partition("?")[0] if url.startswith(("http:", "https:")) else url


def _make_sure(call: CommandContext, link: Sync, *, yes: bool) -> None:
    """Before the first byte of a memory leaves for a place where nothing is: what would go there, and a question."""
    if yes:
        return
    standing = link.status()
    if not standing.empty or not standing.unpushed:
        return
    size = f"{_entries(standing.unpushed)} (~{_kib(link.unpushed_bytes()):,} KB)"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest(
            f"nothing is at {standing.url} yet; {size} of {call.space_name!r} would be uploaded. "
            "Add --yes if that is what you want"
        )
    question = f"This will upload {size} of {call.space_name!r} to {standing.url}. Continue?"
    if not call.out.confirm(question):
        call.out.note("Nothing was uploaded.")
        raise typer.Exit(MENDABLE)


def _say_idle(call: CommandContext, *, look: bool) -> None:
    more = "" if look else " Files that were edited by hand are looked for with --look."
    call.out.note(f"Nothing new.{more}")


def _end(call: CommandContext, taken: PullCounts, files: FilePullCounts) -> None:
    for path, why in files.conflicts:
        call.out.warn(f"{path}: {why}")
    for path, why in files.rejected:
        call.out.warn(f"{path} was not taken in: {why}")
    for key in taken.damaged:
        call.out.warn(f"{key} is damaged and was passed over; the machine that wrote it has what it held")
    for key in taken.missing:
        call.out.warn(f"{key} is not there any more; whoever has what it held pushes it again")
    if taken.unreadable:
        call.out.warn(
            f"{counted(taken.unreadable, 'line', 'lines')} cannot be read; a newer Memplane may have written them"
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
        yield line(("Taken in", "green"), f" {counted(len(files.taken), 'file', 'files')} that others wrote")


def _pull_json(taken: PullCounts) -> Iterator[RenderableType]:
    if taken.segments:
        yield line(
            ("Pulled", "green"),
            f" {_entries(taken.added)} out of {_segments(taken.segments)} ({_kib(taken.bytes):,} KB)",
        )
    if taken.conflicts:
        yield line((f"{_entries(taken.conflicts)} came under an id that was taken; both are kept", "yellow"))


def _status_json(standing: SyncStatus) -> Iterator[RenderableType]:
    verdict = ("even", "green") if standing.even else ("not even", "yellow")
    yield pairs(
        [
            ("place", standing.url),
            ("here", f"{_entries(standing.unpushed)} to push"),
            ("there", f"{_segments(standing.unpulled)} to pull ({_kib(standing.unpulled_bytes):,} KB)"),
            ("to clean", f"{_segments(standing.foul)} with what was forgotten"),
            ("ledger there", f"{_segments(standing.segments)} ({_kib(standing.bytes):,} KB)"),
            ("machines", f"{standing.replicas:,}"),
            ("files there", f"{standing.files:,}"),
            ("replica", standing.replica),
        ]
    )
    yield line("Both are ", verdict)


def _report_round(call: CommandContext, done: PushRound) -> None:
    """One line a round in which something happened, so that a log can be read."""
    document: dict[str, Any]
    if done.trouble is not None:
        code = done.trouble.code if isinstance(done.trouble, RemoteError | StorageBusy) else ""
        call.out.warn(f"{done.trouble}; trying again in {done.next_s:.0f} s")
        document = {"error": {"code": code, "message": str(done.trouble)}, "next_s": round(done.next_s, 1)}
        call.out.answer(document)
    elif done.pushed is not None and not done.pushed.idle:
        call.out.answer(done.pushed, *_push_json(done.pushed))
    sys.stdout.flush()


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C ask for the end; what was set before is set again."""
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
