"""What the proxy adds to a turn: `python -m benchmarks.proxy [--quick] [--json]`.

A provider that answers at once, `memplane serve` and a client that keeps its connection, each a process of its own on one
machine. The same requests go direct and through the proxy, in turns, so that both meet the same machine; what is added
is the difference of their percentiles. Memory is made up, as in `benchmarks.recall`; questions are really embedded, and
each turn is durable before its answer ends.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Figure, arguments_of, at_most, median, percentile, report
from benchmarks.proxy_upstream import CHUNKS
from benchmarks.recall import MadeUp, Talk
from benchmarks.server import Served, serving
from memplane import Memplane
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import TurnPayload, encode
from memplane.models.local import LocalEmbedder
from memplane.types import NewEntry, Op

OWNER, HUNG = "bench", "hung"
OFF_MS_MAX, ON_MS_MAX = 2.0, 15.0
BOX_MS = 300
_BOX_SLACK_MS = 50
_START = 1_790_000_000_000_000
_MINUTE = 60_000_000
_PATH = "/v1/chat/completions"
_SHARES = (50, 95, 99)
_BETWEEN_TURNS_S = 0.1
"""A model takes longer than that to answer. What was kept of the last turn is enriched meanwhile, as it is in life."""


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    memories: int
    requests: int
    streams: int
    clients: int
    hung: int
    embedding: str = "local"


FULL = Sizes(10_000, 400, 40, 64, 20)
QUICK = Sizes(10_000, 120, 15, 64, 6)
TINY = Sizes(40, 4, 2, 4, 1, "none")


class SameModel(MadeUp):
    """Vectors that are made up, under the name of the model that questions are embedded with."""

    @property
    def model_id(self) -> str:
        return self._embedder.model_id


def fill(folder: Path, sizes: Sizes) -> Path:
    """A space of some size, enriched already."""
    embedder = SameModel(LocalEmbedder()) if sizes.embedding == "local" else None
    talk = Talk()
    with Memplane.open(folder, embedder=embedder) as plane:
        space = plane.space(OWNER)
        ats = [_START + number * _MINUTE for number in range(sizes.memories)]
        said = [TurnPayload(role="user", content=talk.turn(number), at=at) for number, at in enumerate(ats)]
        space.ledger.load(
            [NewEntry(new_id("turn", at), Op.TURN, encode(one)) for at, one in zip(ats, said, strict=True)]
        )
        space.enrich()
    return folder


@contextmanager
def upstream() -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.proxy_upstream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


class Client:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> tuple[float, float]:
        """Milliseconds until the first byte of the body, and until the last."""
        started = time.perf_counter()
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert head[9:12] == b"200", head
        length = head.partition(b"content-length: ")[2].partition(b"\r")[0]
        if length:
            await self._reader.readexactly(int(length))
            first = time.perf_counter()
        else:
            first = await self._chunks()
        return (first - started) * 1_000, (time.perf_counter() - started) * 1_000

    async def _chunks(self) -> float:
        first = 0.0
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            first = first or time.perf_counter()
            await self._reader.readexactly(size + 2)
        await self._reader.readexactly(2)
        return first

    def close(self) -> None:
        self._writer.close()


class Bench:
    """The servers, and requests that say something new each time."""

    def __init__(self, direct: int, served: Served, sizes: Sizes) -> None:
        self.direct = direct
        self.proxied = served.port
        self.sizes = sizes
        self._key = served.key
        self._talk = Talk(seed=12)
        self._number = 0

    def request(self, *, stream: bool = False, space: str = OWNER, memory: str = "on") -> bytes:
        self._number += 1
        content = f"{self._talk.question(self._number)} {self._number}"
        asked = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}]}
        body = json.dumps(asked, separators=(",", ":")).encode()
        return (
            f"POST {_PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self._key}\r\n"
            f"content-type: application/json\r\nx-memplane-space: {space}\r\nx-memplane-memory: {memory}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def compared(
        self, count: int, **options: bool | str
    ) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """The same number of requests direct and through the proxy, one after the other."""
        direct, proxied = await Client.to(self.direct), await Client.to(self.proxied)
        found: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        for number in range(count + 2):
            await asyncio.sleep(0.0 if options.get("memory") == "off" else _BETWEEN_TURNS_S)
            for client, kept in zip((direct, proxied), found, strict=True):
                took = await client.ask(self.request(**options))  # type: ignore[arg-type]
                if number >= 2:
                    kept.append(took)
        direct.close()
        proxied.close()
        return found

    async def at_once(self, port: int, clients: int) -> tuple[float, list[float]]:
        """Seconds for one stream of each, and milliseconds to their first bytes."""
        opened = [await Client.to(port) for _ in range(clients)]
        started = time.perf_counter()
        took = await asyncio.gather(*(client.ask(self.request(stream=True)) for client in opened))
        seconds = time.perf_counter() - started
        for client in opened:
            client.close()
        return seconds, [first for first, _ in took]


def added(name: str, bench: Bench, most_ms: float, **options: bool | str) -> list[Figure]:
    direct, proxied = asyncio.run(bench.compared(bench.sizes.requests, **options))
    figures = []
    for share in _SHARES:
        gone, come = (percentile([last for _, last in took], share / 100) for took in (direct, proxied))
        label = f"{name}, added p{share}"
        figures.append(
            at_most(label, come - gone, most_ms, "ms") if share == 50 else Figure(label, come - gone, "ms")
        )
    return figures


def with_memory(bench: Bench, times: Path) -> list[Figure]:
    """And how much of it is the engine's: each turn is one recall and one append."""
    before = len(engine_ms(times))
    name = f"memory on at {bench.sizes.memories:,} memories"
    figures = added(name, bench, ON_MS_MAX)
    engine = engine_ms(times)[before:]
    return [
        *figures,
        Figure("… of it the recall p50", median(engine[::2]), "ms"),
        Figure("… of it the append p50", median(engine[1::2]), "ms"),
    ]


