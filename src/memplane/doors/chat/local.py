"""A proxy for one chat: a server of this process on a free port of this machine, which only this chat has the key to."""

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from memplane.config import Settings
from memplane.doors.http.app import build_app
from memplane.doors.http.serve import Server, uvicorn_config
from memplane.engine import Engine
from memplane.errors import MemplaneError
from memplane.identity.principal import Principal, Right, Unauthenticated
from memplane.types import TENANT_DEFAULT

_PATIENCE_MS = 30_000
"""A person would rather wait for the right answer than get half of it at once."""
_POLL_S = 0.01


class OneKey:
    """An `Authenticator` that knows one caller, until the process ends."""

    def __init__(self, space: str) -> None:
        self.key = secrets.token_urlsafe(32)
        self._principal = Principal(
            tenant=TENANT_DEFAULT,
            subject=space,
            spaces=frozenset({space}),
            rights=frozenset({Right.READ, Right.WRITE}),
            credential="chat",
        )

    def authenticate(self, credential: str, *, peer: str) -> Principal:  # noqa: ARG002
        if not secrets.compare_digest(credential.encode(), self.key.encode()):
            raise Unauthenticated("the credential is not valid")
        return self._principal


@contextmanager
def proxy_before(plane: Engine, settings: Settings, upstream: str, space: str) -> Iterator[tuple[str, str]]:
    """Address and key of a proxy in front of an upstream, until the block ends."""
    chosen = msgspec.structs.replace(
        settings,
        openai_base_url=upstream,
        proxy_recall_ms=_PATIENCE_MS,
        proxy_retain_ms=_PATIENCE_MS,
        recall_answer_ms=_PATIENCE_MS,
        claw_history_url=None,
        claw_context_root=None,
    )
    keys = OneKey(space)
    app = build_app(plane, keys, chosen)
    listening = socket.socket()
    try:
        listening.bind(("127.0.0.1", 0))
        server = Server(uvicorn_config(app, chosen), app)
        thread = threading.Thread(target=server.run, args=([listening],), name="memplane-chat", daemon=True)
        thread.start()
        while not server.started:
            thread.join(_POLL_S)
            if not thread.is_alive():
                raise MemplaneError("the proxy of this chat did not start")
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", keys.key
        finally:
            server.should_exit = True
            thread.join()
    finally:
        listening.close()
