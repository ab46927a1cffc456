"""The permissions of one caller: their own space or, for an administrator, the requested one."""

from typing import Any

import msgspec

from memplane.adapters.helmdeck.wire import (
    CallerCount,
    Callers,
    DefaultsAnswer,
    FactHistory,
    FactValue,
    ForgetArguments,
    HelmdeckFact,
    HelmdeckFactList,
    HelmdeckForgotten,
    LearnedPack,
    LearnedPipeline,
    MyDefaults,
    MyMemory,
    MyPlans,
    StoreArguments,
    StoreResponse,
    nanoseconds,
    seconds,
)
from memplane.auth.claims import SUBJECT_MISSING
from memplane.auth.principal import Forbidden, Principal, Right
from memplane.clock import to_datetime
from memplane.engine import Engine
from memplane.errors import InvalidRequest, NotFound
from memplane.memory.runs import PACK_HISTORY, PIPELINE_HISTORY, Defaults, LearnedDefaults
from memplane.server.access import existing_space, open_space
from memplane.space import Space
from memplane.types import Memory

ADAPTER = "facts"
ROWS_MAX = 100_000

NOTE_NO_RUNS = "no audit history yet; defaults will fill in as packs/pipelines run under this caller"
NOTE_NO_FACTS = "no user facts stored yet; agents can persist durable preferences via helmdeck.memory_store"
NOTE_NO_PLANS = "no plans recorded yet; plans will show up here as they are made under this caller"
_SCOPES = "all, packs, pipelines, pack:<id>, pipeline:<id>, key:<exact-key>"
_PREFIXES = {"all": "", "packs": f"{PACK_HISTORY}/", "pipelines": f"{PIPELINE_HISTORY}/"}


class CallerFacts:
    """The facts of one caller, through the engine. No method accesses another space."""

    def __init__(self, plane: Engine, principal: Principal, *, asked: str | None = None) -> None:
        """`asked` is the `?caller=` parameter of a request. It applies to administrators and is ignored for others."""
        self._plane = plane
        subject = principal.subject or SUBJECT_MISSING
        self._principal = msgspec.structs.replace(principal, subject=subject)
        self.name = asked if asked and Right.ADMIN in principal.rights else subject

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def store(self, request: StoreArguments) -> StoreResponse:
        fact = self._space(Right.WRITE).put(
            request.key or "",
            request.value or "",
            category=request.category or "",  # as in Helmdeck: no value, nothing stored
            tags=request.tags or (),
            ttl=request.ttl_seconds,
        )
        assert fact.expires_at is not None
        return StoreResponse(
            key=fact.key or "", category=fact.category or "", expires_at=seconds(fact.expires_at)
        )

    def forget(self, request: ForgetArguments) -> HelmdeckForgotten:
        """The number of deleted keys. A key with three values counts once, as in Helmdeck."""
        scope = (request.scope or "").strip() or "all"
        which = _scope_of(scope)
        space = self._existing(Right.WRITE)
        if space is None:
            return HelmdeckForgotten(scope=scope, deleted=0)
        begin = which.get("prefix", which.get("key", ""))
        rows = space.facts.list(begin, runs=True, limit=ROWS_MAX)
        there = sum("key" not in which or row.key == which["key"] for row in rows)
        receipt = space.forget(**which, reason=f"Helmdeck API: {scope.partition(':')[0]}")
        return HelmdeckForgotten(
            scope=scope, deleted=min(there, receipt.counts["facts"] + receipt.counts["runs"])
        )

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def facts(
        self, prefix: str = "", *, key: str | None = None, category: str | None = None, limit: int = 100
    ) -> HelmdeckFactList:
        space = self._existing()
        if key is not None:
            found = (
                []
                if space is None
                else [fact for fact in _keyed(space, key) if category in {None, fact.category}]
            )
        else:
            found = [] if space is None else space.facts.list(prefix, category=category, limit=limit + 1)
        return HelmdeckFactList(
            scope=self.scope, facts=[_fact(memory) for memory in found[:limit]], more=len(found) > limit
        )

    def fact(self, key: str) -> HelmdeckFact:
        space = self._existing()
        if space is None:
            raise NotFound("key", key)
        return _fact(space.get(key))

    def history(self, key: str) -> FactHistory:
        """All values of the key, oldest first, without forgotten ones."""
        space = self._existing()
        found = [] if space is None else space.history(key)
        if not found:
            raise NotFound("key", key)
        return FactHistory(scope=self.scope, key=key.strip(), history=[_value(memory) for memory in found])

    def rows(self) -> list[Memory]:
        """Everything with a key, including runs and plans, newest first."""
        space = self._existing()
        return [] if space is None else space.facts.list(runs=True, limit=ROWS_MAX)

    def defaults(self) -> DefaultsAnswer:
        learned = self._learned()
        return DefaultsAnswer(
            scope=self.scope,
            fetched_at=self._now(),
            packs=[_pack(item) for item in learned.packs],
            pipelines=[_pipeline(item) for item in learned.pipelines],
            common_findings=list(learned.common_findings),
            recent=list(learned.recent),
            note="" if learned.recent else NOTE_NO_RUNS,
        )

    def my_defaults(self) -> MyDefaults:
        learned = self._learned()
        return MyDefaults(
            scope=self.scope,
            fetched_at=self._now(),
            packs=[_pack(item) for item in learned.packs],
            pipelines=[_pipeline(item) for item in learned.pipelines],
            note="" if learned.packs or learned.pipelines else NOTE_NO_RUNS,
        )

    def my_memory(self) -> MyMemory:
        space = self._existing()
        found = [] if space is None else space.facts.categories()
        return MyMemory(
            scope=self.scope,
            fetched_at=self._now(),
            categories=found,
            note="" if found else NOTE_NO_FACTS,
        )

    def my_plans(self) -> MyPlans:
        space = self._existing()
        found = [] if space is None else space.facts.plans()
        return MyPlans(
            scope=self.scope, fetched_at=self._now(), groups=found, note="" if found else NOTE_NO_PLANS
        )

    def callers(self) -> Callers:
        """Callers with keyed rows, most rows first: for an administrator all that they may see, otherwise only the
        caller."""
        everybody = Right.ADMIN in self._principal.rights
        names = self._plane.spaces(self._principal.tenant) if everybody else [self.name]
        counted = [CallerCount(namespace=name, count=self._count(name)) for name in names]
        found = sorted(
            (item for item in counted if item.count), key=lambda item: (-item.count, item.namespace)
        )
        return Callers(callers=found or None)

    @property
    def scope(self) -> str:
        return f"caller={self.name}"

    # ── internals ────────────────────────────────────────────────────────────────────────────────────────────

    def _learned(self) -> Defaults:
        space = self._existing()
        return Defaults() if space is None else space.facts.defaults()

    def _count(self, name: str) -> int:
        try:
            space = existing_space(self._plane, self._principal, Right.READ, adapter=ADAPTER, owner=name)
        except Forbidden:
            return 0
        return 0 if space is None else space.overview.stats().keys

    def _existing(self, right: Right = Right.READ) -> Space | None:
        return existing_space(self._plane, self._principal, right, adapter=ADAPTER, owner=self.name)

    def _space(self, right: Right) -> Space:
        return open_space(self._plane, self._principal, right, adapter=ADAPTER, owner=self.name)

    def _now(self) -> str:
        return seconds(to_datetime(self._plane.clock()))


