"""The implementation of the pod commands, imported when one of them runs."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import typer
from rich.table import Table

from memplane.adapters.clawdapus.describe import DESCRIPTOR
from memplane.adapters.clawdapus.memory_client import BlockingMemoryClient
from memplane.adapters.clawdapus.pod.audit import (
    MEMORY_OP,
    AgentSummary,
    AuditQuery,
    AuditReport,
    audit_of,
    parse_since,
)
from memplane.adapters.clawdapus.pod.backfill import PodBackfill, ReplayResult, parse_after
from memplane.adapters.clawdapus.pod.compile import HISTORY_URL_DEFAULT, compile_pod
from memplane.adapters.clawdapus.pod.directory import GENERATED, PodDirectory
from memplane.adapters.clawdapus.pod.forget import forget_at_service, plan_forget, split_ids
from memplane.adapters.clawdapus.pod.podfile import load_yaml, pod_name
from memplane.adapters.clawdapus.pod.targets import (
    find_targets,
    proxy_lines,
    resolve_url,
    split_names,
    with_token,
)
from memplane.clock import system_clock
from memplane.config import reason_of
from memplane.errors import InvalidRequest
from memplane.telemetry import Listener, MemoryOp, format_event, log_event
from memplane.terminal.call import CommandContext
from memplane.terminal.exits import FOUND_WRONG
from memplane.terminal.output import cell, counted, line, table

_DESCRIPTOR_BYTES_MAX = 1024 * 1024


def up(call: CommandContext, file: Path, describe: list[str], history_url: str | None) -> None:
    descriptors = dict(_described(given) for given in describe)
    with PodDirectory(file) as directory:
        compiled = compile_pod(
            directory,
            call.wiring.environment,
            descriptors=descriptors,
            by_image={"memplane": msgspec.json.encode(DESCRIPTOR)},
            history_url=history_url or HISTORY_URL_DEFAULT,
        )
    shown = [
        line(f"{it.agent}: ", f"memory from {it.memory}" if it.memory else "no memory")
        for it in compiled.agents
    ]
    subscribed = sum(it.memory is not None for it in compiled.agents)
    agents = counted(subscribed, "agent", "agents")
    call.out.answer(
        compiled, *shown, line(("Compiled", "green"), f" memory for {agents} in {compiled.directory}")
    )
    if not compiled.generated:
        call.out.warn(f"{GENERATED} was written by another program and was not changed")


def backfill(
    call: CommandContext,
    file: Path,
    service: str,
    *,
    after: str | None,
    limit: int,
    agents: list[str],
    url: str | None,
    token: str | None,
    restart: bool,
    log: Path | None,
) -> None:
    if limit < 0:
        raise InvalidRequest("limit must be >= 0", field="limit")
    since = parse_after(after)
    with PodDirectory(file) as directory, ExitStack() as opened:
        targets = with_token(
            find_targets(directory, service, operation="retain", agents=split_names(agents)), token
        )
        place = resolve_url(directory, service, targets, operation="retain", given=url)
        client = opened.enter_context(BlockingMemoryClient(listener=opened.enter_context(_listening(log))))
        done: list[ReplayResult] = []
        for target in targets:
            with call.out.progress(f"Replaying {target.agent}") as advance:
                run = PodBackfill(
                    directory,
                    service,
                    place,
                    after=since,
                    limit=limit,
                    restart=restart,
                    advance=lambda _agent, read, total: advance(read, total),
                )
                result = run.run(client, target)
            done.append(result)
            if result.replayed:
                call.out.print_part(line(f"Replayed {_entries(result.replayed)} for {result.agent}"))
            _warn(call, result)
    _backfilled(call, place, done)


def _warn(call: CommandContext, result: ReplayResult) -> None:
    if result.resumed:
        call.out.note(f"{result.agent}: continued an interrupted run; --restart starts from the beginning")
    if result.scrubbed:
        call.out.note(f"{result.agent}: {counted(result.scrubbed, 'secret', 'secrets')} redacted")
    if result.rejected:
        first = result.rejected[0]
        call.out.warn(
            f"{result.agent}: {counted(len(result.rejected), 'line', 'lines')} skipped; "
            f"{first.source} line {first.number}: {first.reason}"
        )


def _backfilled(call: CommandContext, place: str, done: list[ReplayResult]) -> None:
    total = sum(it.replayed for it in done)
    active = sum(it.replayed > 0 for it in done)
    idle = len(done) - active
    document = {
        "url": place,
        "entries": total,
        "agents": [
            {
                "agent": it.agent,
                "replayed": it.replayed,
                "resumed": it.resumed,
                "tombstoned": it.buried,
                "failed_turns": it.failed_turns,
                "scrubbed": it.scrubbed,
                "rejected": len(it.rejected),
            }
            for it in done
        ],
    }
    shown = [line(f"Backfilled {_entries(total)} across {counted(active, 'agent', 'agents')} to {place}")]
    if idle:
        shown.append(line(f"Skipped {counted(idle, 'agent', 'agents')} with no eligible history entries"))
    call.out.answer(document, *shown)
    if any(it.rejected for it in done):
        raise typer.Exit(FOUND_WRONG)


def forget(
    call: CommandContext,
    file: Path,
    service: str,
    *,
    entry_ids: list[str],
    reason: str,
    agents: list[str],
    url: str | None,
    token: str | None,
    log: Path | None,
) -> None:
    ids, named = split_ids(entry_ids), split_names(agents)
    with PodDirectory(file) as directory, ExitStack() as opened:
        targets = with_token(find_targets(directory, service, operation="forget", agents=named), token)
        plans = plan_forget(directory, service, targets, ids, named=bool(named))
        place = resolve_url(directory, service, targets, operation="forget", given=url)
        client = opened.enter_context(BlockingMemoryClient(listener=opened.enter_context(_listening(log))))
        done: list[tuple[str, int]] = []
        for plan in plans:
            count = forget_at_service(client, directory, plan, reason=reason.strip(), url=place)
            if count:
                done.append((plan.target.agent, count))
                call.out.print_part(line(f"Forgot {_entries(count)} for {plan.target.agent}"))
    total, skipped = sum(count for _, count in done), sum(plan.skipped for plan in plans)
    document = {
        "url": place,
        "entries": total,
        "skipped": skipped,
        "agents": [{"agent": agent, "forgotten": count} for agent, count in done],
    }
    shown = [line(f"Forgot {_entries(total)} across {counted(len(done), 'agent', 'agents')} via {place}")]
    if skipped:
        shown.append(line(f"Skipped {skipped} already-tombstoned {'entry' if skipped == 1 else 'entries'}"))
    call.out.answer(document, *shown)


def audit(
    call: CommandContext,
    file: Path | None,
    logs: list[str],
    *,
    since: str | None,
    claw: str | None,
    type_: str | None,
) -> None:
    moment = None if since is None else parse_since(since, system_clock())
    wanted = AuditQuery(since=moment, claw=claw, type=type_)
    with ExitStack() as opened:
        directory = None if file is None else opened.enter_context(PodDirectory(file))
        pod = "" if directory is None else _pod_name(directory)
        lines = _lines_of(logs) if logs else proxy_lines(pod, since)
        found = audit_of(pod, lines, wanted, directory=directory)
    tables = [_summary(found)]
    memory = [event for event in found.events if event["type"] == MEMORY_OP]
    if memory:
        tables.append(_memory(memory))
    call.out.answer(found, *(it for it in tables if it.row_count), line(_totals(found)))
    if found.skipped_lines:
        call.out.note(f"{counted(found.skipped_lines, 'line', 'lines')} skipped: not events")


def _summary(found: AuditReport) -> Table:
    headers = "CLAW REQ RESP ERR INT TOOLS TOOL_ERR TOK_IN TOK_OUT COST_USD MODELS MEM MEM_ERR MEM_REMOVED"
    return table(*headers.split(), rows=[_row(it) for it in found.summary.agents])


def _row(it: AgentSummary) -> tuple[object, ...]:
    return (
        it.claw_id or "-",
        it.requests,
        it.responses,
        it.errors,
        it.interventions,
        it.tools,
        it.tool_errors,
        it.tokens_in,
        it.tokens_out,
        f"{it.cost_usd:.4f}",
        ", ".join(it.models) or "-",
        it.memory_ops,
        it.memory_errors,
        it.memory_removed,
    )


def _memory(events: list[dict[str, object]]) -> Table:
    names = [
        *(
            "timestamp",
            "claw_id",
            "memory_service",
            "memory_op",
            "memory_status",
            "status_code",
            "latency_ms",
        ),
        *("memory_blocks", "memory_bytes", "memory_removed", "error"),
    ]
    return table(*names, rows=[[cell(event.get(name, "")) for name in names] for event in events])


def _totals(found: AuditReport) -> str:
    it = found.summary
    return (
        f"Totals: req={it.requests} resp={it.responses} err={it.errors} int={it.interventions} "
        f"tools={it.tools}/{it.tool_errors} tokens={it.tokens_in}/{it.tokens_out} cost=${it.cost_usd:.4f} "
        f"memory={it.memory_ops}/{it.memory_errors}"
    )


def _pod_name(directory: PodDirectory) -> str:
    document = load_yaml(directory.read_pod(), directory.file.name)
    return pod_name(document, directory.path.resolve().name)


def _lines_of(logs: list[str]) -> Iterator[bytes]:
    for name in logs:
        if name == "-":
            yield from sys.stdin.buffer
            continue
        try:
            with Path(name).open("rb") as file:
                yield from file
        except OSError as exc:
            raise InvalidRequest(f"cannot read {name}: {reason_of(exc)}", field="log") from exc


@contextmanager
def _listening(log: Path | None) -> Iterator[Listener]:
    """Write `memory_op` events to the logger and, if given, to a file."""
    if log is None:
        yield log_event
        return
    try:
        file = log.open("a", encoding="utf-8")
    except OSError as exc:
        raise InvalidRequest(f"cannot write {log}: {reason_of(exc)}", field="log") from exc
    with file:

        def listener(event: MemoryOp) -> None:
            log_event(event)
            file.write(format_event(event) + "\n")
            file.flush()

        yield listener


def _described(given: str) -> tuple[str, bytes]:
    service, _, name = given.partition("=")
    if not service or not name:
        raise InvalidRequest(f"--describe {given!r} is not SERVICE=FILE", field="describe")
    try:
        with Path(name).expanduser().open("rb") as file:
            return service, file.read(_DESCRIPTOR_BYTES_MAX)
    except OSError as exc:
        raise InvalidRequest(f"cannot read {name}: {reason_of(exc)}", field="describe") from exc


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")
