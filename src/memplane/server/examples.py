"""Example values for the OpenAPI description, by field name, so that every operation shows the same small story."""

from typing import Any

from msgspec import inspect

_AT = "2026-11-15T08:30:00Z"
_LATER = "2027-02-13T08:30:00Z"
_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

_SAMPLES: dict[str, Any] = {
    "agent": "alice",
    "agent_id": "alice",
    "anchor_time": _AT,
    "brief": "Lives in Lisbon.",
    "byte_size": 18_432,
    "category": "preferences",
    "channels": "vector",
    "code": "not_found",
    "collection_id": "contracts",
    "collection_ids": "contracts",
    "completed_at": _AT,
    "confidence": 0.9,
    "content": "I moved to Lisbon last week",
    "content_type": "text/markdown",
    "conversation_id": "c1",
    "created_at": _AT,
    "credential": "mp_…",
    "date_type": "relative",
    "description": "Memory for agents",
    "digest": _DIGEST,
    "distillation": "The lease begins in March and ends with three months' notice.",
    "document_id": "lease",
    "document_name": "Lease.md",
    "endpoint": "POST /v6/recall",
    "end_date": "2026-11-15",
    "episode_id": "e_6f1c2d",
    "event_id": "01JCQX5V7E8Z4M2K9T3R6W1Y0B",
    "event_time": _AT,
    "expires_at": _LATER,
    "fact_id": "m_4b7e19",
    "fetched_at": _AT,
    "granularity": "week",
    "id": "turn-1",
    "importance": 0.7,
    "key": "preferences/theme",
    "kind": "fact",
    "kinds": "fact",
    "last_event_at": _AT,
    "memory_service": "memplane",
    "message": "no memory 'm_4b7e19' in this space",
    "mode": "fact",
    "model": "gpt-5-mini",
    "name": "Contracts",
    "namespace": "alice",
    "node_id": "s1",
    "object": "Lisbon",
    "object_text": "Lisbon",
    "pack": "memory-store",
    "path": "/memories/notes.md",
    "plan": "default",
    "predicate": "lives_in",
    "predicates": "lives_in",
    "project_id": "home",
    "range": "7d",
    "raw_expression": "last week",
    "reason": "requested by the user",
    "recall_id": "r1_WyJhbGljZSJd",
    "receipt_id": "f_2c9a77",
    "reference_time": _AT,
    "relation_phrase": "moved to",
    "replaced_at": _AT,
    "request_id": "6b1d0b6a4f0e4f0c8f3f8d0a7a1b2c3d",
    "requested_at": _AT,
    "reset_date": "2026-12-01T00:00:00Z",
    "role": "user",
    "scope": "key:preferences/theme",
    "section": "Term",
    "service": "memplane",
    "source": "user-turn",
    "source_text": "I moved to Lisbon last week",
    "start_date": "2026-11-09",
    "started_at": _AT,
    "state": "active",
    "status": "ok",
    "strategy": "fused",
    "subject": "alice",
    "superseded_at": _AT,
    "tags": "ui",
    "tenant_id": "default",
    "text": "I moved to Lisbon last week",
    "tier": "hot",
    "title": "Term",
    "token": "eyJhbGciOiJIUzI1NiJ9.…",
    "ts": _AT,
    "ts_end": "2026-11-08T23:59:59Z",
    "ts_start": "2026-11-02T00:00:00Z",
    "updated_at": _AT,
    "user_id": "alice",
    "value": "dark",
    "version": "0.1.0",
}


def example_of(type_: Any) -> Any:
    """A value of the type."""
    return _example("", inspect.type_info(type_))


def named(name: str) -> Any:
    """The value of a parameter; None where there is none."""
    return _SAMPLES.get(name)


def _example(name: str, info: inspect.Type) -> Any:  # noqa: PLR0911 - one per kind of type
    match info:
        case inspect.Metadata():
            return _example(name, info.type)
        case inspect.StructType():
            return {field.encode_name: _example(field.encode_name, field.type) for field in info.fields}
        case inspect.UnionType():
            some = [inner for inner in info.types if not isinstance(inner, inspect.NoneType)]
            return _example(name, some[0])
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return [_example(name, info.item_type)]
        case inspect.DictType():
            return {"example": _example("", info.value_type)}
        case inspect.LiteralType():
            return info.values[0]
        case inspect.EnumType():
            return next(iter(info.cls)).value
        case _:
            return _plain(name, info)


def _plain(name: str, info: inspect.Type) -> Any:
    sample = _SAMPLES.get(name)
    match info:
        case inspect.StrType():
            return sample if isinstance(sample, str) else name
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return sample if isinstance(sample, int) else 1
        case inspect.FloatType():
            return sample if isinstance(sample, float) else 0.8
        case _:
            return sample
