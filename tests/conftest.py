"""Shared fixtures: a clock turned by hand, planes that run on it, and the engines the contract is put to.

Hypothesis looks at the same examples every time, so that a change is judged by what it changed;
`MEMPLANE_TESTS=thorough` lets it look twenty times as long, and at others each time.
"""

import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw
import certifi
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

import npm_tools
from command_line import cli, filled, filled_once, shell
from engines import ENGINES, HOME, Home, KeptConnections, both_engines, fresh_folder
from http_server import serving
from memplane import Memplane, Settings
from memplane.auth.identity import Identity
from memplane.clock import Instant, to_datetime, to_instant
from memplane.storage.catalog.accounts import Accounts
from memplane.storage.catalog.credentials import CredentialStore
from memplane.storage.catalog.directory import Directory
from memplane.storage.postgres.engine import PostgresEngine as PostgresStorage
from memplane.storage.sqlite.engine import SqliteEngine as SqliteStorage
from memplane.storage.sqlite.names import space_path
from memplane.storage.store import Store, Writer
from memplane.storage.stores import Stores
from memplane.types import Entry, Kind, Memory, NewEntry, Op, Turn
from object_servers import azurite, seaweedfs
from postgres_server import PostgresServer, postgres_server, postgres_url
from preloaded import Preloaded, preloaded

__all__ = [
    "azurite",
    "both_engines",
    "cli",
    "filled",
    "filled_once",
    "fresh_folder",
    "postgres_server",
    "postgres_url",
    "seaweedfs",
    "shell",
]
"""What is written elsewhere."""

TENANT = "default"
MORNING = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)
LONG = {
    "test_benchmarks",
    "test_crash",
    "test_docs",
    "test_erasure",
    "test_every_page",
    "test_cluster",
    "test_cluster_crash",
    "test_cluster_work",
    "test_mcp",
    "test_openapi",
    "test_processes",
    "test_serve",
    "test_soak",
    "test_state_machine",
    "test_worker_crash",
}
"""Files whose tests take seconds each."""

_QUIET = {
    "deadline": None,
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,  # examples share one on purpose, since each would need a database
    ],
}
settings.register_profile("default", max_examples=50, stateful_step_count=25, derandomize=True, **_QUIET)
settings.register_profile("thorough", max_examples=1_200, stateful_step_count=60, **_QUIET)
settings.load_profile(os.environ.get("MEMPLANE_TESTS", "default"))
THOROUGH = os.environ.get("MEMPLANE_TESTS") == "thorough"
_SETTINGS = "_hypothesis_internal_use_settings"


def costly(examples: int, *, steps: int = 25, thorough: int | None = None) -> settings:
    """For a property of which one example takes long: fewer than the others have. `thorough` looks at it as long as at
    any other, or at as many as are said."""
    if not THOROUGH:
        return settings(max_examples=examples, stateful_step_count=steps)
    return settings() if thorough is None else settings(max_examples=thorough)


# Whoever wants no bytecode waits for the compiler in every process of the hundreds that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 2 << 30


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Temporary files live in memory where there is room: they are real files, and most of the time went to syncs."""
    mine = not hasattr(config, "workerinput") and config.option.basetemp is None
    if mine and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
        config.option.basetemp = Path(tempfile.mkdtemp(prefix="memplane-tests-", dir=_MEMORY))
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


def pytest_collection_finish() -> None:
    """What was loaded to here stays: looking through it for garbage every few seconds took a sixth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than there are cores: half of the time a test waits for a server, a browser or a command that it started."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)


class _Shared:
    """What all of those who test at once ask of one process."""

    commands: Path | None = None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """One process loads all that a command needs, for everybody, while they look for their tests; another installs
    what comes from npm."""
    if _Shared.commands is None:
        _Shared.commands = Path(tempfile.mkdtemp(prefix="memplane-commands-"))
        opened = ExitStack()
        opened.callback(shutil.rmtree, _Shared.commands, ignore_errors=True)
        opened.enter_context(npm_tools.installing())
        opened.enter_context(preloaded(_Shared.commands))
        node.config.add_cleanup(opened.close)
    node.workerinput["commands"] = str(_Shared.commands)


