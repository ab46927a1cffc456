"""Compaction and its review, retention policy, daily summaries and token budget."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from memplane.clock import DAY
from memplane.compaction.retention import day_of
from memplane.compaction.review import CompactedDay, CompactionReport, Learning
from memplane.config import reason_of
from memplane.errors import InvalidRequest
from memplane.space import Space
from memplane.storage.compaction import LearningStatus
from memplane.sync.budget import TokenBudget, budget_of
from memplane.sync.digests import shorter
from memplane.sync.summaries import sections
from memplane.sync.tree.daily import DailySummary, summary_of
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command, default
from memplane.terminal.options import LISTED_DEFAULT, Limit, SpaceArgument
from memplane.terminal.output import cell, counted, line, table

app = typer.Typer()
compact = typer.Typer(help="Compact old days into digests and drafts, and review the result.")
app.add_typer(compact, name="compact")

Day = Annotated[str | None, typer.Option("--day", metavar="DAY", help="A day (UTC), such as 2026-11-15.")]

_KIB = 1_024


@default(
    compact,
    examples=[
        "memplane compact --space alice --dry-run",
        "memplane compact --space alice",
        "memplane compact --day 2026-11-02 --json",
        "memplane compact review --space alice",
    ],
)
def run(
    call: CommandContext,
    day: Day = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")
    ] = False,
) -> None:
    """Compact days that are due, then remove their raw text.

    Preferences and instructions become drafts to confirm, facts go to the weekly digest, and the rest is discarded.
    Without a retention policy (`memplane retention`) no day is due; --day compacts one day anyway, without removing it.
    """
    done = call.existing_space().compact(day=day, dry_run=dry_run)
    call.out.answer(done, *_compaction(done))
    if not (done.days or done.digests_removed or done.summaries_removed):
        call.out.note("Nothing is due; `memplane retention` shows the policy.")


@command(
    compact,
    examples=[
        "memplane compact review --space alice           # interactive on a terminal",
        "memplane compact review --confirm learn-3f0c9a1b22d4 --reject learn-77aa01cd93e0",
        "memplane compact review --day 2026-11-02 --json",
    ],
)
def review(
    call: CommandContext,
    day: Day = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option("--confirm", metavar="ID", help="Store this draft as a memory; repeatable."),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option("--reject", metavar="ID", help="Reject this draft; repeatable."),
    ] = None,
    limit: Limit = LISTED_DEFAULT,
) -> None:
    """List compaction decisions with their reasons, and confirm or reject drafts.

    On a terminal, asks about every open draft. Ids may be abbreviated as shown.
    """
    space = call.existing_space()
    drafts = space.review.drafts()
    chosen = [(_named(drafts, id_), True) for id_ in confirm or ()]
    chosen += [(_named(drafts, id_), False) for id_ in reject or ()]
    for learning, confirmed in chosen:
        _decide(space, learning, confirmed=confirmed)
    if not chosen and not call.out.json and sys.stdin.isatty() and sys.stderr.isatty():
        _review_drafts(call, space, drafts)
    drafts = [it for it in space.review.drafts() if day is None or day in it.days]
    judged = space.review.judgements(day, limit=limit)
    call.out.answer({"learnings": drafts, "judgements": judged}, *_drafts(drafts))
    if judged:
        rows = (
            (it.day, it.outcome, it.reason, it.entry, shorter(it.into) if it.into else "") for it in judged
        )
        call.out.print_part(table("day", "outcome", "reason", "entry", "stored as", rows=rows))


@command(app, examples=["memplane retention", "MEMPLANE_RETENTION=adr memplane retention --space alice"])
def retention(call: CommandContext) -> None:
    """Show the retention policy and what it would remove now."""
    standing = call.existing_space().overview.retention()
    shown: list[RenderableType] = [line(words) for words in standing.words]
    entries = sum(due.entries for due in standing.due)
    if standing.due or standing.digest_lines_due or standing.summary_lines_due:
        days = counted(len(standing.due), "raw day", "raw days")
        first = f" ({standing.due[0].day} to {standing.due[-1].day})" if standing.due else ""
        shown.append(
            line(
                f"Due now: {days}{first} with {counted(entries, 'entry', 'entries')}, and "
                f"{counted(standing.digest_lines_due + standing.summary_lines_due, 'line', 'lines')} of digests, rejected drafts and summaries. "
                "Run `memplane compact` to compact and remove them."
            )
        )
    else:
        shown.append(line("Nothing is due."))
    if standing.learnings_open:
        shown.append(
            line(
                f"{counted(standing.learnings_open, 'draft needs', 'drafts need')} review: `memplane compact review`."
            )
        )
    call.out.answer(standing, *shown)


@command(
    app,
    examples=[
        "memplane summary alice                            # yesterday, in UTC",
        "memplane summary alice --day 2026-11-02 --html > day.html",
        "memplane summary alice --json",
    ],
)
def summary(
    call: CommandContext,
    name: SpaceArgument = None,
    day: Day = None,
    html: Annotated[bool, typer.Option("--html", help="Print the HTML page that sync writes.")] = False,
) -> None:
    """Show a daily summary: threads that need an answer, were answered, or were started by the agent.

    Uses fixed rules and no model. Also works for removed days, as long as the retention policy keeps summaries.
    """
    call.name_space(name)
    space = call.existing_space()
    found = summary_of(space, day or day_of(space.now() - DAY))
    document = {"day": found.day, "counts": found.counts, **found.buckets}
    if html:
        call.out.answer_text({**document, "html": found.html}, found.html)
    else:
        call.out.answer(document, *_summary(found))


def _summary(found: DailySummary) -> Iterator[RenderableType]:
    for title, entries in sections(found.buckets):
        yield line((title, "bold"), "" if entries else ": none")
        for entry in entries:
            yield line(f"  {entry['sender']}: ", entry["summary"])


@command(
    app,
    examples=["memplane budget --space alice", "memplane budget --summaries ./data/summaries --json"],
)
def budget(
    call: CommandContext,
    summaries: Annotated[
        Path | None,
        typer.Option("--summaries", metavar="DIR", help="Also count the daily summaries in this folder."),
    ] = None,
) -> None:
    """Show how many tokens of memory an agent loads at startup, per layer, and what to shorten."""
    found = budget_of(call.existing_space(), summaries=() if summaries is None else _files(summaries))
    document = {
        "layers": found.layers,
        "bytes": found.bytes,
        "tokens": found.tokens,
        "tokens_by_bytes": found.tokens_by_bytes,
        "budget_tokens": found.budget_tokens,
        "window_tokens": found.window_tokens,
        "fits": found.fits,
        "advice": found.advice,
    }
    call.out.answer(document, _budget(found), *(line(words) for words in found.advice))


def _files(folder: Path) -> Iterator[bytes]:
    try:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                yield file.read_bytes()
    except OSError as exc:
        raise InvalidRequest(f"cannot read {folder}: {reason_of(exc)}", field="summaries") from exc


def _budget(found: TokenBudget) -> RenderableType:
    rows = [
        (it.layer, f"{it.items:,}", _size(it.bytes), f"{it.tokens:,}", f"{it.tokens_by_bytes:,}")
        for it in found.layers
    ]
    rows.append(("Total", "", _size(found.bytes), f"{found.tokens:,}", f"{found.tokens_by_bytes:,}"))
    return table("Layer", "Items", "Size", "Tokens", "At 4 bytes/token", rows=rows)


def _size(count: int) -> str:
    return f"{count:,} B" if count < _KIB else f"{count / _KIB:,.1f} KB"


def _compaction(done: CompactionReport) -> Iterator[RenderableType]:
    for day in done.days:
        yield line((day.day, "bold"), f": {_counts(day, dry_run=done.dry_run)}")
        for text in day.learnings:
            yield line("  draft: ", text)
        for text in day.digested:
            yield line("  digest: ", text)
        for reason, count in day.discarded.items():
            yield line(f"  discarded: {count:,} as {reason}")
    if done.confirmed:
        yield line(f"{counted(done.confirmed, 'draft', 'drafts')} confirmed by the policy")
    if done.digests_removed:
        verb = "would be removed" if done.dry_run else "removed"
        yield line(
            f"{counted(done.digests_removed, 'line', 'lines')} of old digests and rejected drafts {verb}"
        )
    if done.summaries_removed:
        verb = "would be removed" if done.dry_run else "removed"
        yield line(f"{counted(done.summaries_removed, 'line', 'lines')} of old daily summaries {verb}")
    if done.waiting:
        entries = counted(done.waiting, "entry is", "entries are")
        yield line(f"{entries} not enriched yet; a run enriches them first, so it may find more.")


def _counts(day: CompactedDay, *, dry_run: bool) -> str:
    verb = "would be removed" if dry_run else "removed"
    return f"{counted(day.entries, 'entry', 'entries')} processed, {day.removed:,} {verb}"


def _named(drafts: list[Learning], given: str) -> Learning:
    """Return the draft with this id or unique id prefix."""
    found = [it for it in drafts if any(id_.startswith(given) for id_ in it.ids)] if given else []
    if len(found) != 1:
        what = "no draft id starts" if not found else "several draft ids start"
        raise InvalidRequest(f"{what} with {given!r}; `memplane compact review` lists them")
    return found[0]


def _decide(space: Space, learning: Learning, *, confirmed: bool) -> None:
    if confirmed:
        space.review.confirm(learning.id)
    else:
        space.review.reject(learning.id)


def _review_drafts(call: CommandContext, space: Space, drafts: list[Learning]) -> None:
    for learning in drafts:
        if learning.standing is not LearningStatus.OPEN:
            continue
        call.out.show(
            line((learning.kind, "bold"), f": {learning.text}"),
            line(f"  said on {', '.join(learning.days)}: ", (learning.quote, "dim")),
        )
        sys.stderr.write("Store as a memory? [y]es, [n]o, Enter to skip: ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
        if answer in {"y", "yes", "n", "no"}:
            _decide(space, learning, confirmed=answer.startswith("y"))


def _drafts(drafts: list[Learning]) -> Iterator[RenderableType]:
    if drafts:
        rows = (
            (shorter(it.id), it.standing, it.kind, cell(it.text), ", ".join(it.days), it.by, it.memory or "")
            for it in drafts
        )
        yield table("draft", "status", "kind", "text", "said on", "decided by", "memory", rows=rows)
