"""The memories pages: a table with filters, and the details of one memory."""

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import links
from memplane.console.forms import Form
from memplane.console.pages import redirect
from memplane.console.views import Row, space_of, space_page, writable_space
from memplane.recall.search import SearchResults
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space
from memplane.types import STORABLE_KINDS, Kind, Memory, State, Tier

TAB = "memories"

_PAGE_SIZE = 50
_LISTING = (
    Query(name="q", default=""),
    Query(name="kind", default=""),
    Query(name="state", default=""),
    Query(name="tier", default=""),
    Query(name="words_only", default=""),
    Query(name="page", type=int, default=1),
)


class EvidenceContext(msgspec.Struct, frozen=True):
    """The source text of a memory: its quote and the words around it."""

    memory: Memory
    before: str
    quote: str
    after: str


def listing(call: HttpCall) -> Response:
    """Search by words and meaning if there is a query, else list the newest first."""
    space = space_of(call)
    asked = {name: call.query[name] for name in ("q", "kind", "state", "tier", "words_only")}
    number = max(1, call.query["page"])
    hits = _hits(space, asked) if asked["q"].strip() else None
    found, more = _listed(space, asked, number) if hits is None else (_fitting(hits, asked), False)
    return space_page(
        call,
        "memories.html",
        TAB,
        space,
        asked=asked,
        number=number,
        more=more,
        memories=found,
        marks=space.overview.marks(found),
        similar={hit.id for hit in hits or () if set(hit.channels) == {"meaning"}},
        degraded=() if hits is None else hits.degraded,
        kinds=list(Kind),
        states=list(State),
        tiers=list(Tier),
    )


def _hits(space: Space, asked: dict[str, str]) -> SearchResults:
    return space.search(
        asked["q"],
        kinds=[asked["kind"]] if asked["kind"] else [],
        turns=False,
        include_superseded=asked["state"] != State.ACTIVE,
        limit=_PAGE_SIZE,
        typing=True,
        words_only=bool(asked["words_only"]),
    )


def _fitting(hits: SearchResults, asked: dict[str, str]) -> list[Memory]:
    return [
        hit.memory
        for hit in hits
        if hit.memory is not None
        and asked["state"] in ("", hit.memory.state)
        and asked["tier"] in ("", hit.memory.tier)
    ]


def _listed(space: Space, asked: dict[str, str], number: int) -> tuple[list[Memory], bool]:
    found = space.memories(
        kind=asked["kind"] or None,
        state=asked["state"] or None,
        tier=asked["tier"] or None,
        limit=_PAGE_SIZE + 1,
        offset=(number - 1) * _PAGE_SIZE,
    )
    return found[:_PAGE_SIZE], len(found) > _PAGE_SIZE


def one(call: HttpCall) -> Response:
    space = space_of(call)
    memory = space.memory(links.owner_of(call.path_params["memory"]))
    return space_page(
        call,
        "memory.html",
        TAB,
        space,
        memory=memory,
        places=[_evidence_context(space, place) for place in space.evidence(memory.id)],
        chain=space.overview.lineage(memory.id),
        history=space.history(memory.key) if memory.key is not None else [],
        rivals=_rivals(space, memory),
        told=space.overview.recall_count(memory.id),
        kinds=STORABLE_KINDS,
        may_write=call.principal.allows(Right.WRITE, adapter=call.endpoint.adapter, space=space.owner),
    )


def edit(call: HttpCall) -> Response:
    """Store a new version; the previous one remains in the version history."""
    form, space = Form(call), writable_space(call)
    memory = space.memory(links.owner_of(call.path_params["memory"]))
    if memory.key is not None:
        made = space.put(
            memory.key, form.text("text"), category=memory.category, tags=_tags(form.text("tags"))
        )
    else:
        made = space.store(
            form.text("kind", memory.kind),
            form.text("text"),
            tags=_tags(form.text("tags")),
            supersedes=memory.id,
            conversation=memory.conversation,
            project=memory.project,
        )
    return redirect(call, _link(space, made.id))


def forget(call: HttpCall) -> Response:
    """Show a dry run first; forget on confirmation."""
    form, space = Form(call), writable_space(call)
    memory = space.memory(links.owner_of(call.path_params["memory"]))
    if form.text("sure") == "yes":
        receipt = space.delete(memory.id)
        return redirect(call, links.space_link(space.owner, f"receipts/{links.named(receipt.id)}"))
    entries = dict.fromkeys(place.entry_id for place in space.evidence(memory.id))
    dry = space.forget(entries=entries, dry_run=True)
    return space_page(call, "memory_forget.html", TAB, space, memory=memory, receipt=dry)


def pin(call: HttpCall) -> Response:
    form, space = Form(call), writable_space(call)
    memory = space.review.pin(links.owner_of(call.path_params["memory"]), pinned=form.text("pinned") == "yes")
    return redirect(call, _link(space, memory.id))


def release(call: HttpCall) -> Response:
    Form(call)
    space = writable_space(call)
    memory = space.memory(links.owner_of(call.path_params["memory"]))
    space.review.release(memory.id)
    return redirect(call, _link(space, memory.id))


def _link(space: Space, memory_id: str) -> str:
    return links.space_link(space.owner, f"memories/{links.named(memory_id)}")


def _tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def _rivals(space: Space, memory: Memory) -> list[Memory]:
    if memory.state is not State.CONTESTED:
        return []
    pairs = [(conflict.left, conflict.right) for conflict in space.review.conflicts(of=memory.id)]
    return [right if left.id == memory.id else left for left, right in pairs]


def _evidence_context(space: Space, memory: Memory) -> EvidenceContext:
    if memory.quote is None:
        return EvidenceContext(memory, "", memory.text, "")
    turn = next(
        (turn for turn in space.overview.turns_of(memory.entry_id) if turn.ordinal == (memory.ordinal or 0)),
        None,
    )
    if turn is None or turn.text[memory.start : memory.end] != memory.quote:
        return EvidenceContext(memory, "", memory.quote, "")
    return EvidenceContext(memory, turn.text[: memory.start], memory.quote, turn.text[memory.end :])


def rows() -> list[Row]:
    memory = "/space/{space}/memories/{memory}"
    return [
        ("GET", "/space/{space}/memories", listing, Right.READ, _LISTING),
        ("GET", memory, one, Right.READ, ()),
        ("POST", f"{memory}/edit", edit, Right.WRITE, ()),
        ("POST", f"{memory}/forget", forget, Right.WRITE, ()),
        ("POST", f"{memory}/pin", pin, Right.WRITE, ()),
        ("POST", f"{memory}/release", release, Right.WRITE, ()),
    ]
