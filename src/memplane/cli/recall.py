"""Recall, enrichment, conflicts and feedback."""

from typing import Annotated

import typer
from rich.table import Table

from memplane.documents.result import SpanHit
from memplane.recall.explain import need_explained, probability_text, returned_text
from memplane.recall.request import RecallRequest
from memplane.recall.result import SPANS_MAX, Limits, Recall, RecallHit
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import read_content
from memplane.terminal.output import cell, counted, feedback_text, line, pairs, table, when

app = typer.Typer()

Query = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help="The next turn or a question, or - to read it from stdin. Empty: what is useful before the first one.",
    ),
]


CurrentConversation = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        "-c",
        metavar="NAME",
        help="Current conversation: include what is limited to it and a summary of its earlier parts, without its newest turns, "
        "which the agent has.",
    ),
]


@command(
    app,
    examples=[
        'memplane recall "where does she live?"',
        'memplane recall "what is left to do?" --conversation c1 >> prompt.txt',
        'memplane recall "where does she live?" --explain',
        'memplane recall "where did she live?" --as-of 2026-01-01',
        'memplane recall "what is it about?" --document doc-019a…',
    ],
)
def recall(
    call: CommandContext,
    query: Query,
    conversation: CurrentConversation = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            "-p",
            metavar="NAME",
            help="Include memories of this project; search its documents and those without a project.",
        ),
    ] = None,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="Recall from this document.")
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="ID", help="Recall from this collection.")
    ] = None,
    spans: Annotated[
        int,
        typer.Option(
            "--spans", min=0, max=SPANS_MAX, metavar="N", help="Maximum number of document passages."
        ),
    ] = Limits().spans,
    reference_time: Annotated[
        str | None,
        typer.Option("--reference-time", metavar="DATE", help="Time that `last week` refers to (ISO 8601)."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="DATE", help="Answer as of this time (ISO 8601).")
    ] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Include superseded memories.")] = False,
    tokens: Annotated[
        int | None, typer.Option("--tokens", min=0, metavar="N", help="Maximum number of tokens.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what is returned and why: each hit with its probability and channels."
        ),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option("--expect", metavar="ID", help="Explain why this entry or memory is recalled or not."),
    ] = None,
) -> None:
    """Print the memories for an agent's next turn, fenced and ready for a prompt."""
    space, question = call.existing_space(), read_content(call, query)
    request = RecallRequest(
        query=question,
        conversation=conversation,
        project=project,
        document=document,
        collection=collection,
        reference_time=reference_time,
        as_of=as_of,
        include_superseded=superseded,
        limits=Limits(tokens=tokens, spans=spans),
    )
    if expect is not None:
        why = space.why_not(request, expect)
        call.out.answer({"id": expect, "why": why}, line(why))
    else:
        _print_recall(call, space.recall(request), explain=explain)


def _print_recall(call: CommandContext, result: Recall, *, explain: bool) -> None:
    if explain:
        call.out.answer(result, *_explained(result))
    else:
        call.out.answer_text(result, result.text)
    for reason in result.degraded:
        call.out.warn(f"the result may be incomplete: {reason}")
    if not result.blocks and not result.text:
        call.out.note("No matching memories.")


@command(app, examples=["memplane enrich", "memplane enrich --space alice --json"])
def enrich(call: CommandContext) -> None:
    """Run pending enrichment: extract facts and compute embeddings. A recall also runs a part of it.

    After a change of the embedding model (MEMPLANE_EMBEDDING_MODEL), everything is embedded again.
    """
    space = call.existing_space()
    with call.out.progress("Enriching") as advance:
        steps = space.enrich(progress=lambda done: advance(done, None))
    state, sizes = space.overview.enrichment(), space.overview.stats()
    call.out.answer(
        {"steps": steps, "memories": sizes.memories, "enrichment": state},
        line(
            ("Enriched", "green"),
            f" in {counted(steps, 'step', 'steps')}: {counted(sizes.memories, 'memory', 'memories')}",
        ),
    )
    if state.poisoned:
        call.out.warn(
            f"{counted(state.poisoned, 'entry', 'entries')} failed fact extraction; they can still be found by keyword"
        )


