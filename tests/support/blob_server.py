"""A container of blobs behind a real HTTP server that speaks the storage service's wire and remembers what it was asked."""

import re
import threading
from dataclasses import dataclass
from itertools import count
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from stub_server import Handler, StubServer

CONTAINER = "agent-memory"
TOKEN = "a-token"
MODIFIED = "Fri, 17 Apr 2026 20:00:00 GMT"
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass
class Asked:
    method: str
    path: str
    query: dict
    headers: dict
    body: bytes


class BlobServer:
    """`blobs` is what it holds, `asked` what came in; `answers` are statuses it gives first, before doing anything."""

    def __init__(self, *, page=5000):
        self.blobs = {}
        self.asked = []
        self.answers = []
        self.page = page
        self.before = lambda asked: None
        self._count = count(1)
        self._lock = threading.Lock()
        self._server = StubServer(type("Bound", (_Handler,), {"server_of_blobs": self}), "")
        self.endpoint = self._server.url

    def close(self):
        self._server.close()

    def put(self, name, data):
        self.blobs[name] = (data, f'"0x8DC{next(self._count):013X}"')
        return self.blobs[name][1]

    def texts(self):
        return {name: data.decode() for name, (data, _) in self.blobs.items()}

    def methods(self):
        return [asked.method for asked in self.asked]

    def answer(self, asked):
        """Status, headers and body, decided in one step as the service does."""
        self.before(asked)
        with self._lock:
            self.asked.append(asked)
            if self.answers:
                return self.answers.pop(0), {}, b""
            if asked.headers.get("authorization") != f"Bearer {TOKEN}":
                return 401, {}, b""
            if asked.query.get("comp") == "list":
                return 200, {"Content-Type": "application/xml"}, self._listing(asked.query)
            name = unquote(asked.path).split(f"/{CONTAINER}/", 1)[1]
            return getattr(self, f"_{asked.method.lower()}")(asked, name)

    def _put(self, asked, name):
        etag = self.blobs.get(name, (b"", None))[1]
        wanted = asked.headers.get("if-match")
        if wanted is not None and wanted != etag:
            return 412, {}, b""
        if asked.headers.get("if-none-match") == "*" and etag is not None:
            return 409, {}, b"<Error><Code>BlobAlreadyExists</Code></Error>"
        if asked.headers.get("x-ms-blob-type") != "BlockBlob":
            return 400, {}, b""
        return 201, {"ETag": self.put(name, asked.body)}, b""

    def _get(self, asked, name):
        if name not in self.blobs:
            return 404, {"x-ms-error-code": "BlobNotFound"}, b""
        data, etag = self.blobs[name]
        if asked.headers.get("if-none-match") == etag:
            return 304, {"ETag": etag}, b""
        return 200, {"ETag": etag, "Last-Modified": MODIFIED}, data

    _head = _get

    def _delete(self, asked, name):
        return (202 if self.blobs.pop(name, None) else 404), {}, b""

    def _listing(self, query):
        names = sorted(name for name in self.blobs if name.startswith(query.get("prefix", "")))
        start = int(query.get("marker", "0"))
        shown = names[start : start + self.page]
        following = start + self.page if start + self.page < len(names) else ""
        blobs = "".join(
            f"<Blob>{_name(name)}<Properties><Last-Modified>{MODIFIED}</Last-Modified>"
            f"<Etag>{escape(self.blobs[name][1])}</Etag>"
            f"<Content-Length>{len(self.blobs[name][0])}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
            for name in shown
        )
        return (
            '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults>'
            f"<Blobs>{blobs}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
        ).encode()


def _name(name):
    if NOT_IN_XML.search(name):
        return f'<Name Encoded="true">{quote(name)}</Name>'
    return f"<Name>{escape(name)}</Name>"


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, parts.path, query, headers, body)
        status, extra, data = self.server_of_blobs.answer(asked)
        self.send_response(status)
        for name, value in extra.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815 - so http.server looks for them