def engine_ms(times: Path) -> list[float]:
    return [float(line) for line in times.read_text("ascii").split()]


def first_bytes(bench: Bench) -> list[Figure]:
    figures = []
    for memory in ("off", "on"):
        direct, proxied = asyncio.run(bench.compared(bench.sizes.streams, stream=True, memory=memory))
        if memory == "off":
            figures.append(
                Figure("first byte of a stream p50, direct", median([first for first, _ in direct]), "ms")
            )
        name = f"first byte of a stream p50, memory {memory}"
        figures.append(Figure(name, median([first for first, _ in proxied]), "ms"))
    return figures


def many(bench: Bench) -> list[Figure]:
    clients = bench.sizes.clients
    figures = []
    for name, port in (("direct", bench.direct), ("through the proxy, memory on", bench.proxied)):
        asyncio.run(bench.at_once(port, clients))  # connections upstream
        seconds, firsts = asyncio.run(bench.at_once(port, clients))
        events = clients * CHUNKS / seconds
        figures += [
            Figure(f"{clients} streams at once, {name}", events, "events/s", digits=0),
            Figure("… first byte p95", percentile(firsts, 0.95), "ms"),
        ]
    return figures


def hung(bench: Bench) -> list[Figure]:
    """A memory service that never answers."""
    direct, proxied = asyncio.run(bench.compared(bench.sizes.hung, space=HUNG))
    more = median([last for _, last in proxied]) - median([last for _, last in direct])
    longest = max(last for _, last in proxied) - median([last for _, last in direct])
    limit = BOX_MS + _BOX_SLACK_MS
    return [
        at_most(f"a recall that hangs, box {BOX_MS} ms, added p50", more, limit, "ms"),
        at_most("… at most", longest, limit + _BOX_SLACK_MS, "ms"),
    ]


def write_manifest(folder: Path, port: int) -> Path:
    """The memory service of one agent, which hangs."""
    context = folder / "context"
    (context / HUNG).mkdir(parents=True)
    manifest = {
        "version": 1,
        "service": "hung",
        "base_url": f"http://127.0.0.1:{port}",
        "recall": {"path": "/hang/recall", "timeout_ms": BOX_MS},
    }
    (context / HUNG / "memory.json").write_text(json.dumps(manifest), "utf-8")
    return context


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    data = fill(folder / "data", sizes)
    with upstream() as port:
        environment = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "none",
            "CLAW_CONTEXT_ROOT": str(write_manifest(folder, port)),
        }
        times = folder / "engine-ms.txt"
        with serving(data, 1, sizes.embedding, timed=times, environment=environment) as served:
            bench = Bench(port, served, sizes)
            return [
                *added("memory off", bench, OFF_MS_MAX, memory="off"),
                *with_memory(bench, times),
                *first_bytes(bench),
                *many(bench),
                *hung(bench),
            ]


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    report("memplane proxy", arguments, lambda folder: run(QUICK if arguments.quick else FULL, folder))


if __name__ == "__main__":
    main()
