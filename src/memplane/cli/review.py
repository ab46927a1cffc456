"""Review quarantined memories, and pin important ones."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from memplane.safety.quarantine import QuarantinedEntry
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command, default
from memplane.terminal.options import LISTED_DEFAULT, Limit, Offset
from memplane.terminal.output import cell, counted, line, when

app = typer.Typer()
quarantine = typer.Typer(help="Review memories flagged as possible injections.")
app.add_typer(quarantine, name="quarantine")

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, as shown in the list.")]


@default(
    quarantine,
    examples=[
        "memplane quarantine --space alice",
        "memplane quarantine release turn-019a…",
        "memplane quarantine forget turn-019a…",
    ],
)
def quarantined(call: CommandContext) -> None:
    """List memories flagged as possible injections, newest first."""
    list_(call)


@command(quarantine, "list", examples=["memplane quarantine list", "memplane quarantine list --json"])
def list_(call: CommandContext, limit: Limit = LISTED_DEFAULT, offset: Offset = 0) -> None:
    """List quarantined memories, newest first."""
    space = call.existing_space()
    found = space.review.quarantine(limit=limit, offset=offset)
    shown = [part for suspect in found for part in _suspect(suspect)]
    call.out.answer(
        {"suspects": found, "waiting": space.review.quarantine_count()},
        *(shown or [line("Quarantine is empty.")]),
    )


@command(quarantine, examples=["memplane quarantine release turn-019a…"])
def release(call: CommandContext, ids: Ids) -> None:
    """Release a memory, or an entry with everything extracted from it; recall then treats it normally."""
    space = call.existing_space()
    for id_ in ids:
        space.review.release(id_)
    call.out.answer({"released": ids}, *(line(("Released", "green"), f" {id_}") for id_ in ids))


@command(quarantine, examples=["memplane quarantine forget turn-019a…"])
def forget(call: CommandContext, ids: Ids) -> None:
    """Delete quarantined entries permanently, with everything extracted from them.

    If one of the ids is not in quarantine, nothing is deleted.
    """
    receipt = call.existing_space().review.forget_quarantined(ids)
    call.out.answer(
        receipt,
        line(
            ("Forgotten", "green"),
            f": {counted(receipt.counts['entries'], 'entry', 'entries')}; receipt {receipt.id}",
        ),
    )


@command(app, examples=["memplane pin mem-3f0c…", "memplane pin mem-3f0c… --off"])
def pin(
    call: CommandContext,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a memory or fact.")],
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """Pin a memory, so that it is always recalled."""
    memory = call.existing_space().review.pin(memory_id, pinned=not off)
    call.out.answer(memory, line(("Pinned" if memory.pinned else "Unpinned", "green"), f": {memory.line}"))


def _suspect(suspect: QuarantinedEntry) -> Iterator[Text]:
    """Return the texts and the facts needed for a decision."""
    for text in suspect.texts:
        yield cell(text, style="bold")
    facts = (", ".join(suspect.flags), when(suspect.recorded), suspect.caller.adapter, suspect.id)
    yield line(("  " + " · ".join(fact for fact in facts if fact), "dim"))
