"""Review quarantined memories, pin important ones, and edit names of speakers."""

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

names = typer.Typer(help="Edit the names by which recall knows speakers.")
app.add_typer(names, name="names")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name as a question may use it.")]
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


@default(
    names,
    examples=["memplane names", "memplane names add Mel Melanie", "memplane names remove Max"],
)
def named(call: CommandContext) -> None:
    """List other names of speakers."""
    list_names(call)


@command(names, "list", examples=["memplane names list", "memplane names list --json"])
def list_names(call: CommandContext) -> None:
    """List other names of speakers: added, removed, and learned from how people are addressed."""
    found = call.existing_space().review.names()
    shown = [
        line(f"{name.name} = {name.speaker or 'nobody'} ", (f"({name.source})", "dim")) for name in found
    ]
    call.out.answer({"names": found}, *(shown or [line("No other names.")]))


@command(names, "add", examples=["memplane names add Mel Melanie", 'memplane names add Doc "Emmett Brown"'])
def add_name(
    call: CommandContext,
    name: Name,
    speaker: Annotated[str, typer.Argument(metavar="SPEAKER", help="The speaker, as named in turns.")],
) -> None:
    """Let a name stand for a speaker."""
    added = call.existing_space().review.add_name(name, speaker)
    call.out.answer(added, line(("Added", "green"), f": {added.name} = {added.speaker}"))


@command(names, "remove", examples=["memplane names remove Max"])
def remove_name(call: CommandContext, name: Name) -> None:
    """Let a name stand for nobody, even if it was learned."""
    removed = call.existing_space().review.remove_name(name)
    call.out.answer(removed, line(("Removed", "green"), f": {removed.name}"))


def _suspect(suspect: QuarantinedEntry) -> Iterator[Text]:
    """Return the texts and the facts needed for a decision."""
    for text in suspect.texts:
        yield cell(text, style="bold")
    facts = (", ".join(suspect.flags), when(suspect.recorded), suspect.caller.adapter, suspect.id)
    yield line(("  " + " · ".join(fact for fact in facts if fact), "dim"))
