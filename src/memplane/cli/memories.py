"""Store and search turns and typed memories."""

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.text import Text

from memplane.recall.marks import UNMARKED, Mark
from memplane.recall.search import LIMIT_DEFAULT, LIMIT_MAX, NO_MODEL, Hit
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import (
    LISTED_DEFAULT,
    Conversation,
    Limit,
    Offset,
    Project,
    Since,
    Tags,
    Until,
    complete_kind,
    complete_role,
    complete_scope,
    read_content,
    read_metadata,
)
from memplane.terminal.output import cell, line, table, when
from memplane.types import Memory, Retained, Visibility

app = typer.Typer()


@command(
    app,
    examples=[
        'memplane retain "I moved to Lisbon last week" --conversation c1',
        "git log -1 --format=%B | memplane retain - --role tool --project site",
    ],
)
def retain(
    call: CommandContext,
    content: Annotated[
        str, typer.Argument(metavar="CONTENT", help="Text of the turn, or - to read it from stdin.")
    ],
    role: Annotated[
        str,
        typer.Option("--role", help="Role: user, assistant, system or tool.", autocompletion=complete_role),
    ] = "user",
    speaker: Annotated[
        str | None,
        typer.Option(
            "--speaker", metavar="NAME", help="Name of the speaker, in a conversation of several people."
        ),
    ] = None,
    conversation: Conversation = None,
    project: Project = None,
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Where it can be recalled: global, project or conversation.",
            autocompletion=complete_scope,
        ),
    ] = Visibility.GLOBAL.value,
    at: Annotated[
        str | None, typer.Option("--at", metavar="DATE", help="Time of the turn (ISO 8601; default: now).")
    ] = None,
    entry_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Entry id; retaining the same id again changes nothing."),
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", metavar="KEY", help="Key that makes retries safe.")
    ] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="JSON object to store with the turn.")
    ] = None,
) -> None:
    """Store a turn. It is durable and searchable when the command returns."""
    extra = read_metadata(metadata)
    kept = call.space().retain(
        read_content(call, content),
        role=role,
        speaker=speaker,
        conversation=conversation,
        project=project,
        at=at,
        id=entry_id,
        idempotency_key=idempotency_key,
        metadata=extra,
        scope=scope,
    )
    call.out.answer(kept, _stored_text(kept))


@command(
    app,
    examples=[
        'memplane store preference "Prefers TypeScript over JavaScript" --tag coding',
        'memplane store fact "Lives in Porto" --supersedes mem-3f0c…',
    ],
)
def store(
    call: CommandContext,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="Kind: preference, fact, instruction, context or correction.",
            autocompletion=complete_kind,
        ),
    ],
    content: Annotated[
        str, typer.Argument(metavar="CONTENT", help="Text of the memory, or - to read it from stdin.")
    ],
    tags: Tags = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="ID", help="Id of the memory to replace.")
    ] = None,
    conversation: Conversation = None,
    project: Project = None,
) -> None:
    """Store a typed memory: one sentence that the agent should know next time."""
    memory = call.space().store(
        kind,
        read_content(call, content),
        tags=tags or (),
        supersedes=supersedes,
        conversation=conversation,
        project=project,
    )
    replaced = ("", "") if memory.supersedes is None else (f", replaces {memory.supersedes}", "dim")
    call.out.answer(memory, line(("Stored", "green"), f" as {memory.kind} {memory.id}", replaced))


@command(
    app,
    examples=[
        "memplane search typescript",
        "memplane search 'what does she drink?'",
        "memplane search 里斯本 --since 2026-11-01",
        "memplane search --kind preference --tag coding      # newest first, without a query",
    ],
)
def search(
    call: CommandContext,
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="Search text; without it, the newest first. - reads stdin."),
    ] = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            metavar="KIND",
            help="Only this kind; repeatable.",
            autocompletion=complete_kind,
        ),
    ] = None,
    tags: Tags = None,
    since: Since = None,
    until: Until = None,
    conversation: Conversation = None,
    project: Project = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="NAME", help="Only facts in this category.")
    ] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Include superseded memories.")] = False,
    memories: Annotated[
        bool, typer.Option("--memories/--no-memories", help="Search memories and facts.")
    ] = True,
    turns: Annotated[bool, typer.Option("--turns/--no-turns", help="Search turns.")] = True,
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Only results that contain a word of the query.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=LIMIT_MAX, help="Maximum number of results.")
    ] = LIMIT_DEFAULT,
) -> None:
    """Search memories, facts and turns by words and by meaning.

    Results that contain all words of the query come first, then similar ones.
    """
    hits = call.existing_space().search(
        read_content(call, query),
        kinds=kinds or (),
        tags=tags or (),
        since=since,
        until=until,
        conversation=conversation,
        project=project,
        category=category,
        include_superseded=superseded,
        memories=memories,
        turns=turns,
        limit=limit,
        words_only=words_only,
    )
    call.out.answer({"hits": hits, "degraded": hits.degraded}, *(part for hit in hits for part in _hit(hit)))
    if not hits:
        call.out.empty("No results.")
    for reason in hits.degraded:
        if reason != NO_MODEL:  # somebody decided that
            call.out.warn(f"the result may be incomplete: {reason}")


