"""EntraBot: provision storage, migrate, summaries, promises, and Claude Code's memory."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from memplane.adapters.entrabot import moving
from memplane.adapters.entrabot import promise_log as book
from memplane.adapters.entrabot.config import (
    CONTAINER,
    ENDPOINT,
    ENV_FILE,
    KEEP_LOCAL,
    PERSONA_SYNC,
    EntraBotConfig,
    config_from,
    home_of,
    read_env,
    write_env,
)
from memplane.adapters.entrabot.hook_install import planned_hook
from memplane.adapters.entrabot.promise_log import Promise, PromiseBook
from memplane.adapters.entrabot.scripts import provision_blob_storage as provisioning
from memplane.adapters.entrabot.scripts.hooks import block_local_memory_write as hook_script
from memplane.adapters.entrabot.storage import persona as persona_files
from memplane.adapters.entrabot.storage.local import LocalBackend
from memplane.adapters.entrabot.storage.persona import PERSONA_PREFIX, claude_code_memory_dir
from memplane.adapters.mcp.install import FileChange, write_change
from memplane.errors import InvalidRequest
from memplane.sync import summaries
from memplane.sync.cached import CachedBackend
from memplane.sync.interactions import day_of
from memplane.sync.opening import open_store
from memplane.sync.store import ObjectStore
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command, default
from memplane.terminal.exits import MENDABLE, USAGE
from memplane.terminal.options import Yes
from memplane.terminal.output import line, table

app = typer.Typer()
entrabot = typer.Typer(help="Manage EntraBot's memory, local or in the cloud.", no_args_is_help=True)
persona = typer.Typer(help="Sync Claude Code's memory of this project.", no_args_is_help=True)
promises = typer.Typer(help="List, add and resolve promises.", no_args_is_help=True)
hook = typer.Typer(help="Block Claude Code from writing local memory files.")
app.add_typer(entrabot, name="entrabot")
entrabot.add_typer(persona, name="persona")
entrabot.add_typer(promises, name="promises")
entrabot.add_typer(hook, name="hook")

_SYNC_OFF = f"off: set {PERSONA_SYNC}=on to copy"
_ATTEMPTS = 8

KeepLocal = Annotated[
    bool,
    typer.Option("--keep-memory-local", help=f"Use local files only, like {KEEP_LOCAL}=true."),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URL",
        help="Storage URL (az://, s3://, gs://, file://) instead of the configured one.",
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help=f"EntraBot's settings file (default: {ENV_FILE}, then .env); the environment takes precedence.",
    ),
]
Project = Annotated[
    Path | None,
    typer.Option(
        "--project", metavar="DIR", help="Project of Claude Code's memory (default: the working directory)."
    ),
]


class MemoryLocation(NamedTuple):
    """Where memory is: an object store, or a directory if there is none."""

    config: EntraBotConfig
    store: ObjectStore | None
    container: str = ""
    """The container as the settings name it; empty for a store that the command line names."""

    @property
    def url(self) -> str:
        return str(self.config.data_dir) if self.store is None else self.store.url

    @contextmanager
    def opened(self, call: CommandContext) -> Iterator[LocalBackend | CachedBackend]:
        """The backend. A store is read and written through the cache that EntraBot's programs on this machine share; each
        read is checked, since a command is run to see the present state."""
        if self.store is None:
            yield LocalBackend(self.config.data_dir)
            return
        cache_dir = self.config.cache_of(self.container or self.store.url)
        cache = CachedBackend(self.store, cache_dir, validate="each")
        try:
            yield cache
        finally:
            waiting, problem = cache.flush(), cache.state().problem
            if waiting:
                call.out.warn(f"{waiting:,} bytes wait in {cache_dir} and will be sent later: {problem}")

    def promises(self, backend: LocalBackend | CachedBackend) -> PromiseBook | None:
        """The promises in a store; None for those in a directory."""
        if self.store is None or isinstance(backend, LocalBackend):
            return None
        return PromiseBook(self.store, attempts=_ATTEMPTS, written=backend.adopt)


def _env_path(call: CommandContext, env_file: Path | None) -> Path:
    return env_file or Path(call.wiring.environment.get(ENV_FILE) or ".env").expanduser()


def _environment(call: CommandContext, env_file: Path | None) -> Mapping[str, str]:
    return {**read_env(_env_path(call, env_file)), **call.wiring.environment}


def _memory_location(
    call: CommandContext, *, env_file: Path | None, to: str | None, keep_local: bool
) -> MemoryLocation:
    """Choose like EntraBot does; command-line options take precedence."""
    environment = _environment(call, env_file)
    config = config_from(environment)
    if keep_local or config.keep_memory_local:
        return MemoryLocation(config, None)
    if to is not None:
        return MemoryLocation(config, open_store(to, environment))
    if config.half_configured:
        call.out.warn(f"memory stays local: set both {ENDPOINT} and {CONTAINER}")
    if not (config.blob_endpoint and config.blob_container):
        return MemoryLocation(config, None)
    token = config.storage_token
    url = f"{config.blob_endpoint.rstrip('/')}/{config.blob_container}"
    return MemoryLocation(config, open_store(url, environment, token=(lambda: token) if token else None), url)


def _memory_dir(call: CommandContext, project: Path | None) -> Path:
    root = (project or Path.cwd()).expanduser().absolute()
    return claude_code_memory_dir(root, home=home_of(call.wiring.environment))


# Provision and move


@command(
    entrabot,
    examples=[
        "memplane entrabot provision --tenant-id TENANT --agent-user-object-id ID",
        "memplane entrabot provision --keep-memory-local        # return to local files",
    ],
)
def provision(
    call: CommandContext,
    tenant_id: Annotated[
        str | None, typer.Option("--tenant-id", metavar="ID", help="Entra tenant id.")
    ] = None,
    agent_user_object_id: Annotated[
        str | None,
        typer.Option("--agent-user-object-id", metavar="ID", help="Object id of the agent's user."),
    ] = None,
    location: Annotated[
        str, typer.Option("--location", metavar="REGION", help="Azure region.")
    ] = provisioning.DEFAULT_LOCATION,
    with_storage_account: Annotated[
        str | None, typer.Option("--with-storage-account", metavar="NAME", help="Use this storage account.")
    ] = None,
    with_container: Annotated[
        str | None, typer.Option("--with-container", metavar="NAME", help="Use this container.")
    ] = None,
    create_new_storage: Annotated[
        bool, typer.Option("--create-new-storage", help="Create a new account, even if the tenant has one.")
    ] = False,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Create a storage account and container with Azure's `az`, and write them to EntraBot's settings.

    If that fails, memory stays local and the settings record it.
    """
    if keep_memory_local:
        write_env(_env_path(call, env_file), {KEEP_LOCAL: "true"})
        call.out.answer(
            {"keep_memory_local": True},
            line(f"Memory stays local ({_env_path(call, env_file)})."),
        )
        return
    environment = _environment(call, env_file)
    tenant = tenant_id or environment.get("ENTRABOT_TENANT_ID")
    user = agent_user_object_id or environment.get("ENTRABOT_AGENT_USER_ID")
    if not tenant or not user:
        raise InvalidRequest("--tenant-id and --agent-user-object-id are required")
    try:
        endpoint, container = provisioning.provision(
            tenant_id=tenant,
            agent_user_object_id=user,
            location=location,
            storage_account=with_storage_account,
            container=with_container,
            create_new_storage=create_new_storage,
        )
    except ValueError as exc:
        raise InvalidRequest(str(exc)) from exc
    except RuntimeError as exc:
        write_env(_env_path(call, env_file), {KEEP_LOCAL: "true"})
        call.out.warn(f"provisioning failed, memory stays local ({KEEP_LOCAL}=true): {exc}")
        raise typer.Exit(MENDABLE) from exc
    write_env(_env_path(call, env_file), {ENDPOINT: endpoint, CONTAINER: container, KEEP_LOCAL: "false"})
    call.out.answer_text(
        {"endpoint": endpoint, "container": container},
        f"BLOB_ENDPOINT={endpoint}\nBLOB_CONTAINER={container}",
    )
    provisioning.say_cost()