def _scope_of(scope: str) -> dict[str, Any]:
    """The arguments for `Space.forget`. As Helmdeck documents, `all` is everything with a key: audit rows and facts."""
    if scope in _PREFIXES:
        return {"prefix": _PREFIXES[scope]}
    kind, colon, name = scope.partition(":")
    name = name.strip()
    if colon and kind in {"pack", "pipeline", "key"}:
        if not name:
            raise InvalidRequest(
                f'scope "{kind}:": missing {kind}{"" if kind == "key" else " id"}', field="scope"
            )
        if kind == "key":
            return {"key": name}
        return {"prefix": f"{PACK_HISTORY if kind == 'pack' else PIPELINE_HISTORY}/{name}/"}
    raise InvalidRequest(f'unknown scope "{scope}" (valid: {_SCOPES})', field="scope")


def _keyed(space: Space, key: str) -> list[Memory]:
    try:
        return [space.get(key)]
    except NotFound:
        return []


def _fact(memory: Memory) -> HelmdeckFact:
    return HelmdeckFact(
        key=memory.key or "",
        value=memory.text,
        category=memory.category or "",
        tags=list(memory.tags),
        created_at=nanoseconds(memory.created_at),
        updated_at=nanoseconds(memory.updated_at),
        expires_at=None if memory.expires_at is None else seconds(memory.expires_at),
    )


def _value(memory: Memory) -> FactValue:
    return FactValue(
        **msgspec.structs.asdict(_fact(memory)),
        state=memory.state.value,
        replaced_at=None if memory.superseded_at is None else nanoseconds(memory.superseded_at),
    )


def _pack(item: LearnedDefaults) -> LearnedPack:
    return LearnedPack(
        id=item.id, calls=item.runs, last_used_unix=item.last_used_unix, common_inputs=item.common_inputs
    )


def _pipeline(item: LearnedDefaults) -> LearnedPipeline:
    return LearnedPipeline(
        id=item.id, runs=item.runs, last_used_unix=item.last_used_unix, common_inputs=item.common_inputs
    )
