"""The QMD corpus bridge: one tool, `query`, over all keyed rows of the caller."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from memplane.adapters.helmdeck.caller import CallerFacts
from memplane.adapters.helmdeck.packs import kind_of
from memplane.adapters.helmdeck.rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PROTOCOL,
    Method,
    Params,
    RpcError,
    text_of,
)
from memplane.memory.runs import PACK_HISTORY, PIPELINE_HISTORY, PackRun, PipelineRun
from memplane.types import Memory

SERVER = {"name": "helmdeck", "version": "1.0.0"}
LIMIT_DEFAULT = 20
LIMIT_MAX = 100

_SCORE_ALL, _SCORE_PHRASE = 0.5, 0.9
_WORD_BYTES_MIN = 2

_TOOL = {
    "name": "query",
    "description": "Search the caller's facts and audit history.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "searches": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "enum": ["lex", "vec", "hyde"]},
                        "query": {"type": "string"},
                    },
                },
            },
            "query": {"type": "string"},
            "limit": {"type": "number"},
            "collections": {"type": "array", "items": {"type": "string"}},
        },
    },
}


class QmdResult(msgspec.Struct, frozen=True, kw_only=True):
    """One result."""

    docid: str
    score: float
    snippet: str
    collection: str
    file: str


def methods_for(caller: CallerFacts) -> Mapping[str, Method]:
    def initialize(_params: Params) -> Any:
        return {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": SERVER}

    return {
        "initialize": initialize,
        "ping": lambda _params: {},
        "tools/list": lambda _params: {"tools": [_TOOL]},
        "tools/call": lambda params: _call(caller, params),
    }


def _call(caller: CallerFacts, params: Params) -> Any:
    name = text_of(params, "name")
    if name != "query":
        raise RpcError(
            METHOD_NOT_FOUND, f"unknown tool: {name} (only 'query' is supported on the QMD endpoint)"
        )
    arguments = params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, f"invalid arguments: expected object, got {kind_of(arguments)}")
    results = query(caller.rows(), _query_text(arguments), _limit(arguments))
    document = {"results": [msgspec.to_builtins(result) for result in results]}
    text = msgspec.json.encode(document).decode()
    return {"structuredContent": document, "content": [{"type": "text", "text": text}]}


def query(rows: Iterable[Memory], query: str, limit: int) -> list[QmdResult]:
    """The best rows; equal scores are sorted newest first. An empty query returns everything."""
    found: list[tuple[float, datetime, QmdResult]] = []
    for row in rows:
        if not row.category:
            continue
        snippet = _snippet(row)
        score = _score(snippet, query)
        if score > 0:
            run = row.category in {PACK_HISTORY, PIPELINE_HISTORY}
            recency = row.created_at if run else row.updated_at
            found.append((score, recency, _found(row, snippet, score)))
    found.sort(key=lambda item: item[1], reverse=True)
    found.sort(key=lambda item: -item[0])
    return [result for _, _, result in found[:limit]]


def _query_text(arguments: Mapping[str, Any]) -> str:
    """The first non-empty `lex` search, else the first of any type, else `query`."""
    searches = arguments.get("searches") or []
    if not isinstance(searches, list) or not all(isinstance(search, dict) for search in searches):
        raise RpcError(INVALID_PARAMS, "invalid arguments: searches must be an array of objects")
    plain = arguments.get("query") or ""
    query = [(search.get("type"), search.get("query") or "") for search in searches]
    if not isinstance(plain, str) or not all(isinstance(text, str) for _, text in query):
        raise RpcError(INVALID_PARAMS, "invalid arguments: query must be a string")
    said = [(kind, text.strip()) for kind, text in query if text.strip()]
    lexical = [text for kind, text in said if kind == "lex"]
    return next(iter([*lexical, *(text for _, text in said), plain.strip()]))


def _limit(arguments: Mapping[str, Any]) -> int:
    limit = arguments.get("limit")
    if limit is None:
        return LIMIT_DEFAULT
    if kind_of(limit) != "number":
        raise RpcError(INVALID_PARAMS, "invalid arguments: limit must be a number")
    return int(limit) if 1 <= limit <= LIMIT_MAX else LIMIT_DEFAULT


def _score(snippet: str, query: str) -> float:
    if not query:
        return _SCORE_ALL
    text, query = snippet.lower(), query.lower()
    if query in text:
        return _SCORE_PHRASE
    words = query.split()
    hits = sum(len(word.encode()) >= _WORD_BYTES_MIN and word in text for word in words)
    return hits / len(words)


def _found(row: Memory, snippet: str, score: float) -> QmdResult:
    return QmdResult(
        docid=f"{row.category}/{row.key}",
        score=score,
        snippet=snippet,
        collection=f"helmdeck-{row.category}",
        file=_file(row),
    )


def _file(row: Memory) -> str:
    """A run's category is the pack or pipeline. It is read from the key, because the value may be unreadable."""
    key = row.key or ""
    if row.category == PACK_HISTORY:
        return f"audit/pack/{_ran(key)}"
    if row.category == PIPELINE_HISTORY:
        return f"audit/pipeline/{_ran(key)}"
    return f"facts/{key}"


def _ran(key: str) -> str:
    return key.partition("/")[2].rpartition("/")[0]


def _snippet(row: Memory) -> str:
    try:
        if row.category == PACK_HISTORY:
            return _pack_snippet(msgspec.json.decode(row.text, type=PackRun))
        if row.category == PIPELINE_HISTORY:
            return _pipeline_snippet(msgspec.json.decode(row.text, type=PipelineRun))
    except msgspec.DecodeError:
        return f"## {row.key}\n\n(audit row unreadable)"
    return f"## {row.key}\n\n{row.text}\n\n(category: {row.category})"


def _pack_snippet(run: PackRun) -> str:
    version = f"Version: {run.version}\n" if run.version else ""
    return f"## Pack call: {run.pack}\n\nOutcome: {run.outcome}\n{version}{_run_lines(run)}"


def _pipeline_snippet(run: PipelineRun) -> str:
    run_id = f"Run ID: {run.run_id}\n" if run.run_id else ""
    return f"## Pipeline run: {run.pipeline}\n\nOutcome: {run.outcome}\n{run_id}{_run_lines(run)}"


def _run_lines(run: PackRun | PipelineRun) -> str:
    took = f"Duration: {run.duration_ms}ms\n" if run.duration_ms else ""
    used = "".join(f"- {name}: {value}\n" for name, value in sorted(run.learn_inputs.items()))
    return took + (f"\nInputs used:\n{used}" if used else "")
