"""How Helmdeck's clients write and read JSON: bodies are read as Go reads them, times are spelled as Go spells them."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from memplane.errors import InvalidRequest
from memplane.ledger.gojson import mend_surrogates
from memplane.memory.runs import CommonFinding, PlanGroup, RecentRun
from memplane.storage.memories import FactCategory

T = TypeVar("T", bound=msgspec.Struct)

_SPACE = b" \t\r\n"


class BadBody(InvalidRequest):
    """The body is not JSON, or JSON of another shape."""


def read_json(raw: bytes) -> Any:
    """The first JSON value of a text. What follows it is not looked at, as Go's decoder does not.

    Numbers with a fraction or an exponent come as `Decimal`, so that none of them passes for a whole number.
    """
    try:
        text = mend_surrogates(raw).lstrip(_SPACE).decode("utf-8")
        value, _ = _DECODER.raw_decode(text)
    except UnicodeDecodeError as exc:
        raise BadBody(f"body must be JSON: invalid UTF-8 at byte {exc.start}") from exc
    except RecursionError as exc:
        raise BadBody("body must be JSON: nested too deeply") from exc
    except json.JSONDecodeError as exc:
        reason = "EOF" if exc.pos >= len(exc.doc) else f"{exc.msg[:1].lower()}{exc.msg[1:]} at {exc.pos}"
        raise BadBody(f"body must be JSON: {reason}") from exc
    except (ValueError, ArithmeticError) as exc:  # a number of thousands of digits
        raise BadBody("body must be JSON: a number is out of range") from exc
    return value


def read_body(raw: bytes, shape: type[T]) -> T:
    """The body as a struct: members by name in any case, unknown ones ignored, `null` as good as left out."""
    value = read_json(raw)
    return read_object({} if value is None else value, shape)


def read_object(value: Any, shape: type[T]) -> T:
    if isinstance(value, dict):
        value = _members(value, shape.__struct_fields__)
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as exc:
        raise BadBody(f"body must be JSON: {exc}") from exc


def _members(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """An exact name wins over one in another case; without that, the last one does."""
    found: dict[str, Any] = {}
    for name in names:
        if name in value:
            found[name] = value[name]
            continue
        for member, inner in value.items():
            if member.lower() == name:
                found[name] = inner
    return {name: inner for name, inner in found.items() if inner is not None}


def _refuse_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no number", name, 0)


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def seconds(moment: datetime) -> str:
    """`2026-08-29T12:34:56Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def nanoseconds(moment: datetime) -> str:
    """RFC 3339 with as many digits of the second as there are: `…56Z`, `…56.5Z`, `…56.385001Z`."""
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{seconds(moment).removesuffix('Z')}{fraction}Z"


# What goes over the wire. Names, order and what is left out when empty are Helmdeck's.


class StoreBody(msgspec.Struct, kw_only=True):
    """A fact to put under a key. `ttl_seconds` 0 or left out is 90 days."""

    key: str
    value: str
    category: str = ""
    tags: list[str] = []
    ttl_seconds: int = 0


class StoreArguments(msgspec.Struct, kw_only=True):
    """`StoreBody` as it comes: whether something is missing is for the engine to say."""

    key: str | None = None
    value: str | None = None
    category: str | None = None
    tags: list[str] | None = None
    ttl_seconds: int | None = None


class StoreResponse(msgspec.Struct, kw_only=True):
    key: str
    category: str
    expires_at: str


class ForgetArguments(msgspec.Struct, kw_only=True):
    """`all` (also when left out), `packs`, `pipelines`, `pack:<id>`, `pipeline:<id>` or `key:<exact-key>`."""

    scope: str | None = None


class HelmdeckForgotten(msgspec.Struct, kw_only=True):
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
    recent: list[RecentRun]
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
    categories: list[FactCategory]
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


class HelmdeckFact(msgspec.Struct, kw_only=True):
    key: str
    value: str
    category: str
    tags: list[str]
    created_at: str
    updated_at: str
    expires_at: str | None


class FactValue(HelmdeckFact, kw_only=True):
    """A value that a key had or has."""

    state: str
    replaced_at: str | None


class HelmdeckFactList(msgspec.Struct, kw_only=True):
    scope: str
    facts: list[HelmdeckFact]
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
    output: StoreResponse
    duration_ms: int


class PackForgotten(msgspec.Struct, kw_only=True):
    """As `PackStored`."""

    pack: str
    version: str
    output: HelmdeckForgotten
    duration_ms: int


class BridgeVersion(msgspec.Struct, kw_only=True):
    platform_version: str
    min_recommended: str
