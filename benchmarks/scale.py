"""PostgreSQL under load: `python -m benchmarks.scale [--memories 1000000] [--spaces 10000] [--large 1000000] [--json]`.

Retaining, recalling and enriching with 1, 2 and 4 processes on one database; recall with as many memories over many spaces,
and in one space; both beside a bare pgvector query in the same run, which finds ten rows by the same index and does
nothing else. What is asked about is made up. Of many spaces, the engine writes one, and its rows are copied for the others;
of the large one, the engine writes everything but vectors, which are random and come by COPY, as the engine writes them.
As in `benchmarks.recall`, a tenth of what is called memories was stored on purpose, and the rest are turns.
"""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.types import TypeInfo

from benchmarks.database import another, database, machine_mb
from benchmarks.measure import Figure, arguments_of, at_most, latencies_ms, median, percentile, report
from benchmarks.recall import MadeUp, Talk, fill, load
from memplane import Memplane, Settings
from memplane.models.embedding import Vector
from memplane.models.local import LocalEmbedder
from memplane.storage.postgres.engine import PostgresEngine
from memplane.storage.postgres.indexing import LARGE
from memplane.storage.postgres.migrate import SCHEMA, tables
from memplane.storage.postgres.text import Vector as Column
from memplane.storage.postgres.text import adapt
from memplane.storage.stores import Stores
from memplane.worker.cluster import SILENT

_DIMENSION = 384
_PER_COPY = 10_000
_TEMPLATE = "template"
_LARGE_SPACE = "large"
_TWICE = 2.0
_WARM_UP = 8
_FEW_SPACES = 8
"""As many as questions that do not count, so that all of them are loaded by then."""
_ENRICHED_SPACES = 8
_PATIENCE_S = 600
_ASKED = itertools.count()
_NO_WORK = Settings(recall_work_ms=0)


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    memories: int
    """Over all of the spaces."""
    spaces: int
    large: int
    """In the one space."""
    large_min: int = LARGE
    queries: int = 200
    retains: int = 400
    enriched: int = 60
    """In each of eight spaces."""
    processes: tuple[int, ...] = (1, 2, 4)
    sqlite_max: int = 20_000


FULL = Sizes(1_000_000, 10_000, 1_000_000)
QUICK = Sizes(100_000, 1_000, 50_000, queries=100)
TINY = Sizes(60, 3, 80, large_min=20, queries=3, retains=4, enriched=2, processes=(1,))


class Free:
    """`Embedder` whose vectors cost next to nothing, those of questions too."""

    model_id = "made-up"
    dimension = _DIMENSION

    def __init__(self) -> None:
        self._texts = MadeUp(self)  # it asks the one it wraps for its dimension alone
        self.embed_texts = self._texts.embed_texts

    def embed_query(self, text: str) -> Vector:
        found: Vector = self._texts.embed_texts([text])[0]
        return found


def run(sizes: Sizes, folder: Path, *, model: bool = True) -> list[Figure]:
    embedder = LocalEmbedder() if model else None
    with database(folder, memory_mb=min(machine_mb(), 16_384)) as url:
        return [
            *many_spaces(sizes, url, embedder),
            *one_space(sizes, url, embedder),
            *side_by_side(sizes, url, folder),
            *processes(sizes, url),
            *bytes_each(url),
        ]


# ── many small spaces ────────────────────────────────────────────────────────────────────────────────────────────


