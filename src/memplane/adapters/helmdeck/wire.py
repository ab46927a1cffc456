"""JSON for Helmdeck's clients: bodies are parsed as in Go, and times are formatted as in Go."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from memplane.errors import InvalidRequest
from memplane.ledger.gojson import REQUEST_VALUES_MAX, NotJson, check_values, mend_surrogates
from memplane.memory.runs import CommonFinding, PlanGroup, RecentRun
from memplane.storage.memories import FactCategory

T = TypeVar("T", bound=msgspec.Struct)

_SPACE = b" \t\r\n"


class BadBody(InvalidRequest):
    """The body is not JSON, or has an unexpected type."""


def read_json(raw: bytes) -> Any:
    """The first JSON value of a text. As in Go's decoder, the rest is ignored.

    Numbers with a fraction or an exponent become `Decimal`, so that none of them is accepted as an integer.
    """
    try:
        check_values(raw, REQUEST_VALUES_MAX)
        text = mend_surrogates(raw).lstrip(_SPACE).decode("utf-8")
        value, _ = _DECODER.raw_decode(text)
    except NotJson as exc:
        raise BadBody(f"body must be JSON: {exc}") from exc
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
    """Decode the body as a struct: member names in any case, unknown ones ignored, `null` as omitted."""
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
    """An exact name takes precedence over another case; otherwise the last one wins."""
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
    raise json.JSONDecodeError(f"{name} is not a number", name, 0)


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def seconds(moment: datetime) -> str:
    """`2026-08-29T12:34:56Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def nanoseconds(moment: datetime) -> str:
    """RFC 3339 with only the significant digits of the second: `…56Z`, `…56.5Z`, `…56.385001Z`."""
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{seconds(moment).removesuffix('Z')}{fraction}Z"


# Wire types. Names, order and omission of empty fields follow Helmdeck.


class StoreBody(msgspec.Struct, kw_only=True):
    """A fact to store under a key. `ttl_seconds` 0 or omitted means 90 days."""

    key: str
    value: str
    category: str = ""
    tags: list[str] = []
    ttl_seconds: int = 0


class StoreArguments(msgspec.Struct, kw_only=True):
    """`StoreBody` as received; the engine checks for missing fields."""

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
    """`all` (the default), `packs`, `pipelines`, `pack:<id>`, `pipeline:<id>` or `key:<exact-key>`."""

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
    """Defaults learned from earlier runs. Lists that are always present have no default, so that `[]` is written."""

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
    """`null` if there are no callers: a nil slice in Go."""

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
    """A past or current value of a key."""

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
    """The envelope of a pack. `duration_ms` contains nanoseconds, as in Helmdeck."""

    pack: str
    version: str
    output: StoreResponse
    duration_ms: int


class PackForgotten(msgspec.Struct, kw_only=True):
    """See `PackStored`."""

    pack: str
    version: str
    output: HelmdeckForgotten
    duration_ms: int


class BridgeVersion(msgspec.Struct, kw_only=True):
    platform_version: str
    min_recommended: str
