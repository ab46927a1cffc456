"""Helmdeck's main MCP server: the packs as tools, and resources for the calling user."""

from collections.abc import Mapping
from typing import Any

import msgspec

from memplane.adapters.helmdeck import resources
from memplane.adapters.helmdeck.caller import CallerFacts
from memplane.adapters.helmdeck.packs import PACKS, pack_named, run_pack
from memplane.adapters.helmdeck.rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PROTOCOL,
    Method,
    Params,
    RpcError,
    text_of,
)
from memplane.auth.principal import Forbidden
from memplane.errors import InvalidRequest

SERVER = {"name": "helmdeck", "version": "0.2.0"}


def methods_for(caller: CallerFacts) -> Mapping[str, Method]:
    """All methods, bound to the caller of the session; resources are per caller, like tools."""

    def initialize(_params: Params) -> Any:
        return {
            "protocolVersion": PROTOCOL,
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": SERVER,
        }

    def list_tools(_params: Params) -> Any:
        return {
            "tools": [
                {"name": pack.name, "description": pack.description, "inputSchema": pack.input_schema}
                for pack in PACKS.values()
            ]
        }

    def list_resources(_params: Params) -> Any:
        return {"resources": [resource.listing for resource in resources.ALL]}

    return {
        "initialize": initialize,
        "ping": lambda _params: {},
        "tools/list": list_tools,
        "tools/call": lambda params: _call(caller, params),
        "resources/list": list_resources,
        "resources/read": lambda params: _read(caller, params),
    }


def _call(caller: CallerFacts, params: Params) -> Any:
    name = text_of(params, "name")
    pack = pack_named(name)
    if pack is None:
        raise RpcError(METHOD_NOT_FOUND, f"unknown tool: {name}")
    given = params.get("arguments")
    try:
        result = run_pack(pack, caller, {} if given is None else given)
    except (InvalidRequest, Forbidden) as exc:
        code = "forbidden" if isinstance(exc, Forbidden) else "invalid_input"
        return _content(msgspec.json.encode({"error": code, "message": str(exc)}), failed=True)
    return _content(msgspec.json.encode(result), failed=False)


def _content(text: bytes, *, failed: bool) -> Any:
    return {"content": [{"type": "text", "text": text.decode()}], "isError": failed}


def _read(caller: CallerFacts, params: Params) -> Any:
    uri = text_of(params, "uri")
    resource = resources.BY_URI.get(uri)
    if resource is None:
        raise RpcError(INVALID_PARAMS, f"unknown resource: {uri}")
    text = msgspec.json.encode(resource.read(caller)).decode()
    return {"contents": [{"uri": uri, "mimeType": resources.MIME_TYPE, "text": text}]}
