"""An object store over HTTP that misbehaves when told to: enough of what Azure Blob Storage, S3 and Google Cloud Storage
say for single objects, and every way not to say it."""

import hashlib
import itertools
import socket
import threading
from contextlib import suppress
from html import escape
from urllib.parse import parse_qs, urlsplit

from stub_server import Handler, StubServer

_PAGE = 5_000


class FaultyServer(StubServer):
    """Keeps objects by path. `faults` are used up one a request: None serves it; a number answers that status; `drop`
    closes the connection unread, `lost` after the work is done, `half` in the middle of a body."""

    def __init__(self):
        self.objects = {}
        self.faults = []
        self.asked = []
        self.authorized = []
        self.headers = {}
        self.codes = {}
        self.names = []
        self.lock = threading.Lock()
        self.count = itertools.count(1)
        super().__init__(lambda *arguments: _Answer(self, *arguments), "")

    def place(self, provider):
        """A URL and the environment that opens it."""
        if provider == "az":
            return "az://acct/container/agent", {
                "AZURE_STORAGE_SAS_TOKEN": "sv=2021-08-06&sp=rw&sig=TOPSECRET%3D",
                "AZURE_STORAGE_ENDPOINT": f"{self.url}/acct",
            }
        if provider == "s3":
            return "s3://bucket/agent", {
                "AWS_ACCESS_KEY_ID": "TOPKEY",
                "AWS_SECRET_ACCESS_KEY": "TOPSECRET",
                "AWS_SESSION_TOKEN": "TOPSECRET",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": self.url,
            }
        return "gs://bucket/agent", {"GOOGLE_BEARER_TOKEN": "TOPSECRET", "GOOGLE_BASE_URL": self.url}


class _Answer(Handler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server, *arguments):
        self.faulty = server
        super().__init__(*arguments)

    def answer(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.faulty
        path = urlsplit(self.path).path
        with server.lock:
            server.asked.append((self.command, path))
            server.authorized.append(self.headers.get("Authorization", ""))
            fault = server.faults.pop(0) if server.faults else None
            if fault == "drop":
                self.hang_up()
            elif fault is None and "comp=list" in self.path:
                self.say(200, self.listing())
            elif isinstance(fault, int):
                code = server.codes.get(fault, f"Code{fault}")
                self.say(fault, f"<Error><Code>{code}</Code></Error>".encode(), server.headers)
            else:
                self.serve(path, data, fault)

    def hang_up(self):
        self.close_connection = True
        with suppress(OSError):  # the client may have gone first
            self.connection.shutdown(socket.SHUT_RDWR)

    def serve(self, path, data, fault):
        there = self.faulty.objects.get(path)
        if self.command == "PUT":
            if not self.may_put(there):
                self.say(412, b"<Error><Code>ConditionNotMet</Code></Error>")
                return
            tag = f'"{hashlib.md5(data).hexdigest()}"'
            there = self.faulty.objects[path] = (data, tag, str(next(self.faulty.count)))
            if fault == "lost":
                self.hang_up()
            else:
                self.say(201, b"", self.tags(there))
        elif there is None:
            self.say(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif self.headers.get("If-None-Match") == there[1]:
            self.say(304, b"", self.tags(there))
        elif fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", str(len(there[0])))
            for name, value in self.tags(there).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(there[0][: len(there[0]) // 2])
            self.wfile.flush()
            self.hang_up()
        else:
            self.say_object(there)

    def say_object(self, there):
        """All of it, or what a range asks for."""
        data, asked = there[0], self.headers.get("Range", "")
        if not asked:
            self.say(200, data, self.tags(there))
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(data)), len(data) - 1)
        place = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        self.say(206, data[start : end + 1], self.tags(there) | place)

    def listing(self):
        """A page of `names`, as Azure lists them."""
        start = int(parse_qs(urlsplit(self.path).query).get("marker", ["0"])[0])
        blobs = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>Fri, 17 Apr 2026 20:00:00 GMT</Last-Modified>"
            "<Content-Length>1</Content-Length><Content-Type>x</Content-Type><Etag>0x1</Etag></Properties></Blob>"
            for name in self.faulty.names[start : start + _PAGE]
        )
        more = start + _PAGE if start + _PAGE < len(self.faulty.names) else ""
        return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{more}</NextMarker></EnumerationResults>".encode()

    def may_put(self, there):
        match = self.headers.get("If-Match")
        generation = self.headers.get("x-goog-if-generation-match")
        if self.headers.get("If-None-Match") == "*" or generation == "0":
            return there is None
        if generation is not None:
            return there is not None and there[2] == generation
        return match is None or (there is not None and there[1] == match)

    def tags(self, there):
        return {
            "ETag": there[1],
            "x-goog-generation": there[2],
            "Last-Modified": "Fri, 17 Apr 2026 20:00:00 GMT",
        }

    def say(self, status, body, headers=None):
        self.send_response(status)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)
