"""How long the server takes for every page of the console: `python -m benchmarks.console [--memories N] [--quick] [--json]`.

No browser and no socket: the application is asked in this process, so that what is measured is what the server does. One space
holds as many memories as are asked for, made up from a seed: stored, under keys, and read out of turns, some of them replaced, at
odds or forgotten; beside it there are many small spaces, for the page that lists them.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx

from benchmarks.measure import Figure, arguments_of, at_most, median, report
from benchmarks.recall import Talk
from memplane import Memplane, Space
from memplane.adapters.all import build_app
from memplane.clock import DAY, to_datetime
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import PutPayload, StorePayload, TurnPayload, encode
from memplane.types import Kind, NewEntry, Op

OWNER = "bench"
ASKED_MS = 100.0

_BATCH = 5_000
_SMALL = "small"
_HOST = "http://127.0.0.1:8700"
_KINDS = (Kind.FACT, Kind.PREFERENCE, Kind.CONTEXT, Kind.INSTRUCTION, Kind.CORRECTION)
_STORED, _KEYED, _TURNS = range(5), range(5, 7), range(7, 10)
"""Of ten memories, which are stored, put under a key, and read out of a turn."""
_REPLACES_EVERY, _REPLACED_AFTER = 50, 20
_ON_PURPOSE = ("audit, verifying the ledger", "budget, counting everything")
"""Pages that a person asks to go through everything."""
_PLACES = ("Lisbon", "Rome", "Oslo", "Paris", "Berlin", "Madrid", "Vienna")
_TRADES = ("Siemens", "Google", "the library", "the hospital", "a bakery", "the university")


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    memories: int
    spaces: int
    documents: int
    forgets: int
    rounds: int


FULL = Sizes(100_000, 300, 200, 300, 7)
QUICK = Sizes(10_000, 60, 40, 60, 5)
TINY = Sizes(40, 3, 2, 2, 1)


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    with Memplane.open(folder / "data", embedder=None) as plane:
        space = plane.space(OWNER)
        fill(space, sizes)
        for number in range(sizes.spaces):
            small = plane.space(f"{_SMALL} {number}")
            small.store("fact", f"Something of {number}")
            small.enrich()
        figures = [Figure("memories in the space", space.overview.stats().memories, digits=0)]
        found = asyncio.run(_asked(plane, dict(pages_of(space)), sizes.rounds))
    for name, samples in found.items():
        shown = f"{name} ({min(samples):.0f} to {max(samples):.0f})"
        figures.append(
            Figure(shown, median(samples), "ms")
            if name in _ON_PURPOSE
            else at_most(shown, median(samples), ASKED_MS, "ms")
        )
    return figures


# ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────


def fill(space: Space, sizes: Sizes) -> None:
    talk, rng, now = Talk(seed=17), random.Random(17), space.now()
    for number in range(sizes.forgets):  # while there is little to write anew
        gone = space.retain(talk.turn(number), conversation="gone")
        space.forget(entries=[gone.id], reason="of no use")
    step = max(1, 60 * DAY // sizes.memories)
    for first in range(0, sizes.memories, _BATCH):
        numbers = range(first, min(first + _BATCH, sizes.memories))
        space.ledger.load(
            [_draft(talk, rng, number, now - (sizes.memories - number) * step) for number in numbers]
        )
        space.ledger.catch_up()
    space.enrich()
    for number in range(sizes.documents):
        space.documents.upload(
            f"# {talk.turn(number)}\n\n" + talk.turn(number) * 40, name=f"document {number}"
        )
    space.enrich()


def _draft(talk: Talk, rng: random.Random, number: int, at: int) -> NewEntry:
    sort = number % 10
    if sort in _STORED:
        stored = StorePayload(kind=_KINDS[number % len(_KINDS)], content=talk.turn(number), at=at)
        replaced = f"bench-{number - _REPLACED_AFTER}" if number % _REPLACES_EVERY == 0 else None
        if number < _REPLACED_AFTER:
            replaced = None
        return NewEntry(f"bench-{number}", Op.STORE, encode(stored), ref=replaced)
    if sort in _KEYED:
        put = PutPayload(key=f"people/{number}", value=talk.turn(number), category="people", at=at)
        return NewEntry(new_id("put", at), Op.PUT, encode(put))
    name = Talk.name(rng.randrange(9_973))
    said = rng.choice(
        (
            f"{name} lives in {rng.choice(_PLACES)}.",
            f"{name} works at {rng.choice(_TRADES)}.",
            f"I like {talk.turn(number)[2:40]}.",
        )
    )
    content = TurnPayload(role="user", content=said, at=at, conversation=f"c{number // 50}")
    return NewEntry(new_id("turn", at), Op.TURN, encode(content))


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────────


def pages_of(space: Space) -> Iterator[tuple[str, str]]:
    here = f"/console/space/@{OWNER}"
    memory = space.memories(limit=1)[0]
    derived = next((found for found in space.memories(state="active", limit=1_000) if found.derived), memory)
    document = space.documents.list(limit=1)[0]
    receipt = space.ledger.newest_receipts(limit=1)[0]
    subjects = space.overview.subjects(limit=2)
    past = f"{to_datetime(space.now() - 30 * DAY):%Y-%m-%d}"
    yield "home", "/console"
    yield "home, further", "/console?page=2"
    yield "overview", here
    yield "timeline", f"{here}/timeline"
    yield "timeline, one conversation", f"{here}/timeline?conversation=c0"
    yield "timeline, a door nobody used", f"{here}/timeline?door=nowhere"
    yield "timeline, a role nobody has", f"{here}/timeline?role=tool"
    yield "timeline, forgets", f"{here}/timeline?op=forget"
    for name, query in (
        ("before a day", f"until={past}"),
        ("from a day", f"since={past}"),
        ("a door nobody used, before a day", f"door=nowhere&until={past}"),
        ("of no time", "until=1980-01-01"),
    ):
        yield f"timeline, {name}", f"{here}/timeline?{query}"
    yield "one entry", f"{here}/timeline/@{quote(derived.entry_id, safe='')}"
    yield "memories", f"{here}/memories"
    yield "memories, page 200", f"{here}/memories?page=200"
    yield "memories, corrections", f"{here}/memories?kind=correction"
    for state in ("active", "contested", "superseded", "expired"):
        yield f"memories, {state}", f"{here}/memories?state={state}"
    for tier in ("hot", "cold"):
        yield f"memories, {tier}", f"{here}/memories?tier={tier}"
    yield "memories, a rare word", f"{here}/memories?q={Talk.name(4_711)}"
    yield "memories, one letter", f"{here}/memories?q=t"
    yield "memories, half a name", f"{here}/memories?q={Talk.name(4_711)[:-2]}"
    yield "memories, common words", f"{here}/memories?q=the+day+was+in+the"
    yield "memories, common words, hot", f"{here}/memories?q=the+day+was&tier=hot&state=active"
    yield "one memory", f"{here}/memories/@{quote(memory.id, safe='')}"
    yield "one derived memory", f"{here}/memories/@{quote(derived.id, safe='')}"
    yield "recall", f"{here}/recall?q=Where+does+{Talk.name(4_711)}+live%3F"
    yield "recall, as of", f"{here}/recall?q=Where+does+{Talk.name(4_711)}+live%3F&as_of={past}"
    yield "why not", f"{here}/recall/why-not?q=Where+does+{Talk.name(4_711)}+live%3F&id={memory.id}"
    yield "inbox", f"{here}/inbox"
    yield "graph", f"{here}/graph"
    yield "graph of one", f"{here}/graph?subject={quote(subjects[-1] if subjects else 'user')}"
    yield "graph, as of", f"{here}/graph?subject=user&as_of={past}"
    yield "compare", f"{here}/compare"
    yield "compare two months", f"{here}/compare?begin=2020-01-01"
    yield "compare two months, page 100", f"{here}/compare?begin=2020-01-01&page=100"
    yield "documents", f"{here}/documents"
    yield "one document", f"{here}/documents/@{quote(document.id, safe='')}"
    yield "brief", f"{here}/brief"
    yield "budget", f"{here}/budget"
    yield "budget, counting everything", f"{here}/budget?exact=yes"
    yield "receipts", f"{here}/receipts"
    yield "one receipt", f"{here}/receipts/@{quote(receipt.id, safe='')}"
    yield "audit", f"{here}/audit"
    yield "audit, verifying the ledger", f"{here}/audit?verify=yes"
    yield "sync", f"{here}/sync"
    yield "keys", "/console/keys"


async def _asked(plane: Memplane, pages: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every page, asked in turn; the first round is not counted, since caches are filled with it."""
    found: dict[str, list[float]] = {name: [] for name in pages}
    transport = httpx.ASGITransport(app=build_app(plane, None, plane.settings))
    async with httpx.AsyncClient(transport=transport, base_url=_HOST) as client:
        for number in range(rounds + 1):
            for name, path in pages.items():
                started = time.perf_counter()
                answer = await client.get(path)
                took = (time.perf_counter() - started) * 1_000
                answer.raise_for_status()
                if number:
                    found[name].append(took)
    return found


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--memories", type=int, help="how many memories the large space holds")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    if arguments.memories:
        sizes = Sizes(arguments.memories, sizes.spaces, sizes.documents, sizes.forgets, sizes.rounds)
    report("memplane console", arguments, lambda folder: run(sizes, folder))


if __name__ == "__main__":
    main()
