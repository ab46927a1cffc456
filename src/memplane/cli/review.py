"""What an operator rules about memories: flagged ones are released or forgotten, important ones pinned."""

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
quarantine = typer.Typer(help="Look at what is flagged as a possible injection; release or forget it.")
app.add_typer(quarantine, name="quarantine")

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, as the list shows them.")]


@default(
    quarantine,
    examples=[
        "memplane quarantine --space alice",
        "memplane quarantine release turn-019a…",
        "memplane quarantine forget turn-019a…",
    ],
)
def quarantined(call: CommandContext) -> None:
    """What is flagged as a possible injection, the newest first; release or forget it."""
    list_(call)


@command(quarantine, "list", examples=["memplane quarantine list", "memplane quarantine list --json"])
def list_(call: CommandContext, limit: Limit = LISTED_DEFAULT, offset: Offset = 0) -> None:
    """What is flagged and waits for a decision, the newest first."""
    space = call.existing_space()
    found = space.review.quarantine(limit=limit, offset=offset)
    shown = [part for suspect in found for part in _suspect(suspect)]
    call.out.answer(
        {"suspects": found, "waiting": space.review.quarantine_count()},
        *(shown or [line("Nothing is in quarantine.")]),
    )


@command(quarantine, examples=["memplane quarantine release turn-019a…"])
def release(call: CommandContext, ids: Ids) -> None:
    """Tell it as any other from now on: an entry with all that was read out of it, or one memory."""
    space = call.existing_space()
    for id_ in ids:
        space.review.release(id_)
    call.out.answer({"released": ids}, *(line(("Released", "green"), f" {id_}") for id_ in ids))


@command(quarantine, examples=["memplane quarantine forget turn-019a…"])
def forget(call: CommandContext, ids: Ids) -> None:
    """Forget entries for good, with all that was read out of them. One that is not in quarantine is refused, and nothing is
    forgotten then: a slip of the hand cannot be taken back."""
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
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a memory or fact.")],
    off: Annotated[bool, typer.Option("--off", help="Do not pin it any longer.")] = False,
) -> None:
    """Always tell this memory, whatever is asked and however old it gets."""
    memory = call.existing_space().review.pin(memory_id, pinned=not off)
    call.out.answer(memory, line(("Pinned" if memory.pinned else "Not pinned", "green"), f": {memory.line}"))


def _suspect(suspect: QuarantinedEntry) -> Iterator[Text]:
    """What it says, and what to decide with."""
    for text in suspect.texts:
        yield cell(text, style="bold")
    facts = (", ".join(suspect.flags), when(suspect.recorded), suspect.caller.door, suspect.id)
    yield line(("  " + " · ".join(fact for fact in facts if fact), "dim"))
