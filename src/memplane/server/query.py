"""Reading a query string to what an endpoint declares."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from memplane.errors import InvalidRequest
from memplane.server.endpoint import Endpoint

_PARTS_MAX = 100


def read_query(endpoint: Endpoint, query_string: bytes) -> dict[str, Any]:
    """Every declared parameter; one that is given twice is not guessed about."""
    try:
        given = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_PARTS_MAX
        )
    except (UnicodeDecodeError, ValueError) as exc:
        raise InvalidRequest("the query string is not percent-encoded UTF-8, or has too many parts") from exc
    values: dict[str, Any] = {}
    for query in endpoint.query:
        found = [value for name, value in given if name == query.name]
        if len(found) > 1:
            raise InvalidRequest(f"{query.name} is given {len(found)} times; give it once", field=query.name)
        if not found and query.required:
            raise InvalidRequest(f"{query.name} is missing", field=query.name)
        values[query.name] = query.default if not found else _converted(query.name, found[0], query.type)
    return values


def _converted(name: str, value: str, type_: Any) -> Any:
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"{name} does not fit: {exc}", field=name) from exc