@pytest.fixture(scope="session")
def commands(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preloaded]:
    """`memplane` without the start of an interpreter."""
    shared = getattr(request.config, "workerinput", {}).get("commands")
    if shared is not None:
        yield Preloaded(Path(shared))
    else:
        with preloaded(tmp_path_factory.mktemp("commands")) as asked:
            yield asked


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long or waits for others comes first, so that nobody works on it alone in the end."""
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test talks to anybody whom an authority vouches for, but every HTTP client reads what all of them sign with:
    most of what a small call costs. One of them will do."""
    end = "-----END CERTIFICATE-----\n"
    bundle = tmp_path_factory.mktemp("authorities") / "one.pem"
    bundle.write_text(certifi.contents().partition(end)[0] + end, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certifi, "where", lambda: str(bundle))
        yield


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A test that sets up the server's logs leaves no other one writing lines, under a lock that it may be stopped in."""
    logs = [
        logging.getLogger(name) for name in ("", "memplane", "memplane.memory_op", "memplane.worker.cluster")
    ]
    before = [(log.level, log.propagate, log.handlers[:]) for log in logs]
    yield
    for log, (level, propagate, handlers) in zip(logs, before, strict=True):
        log.setLevel(level)
        log.propagate = propagate
        log.handlers[:] = handlers


def counted(**some: int) -> dict[str, int]:
    """What a receipt counts: so many of these, and none of anything else."""
    kinds = ("entries", "turns", "memories", "facts", "runs", "claims", "episodes", "conflicts")
    return dict.fromkeys((*kinds, "documents", "spans", "collections"), 0) | some


class HandClock:
    """A `Clock` that stands still until someone turns it."""

    def __init__(self, moment: datetime = MORNING) -> None:
        self.now: Instant = to_instant(moment)

    def __call__(self) -> Instant:
        return self.now

    @property
    def moment(self) -> datetime:
        return to_datetime(self.now)

    def set(self, moment: datetime | Instant) -> None:
        self.now = to_instant(moment) if isinstance(moment, datetime) else moment

    def advance(self, length: timedelta | None = None, **units: float) -> Instant:
        self.now += (length or timedelta(**units)) // timedelta(microseconds=1)
        return self.now


@contextmanager
def fresh_plane(
    clock: HandClock | None = None, *, embedder: Any = None, **changes: Any
) -> Iterator[Memplane]:
    """A plane for one generated example: without an embedding model, on a clock that somebody turns; a recall works off all
    that waits, as with `open_plane`."""
    clock, options = clock or HandClock(), Settings(**{"recall_work_ms": 60_000, **changes})
    with (
        HOME.fresh() as data,
        Memplane.open(data, embedder=embedder, clock=clock, settings=options) as plane,
    ):
        yield plane


def run_machine(
    machine: type[RuleBasedStateMachine], examples: int, *, steps: int = 25, **options: Any
) -> None:
    """As `costly`, for a state machine on the engine of the test that is running."""
    steps = steps if HOME.server is None else steps // 2
    run_state_machine_as_test(machine, settings=costly(HOME.fewer(examples), steps=steps, **options))


@pytest.fixture(scope="session")
def _kept_connections(postgres_server: PostgresServer) -> Iterator[None]:
    yield
    KeptConnections.close_all()


