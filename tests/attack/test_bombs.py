"""Bombs: a small input of any parser takes no more memory than a fixed multiple of its size, or is refused before.

Peaks are those of Python's own allocations, which every parser here uses.
"""

import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest

from attack_size import LONG
from document_files import make_docx_of, make_zip, word_xml
from memplane.adapters.carapace.wire import MESSAGE_BYTES_MAX
from memplane.adapters.carapace.wire import parse as parse_ipc
from memplane.adapters.helmdeck.wire import BadBody, read_json
from memplane.adapters.mcp.http import _check_size
from memplane.adapters.proxy.apis import Api, ChatRequest, NotPlain
from memplane.documents.parse import parse
from memplane.errors import DocumentUnreadable, MemplaneError
from memplane.ledger import gojson
from memplane.ledger.history_text import decode_leniently, extract_turns
from memplane.server.errors import HttpError, MalformedBody
from memplane.server.request import decode_json
from memplane.sync.interactions import logged_in

_MIB = 1 << 20
_SIZE = 31 * _MIB if LONG else 4 * _MIB
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_ANY = msgspec.json.Decoder()


def _filled(unit: bytes, size: int = _SIZE, *, head: bytes = b"[", tail: bytes = b"[]]") -> bytes:
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


_BOMBS = {
    "empty lists": _filled(b"[],"),
    "empty objects": _filled(b"{},"),
    "short objects": _filled(b'{"":0},'),
    "numbers": _filled(b"0,"),
    "empty strings": _filled(b'"",'),
    "blanks between": _filled(b" [ ] ,"),
    "one object": _filled(b'"a":[],', head=b'{"b":[', tail=b"]}"),
    "strings without commas": _filled(b'""'),
    "opening brackets": b"[" * _SIZE,
    "closing brackets": b"[" + b"]" * _SIZE,
    "a string without an end": b'["' + b"," * _SIZE,
    "quotes and commas": _filled(b'"\\",[{",'),
}
_PARSERS: dict[str, Callable[[bytes], object]] = {
    "request": lambda raw: decode_json(raw, msgspec.Raw),
    "request of any shape": lambda raw: decode_json(raw, object),
    "facts and SSE messages": read_json,
    "memory plane": lambda raw: gojson.decode(raw, _ANY),
    "proxy": lambda raw: ChatRequest(Api.CHAT, raw),
    "MCP": _check_size,
    "history line": extract_turns,
    "provider's answer": decode_leniently,
    "interaction log": lambda raw: list(logged_in(raw.decode("utf-8"))),
}
_REFUSED = (MemplaneError, HttpError, BadBody, NotPlain, msgspec.MsgspecError)


def _peak(work: Callable[[], object]) -> int:
    """The most memory that a call takes at one moment, beside its input; an input may be refused."""
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with suppress(*_REFUSED):
            work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("parser", _PARSERS)
def test_json_bombs_are_refused_before_they_are_built(parser: str) -> None:
    """
    Millions of tiny values are counted in the bytes: the peak stays within a few copies of the body.
    """
    # What may decode a million values needs that much; the peak does not grow with the body beyond it.
    least = (
        150 * _MIB
        if parser in {"memory plane", "provider's answer", "interaction log", "history line"}
        else 0
    )
    every = LONG or parser == "request"
    bombs = (
        _BOMBS
        if every
        else {name: _BOMBS[name] for name in ("empty lists", "opening brackets", "one object")}
    )
    most = {name: _peak(lambda raw=raw: _PARSERS[parser](raw)) for name, raw in bombs.items()}

    assert {name: peak for name, peak in most.items() if peak > max(least, 3.2 * _SIZE)} == {}


def test_as_many_values_as_allowed() -> None:
    """
    A body just within the limit is decoded, and takes at most 200 bytes for each of its values.
    """
    for unit, each in ((b"[],", 2), (b'{"":0},', 2), (b"0.5,", 1), (b'"ab",', 1)):
        count = gojson.REQUEST_VALUES_MAX // each - 4
        body = b"[" + unit * count + b"0]"
        found: list[object] = []
        peak = _peak(lambda body=body, found=found: found.append(decode_json(body, list)))

        assert len(found) == 1
        assert peak < 200 * gojson.REQUEST_VALUES_MAX

    with pytest.raises(MalformedBody, match="500,000 values"):
        decode_json(b"[" + b"0," * gojson.REQUEST_VALUES_MAX + b"0]", list)


def test_commas_in_texts_are_no_values() -> None:
    """
    A long text full of commas and brackets is one value.
    """
    text = "[{," * 400_000 + '"\\'
    body = msgspec.json.encode({"text": text})

    assert decode_json(body, dict) == {"text": text}


def test_ipc_messages_are_small() -> None:
    """
    A message of the IPC socket is at most two megabytes, and is decoded within a bounded multiple of that.
    """
    bomb = b'{"correlation":"a","arguments":' + _filled(b"[],", MESSAGE_BYTES_MAX) + b"}"

    assert _peak(lambda: parse_ipc(bomb)) < 64 * MESSAGE_BYTES_MAX


_DOCUMENTS: dict[str, tuple[str | bytes, str, float]] = {
    "HTML nesting": ("<div>" * 40_000, "text/html", 60),
    "HTML tables": ("<table><tr><td>" * 10_000, "text/html", 60),
    "HTML attributes": ("<p " + "a=b " * 40_000 + ">x", "text/html", 60),
    "HTML lists": ("<ul><li>" * 20_000, "text/html", 60),
    "HTML entities": ("&#38;" * 40_000, "text/html", 60),
    "Markdown quotes": (">" * 200_000, "text/markdown", 60),
    "Markdown lists": ("- " * 100_000, "text/markdown", 60),
    "Markdown links": ("[" * 200_000, "text/markdown", 60),
    "Markdown headings": ("# a\n" * 10_000, "text/markdown", 400),
    "Markdown table": ("|" * 200_000, "text/markdown", 60),
    "CSV": ("," * 200_000, "text/csv", 60),
    "CSV quotes": ('"' * 200_000, "text/csv", 60),
    "lines": ("a\n\n" * 50_000, "text/plain", 400),
    "DOCX of blanks": (
        make_docx_of("<w:p><w:r><w:t>" + " " * 6_000_000 + "</w:t></w:r></w:p>"),
        _DOCX,
        4_000,
    ),
    "DOCX nesting": (make_docx_of("<w:p>" * 30_000 + "</w:p>" * 30_000), _DOCX, 4_000),
    "DOCX in a DOCX": (make_zip({"word/document.xml": zlib.compress(b" " * 20_000_000)}), _DOCX, 4_000),
    "DOCX entities": (
        make_zip(
            {"word/document.xml": word_xml("<w:p/>").replace("?>", "?><!DOCTYPE a [<!ENTITY b 'cccc'>]>", 1)}
        ),
        _DOCX,
        4_000,
    ),
}


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_document_bombs(name: str) -> None:
    """
    A document is read within a bounded multiple of its size, or refused.
    """
    content, media_type, ratio_max = _DOCUMENTS[name]

    assert _peak(lambda: parse(content, media_type)) < max(ratio_max * len(content), 8 * _MIB)


def test_a_docx_that_unpacks_to_more_than_it_may_is_refused() -> None:
    """
    The ratio is checked while unpacking, so the whole is never in memory.
    """
    content = make_docx_of("<w:p><w:r><w:t>" + " " * 12_000_000 + "</w:t></w:r></w:p>")

    with pytest.raises(DocumentUnreadable):
        parse(content, _DOCX)
