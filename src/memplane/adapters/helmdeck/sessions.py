"""Open MCP sessions of this process: their owners, their queued messages, and their limits."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from memplane.auth.principal import Principal
from memplane.server.errors import HttpError

TOTAL_MAX = 512
PER_PRINCIPAL_MAX = 32
_QUEUED_MAX = 64
_QUEUED_BYTES_MAX = 4 << 20
_WORKER_CHARS = 8
_ID_CHARS = 32

Answer = Callable[[bytes], bytes | None]
"""Handles one message and returns the reply, if any. It may be slow: call it in a thread."""


class DeliveryOutcome(StrEnum):
    """The outcome of a message for a session."""

    ACCEPTED = "taken"
    UNKNOWN = "unknown"
    FULL = "full"


class SseSession:
    """One client's session. Messages are queued until the stream has processed the earlier ones."""

    def __init__(self, id_: str, path: str, principal: Principal, answer: Answer) -> None:
        self.id = id_
        self.path = path
        self.principal = principal
        self.answer = answer
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_QUEUED_MAX)
        self._bytes = 0

    def enqueue(self, message: bytes) -> bool:
        """False if the queue is full."""
        if self._waiting.full() or self._bytes + len(message) > _QUEUED_BYTES_MAX:
            return False
        self._bytes += len(message)
        self._waiting.put_nowait(message)
        return True

    async def next(self) -> bytes:
        message = await self._waiting.get()
        self._bytes -= len(message)
        return message


class SseSessions:
    """All sessions of this process. A session id begins with the process name, so that other processes can forward
    messages."""

    def __init__(self, *, total_max: int = TOTAL_MAX, per_principal_max: int = PER_PRINCIPAL_MAX) -> None:
        self.worker = secrets.token_hex(_WORKER_CHARS // 2)
        self._total_max = total_max
        self._per_principal_max = per_principal_max
        self._open: dict[str, SseSession] = {}
        self._per_principal: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, path: str, principal: Principal, answer: Answer) -> SseSession:
        whose = _owner(principal)
        if len(self._open) >= self._total_max or self._per_principal[whose] >= self._per_principal_max:
            raise HttpError(
                503, "too_many_sessions", "too many MCP sessions are open; close some", {"retry-after": "5"}
            )
        id_ = self.worker + secrets.token_hex((_ID_CHARS - _WORKER_CHARS) // 2)
        session = self._open[id_] = SseSession(id_, path, principal, answer)
        self._per_principal[whose] += 1
        return session

    def close(self, session: SseSession) -> None:
        if self._open.pop(session.id, None) is not None:
            whose = _owner(session.principal)
            self._per_principal[whose] -= 1
            if not self._per_principal[whose]:
                del self._per_principal[whose]

    def deliver(self, id_: str, path: str, principal: Principal, message: bytes) -> DeliveryOutcome:
        """A session of another caller, or of the same caller with other permissions, is reported as unknown."""
        session = self._open.get(id_)
        if (
            session is None
            or session.path != path
            or _permissions(session.principal) != _permissions(principal)
        ):
            return DeliveryOutcome.UNKNOWN
        return DeliveryOutcome.ACCEPTED if session.enqueue(message) else DeliveryOutcome.FULL


def worker_of(session_id: str) -> str | None:
    """The process of a session; None if this is not a session id."""
    if len(session_id) != _ID_CHARS or not set(session_id) <= set("0123456789abcdef"):
        return None
    return session_id[:_WORKER_CHARS]


def _owner(principal: Principal) -> tuple[str, str]:
    return principal.tenant, principal.subject


def _permissions(principal: Principal) -> tuple[object, ...]:
    """The identity that a renewed credential of the same caller shares with the old one."""
    return principal.tenant, principal.subject, principal.spaces, principal.adapters, principal.rights
