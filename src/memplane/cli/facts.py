"""Keyed facts: one current value per key."""

from datetime import timedelta
from typing import Annotated

import typer

from memplane.errors import NotFound
from memplane.recall.marks import UNMARKED
from memplane.space import Space
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import Tags, read_content, read_ttl
from memplane.terminal.output import cell, feedback_text, line, table, when

app = typer.Typer()

Key = Annotated[str, typer.Argument(metavar="KEY", help="Key, such as preferences/theme.")]


@command(
    app,
    examples=[
        "memplane put preferences/theme dark",
        "memplane put project/deadline 2026-12-01 --category project_conventions --ttl 30d",
    ],
)
def put(
    call: CommandContext,
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Value, or - to read it from stdin.")],
    category: Annotated[
        str | None,
        typer.Option(
            "--category", metavar="NAME", help="Category (default: the current one, or user_facts)."
        ),
    ] = None,
    tags: Tags = None,
    ttl: Annotated[
        timedelta | None,
        typer.Option(
            "--ttl", metavar="TIME", parser=read_ttl, help="Time to live, 1h to 365d (default 90d)."
        ),
    ] = None,
) -> None:
    """Store a value under a key. An existing value is replaced and kept in the history."""
    fact = call.space().put(key, read_content(call, value), category=category, tags=tags or (), ttl=ttl)
    said = line((fact.key or "", "bold"), " = ").append_text(cell(fact.text)).append("  ")
    detail = cell(f"{fact.category}, until {when(fact.expires_at)}", style="dim")
    call.out.answer(fact, said.append_text(detail))


@command(app, examples=["memplane get preferences/theme", "memplane get --id mem-3f0c… --json"])
def get(
    call: CommandContext,
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="Key, such as preferences/theme.")] = None,
    memory_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Print the memory with this id instead.")
    ] = None,
) -> None:
    """Print the current value of a key."""
    if (key is None) == (memory_id is None):
        raise typer.BadParameter("give either KEY or --id")
    space = call.existing_space()
    found = space.get(key) if key is not None else space.memory(memory_id or "")
    call.out.answer_text(found, found.text)
    until = f", until {when(found.expires_at)}" if found.expires_at else ""
    rated = "" if found.importance_base is None else f" · {feedback_text(found)}"
    call.out.note(
        f"{found.category or found.kind} · {found.state}, since {when(found.updated_at)}{until}{rated}"
    )
    mark = space.overview.marks([found]).get(found.id, UNMARKED)
    if mark.replaced:
        call.out.warn(f"this memory is not current{mark.text}")
    elif mark.contested:
        call.out.warn("another memory contradicts this one; memplane conflicts lists both")


@command(
    app,
    examples=["memplane facts", "memplane facts preferences/", "memplane facts --categories"],
)
def facts(
    call: CommandContext,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Only keys with this prefix.")] = "",
    category: Annotated[
        str | None, typer.Option("--category", metavar="NAME", help="Only facts in this category.")
    ] = None,
    categories: Annotated[
        bool, typer.Option("--categories", help="List categories instead of facts.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")] = 1_000,
) -> None:
    """List current facts, newest first, or their categories."""
    space = call.existing_space()
    if categories:
        _show_categories(call, space)
        return
    found = space.facts.list(prefix, category=category, limit=limit)
    rows = [(fact.key, fact.text, fact.category, when(fact.expires_at)) for fact in found]
    call.out.answer({"facts": found}, table("key", "value", "category", "expires", rows=rows))


@command(app, examples=["memplane history preferences/theme"])
def history(call: CommandContext, key: Key) -> None:
    """List all values of a key, oldest first."""
    found = call.existing_space().history(key)
    if not found:
        raise NotFound("key", key)
    rows = [(when(fact.updated_at), fact.text, fact.state, when(fact.superseded_at)) for fact in found]
    call.out.answer({"key": key, "history": found}, table("since", "value", "state", "replaced", rows=rows))


def _show_categories(call: CommandContext, space: Space) -> None:
    found = space.facts.categories()
    rows = [(category.name, category.count, ", ".join(category.recent_keys)) for category in found]
    call.out.answer({"categories": found}, table("category", "facts", "newest keys", rows=rows))