@contextmanager
def keeping_connections(request: pytest.FixtureRequest) -> Iterator[None]:
    request.getfixturevalue("_kept_connections")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memplane.storage.postgres.engine.Connections", KeptConnections.to)
        yield


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """The engine that planes are on: each of `ENGINES` in turn for tests that are marked with `both_engines`."""
    if getattr(request, "param", "sqlite") == "postgres":
        HOME.server = request.getfixturevalue("postgres_server")
        with keeping_connections(request):
            yield HOME
        HOME.server = None
    else:
        yield HOME


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("both_engines")
    if marker is not None:
        files = "space_file" in metafunc.fixturenames  # only one engine has them
        metafunc.parametrize("home", marker.args or (ENGINES[:1] if files else ENGINES), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """A property that is looked at on both engines is looked at in fewer examples where they take longer."""
    inner, kept = pyfuncitem.obj, getattr(pyfuncitem.obj, _SETTINGS, None)
    inner = getattr(inner, "__func__", inner)
    if kept is not None:
        setattr(inner, _SETTINGS, settings(kept, max_examples=HOME.fewer(kept.max_examples)))
    try:
        return (yield)
    finally:
        if kept is not None:
            setattr(inner, _SETTINGS, kept)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def plane_data(home: Home, tmp_path: Path) -> Iterator[str]:
    """What `Memplane.open` takes: a data directory that is not there yet, or a database of this test's own."""
    if home.server is None:
        yield str(tmp_path / "data")
    else:
        with home.fresh() as url:
            yield url


@pytest.fixture
def open_plane(plane_data: str, clock: HandClock) -> Iterator[Callable[..., Memplane]]:
    """Opens the same data directory as often as asked, with whatever settings; closes all in the end. There is no
    embedding model unless one is given, and a recall works off everything that waits: what is told never depends on
    how fast the machine is."""
    with ExitStack() as opened:

        def open_(**changes: Any) -> Memplane:
            embedder = changes.pop("embedder", None)
            settings = Settings(**{"recall_work_ms": 60_000, **changes})
            plane = Memplane.open(plane_data, embedder=embedder, clock=clock, settings=settings)
            return opened.enter_context(plane)

        yield open_


@pytest.fixture
def plane(open_plane: Callable[..., Memplane]) -> Memplane:
    return open_plane()


@pytest.fixture
def open_identity(open_plane: Callable[..., Memplane]) -> Iterator[Callable[..., Identity]]:
    """As `open_plane`, for who may knock."""
    with ExitStack() as opened:

        def open_(**changes: Any) -> Identity:
            identity = open_plane(**changes).identity()
            opened.callback(identity.close)
            return identity

        yield open_


@pytest.fixture
def space(plane: Memplane):
    return plane.space("alice")


@pytest.fixture
def space_file(tmp_path: Path) -> Path:
    """Where `space` keeps its rows, for those who reach past the engine."""
    return space_path(tmp_path / "data" / "spaces" / TENANT, "alice")


# ── the engines ──────────────────────────────────────────────────────────────────────────────────────────────────


class SqliteEngine:
    """What the contract suite must know about an engine besides its protocol."""

    refusal = apsw.ConstraintError
    """What the database itself raises when a row that must stay is touched."""
    append_only = MappingProxyType(
        {
            "ledger": "id, op, recorded, actor, door, session, ref, payload_digest, digest, position, chained_id, origin",
            "payload": "position, salt, body",
            "tombstone": "id, position, at, reason, cause",
            "audit": "seq, at, actor, door, session, action, target, outcome, detail, digest",
        }
    )
    """The tables nobody may alter, with every column; only the place of a ledger entry moves."""
    overwrites = (
        "INSERT OR REPLACE INTO payload SELECT position, salt, x'00' FROM payload",
        "INSERT OR REPLACE INTO ledger SELECT seq, id, 'put', 0, '', '', '', NULL, x'00', x'00', 99, NULL, '' FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT seq + 9, id, op, 0, '', '', '', NULL, x'00', x'00', 99, NULL, '' FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT 9, 'x', op, 0, '', '', '', NULL, x'00', x'00', position, NULL, '' FROM ledger",
        "UPDATE OR REPLACE ledger SET seq = 2 WHERE seq = 1",
        "UPDATE OR REPLACE ledger SET id = 'lost~', chained_id = 'lost' WHERE id = 'a'",
        "UPDATE ledger SET id = 'a~' || id, chained_id = 'a'",
        "UPDATE ledger SET id = id || '~'",
        "INSERT OR REPLACE INTO tombstone SELECT id, position, 0, 'other', NULL FROM tombstone",
        "INSERT OR REPLACE INTO audit SELECT seq, 0, '', '', '', '', '', '', '', x'00' FROM audit",
        "UPDATE OR REPLACE payload SET position = position + 1",
    )
    """Ways to write over a row that are no plain UPDATE or DELETE."""

    wipes_in_passing = True
    """Whether a small space is written anew with a forget; where spaces share files, nobody does that in passing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stores(self) -> Stores:
        """Another one is another program on the same data."""
        return Stores(SqliteStorage(self._folder))

    def credentials(self) -> CredentialStore:
        """As `stores`, for what is not one space's."""
        return Stores(SqliteStorage(self._folder)).credentials()

    def directory(self) -> Directory:
        return Stores(SqliteStorage(self._folder)).directory()

    def accounts(self) -> Accounts:
        return Stores(SqliteStorage(self._folder)).accounts()

    def index(self, store: Store) -> None:
        """Let every turn that waits for the index into it; nothing to do where turns are indexed as they are written."""
        while store.write(lambda writer: writer.words.index_turns()):
            pass

    def execute(self, owner: str, sql: str) -> list[Any]:
        """Past the engine, as someone with the database's own tools would."""
        connection = apsw.Connection(str(space_path(self._folder / "spaces" / TENANT, owner)))
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


class PostgresEngine:
    """As `SqliteEngine`, in a database of its own."""

    refusal = psycopg.Error
    append_only = SqliteEngine.append_only
    overwrites = (
        "INSERT INTO payload SELECT * FROM payload ON CONFLICT (tenant, space, position) DO UPDATE SET body = 'x'",
        "INSERT INTO ledger SELECT * FROM ledger ON CONFLICT (tenant, space, seq) DO UPDATE SET op = 'put'",
        "UPDATE ledger SET seq = 2 WHERE seq = 1",
        "UPDATE ledger SET id = 'lost~', chained_id = 'lost' WHERE id = 'a'",
        "UPDATE ledger SET id = 'a~' || id, chained_id = 'a'",
        "UPDATE ledger SET id = id || '~'",
        "UPDATE payload SET position = position + 1",
        "TRUNCATE ledger",
        "TRUNCATE payload",
        "TRUNCATE tombstone",
        "TRUNCATE audit",
    )

    wipes_in_passing = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: list[Stores] = []

    def stores(self) -> Stores:
        self._opened.append(Stores(PostgresStorage(self.url)))
        return self._opened[-1]

    def credentials(self) -> CredentialStore:
        return self.stores().credentials()

    def directory(self) -> Directory:
        return self.stores().directory()

    def accounts(self) -> Accounts:
        return self.stores().accounts()

    def index(self, store: Store) -> None:
        while store.write(lambda writer: writer.words.index_turns()):
            pass

    def execute(self, owner: str, statement: str) -> list[Any]:
        """As the owner of the tables: no policy holds for them, the triggers do."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET search_path = memplane, public")
            cursor = connection.execute(statement.replace("x'", "'").encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        for stores in self._opened:
            stores.close()


Engine = SqliteEngine | PostgresEngine


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "sqlite":
        yield SqliteEngine(tmp_path / "engine")
        return
    made = PostgresEngine(request.getfixturevalue("postgres_url"))
    with keeping_connections(request):
        yield made
        made.close()


@pytest.fixture
def open_store(engine: Engine) -> Iterator[Callable[..., Store]]:
    """The store of an owner; `elsewhere=True` opens it as another program would."""
    with ExitStack() as opened:
        here = engine.stores()
        opened.callback(here.close)

        def open_(owner: str = "alice", *, elsewhere: bool = False) -> Store:
            stores = here
            if elsewhere:
                stores = engine.stores()
                opened.callback(stores.close)
            return opened.enter_context(stores.open(TENANT, owner, create=True))

        yield open_


def a_memory(text: str, *, id: str, seq: int, kind: Kind = Kind.FACT, **fields: Any) -> Memory:
    """A memory of the entry with the same id."""
    fields = {"created_at": MORNING, "updated_at": MORNING, "start": 0, "end": len(text)} | fields
    return Memory(id=id, kind=kind, text=text, entry_id=id, seq=seq, **fields)


class Scribe:
    """Fills a store through its protocol alone: an entry and what is derived from it, in one work."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store = store
        self.clock = clock
        self.index: Callable[[], None] = lambda: None
        self._written = 0

    def entry(
        self,
        id: str | None = None,
        *,
        op: Op = Op.TURN,
        body: bytes = b"{}",
        **rest: Any,
    ) -> Entry:
        draft = self.draft(id, op=op, body=body, **rest)
        return self.store.write(lambda writer: self._append(writer, [draft]))[0]

    def draft(self, id: str | None = None, *, op: Op = Op.TURN, body: bytes = b"{}", **rest: Any) -> NewEntry:
        self._written += 1
        return NewEntry(id or f"e{self._written}", op, body, **rest)

    def turn(self, text: str, **fields: Any) -> Turn:
        return self.turns([text], **fields)[0]

    def turns(self, texts: Sequence[str], *, id: str | None = None, **fields: Any) -> list[Turn]:
        """All in one work; with an id, all in one entry."""
        drafts = [self.draft(id, op=Op.TURN)] if id else [self.draft(op=Op.TURN) for _ in texts]
        fields = {"role": "user", "at": self.clock.moment} | fields

        def work(writer: Writer) -> list[Turn]:
            entries = self._append(writer, drafts)
            places = [(entries[0], n) for n in range(len(texts))] if id else [(entry, 0) for entry in entries]
            made = [
                Turn(entry_id=entry.id, seq=entry.seq, ordinal=ordinal, text=text, **fields)
                for (entry, ordinal), text in zip(places, texts, strict=True)
            ]
            writer.turns.add(made)
            return made

        return self.store.write(work)

    def memory(self, text: str, *, id: str | None = None, kind: Kind = Kind.FACT, **fields: Any) -> Memory:
        draft = self.draft(id, op=Op.STORE)
        fields = {"created_at": self.clock.moment, "updated_at": self.clock.moment} | fields

        def work(writer: Writer) -> Memory:
            (entry,) = self._append(writer, [draft])
            made = a_memory(text, id=entry.id, seq=entry.seq, kind=kind, **fields)
            writer.memories.add([made])
            return made

        return self.store.write(work)

    def _append(self, writer: Writer, drafts: Sequence[NewEntry]) -> list[Entry]:
        entries = writer.ledger.append(drafts, recorded=self.clock())
        writer.state.set_cursor(entries[-1].seq)
        return entries


@pytest.fixture
def scribe(engine: Engine, open_store: Callable[..., Store], clock: HandClock) -> Scribe:
    scribe = Scribe(open_store(), clock)
    scribe.index = lambda: engine.index(scribe.store)
    return scribe


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def server(plane: Memplane):
    """Every HTTP door on a free port; `server.client()` is the owner, `server.keys.add(...)` lets others in."""
    with serving(plane) as running:
        yield running