@command(
    entrabot,
    examples=[
        "memplane entrabot migrate                       # to the configured storage",
        "memplane entrabot migrate --to s3://bucket/agent --yes",
    ],
)
def migrate(
    call: CommandContext,
    to: To = None,
    project: Project = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
    yes: Yes = False,
) -> None:
    """Upload local memory after confirmation. Local files stay, and existing cloud files are not replaced.

    Exit code 2 if a file could not be copied. Run it again to continue.
    """
    place = _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local)
    if place.store is None:
        _stay(call, place, keep_local=keep_memory_local)
        return
    sources = [
        moving.MoveSource(root=place.config.data_dir, prefix="", name="agent data"),
        moving.MoveSource(
            root=_memory_dir(call, project), prefix=PERSONA_PREFIX, name="Claude Code persona memory"
        ),
    ]
    there = [source for source in sources if not source.is_empty]
    if not there:
        call.out.answer({"copied": 0, "skipped": 0}, line("No local memory to upload."))
        return
    if next(iter(place.store.list()), None) is not None:
        call.out.note(f"{place.url} is not empty; existing files are not replaced.")
    if not yes and not _agreed(moving.question(there)):
        call.out.answer({"copied": 0, "skipped": 0}, line("Nothing was uploaded."))
        return
    _report_move(call, place, moving.move(there, place.store))


