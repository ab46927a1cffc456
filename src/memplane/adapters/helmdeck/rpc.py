"""JSON-RPC 2.0 for the older MCP transports (protocol 2024-11-05): one message in, at most one out."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from memplane.adapters.helmdeck.wire import BadBody, read_json
from memplane.errors import MemplaneError
from memplane.server.limits import WEBSOCKET_BYTES_MAX

PROTOCOL = "2024-11-05"
MESSAGE_BYTES_MAX = WEBSOCKET_BYTES_MAX

PARSE_ERROR = -32_700
METHOD_NOT_FOUND = -32_601
INVALID_PARAMS = -32_602
INTERNAL_ERROR = -32_603

_log = structlog.get_logger("memplane.helmdeck")

Params = Mapping[str, Any]
Method = Callable[[Params], Any]


class RpcError(Exception):
    """An error of the protocol, not of a tool."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer(raw: bytes, methods: Mapping[str, Method]) -> bytes | None:
    """The reply to one message; None for a notification, even an invalid one."""
    try:
        message = _read(raw)
    except RpcError as exc:
        return _failed(None, exc)
    id_ = message.get("id")
    if id_ is None:
        return None
    try:
        result = _call(message, methods)
    except RpcError as exc:
        return _failed(id_, exc)
    except Exception as exc:  # noqa: BLE001 - one bad message must not end the session or leak details
        if isinstance(exc, MemplaneError) and exc.category.is_callers:
            return _failed(id_, RpcError(exc.category.rpc_code, str(exc)))
        _log.exception("facts_rpc_failed", method=str(message.get("method"))[:64])
        return _failed(id_, RpcError(INTERNAL_ERROR, "internal error"))
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "result": result})


def _read(raw: bytes) -> dict[str, Any]:
    if len(raw) > MESSAGE_BYTES_MAX:
        raise RpcError(PARSE_ERROR, f"parse error: a message has at most {MESSAGE_BYTES_MAX:,} bytes")
    try:
        message = read_json(raw)
    except BadBody as exc:
        raise RpcError(PARSE_ERROR, f"parse error: {str(exc).partition(': ')[2]}") from exc
    if not isinstance(message, dict):
        raise RpcError(PARSE_ERROR, "parse error: a message is one JSON object")
    id_ = message.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | None):
        raise RpcError(PARSE_ERROR, "parse error: an id is a string or a whole number")
    return message


def _call(message: Mapping[str, Any], methods: Mapping[str, Method]) -> Any:
    name, params = message.get("method"), message.get("params")
    method = methods.get(name) if isinstance(name, str) else None
    if method is None:
        raise RpcError(METHOD_NOT_FOUND, f"method not found: {name}")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "invalid params: give an object")
    return method(params or {})


def _failed(id_: str | int | None, error: RpcError) -> bytes:
    failure = {"code": error.code, "message": str(error)}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": failure})


def text_of(params: Params, name: str) -> str:
    """A required string parameter."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"invalid params: {name} must be a string")
    return value
