"""The description of every call, made from what the doors declare: OpenAPI 3.1."""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from memplane.server.endpoint import Adapter, Endpoint
from memplane.server.envelope import FlatError, NestedError, envelope_of, flat, plain

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
_ALWAYS = (400, 403, 408, 413, 415, 421, 422, 431, 500, 503)
_WITH_CREDENTIAL = (401, 404, 429, 502, 507)
_TITLE = "Memplane"


def describe(doors: Iterable[Adapter], version: str) -> dict[str, Any]:
    """Streams and websockets are no calls, and stand beside the paths under `x-streams`."""
    doors = list(doors)
    endpoints = [
        route for door in doors for route in door.routes if isinstance(route, Endpoint) and route.described
    ]
    streams = [route for door in doors for route in door.routes if not isinstance(route, Endpoint)]
    schemas, components = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        for method in endpoint.methods:
            paths.setdefault(_plain_path(endpoint.path), {})[method.lower()] = _operation(
                endpoint, method, schemas
            )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLE,
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": door.name} for door in doors],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        "x-streams": [
            {
                "path": stream.path,
                "summary": stream.summary,
                "websocket": stream.websocket,
                "door": stream.door,
            }
            for stream in streams
        ],
    }


def _schemas(endpoints: Sequence[Endpoint]) -> tuple[dict[int, Any], dict[str, Any]]:
    """By the identity of the type, since types need not be hashable."""
    types: dict[int, Any] = {id(shape): shape for shape in (FlatError, NestedError)}
    for endpoint in endpoints:
        for type_ in (
            body_of(endpoint),
            endpoint.answer,
            *endpoint.more_answers.values(),
            *(query.type for query in endpoint.query),
        ):
            if type_ is not None and type_ is not bytes:
                types[id(type_)] = type_
    found, components = msgspec.json.schema_components(types.values(), ref_template=_REFERENCE)
    return dict(zip(types, found, strict=True)), components


def _operation(endpoint: Endpoint, method: str, schemas: dict[int, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint, method),
        "tags": [endpoint.door],
        "summary": endpoint.summary,
        "security": [] if endpoint.right is None else [{"bearer": []}, {"api_key": []}],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint, schemas)],
        "responses": _refusals(endpoint, schemas) | _answers(endpoint, schemas),
    }
    if endpoint.body is not None and method not in {"GET", "HEAD"}:
        shown = body_of(endpoint)
        schema = {} if shown is bytes else schemas[id(shown)]
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": {
                media: {"schema": schema} for media in endpoint.media or ("application/octet-stream",)
            },
        }
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name, _ in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint, schemas: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": query.name,
            "in": "query",
            "required": query.required,
            "description": query.description,
            "schema": schemas[id(query.type)],
        }
        for query in endpoint.query
    ]


def _answers(endpoint: Endpoint, schemas: dict[int, Any]) -> dict[str, Any]:
    types = {endpoint.answer_status: endpoint.answer, **endpoint.more_answers}
    return {str(status): _answer(endpoint, status, type_, schemas) for status, type_ in sorted(types.items())}


def _answer(endpoint: Endpoint, status: int, type_: Any, schemas: dict[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status != HTTPStatus.NO_CONTENT:
        schema = {} if type_ in {None, bytes} else schemas[id(type_)]
        described["content"] = {_media(endpoint.answer_media): {"schema": schema}}
    return described


def _refusals(endpoint: Endpoint, schemas: dict[int, Any]) -> dict[str, Any]:
    envelope = envelope_of(endpoint.path)
    if envelope is plain:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        shape = FlatError if envelope is flat else NestedError
        content = {"application/json": {"schema": schemas[id(shape)]}}
    statuses = {*_ALWAYS, *endpoint.statuses, *(_WITH_CREDENTIAL if endpoint.right is not None else ())}
    return {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted(statuses)
    }


def _media(value: str) -> str:
    return value.partition(";")[0].strip()


def _plain_path(template: str) -> str:
    return _PARAMETER.sub(lambda found: f"{{{found[1]}}}", template)


def _operation_id(endpoint: Endpoint, method: str) -> str:
    words = "_".join(re.findall(r"\w+", _plain_path(endpoint.path)))
    return f"{endpoint.door}_{method.lower()}_{words}"


def body_of(endpoint: Endpoint) -> Any:
    return endpoint.body if endpoint.body_shown is None else endpoint.body_shown
