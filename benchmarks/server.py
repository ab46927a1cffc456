"""The server's speed: `python -m benchmarks.server [--quick] [--json]`.

Real processes of `memplane serve` on a data directory of their own, and clients that keep their connections and ask again as
soon as they were answered. The clients share the machine with the server, so the rates are what both together
manage. What the server adds to a call is what one client waits longer than the engine's call takes within the same request; measured
without an embedding model, whose milliseconds would hide it.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.engine import Speech
from benchmarks.measure import Figure, arguments_of, at_most, median, percentile, report
from memplane import Memplane
from memplane.clock import to_datetime
from memplane.ledger.history import Payload, compose_line

OWNER = "bench"
OVERHEAD_MS_MAX = 2.0
_START = 1_790_000_000_000_000
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    turns: int
    requests: int
    clients: tuple[int, ...]
    workers: tuple[int, ...]
    calls: int
    embedding: str = "local"


FULL = Sizes(1_000, 960, (1, 16, 64), (1, 2), 600)
QUICK = Sizes(200, 192, (1, 16, 64), (1, 2), 120)
TINY = Sizes(10, 4, (1, 2), (1,), 3, "none")


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────────


class Asked:
    """Bodies of requests, each with words of its own so that no cache answers for the server."""

    def __init__(self, seed: int = 11) -> None:
        self._speech = Speech(seed)
        self._number = 0

    def question(self) -> str:
        return self._speech.turn()

    def entry(self) -> bytes:
        self._number += 1
        return compose_line(
            at=_START + _DAY + self._number * 1_000_000,
            claw_id=OWNER,
            path="/v1/chat/completions",
            requested_model="m",
            effective_provider="p",
            effective_model="m",
            request_original={"model": "m", "messages": [{"role": "user", "content": self._speech.turn()}]},
            response=Payload(json={"choices": [{"message": {"role": "assistant", "content": "Noted."}}]}),
        ).line

    def fact(self) -> tuple[str, str]:
        self._number += 1
        return f"bench/key-{self._number % 500}", self._speech.turn()

    def recall(self) -> tuple[str, bytes]:
        messages = [{"role": "user", "content": self.question()}]
        return "/recall", json.dumps({"agent_id": OWNER, "messages": messages}).encode()

    def retain(self) -> tuple[str, bytes]:
        return "/retain", b'{"agent_id":"' + OWNER.encode() + b'","entry":' + self.entry().strip() + b"}"

    def store(self) -> tuple[str, bytes]:
        key, value = self.fact()
        return "/api/v1/memory/store", json.dumps({"key": key, "value": value}).encode()


_OPERATIONS = ("recall", "store", "retain")
"""Retaining comes last: enriching what came in keeps the server busy for a while afterwards."""


# ── the server and its clients ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Served:
    """Where a server is, and the key to it."""

    port: int
    key: str

    def request(self, path: str, body: bytes) -> bytes:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@contextmanager
def serving(
    data: Path,
    workers: int,
    embedding: str,
    *,
    timed: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Served]:
    program = ["memplane"] if timed is None else ["benchmarks.timed_server", str(timed)]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            *program,
            "serve",
            "--json",
            "--port",
            "0",
            "--workers",
            str(workers),
            "--data",
            str(data),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "MEMPLANE_EMBEDDING": embedding,
            "MEMPLANE_LOG_LEVEL": "warning",
            **environment,
        },
    )
    assert process.stdout is not None
    try:
        greeting = json.loads(process.stdout.readline())
        yield Served(int(greeting["url"].rpartition(":")[2]), greeting["owner_key"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


class Client:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> float:
        """How many milliseconds it took to be answered."""
        started = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        await self._reader.readexactly(int(length or 0))
        took = (time.perf_counter() - started) * 1_000
        assert head[9:10] == b"2", head
        return took

    def close(self) -> None:
        self._writer.close()


async def ask_all(served: Served, requests: list[bytes], clients: int) -> tuple[float, list[float]]:
    """Seconds for all of them, and milliseconds of each."""
    opened = [Client(*await asyncio.open_connection("127.0.0.1", served.port)) for _ in range(clients)]
    waiting = iter(requests)
    took: list[float] = []

    async def work(client: Client) -> None:
        for request in waiting:
            took.append(await client.ask(request))  # noqa: PERF401 - the order is that of the answers

    started = time.perf_counter()
    await asyncio.gather(*(work(client) for client in opened))
    seconds = time.perf_counter() - started
    for client in opened:
        client.close()
    return seconds, took


# ── how fast ─────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(folder: Path, sizes: Sizes, embedding: str) -> Path:
    """A space of some size, enriched already."""
    speech = Speech()
    chosen = {} if embedding == "local" else {"embedder": None}
    with Memplane.open(folder, **chosen) as plane:
        space = plane.space(OWNER)
        for number in range(sizes.turns):
            space.retain(
                speech.turn(), conversation=f"c{number // 20}", at=to_datetime(_START + number * 60_000_000)
            )
        space.enrich()
    return folder


def loads(sizes: Sizes, folder: Path) -> list[Figure]:
    figures: list[Figure] = []
    filled = fill(folder / "filled", sizes, sizes.embedding)
    for workers in sizes.workers:
        data = folder / f"workers-{workers}"
        shutil.copytree(filled, data)
        with serving(data, workers, sizes.embedding) as served:
            asked = Asked()
            for operation in _OPERATIONS:
                _ask(served, asked, operation, 2 * workers, 2 * workers)  # each process loads its model
                for clients in sizes.clients:
                    seconds, took = _ask(served, asked, operation, max(sizes.requests, clients), clients)
                    figures += _load_figures(
                        f"{operation}, {clients} clients, {workers} workers", seconds, took
                    )
    return figures


def _ask(served: Served, asked: Asked, operation: str, count: int, clients: int) -> tuple[float, list[float]]:
    make: Callable[[], tuple[str, bytes]] = getattr(asked, operation)
    return asyncio.run(ask_all(served, [served.request(*make()) for _ in range(count)], clients))


def _load_figures(name: str, seconds: float, took: list[float]) -> list[Figure]:
    return [
        Figure(name, len(took) / seconds, "/s", digits=0),
        *(Figure(f"… p{share}", percentile(took, share / 100), "ms") for share in (50, 95, 99)),
    ]


# ── what the server adds ─────────────────────────────────────────────────────────────────────────────────────────


def overheads(sizes: Sizes, folder: Path) -> list[Figure]:
    """Within each request: how long the client waited, less how long the engine's call took."""
    data = fill(folder / "served", sizes, "none")
    times = folder / "engine-ms.txt"
    figures: list[Figure] = []
    with serving(data, 1, "none", timed=times) as served:
        asked = Asked(seed=12)
        for operation in _OPERATIONS:
            _ask(served, asked, operation, 2, 1)
            before = len(_lines(times))
            waited = _ask(served, asked, operation, sizes.calls, 1)[1]
            engine = _lines(times)[before:]
            added = [all_of_it - part for all_of_it, part in zip(waited, engine, strict=True)]
            figures += [
                Figure(f"{operation} p50, the engine's call", median(engine), "ms"),
                Figure(f"{operation} p50, through the server", median(waited), "ms"),
                at_most(f"{operation} p50, what the server adds", median(added), OVERHEAD_MS_MAX, "ms"),
            ]
    return figures


def _lines(times: Path) -> list[float]:
    return [float(line) for line in times.read_text("ascii").split()]


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    return [*overheads(sizes, folder), *loads(sizes, folder)]


def main() -> None:
    parser = arguments_of(__doc__)
    parts = {"overheads": overheads, "loads": loads}
    parser.add_argument("--only", choices=list(parts), help="one part alone")
    arguments = parser.parse_args()
    work = parts.get(arguments.only, run)
    report("memplane server", arguments, lambda folder: work(QUICK if arguments.quick else FULL, folder))


if __name__ == "__main__":
    main()
