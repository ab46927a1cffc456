"""List, count and check spaces."""

import msgspec
import typer

from memplane.space.doctor import Diagnosis, examine
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG
from memplane.terminal.output import cell, line, pairs, path_text, table

app = typer.Typer()


@command(app, examples=["memplane spaces", "memplane spaces --data /srv/memplane --json"])
def spaces(call: CommandContext) -> None:
    """List all spaces, one per line."""
    names = list(call.plane.spaces())
    call.out.answer({"data": path_text(call.place), "spaces": names}, *(line(name) for name in names))
    if not names:
        call.out.empty(f"No spaces in {call.place} yet; `memplane retain` creates one.")


@command(app, examples=["memplane stats", "memplane stats --space alice --json"])
def stats(call: CommandContext) -> None:
    """Show how much a space contains, its embedding model, and what is not embedded yet."""
    overview = call.existing_space().overview
    embedding = overview.embedding()
    document = {
        "space": call.space_name,
        **msgspec.to_builtins(overview.stats()),
        "embedding_model": embedding.model or "none",
        **({} if embedding.replaces is None else {"embedding_model_replaced": embedding.replaces}),
        "unembedded_turns": embedding.turns,
        "unembedded_memories": embedding.memories,
        "unembedded_spans": embedding.spans,
    }
    call.out.answer(document, pairs(document.items()))


@command(app, examples=["memplane doctor", "memplane doctor --json"])
def doctor(call: CommandContext) -> None:
    """Check a space for damage, duplicates, stale facts, secrets and injected memory. Exit code 3 on a problem."""
    space = call.existing_space()
    with call.out.progress("Examining"):
        found = examine(space)
    call.out.answer(_document(found), table("check", "status", "detail", rows=_rows(found)))
    if not found.ok:
        raise typer.Exit(FOUND_WRONG)


def _document(found: Diagnosis) -> dict[str, object]:
    return {"space": found.space, "ok": found.ok, "checks": found.checks}


def _rows(found: Diagnosis) -> list[tuple[object, ...]]:
    return [
        (
            check.name,
            cell("ok", style="green") if check.ok else cell("failed", style="bold red"),
            check.detail,
        )
        for check in found.checks
    ]