@command(app, examples=["memplane brief", "memplane brief --space alice > MEMORY.md"])
def brief(call: CommandContext, conversation: Conversation = None, project: Project = None) -> None:
    """Print the session brief for an agent, as Markdown.

    With --conversation or --project, includes memories with that scope.
    """
    made = call.existing_space().brief(conversation=conversation, project=project)
    call.out.answer_text(made, made.markdown)
    if not made.entries:
        _note_pending(call)
        call.out.note("No memories yet; `memplane store` adds one.")


def _note_pending(call: CommandContext) -> None:
    """Turns that were not read for facts yet explain an empty list."""
    pending = call.existing_space().overview.enrichment().waiting.entries
    if pending:
        call.out.empty(
            f"{pending:,} ledger entries are not read for facts yet; `memplane enrich` does it now."
        )


@command(app, examples=["memplane conversations", "memplane conversations --project site"])
def conversations(
    call: CommandContext, project: Project = None, limit: Limit = LISTED_DEFAULT, offset: Offset = 0
) -> None:
    """List conversations, most recent first."""
    found = call.existing_space().conversations(project=project, limit=limit, offset=offset)
    rows = [(one.id, one.project or "", one.turns, when(one.first_at), when(one.last_at)) for one in found]
    call.out.answer(
        {"conversations": found}, table("conversation", "project", "turns", "first", "last", rows=rows)
    )


@command(
    app,
    examples=["memplane memories", "memplane memories --state superseded", "memplane memories --tier hot"],
)
def memories(
    call: CommandContext,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="STATE", help="Only this state: active, contested, superseded or expired."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", "-k", metavar="KIND", help="Only this kind.", autocompletion=complete_kind),
    ] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", metavar="NAME", help="Only this predicate, such as lives_in.")
    ] = None,
    tier: Annotated[
        str | None, typer.Option("--tier", metavar="TIER", help="Only this tier: hot, warm or cold.")
    ] = None,
    conversation: Conversation = None,
    project: Project = None,
    limit: Limit = LISTED_DEFAULT,
    offset: Offset = 0,
) -> None:
    """List memories of any state and scope, newest first."""
    space = call.existing_space()
    found = space.memories(
        state=state,
        kind=kind,
        predicate=predicate,
        conversation=conversation,
        project=project,
        tier=tier,
        limit=limit,
        offset=offset,
    )
    marks = space.overview.marks(found)
    rows = [
        (one.id, one.kind, _marked(one, marks), one.state, one.tier, f"{one.importance:.2f}") for one in found
    ]
    call.out.answer(
        {"memories": found}, table("id", "kind", "text", "state", "tier", "importance", rows=rows)
    )
    if not found:
        _note_pending(call)


def _marked(memory: Memory, marks: Mapping[str, Mark]) -> str:
    return f"{memory.line}{marks.get(memory.id, UNMARKED).text}"


def _stored_text(kept: Retained) -> Text:
    if kept.suppressed:
        return line(("Not stored", "yellow"), f": {kept.id} was forgotten")
    if kept.deduped:
        return line(("Already stored", "yellow"), f" as {kept.id}, entry {kept.seq}")
    return line(("Stored", "green"), f" as {kept.id}, entry {kept.seq}")


def _hit(hit: Hit) -> tuple[Text, Text]:
    """Return two lines: the text, and its source."""
    memory, turn = hit.memory, hit.turn
    said = f"{hit.text if memory is None else memory.line}{hit.mark}"
    kind = memory.kind.value if memory is not None else f"{turn.role if turn is not None else 'a'} turn"
    facts = [kind, when(hit.at), f"{hit.score:.2f}" if hit.score else "", hit.id]
    if memory is not None:
        facts += [memory.state.value if memory.superseded_by else "", *(f"#{tag}" for tag in memory.tags)]
    return cell(said, style="bold"), line(("  " + " · ".join(fact for fact in facts if fact), "dim"))