def _stay(call: CommandContext, place: MemoryLocation, *, keep_local: bool) -> None:
    if not (keep_local or place.config.keep_memory_local):
        raise InvalidRequest(
            f"no cloud storage is configured; set {ENDPOINT} and {CONTAINER} (`memplane entrabot provision`), or give --to"
        )
    call.out.answer({"copied": 0, "skipped": 0}, line("Memory stays local; nothing was uploaded."))


def _agreed(question: str) -> bool:
    """Ask like EntraBot's setup: only a single y means yes."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip() in {"y", "Y"}


def _report_move(call: CommandContext, place: MemoryLocation, moved: moving.MoveResult) -> None:
    report = moved.report
    document = {
        "copied": report.copied,
        "skipped": report.skipped,
        "bytes": report.bytes_copied,
        "verified": moved.verified,
        "differ": moved.differ,
        "errors": [{"key": key, "message": message} for key, message in moved.errors],
        "url": place.url,
    }
    call.out.answer(
        document,
        line(f"Copied: {report.copied} files ({report.bytes_copied} bytes)"),
        line(f"Skipped (already in cloud): {report.skipped}"),
        line(f"Verified against the manifest: {moved.verified} files"),
    )
    for key in moved.differ:
        call.out.warn(f"{key} differs from the file in the cloud, which was not replaced")
    for key, message in moved.errors:
        call.out.warn(f"{key}: {message}")
    if moved.errors:
        call.out.warn("the migration is incomplete; fix the errors above and run it again")
        raise typer.Exit(USAGE)


# What it keeps


@command(
    entrabot, examples=["memplane entrabot summary", "memplane entrabot summary --day 2026-04-16 --json"]
)
def summary(
    call: CommandContext,
    day: Annotated[
        str | None, typer.Option("--day", metavar="YYYY-MM-DD", help="Day in UTC (default: today).")
    ] = None,
    to: To = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Write the summary of a day: threads to answer, answered, or begun by the agent."""
    place = _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local)
    with place.opened(call) as backend:
        found = summaries.summarize(
            backend, day or day_of(datetime.now(UTC)), agent=place.config.agent_user_upn
        )
    document = {"day": found.day, "counts": found.counts, "archive": found.archive, "sent_to": []}
    call.out.answer(
        document,
        line(
            f"{found.day}: {found.counts['needs_you']} need you, {found.counts['handled']} handled, "
            f"{found.counts['heads_up']} heads-up; saved as {found.archive}"
        ),
    )


@command(
    promises,
    "list",
    examples=["memplane entrabot promises list", "memplane entrabot promises list --all --json"],
)
def list_(
    call: CommandContext,
    every: Annotated[bool, typer.Option("--all", help="Include resolved promises.")] = False,
    to: To = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """List open promises."""
    place = _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local)
    if place.store is None:
        text = LocalBackend(place.config.data_dir).read_text(book.KEY)
        found = book.listed(text or "", open_only=not every)
    else:
        found = PromiseBook(place.store).list(open_only=not every)
    rows = ((one.id, one.status, one.due_by or "", one.chat_id, one.description) for one in found)
    call.out.answer(
        {"promises": [one.to_entry() for one in found]},
        table("id", "status", "due", "chat", "promise", rows=rows),
    )


@command(
    promises,
    examples=['memplane entrabot promises add "Send the plan" --chat 19:abc@unq.gbl.spaces --due 2026-04-25'],
)
def add(
    call: CommandContext,
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", help="Text of the promise.")],
    chat: Annotated[str, typer.Option("--chat", metavar="ID", help="Chat in which the promise was made.")],
    due: Annotated[str | None, typer.Option("--due", metavar="DATE", help="Due date.")] = None,
    to: To = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Add a promise."""
    now = datetime.now(UTC)
    made = book.promise(chat_id=chat, description=description, due_by=due, now=now)
    place = _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local)
    with place.opened(call) as backend:
        promises = place.promises(backend)
        if promises is None:
            book.change_text(backend, lambda text: (book.added(text, made, now=now), made))
        else:
            promises.add(made, now=now)
    _report_promise(call, made)


@command(promises, examples=['memplane entrabot promises resolve 3f9c… "Sent on Friday"'])
def resolve(
    call: CommandContext,
    promise_id: Annotated[str, typer.Argument(metavar="ID", help="Promise id.")],
    resolution: Annotated[str, typer.Argument(metavar="RESOLUTION", help="How it was resolved.")],
    to: To = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Resolve a promise. A resolved promise is not changed."""
    now = datetime.now(UTC)
    place = _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local)
    with place.opened(call) as backend:
        promises = place.promises(backend)
        if promises is None:
            settled = book.change_text(
                backend, lambda text: book.resolved(text, promise_id, resolution, now=now)
            )
        else:
            settled = promises.resolve(promise_id, resolution, now=now)
    _report_promise(call, settled)


