"""A real server in a thread: uvicorn on a free port, a plane on a temporary directory, and credentials made up here."""

import socket
import sys
import threading
import traceback
from contextlib import contextmanager

import httpx

from memplane.adapters.all import build_app
from memplane.auth.principal import LockedOut, Principal, Right, Unauthenticated
from memplane.config import Settings
from memplane.server.serve import Server, uvicorn_config

ALL = frozenset(Right)
OWNER = "owner-key"
LOCKED = "locked-out"
PATIENCE_SECONDS = 100


class Keys:
    """An `Authenticator` over a dictionary. `add("alice-key", subject="alice", spaces={"alice"})` lets one more in."""

    def __init__(self):
        self.principals = {}
        self.seen = []
        self.add(OWNER, subject="owner")

    def add(self, credential, *, subject, tenant="default", spaces=None, adapters=None, rights=ALL):
        self.principals[credential] = Principal(
            tenant=tenant,
            subject=subject,
            spaces=None if spaces is None else frozenset(spaces),
            adapters=None if adapters is None else frozenset(adapters),
            rights=frozenset(rights),
        )
        return credential

    def authenticate(self, credential, *, peer):
        self.seen.append((credential, peer))
        if credential == LOCKED:
            raise LockedOut(30)
        if credential not in self.principals:
            raise Unauthenticated("the credential is not valid")
        return self.principals[credential]


class Faults:
    """An `Observer` that shows what went wrong where a test can see it; `faults` holds every exception that was a 500."""

    def __init__(self):
        self.faults = []

    def begin(self, exchange):
        pass

    def end(self, exchange):
        if exchange.error is not None and exchange.status == 500:
            self.faults.append(exchange.error)
            sys.stderr.write("".join(traceback.format_exception(exchange.error)))


class RunningServer:
    """`url`, `port`, `keys`, `plane`, and `client(credential)` for an httpx client that is closed in the end."""

    def __init__(self, plane, keys, app, port):
        self.plane = plane
        self.keys = keys
        self.app = app
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._clients = []

    def client(self, credential=OWNER, **options):
        headers = {"authorization": f"Bearer {credential}"} if credential else {}
        client = httpx.Client(
            base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, **options
        )
        self._clients.append(client)
        return client

    def socket(self):
        """A bare connection, for those who write HTTP by hand."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)

    def close(self):
        for client in self._clients:
            client.close()


@contextmanager
def serving(plane, *, keys=None, settings=None, adapters=None, observers=(), auth=True):
    """A server until the block ends. `doors` None opens every door there is."""
    keys = keys or Keys()
    faults = Faults()
    app = build_app(
        plane, keys if auth else None, settings or Settings(), adapters, observers=[faults, *observers]
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = Server(uvicorn_config(app, settings or Settings(shutdown_seconds_max=5)), app)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        threading.Event().wait(0.005)
    assert server.started, "the server did not start"
    running = RunningServer(plane, keys, app, listener.getsockname()[1])
    running.faults = faults.faults
    try:
        yield running
    finally:
        running.close()
        server.should_exit = True
        thread.join()
        listener.close()
