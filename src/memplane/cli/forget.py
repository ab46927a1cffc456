"""Forgetting and receipts."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memplane.errors import InvalidRequest, NotFound
from memplane.space.space import Space
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.exits import MENDABLE
from memplane.terminal.options import Since, Until, Yes
from memplane.terminal.output import line, pairs, when
from memplane.types import Receipt

app = typer.Typer()


@command(app, examples=["memplane delete mem-3f0c…"])
def delete(
    call: CommandContext,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a memory or fact.")],
) -> None:
    """Delete one memory and the ledger entry it came from."""
    receipt = call.existing_space().delete(memory_id)
    call.out.answer(receipt, _receipt(receipt))


@command(
    app,
    examples=[
        "memplane forget --conversation c1 --dry-run",
        "memplane forget --key address --reason 'asked by the user'",
        "memplane forget --since 2026-11-01 --until 2026-11-08 --yes",
        "memplane forget --everything --yes",
    ],
)
def forget(
    call: CommandContext,
    entries: Annotated[
        list[str] | None, typer.Option("--entry", metavar="ID", help="Entry id; repeatable.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="All values of this key.")] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="TEXT", help="All keys with this prefix.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="Everything in this conversation."),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", help="Everything in this project.")
    ] = None,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="All versions of this document.")
    ] = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[bool, typer.Option("--everything", help="Everything in the space.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the receipt.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be forgotten, without forgetting it.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete data permanently: from recall, search and disk. A replay does not bring it back.

    Give at least one condition; several narrow each other. On a terminal, shows the counts and asks first.
    """
    conditions = (key, prefix, conversation, project, document, since, until)
    if not entries and not everything and all(condition is None for condition in conditions):
        raise InvalidRequest(
            "nothing to forget; give --entry, --key, --prefix, --conversation, --project, --document, --since, --until or "
            "--everything"
        )
    if prefix == "" and not (yes or dry_run):
        raise InvalidRequest("an empty --prefix matches every fact; add --yes to confirm")
    space = call.existing_space()
    _check_entries(space, entries or ())

    def run(*, dry_run: bool) -> Receipt:
        return space.forget(
            entries=entries or (),
            key=key,
            prefix=prefix,
            conversation=conversation,
            project=project,
            document=document,
            since=since,
            until=until,
            everything=everything,
            reason=reason,
            dry_run=dry_run,
        )

    if not dry_run and not yes:
        _make_sure(call, run(dry_run=True), everything=everything)
    receipt = run(dry_run=dry_run)
    call.out.answer(receipt, _receipt(receipt))


def _check_entries(space: Space, ids: Sequence[str]) -> None:
    """Lists show the ids of memories, so these are easily taken for ids of entries."""
    for id_ in ids:
        try:
            memory = space.memory(id_)
        except NotFound:
            continue
        if memory.entry_id != id_:
            raise InvalidRequest(
                f"{id_} is the id of a memory; delete it with `memplane delete {id_}`, or give the entry it came from: "
                f"--entry {memory.entry_id}"
            )


@command(app, examples=["memplane receipts", "memplane receipts --json"])
def receipts(call: CommandContext) -> None:
    """List the receipts of all forgets, oldest first."""
    found = call.existing_space().ledger.receipts()
    call.out.answer({"receipts": found}, *(part for receipt in found for part in _receipt_lines(receipt)))
    if not found:
        call.out.empty("No receipts.")


@command(app, examples=["memplane sweep"])
def sweep(call: CommandContext) -> None:
    """Erase expired facts from disk. They are already invisible."""
    count = call.existing_space().facts.sweep()
    call.out.answer({"swept": count}, line(f"{count} expired facts erased"))


@command(app, examples=["memplane wipe"])
def wipe(call: CommandContext) -> None:
    """Rewrite the data files, to erase forgotten data whose receipt says `off_disk: false`."""
    done = call.existing_space().ledger.wipe()
    words = "Files rewritten" if done else "Another process is reading; try again later"
    call.out.answer({"wiped": done}, line(words))


@command(app, examples=["memplane purge", "memplane purge --days 30"])
def purge(
    call: CommandContext,
    days: Annotated[
        int | None,
        typer.Option(
            "--days", min=0, help="Keep memories superseded within this many days (default: the setting, 90)."
        ),
    ] = None,
) -> None:
    """Remove memories that were superseded long ago. The ledger keeps their entries."""
    count = call.existing_space().purge(days)
    call.out.answer({"purged": count}, line(f"{count} superseded memories removed"))


def _make_sure(call: CommandContext, planned: Receipt, *, everything: bool) -> None:
    """Ask for confirmation on a terminal. Elsewhere, only emptying a space needs --yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if everything:
            raise InvalidRequest("--everything empties the space; add --yes to confirm")
        return
    call.out.show(_receipt(planned))
    if not call.out.confirm("Delete this permanently?"):
        call.out.note("Nothing was forgotten.")
        raise typer.Exit(MENDABLE)


def _receipt(receipt: Receipt) -> Table:
    rows: list[tuple[str, object]] = [
        ("would forget" if receipt.dry_run else "forgotten", _words(receipt.counts)),
        ("scope", _words(receipt.scope)),
    ]
    if receipt.reason:
        rows.append(("reason", receipt.reason))
    if not receipt.dry_run:
        rows += [
            ("receipt", receipt.id),
            ("at", f"{when(receipt.at)}, ledger entry {receipt.seq}"),
            ("digest", receipt.digest),
            (
                "off disk",
                "yes" if receipt.off_disk else "not yet; run `memplane wipe` later",
            ),
        ]
    return pairs(rows)


def _receipt_lines(receipt: Receipt) -> tuple[Text, Text]:
    """Return two lines: what was forgotten, and its proof."""
    reason = f" ({receipt.reason})" if receipt.reason else ""
    proof = " · ".join((when(receipt.at), receipt.id, f"{receipt.seq}:{receipt.digest}"))
    went = line((_words(receipt.counts), "bold"), f" of {_words(receipt.scope)}{reason}")
    return went, line((f"  {proof}", "dim"))


def _words(values: dict[str, Any]) -> str:
    """Format names and values, such as `turns 2, facts 1`, without zeros."""
    return ", ".join(_word(name, value) for name, value in values.items() if value != 0) or "nothing"


def _word(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name} {' '.join(map(str, value))}" if isinstance(value, list | tuple) else f"{name} {value}"