@command(app, examples=["memplane conflicts"])
def conflicts(call: CommandContext) -> None:
    """List unresolved conflicts."""
    found = call.existing_space().review.conflicts()
    sides = [memory for conflict in found for memory in (conflict.left, conflict.right)]
    rows = [(memory.id, memory.line, when(memory.updated_at)) for memory in sides]
    call.out.answer({"conflicts": found}, table("id", "text", "since", rows=rows))


@command(app, examples=["memplane resolve fact-3f0c…"])
def resolve(
    call: CommandContext,
    winner: Annotated[str, typer.Argument(metavar="ID", help="Id of the memory to keep.")],
) -> None:
    """Resolve a conflict: keep this memory and supersede the ones it conflicts with."""
    memory = call.existing_space().review.resolve(winner)
    call.out.answer(memory, line(("Resolved", "green"), f": {memory.line}"))


@command(
    app,
    examples=["memplane feedback fact-3f0c…", "memplane feedback fact-3f0c… --ignored mem-91d2… --rating 4"],
)
def feedback(
    call: CommandContext,
    selected: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of memories that were useful.")
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option("--ignored", metavar="ID", help="Id of a memory that was not useful; repeatable."),
    ] = None,
    rating: Annotated[
        int | None, typer.Option("--rating", min=1, max=5, help="Rating of the recall, 1 to 5.")
    ] = None,
    recall: Annotated[str, typer.Option("--recall", metavar="NAME", help="Id of the recall.")] = "",
) -> None:
    """Rate recalled memories: useful ones gain importance, the others lose it."""
    noted = call.existing_space().feedback(selected or (), ignored or (), recall=recall, rating=rating)
    call.out.answer(
        {"facts_recorded": noted}, line(("Recorded", "green"), f" for {counted(noted, 'memory', 'memories')}")
    )


def _explained(result: Recall) -> tuple[Table, Table]:
    routing = result.routing
    hits: list[RecallHit | SpanHit] = [*result.hits, *result.suspects, *result.spans]
    return (
        pairs(
            [
                ("memory", need_explained(result)),
                ("tokens", f"{result.tokens:,} of {result.tokens_max:,}"),
                ("blocks", len(result.blocks)),
                ("mode", routing.mode),
                ("predicates", ", ".join(routing.predicates) or "none"),
                ("speakers", ", ".join(routing.speakers) or "none"),
                ("time", routing.temporal_intent or "none"),
                ("channels", ", ".join(routing.channels)),
                ("documents", routing.strategy or "none"),
                ("took", f"{result.timings.get('total', 0):.1f} ms"),
            ]
        ),
        table(
            "hit",
            "returned",
            "probability",
            "channels (rank)",
            "id",
            rows=[_row(hit, result) for hit in hits],
        ),
    )


def _row(hit: RecallHit | SpanHit, result: Recall) -> tuple[object, ...]:
    channels = ", ".join(
        f"{name} {value:+.2f}" + (f" ({hit.ranks[name]})" if name in hit.ranks else "")
        for name, value in hit.channels.items()
    )
    returned = returned_text(result, hit) or "no"
    if isinstance(hit, SpanHit):
        return cell(hit.span.text, chars_max=120), returned, "", channels, hit.span.id
    said = hit.memory.line if hit.memory is not None else hit.turn.text if hit.turn is not None else ""
    if hit.memory is not None and hit.memory.importance_base is not None:
        channels += f"; {feedback_text(hit.memory)}"
    probability = "" if hit.flags else probability_text(hit.probability)
    return cell(f"{said}{hit.mark}", chars_max=160), returned, probability, channels, hit.id
