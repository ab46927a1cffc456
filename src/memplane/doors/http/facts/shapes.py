"""What goes over the wire. Names, order and what is left out when empty are Helmdeck's."""

import msgspec

from memplane.memory.plans import PlanGroup
from memplane.memory.runs import CommonFinding, Recent
from memplane.storage.base import Category


class StoreBody(msgspec.Struct, kw_only=True):
    """A fact to put under a key. `ttl_seconds` 0 or left out is 90 days."""

    key: str
    value: str
    category: str = ""
    tags: list[str] = []
    ttl_seconds: int = 0


class Store(msgspec.Struct, kw_only=True):
    """`StoreBody` as it comes: whether something is missing is for the engine to say."""

    key: str | None = None
    value: str | None = None
    category: str | None = None
    tags: list[str] | None = None
    ttl_seconds: int | None = None


class Stored(msgspec.Struct, kw_only=True):
    key: str
    category: str
    expires_at: str


class Forget(msgspec.Struct, kw_only=True):
    """`all` (also when left out), `packs`, `pipelines`, `pack:<id>`, `pipeline:<id>` or `key:<exact-key>`."""

    scope: str | None = None


class Forgotten(msgspec.Struct, kw_only=True):
    scope: str
    deleted: int


class LearnedPack(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    calls: int
    last_used_unix: int
    common_inputs: dict[str, str] = {}


class LearnedPipeline(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    runs: int
    last_used_unix: int
    common_inputs: dict[str, str] = {}


class DefaultsAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What earlier runs teach. Lists that are always there have no default, so that `[]` is written."""

    scope: str
    fetched_at: str
    packs: list[LearnedPack]
    pipelines: list[LearnedPipeline]
    common_findings: list[CommonFinding] = []
    recent: list[Recent]
    note: str = ""


class MyDefaults(msgspec.Struct, kw_only=True, omit_defaults=True):
    scope: str
    fetched_at: str
    packs: list[LearnedPack]
    pipelines: list[LearnedPipeline]
    note: str = ""


class MyMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    scope: str
    fetched_at: str
    categories: list[Category]
    note: str = ""


class MyPlans(msgspec.Struct, kw_only=True, omit_defaults=True):
    scope: str
    fetched_at: str
    groups: list[PlanGroup]
    note: str = ""


class CallerCount(msgspec.Struct, kw_only=True):
    namespace: str
    count: int


class Callers(msgspec.Struct, kw_only=True):
    """`null` where there is nobody: a nil slice in Go."""

    callers: list[CallerCount] | None


class Fact(msgspec.Struct, kw_only=True):
    key: str
    value: str
    category: str
    tags: list[str]
    created_at: str
    updated_at: str
    expires_at: str | None


class FactValue(Fact, kw_only=True):
    """A value that a key had or has."""

    state: str
    replaced_at: str | None


class FactList(msgspec.Struct, kw_only=True):
    scope: str
    facts: list[Fact]
    more: bool
    """Whether there are more than `limit`."""


class FactHistory(msgspec.Struct, kw_only=True):
    scope: str
    key: str
    history: list[FactValue]


class Login(msgspec.Struct, kw_only=True):
    username: str | None = None
    password: str | None = None


class LoggedIn(msgspec.Struct, kw_only=True):
    token: str
    subject: str
    expires_at: str


class PackStored(msgspec.Struct, kw_only=True):
    """The envelope of a pack. `duration_ms` holds nanoseconds, as Helmdeck's does."""

    pack: str
    version: str
    output: Stored
    duration_ms: int


class PackForgotten(msgspec.Struct, kw_only=True):
    """As `PackStored`."""

    pack: str
    version: str
    output: Forgotten
    duration_ms: int


class BridgeVersion(msgspec.Struct, kw_only=True):
    platform_version: str
    min_recommended: str