def _report_promise(call: CommandContext, promise: Promise) -> None:
    call.out.answer(promise.to_entry(), line(f"{promise.id} {promise.status}: {promise.description}"))


# Claude Code's memory


@command(persona, examples=["ENTRABOT_PERSONA_SYNC=on memplane entrabot persona pull"])
def pull(
    call: CommandContext,
    to: To = None,
    project: Project = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Replace local files with the cloud's. Always exits with 0, so that it works as a hook."""
    if _is_on(call, env_file):
        persona_files.pull(
            lambda: _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local).opened(
                call
            ),
            lambda: _memory_dir(call, project),
        )


@command(persona, examples=["ENTRABOT_PERSONA_SYNC=on memplane entrabot persona push"])
def push(
    call: CommandContext,
    to: To = None,
    project: Project = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Upload files that the cloud does not have."""
    if _is_on(call, env_file):
        persona_files.push(
            lambda: _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local).opened(
                call
            ),
            lambda: _memory_dir(call, project),
        )


@command(
    persona, "push-one", examples=["ENTRABOT_PERSONA_SYNC=on memplane entrabot persona push-one MEMORY.md"]
)
def push_one(
    call: CommandContext,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File of Claude Code's memory.")],
    to: To = None,
    project: Project = None,
    keep_memory_local: KeepLocal = False,
    env_file: EnvFile = None,
) -> None:
    """Upload one file and replace the cloud's version."""
    if _is_on(call, env_file):
        persona_files.push_one(
            lambda: _memory_location(call, env_file=env_file, to=to, keep_local=keep_memory_local).opened(
                call
            ),
            lambda: _memory_dir(call, project),
            path,
        )


def _is_on(call: CommandContext, env_file: Path | None) -> bool:
    is_on = config_from(_environment(call, env_file)).persona_sync
    if not is_on:
        persona_files.log(_SYNC_OFF)
    return is_on


# The hook


@default(hook, examples=["memplane entrabot hook < payload.json", "memplane entrabot hook install"])
def judge(call: CommandContext) -> None:
    """Check a PreToolUse payload of Claude Code on stdin. Exit code 2 blocks a write to local memory."""
    try:
        payload = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace") or "{}")
    except (ValueError, RecursionError):
        return
    environment = call.wiring.environment
    path = hook_script.blocked_path(payload, environment, home_of(environment))
    if path is None:
        return
    sys.stdout.write(json.dumps({"decision": "block", "reason": hook_script.reason()}) + "\n")
    sys.stderr.write(f"blocked: {json.dumps(path)} is local memory of Claude Code. {hook_script.reason()}\n")
    raise typer.Exit(hook_script.BLOCKED)


@command(
    hook,
    examples=[
        "memplane entrabot hook install                  # for this project",
        "memplane entrabot hook install --user --yes     # for all your projects",
    ],
)
def install(
    call: CommandContext,
    user: Annotated[bool, typer.Option("--user", help="Install for all your projects.")] = False,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Settings file of Claude Code."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Add the hook to Claude Code's settings, after showing the change. Other settings are kept."""
    folder = home_of(call.wiring.environment) if user else Path.cwd()
    change = planned_hook(settings or folder / ".claude" / "settings.json", sys.executable)
    if not change.needed:
        call.out.answer(_document(change, None), line(f"{change.path} is already up to date"))
        return
    if not yes:
        sys.stderr.write(f"{change.diff}\n\n")
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InvalidRequest("not a terminal; add --yes to write the change shown above")
        if not call.out.confirm(f"Write this to {change.path}?"):
            call.out.note("Nothing was written.")
            raise typer.Exit(MENDABLE)
    backup = write_change(change)
    kept = f"; backup in {backup}" if backup else ""
    call.out.answer(_document(change, backup), line(("Written", "green"), f" to {change.path}{kept}."))


def _document(change: FileChange, backup: Path | None) -> dict[str, object]:
    return {
        "path": str(change.path),
        "changed": change.needed,
        "backup": None if backup is None else str(backup),
    }
