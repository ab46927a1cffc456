"""The OpenAPI 3.1 description of every operation, generated from what the adapters declare and from msgspec's schemas."""

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec

from memplane.server import examples
from memplane.server.endpoint import Adapter, Endpoint, Query
from memplane.server.errors import ErrorFormat
from memplane.server.responses import JSON

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
_ALWAYS = (400, 403, 408, 413, 415, 421, 422, 431, 500, 503)
_WITH_CREDENTIAL = (401, 404, 429, 502, 507)
_TEXT = {"text/plain": {"schema": {"type": "string"}}}

Json = dict[str, Any]


def describe(adapters: Iterable[Adapter], version: str) -> Json:
    """OpenAPI has no streams and no websockets: they are listed under `x-streams`."""
    adapters = list(adapters)
    endpoints = [
        (adapter, route)
        for adapter in adapters
        for route in adapter.routes
        if isinstance(route, Endpoint) and route.described
    ]
    schemas = _Schemas(endpoints)
    paths: dict[str, Json] = {}
    for adapter, endpoint in endpoints:
        path = paths.setdefault(_plain_path(endpoint.path), {})
        method = endpoint.methods[0]  # an endpoint of any method is described once
        path[method.lower()] = _operation(adapter, endpoint, method, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memplane",
            "version": version,
            "summary": "Memory for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": adapter.title or adapter.name} for adapter in adapters],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        "x-streams": [
            {
                "path": route.path,
                "summary": route.summary,
                "websocket": route.websocket,
                "door": adapter.name,
            }
            for adapter in adapters
            for route in adapter.routes
            if not isinstance(route, Endpoint)
        ],
    }


class _Schemas:
    """Schemas of all types, by the identity of the type: types need not be hashable."""

    def __init__(self, endpoints: Iterable[tuple[Adapter, Endpoint]]) -> None:
        types = {id(type_): type_ for adapter, endpoint in endpoints for type_ in _types(adapter, endpoint)}
        found, self.components = msgspec.json.schema_components(types.values(), ref_template=_REFERENCE)
        self._types = types  # or another type could get the identity of one that is gone
        self._found = dict(zip(types, found, strict=True))

    def of(self, type_: Any) -> Json:
        return {} if type_ is None or type_ is bytes else self._found[id(type_)]


def _types(adapter: Adapter, endpoint: Endpoint) -> Iterator[Any]:
    types = (
        adapter.errors.schema,
        body_of(endpoint),
        endpoint.answer,
        *endpoint.more_answers.values(),
        *(query.type for query in endpoint.query),
    )
    return (type_ for type_ in types if type_ is not None and type_ is not bytes)


def _operation(adapter: Adapter, endpoint: Endpoint, method: str, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": _operation_id(endpoint, method),
        "tags": [adapter.title or adapter.name],
        "summary": endpoint.summary,
        "security": [] if endpoint.right is None else [{"bearer": []}, {"api_key": []}],
        "parameters": [
            *(_path_parameter(name) for name, _ in _PARAMETER.findall(endpoint.path)),
            *(_query_parameter(query, schemas) for query in endpoint.query),
        ],
        "responses": _errors(adapter.errors, endpoint, schemas) | _answers(endpoint, schemas),
    }
    if endpoint.body is not None and method not in {"GET", "HEAD"}:
        content = _with_example({"schema": schemas.of(body_of(endpoint))}, endpoint.example)
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": dict.fromkeys(endpoint.media or ("application/json",), content),
        }
    return operation


def _path_parameter(name: str) -> Json:
    parameter = {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    return _with_example(parameter, examples.named(name))


def _query_parameter(query: Query, schemas: _Schemas) -> Json:
    parameter = {
        "name": query.name,
        "in": "query",
        "required": query.required,
        "description": query.description,
        "schema": schemas.of(query.type),
    }
    return _with_example(parameter, examples.named(query.name) if query.required else None)


def _answers(endpoint: Endpoint, schemas: _Schemas) -> Json:
    answers: Json = {}
    for status, type_ in sorted({endpoint.answer_status: endpoint.answer, **endpoint.more_answers}.items()):
        answer: Json = {"description": HTTPStatus(status).phrase}
        answers[str(status)] = answer
        if status != HTTPStatus.NO_CONTENT:
            media = endpoint.answer_media.partition(";")[0].strip()
            described = type_ not in {None, bytes, str} and media == JSON
            example = examples.example_of(type_) if described else None
            answer["content"] = {media: _with_example({"schema": schemas.of(type_)}, example)}
    return answers


def _errors(errors: ErrorFormat, endpoint: Endpoint, schemas: _Schemas) -> Json:
    content = _TEXT if errors.schema is None else {"application/json": {"schema": schemas.of(errors.schema)}}
    statuses = {*_ALWAYS, *endpoint.statuses, *(_WITH_CREDENTIAL if endpoint.right is not None else ())}
    return {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted(statuses)
    }


def _with_example(described: Json, example: Any) -> Json:
    return described if example is None else {**described, "example": example}


def _plain_path(template: str) -> str:
    return _PARAMETER.sub(lambda found: f"{{{found[1]}}}", template)


def _operation_id(endpoint: Endpoint, method: str) -> str:
    words = "_".join(re.findall(r"\w+", _plain_path(endpoint.path)))
    return f"{endpoint.adapter}_{method.lower()}_{words}"


def body_of(endpoint: Endpoint) -> Any:
    return endpoint.body if endpoint.body_shown is None else endpoint.body_shown
