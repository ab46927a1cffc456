"""Somebody else's server: a real one on a free port, whose answers a test makes up."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """One request, which `answer` answers; says nothing on stderr."""

    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def do_PUT(self):
        self.answer()

    def log_message(self, *args):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    """Of five, whoever comes sixth at once is made to wait for a second, or three."""


class StubServer:
    """Listens until it is closed; whoever waits for `release` is then let go."""

    def __init__(self, handler, path):
        self.release = threading.Event()
        self._http = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}{path}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self):
        self.release.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