def many_spaces(sizes: Sizes, url: str, model: LocalEmbedder | None) -> list[Figure]:
    """Each question goes to another space, so that next to none is in the process already; then all go to a few, so that
    each is."""
    each = max(sizes.memories // sizes.spaces, 1)
    with Memplane.open(url, embedder=Free(), settings=_NO_WORK) as plane:
        fill(plane.space(_TEMPLATE), Talk(), each)
    figures = []
    for spaces in dict.fromkeys((max(sizes.spaces // 10, 1), sizes.spaces)):
        copy_spaces(url, spaces)
        at = f"over {spaces:,} spaces of {each:,}"
        figures += _recalls(
            sizes, url, model, at, lambda number, spaces=spaces: f"space{number * 7_919 % spaces}"
        )
    few = min(_FEW_SPACES, sizes.spaces)
    at = f"in the same {few} of {sizes.spaces:,} spaces again"
    return [*figures, *_recalls(sizes, url, model, at, lambda number: f"space{number % few}")]


def copy_spaces(url: str, count: int) -> None:
    """As many spaces as this with the rows of the template, those that are there already among them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"SET search_path = {SCHEMA}, public; SET session_replication_role = replica".encode()
        )
        place = connection.execute(
            "SELECT tenant, number FROM space WHERE owner = %s", (_TEMPLATE,)
        ).fetchone()
        assert place is not None
        connection.execute(
            "CREATE TEMPORARY TABLE fresh AS WITH made AS (INSERT INTO space (tenant, owner) "
            "SELECT %s, 'space' || k FROM generate_series(0, %s) AS k ON CONFLICT DO NOTHING RETURNING number) "
            "SELECT number FROM made",
            (place[0], count - 1),
        )
        for table in tables(connection):
            found = connection.execute(
                "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
                "AND NOT attisdropped AND attgenerated = '' AND attname NOT IN ('tenant', 'space')",
                (table,),
            ).fetchall()
            columns = ", ".join(name for (name,) in found)
            connection.execute(
                f"INSERT INTO {table} (tenant, space, {columns}) SELECT t.tenant, fresh.number, {columns} "
                f"FROM {table} t, fresh WHERE t.tenant = {place[0]} AND t.space = {place[1]}".encode()
            )
        connection.execute("VACUUM ANALYZE")


def _recalls(
    sizes: Sizes, url: str, model: LocalEmbedder | None, at: str, owner: Callable[[int], str]
) -> list[Figure]:
    talk, free = Talk(), Free()
    figures = []
    for embedder, how in ((free, "given its vector"), (model and MadeUp(model), "with its embedding")):
        if embedder is None:
            continue
        questions = [
            talk.question(next(_ASKED)) for _ in range(2 * sizes.queries)
        ]  # none twice: a model remembers
        with Memplane.open(url, embedder=embedder, settings=_NO_WORK) as plane, _bare(url) as bare:
            told, plain = _by_turns(
                lambda number, plane=plane, asked=questions: plane.space(owner(number)).recall(asked[number]),
                lambda number, bare=bare, embedder=embedder, asked=questions: bare(
                    owner(number), embedder.embed_query(asked[sizes.queries + number])
                ),
                sizes.queries,
            )
        figures += [
            Figure(f"recall p50 {at}, {how}", median(told), "ms"),
            Figure(f"recall p95 {at}, {how}", percentile(told, 0.95), "ms"),
            Figure(f"… bare query p50 {at}, {how}", median(plain), "ms"),
            Figure(f"… bare query p95 {at}, {how}", percentile(plain, 0.95), "ms"),
            at_most(f"… recall / bare query p50 {at}, {how}", median(told) / median(plain), _TWICE, "x"),
        ]
    return figures


def _by_turns(
    one: Callable[[int], object], other: Callable[[int], object], count: int
) -> tuple[list[float], list[float]]:
    """How long each took, one after the other, so that both meet the same minute; a few before that do not count."""
    for number in range(min(count, _WARM_UP)):
        one(number)
        other(number)
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(count):
        for work, samples in zip((one, other), found, strict=True):
            started = time.perf_counter()
            work(number)
            samples.append((time.perf_counter() - started) * 1_000)
    return found


@contextmanager
def _bare(url: str) -> Iterator[Callable[[str, Vector], list[Any]]]:
    """Ten turns by their vectors, as somebody would ask who has nothing but pgvector."""
    with _connected(url) as connection:
        places: dict[str, Any] = dict(
            connection.execute("SELECT owner, (tenant, number) FROM space").fetchall()
        )

        def ask(owner: str, vector: Vector) -> list[Any]:
            tenant, space = (int(number) for number in places[owner])
            query = (
                f"SELECT n FROM turn_vector WHERE tenant = {tenant} AND space = {space} AND model = 1 "
                f"ORDER BY vector::halfvec({_DIMENSION}) <#> %s::halfvec({_DIMENSION}) LIMIT 10"
            )
            packed = Column(vector.astype(np.float16).tobytes())
            return connection.execute(query.encode(), (packed,)).fetchall()

        yield ask


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        kind = TypeInfo.fetch(connection, "halfvec")
        assert kind is not None
        adapt(connection, kind)
        connection.execute(f"SET search_path = {SCHEMA}, public".encode())
        yield connection


# ── one large space ──────────────────────────────────────────────────────────────────────────────────────────────


def one_space(sizes: Sizes, url: str, model: LocalEmbedder | None) -> list[Figure]:
    """At a tenth of its size, and whole."""
    figures: list[Figure] = []
    talk, there = Talk(), 0
    for size in dict.fromkeys((max(sizes.large // 10, sizes.large_min * 2), sizes.large)):
        started = time.perf_counter()
        with Memplane.open(url, embedder=Free(), settings=_NO_WORK) as plane:
            load(plane.space(_LARGE_SPACE), talk, size - there)
        there = size
        copy_vectors(url)
        filled_s = time.perf_counter() - started
        started = time.perf_counter()
        engine = PostgresEngine(url)
        stores = Stores(engine)
        engine.index_vectors(large=sizes.large_min)
        stores.close()
        indexed_s = time.perf_counter() - started
        at = f"in one space of {size:,}"
        figures += [
            Figure(f"filling {at}", filled_s, "s"),
            Figure(f"its indexes of vectors {at}", indexed_s, "s"),
            *_recalls(sizes, url, model, at, lambda _: _LARGE_SPACE),
        ]
    return figures


def copy_vectors(url: str) -> None:
    """Random ones for whatever has none in the large space, and the notes that all of it is enriched."""
    chance = np.random.default_rng(3)
    with _connected(url) as connection:
        tenant, space = connection.execute(
            "SELECT tenant, number FROM space WHERE owner = %s", (_LARGE_SPACE,)
        ).fetchone() or (0, 0)
        here = f"tenant = {tenant} AND space = {space}"
        connection.execute(
            f"INSERT INTO model (tenant, space, n, id, dimension) VALUES ({tenant}, {space}, 1, "
            f"'made-up', {_DIMENSION}) ON CONFLICT DO NOTHING".encode()
        )
        turns = connection.execute(
            f"SELECT n FROM turn t WHERE {here} AND NOT EXISTS (SELECT 1 FROM turn_vector v "
            f"WHERE v.tenant = t.tenant AND v.space = t.space AND v.n = t.n)".encode()
        ).fetchall()
        memories = connection.execute(
            f"SELECT id FROM memory WHERE {here} AND embedded IS NULL".encode()
        ).fetchall()
        digest = bytes(32)
        _copy(
            connection,
            "turn_vector (tenant, space, n, words, asks, model, digest, vector)",
            [(tenant, space, n, 15, 0, 1, digest) for (n,) in turns],
            chance,
        )
        _copy(
            connection,
            "memory_vector (tenant, space, id, model, digest, vector)",
            [(tenant, space, id_, 1, digest) for (id_,) in memories],
            chance,
        )
        connection.execute(f"UPDATE memory SET embedded = 1 WHERE {here} AND embedded IS NULL".encode())
        connection.execute(
            f"INSERT INTO meta (tenant, space, name, value) SELECT {tenant}, {space}, noted.name, noted.value::text "
            f"FROM (VALUES ('model', 1), ('embedded:1', (SELECT max(n) FROM turn WHERE {here})), "
            f"('derived', (SELECT max(seq) FROM ledger WHERE {here}))) AS noted (name, value) "
            "ON CONFLICT (tenant, space, name) DO UPDATE SET value = excluded.value".encode()
        )
        connection.execute("VACUUM ANALYZE")


def _copy(
    connection: psycopg.Connection[Any],
    into: str,
    rows: Sequence[tuple[Any, ...]],
    chance: np.random.Generator,
) -> None:
    for start in range(0, len(rows), _PER_COPY):
        part = rows[start : start + _PER_COPY]
        vectors = chance.standard_normal((len(part), _DIMENSION), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        written = [",".join(f"{number:.4g}" for number in vector) for vector in vectors.tolist()]
        with connection.cursor().copy(f"COPY {into} FROM STDIN".encode()) as copying:
            for row, vector in zip(part, written, strict=True):
                copying.write_row((*row, f"[{vector}]"))


# ── both engines, and many processes ─────────────────────────────────────────────────────────────────────────────


def side_by_side(sizes: Sizes, url: str, folder: Path) -> list[Figure]:
    """The same space in either engine, of a size that both load."""
    size = min(sizes.sqlite_max, max(sizes.large // 10, 10))
    figures = []
    for engine, data in (("SQLite", str(folder / "sqlite")), ("PostgreSQL", url)):
        talk = Talk(seed=21)
        with Memplane.open(data, embedder=Free(), settings=_NO_WORK) as plane:
            space = plane.space("beside")
            fill(space, talk, size)
            if data == url:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("VACUUM ANALYZE")
            space.recall("warm up")
            told = latencies_ms(lambda number: space.recall(talk.question(number)), sizes.queries)  # noqa: B023
            kept = latencies_ms(lambda number: space.retain(talk.turn(number)), sizes.queries)  # noqa: B023
        figures += [
            Figure(f"{engine}: recall p50 at {size:,}", median(told), "ms"),
            Figure(f"{engine}: recall p95 at {size:,}", percentile(told, 0.95), "ms"),
            Figure(f"{engine}: retain p50 at {size:,}", median(kept), "ms"),
        ]
    return figures


def processes(sizes: Sizes, url: str) -> list[Figure]:
    figures = []
    apart = another(url, "workers")  # where nothing else waits for them
    for count in sizes.processes:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            for name, work, each in (("retain", _retain, sizes.retains), ("recall", _recall, sizes.queries)):
                list(pool.map(_open, [url] * count))
                started = time.perf_counter()
                list(pool.map(work, [url] * count, range(count), [each] * count))
                seconds = time.perf_counter() - started
                figures.append(Figure(f"{name}, {count} processes", count * each / seconds, "/s", digits=1))
        figures.append(Figure(f"enrichment, {count} workers", _enriched(sizes, apart, count), "/s", digits=1))
    return figures


def _enriched(sizes: Sizes, url: str, count: int) -> float:
    """Turns a second that so many `memplane worker` read, derive from and embed, in spaces that are filled all at once.
    Vectors are the local model's, which uses one thread in each: what is measured is whether workers share the work."""
    environment = {**os.environ, "MEMPLANE_DATA": url, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "memplane", "worker"]
    with (
        Memplane.open(url, embedder=LocalEmbedder(), settings=_NO_WORK, background="elsewhere") as plane,
        ExitStack() as stack,
    ):
        for _ in range(count):
            process = stack.enter_context(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            stack.callback(process.terminate)
        _wait(lambda: _working(plane) >= count)
        started = time.perf_counter()
        for number in range(_ENRICHED_SPACES):
            load(plane.space(f"fresh{count}-{number}"), Talk(seed=number), sizes.enriched)
        _wait(lambda: _nothing_waits(plane))
        return _ENRICHED_SPACES * sizes.enriched / (time.perf_counter() - started)


def _working(plane: Memplane) -> int:
    assert plane.work is not None
    return sum(not worker.ended for worker in plane.work.colleagues(silent=SILENT))


def _nothing_waits(plane: Memplane) -> bool:
    assert plane.work is not None
    backlog = plane.work.backlog()
    return not (backlog.waiting or backlog.held or backlog.failing)


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not until():
        assert time.monotonic() < deadline, "the workers do not get on"
        time.sleep(0.02)


_OPENED: dict[str, Memplane] = {}


def _open(url: str) -> None:
    """Once for each process."""
    if url not in _OPENED:
        _OPENED[url] = Memplane.open(url, embedder=Free(), settings=_NO_WORK)


def _retain(url: str, process: int, count: int) -> None:
    _open(url)
    talk = Talk(seed=process)
    for number in range(count):
        _OPENED[url].space(f"busy{process}-{number % 8}").retain(talk.turn(number), conversation="c")


def _recall(url: str, process: int, count: int) -> None:
    _open(url)
    talk = Talk(seed=process)
    for number in range(count):
        _OPENED[url].space(f"busy{process}-{number % 8}").recall(talk.question(number))


def bytes_each(url: str) -> list[Figure]:
    """What the database takes on disk, indexes among it, for each row of the larger tables."""
    with _connected(url) as connection:
        found = connection.execute(
            "SELECT relname, pg_total_relation_size(oid), greatest(reltuples, 1) FROM pg_class "
            f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' AND reltuples > 20 "
            "AND relname = ANY(%s)",
            (
                [
                    "ledger",
                    "payload",
                    "turn",
                    "memory",
                    "turn_word",
                    "memory_word",
                    "turn_vector",
                    "memory_vector",
                ],
            ),
        ).fetchall()
        near = connection.execute(
            "SELECT coalesce(sum(pg_relation_size(c.oid)) / greatest(sum(c.reltuples), 1), 0) FROM pg_class c "
            "WHERE relname LIKE 'turn\\_vector\\_near%'"
        ).fetchone()
    figures = [
        Figure(f"bytes a row of {name}", size / rows, "B", digits=0) for name, size, rows in sorted(found)
    ]
    return [
        *figures,
        Figure("bytes a vector in its space's index", float(near[0]) if near else 0.0, "B", digits=0),
    ]


def main() -> None:
    parser = arguments_of(__doc__)
    for name in ("memories", "spaces", "large", "queries"):
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    given = {
        name: getattr(arguments, name)
        for name in ("memories", "spaces", "large", "queries")
        if getattr(arguments, name)
    }
    sizes = replace(QUICK if arguments.quick else FULL, **given)
    report("memplane scale", arguments, lambda folder: run(sizes, folder))


if __name__ == "__main__":
    main()
