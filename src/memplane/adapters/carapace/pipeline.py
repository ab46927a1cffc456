"""Processes one request: parse, check, execute, respond, log. Independent of sockets."""

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Protocol

import msgspec

from memplane.adapters.carapace.audit import AuditError, AuditLine, AuditLog
from memplane.adapters.carapace.failure import Code, Failure, IpcError, Stage, handler_failure, refused
from memplane.adapters.carapace.groups import ADAPTER, Groups, IpcSession, check_group
from memplane.adapters.carapace.schema import checked
from memplane.adapters.carapace.tools import RIGHTS, TOOLS, Arguments, call_tool
from memplane.adapters.carapace.wire import IpcMessage, check_limits, envelope, parse, sanitize
from memplane.auth.principal import Forbidden, Right
from memplane.clock import Clock, system_clock, to_datetime
from memplane.errors import InvalidRequest, MemplaneError
from memplane.recall.brief import Brief
from memplane.space import Space
from memplane.types import Caller

# The brief for an agent's system prompt. It is requested while the agent's container is set up, which must not be
# delayed.


TIMEOUT_S = 5.0

_log = logging.getLogger("memplane.ipc")


class SpaceProvider(Protocol):
    """The part of an installation that the adapter uses; `memplane.main.Memplane` is one."""

    def space(self, owner: str, *, caller: Caller | None = None) -> Space: ...


def get_brief(plane: SpaceProvider, group: str, *, timeout_s: float = TIMEOUT_S) -> Brief:
    """The brief of a group; its `markdown` goes into the system prompt.

    It never raises and never exceeds the timeout. Failures are logged, and the result is an empty brief.
    """
    found: list[Brief] = []

    def ask() -> None:
        try:
            found.append(plane.space(check_group(group), caller=Caller(adapter=ADAPTER)).brief())
        except Exception:  # noqa: BLE001 - a failure must not block container setup
            _log.warning("the brief of a group failed; its session starts without one", exc_info=True)

    thread = Thread(target=ask, name="memplane-brief", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        _log.warning("the brief of group %r took over %s s; its session starts without one", group, timeout_s)
    if found:
        return found[0]
    return Brief(entries=(), generated_at=to_datetime(system_clock()), entry_count=0, brief_count=0)


# A cache of responses to writes: a repeated request gets the same response, and nothing is written twice.


RETENTION_S = 30.0
"""How long Carapace's host remembers a correlation."""

_REPLIES_MAX = 2_048


class Replies:
    """Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()

    def find(self, identity: bytes, payload: bytes) -> bytes | None:
        with self._lock:
            self._drop_old()
            found = self._kept.get(_key(identity, payload))
        return None if found is None else found[1]

    def store(self, identity: bytes, payload: bytes, reply: bytes) -> None:
        with self._lock:
            self._kept[_key(identity, payload)] = self._now() + RETENTION_S, reply
            while len(self._kept) > _REPLIES_MAX:
                self._kept.popitem(last=False)

    def _drop_old(self) -> None:
        now = self._now()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._kept.popitem(last=False)


def _key(identity: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(bytes([len(identity)]) + identity + payload).digest()


CORE = "core"
"""The source of responses that no tool produced."""

_PREFIX = "tool.invoke."
_NAME_CHARS_MAX = 200


class IpcResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a request."""

    result: dict[str, Any] | None = None
    failure: Failure | None = None
    stage: Stage = Stage.ROUTE
    session: IpcSession | None = None
    """None if the request did not reach a tool."""
    mendable: bool = False
    """An error from the tool itself, returned as a result."""


class Pipeline:
    """Handles requests. Thread-safe; callers that need an order must call in that order."""

    def __init__(
        self,
        plane: SpaceProvider,
        groups: Groups,
        *,
        audit: AuditLog | None = None,
        errors_in_result: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        """With `errors_in_result`, a tool's errors are returned like Carapace's host does: as a result that contains
        an error, which `ipc` treats as success."""
        self._plane = plane
        self._groups = groups
        self._audit = audit
        self._errors_in_result = errors_in_result
        self._clock = clock
        self._replies = Replies()

    def answer(self, identity: bytes, payload: bytes) -> bytes | None:
        """The response to a request; None if there is no one to reply to."""
        message = parse(payload)
        if message is None:
            return None
        before = self._replies.find(identity, payload)
        if before is not None:
            return before
        answer = self._execute(identity, message)
        reply = self._respond(identity, message, answer)
        if answer.result is not None and RIGHTS[_tool_name(message.topic)] is Right.WRITE:
            self._replies.store(identity, payload, reply)
        return reply

    def refuse(self, identity: bytes, payload: bytes, refusal: IpcError) -> bytes | None:
        """The response to a request that is rejected unread and not logged, so that a flood of requests does not
        flood the log."""
        message = parse(payload)
        if message is None:
            return None
        return self._respond(
            identity, message, IpcResponse(failure=refusal.failure, stage=refusal.stage), noted=False
        )

    def _execute(self, identity: bytes, message: IpcMessage) -> IpcResponse:
        try:
            check_limits(message)
            name = _tool_name(message.topic)
            arguments = checked(TOOLS[name].arguments_schema, message.arguments)
            session = self._groups.session(identity)
            session.principal.check(RIGHTS[name], adapter=ADAPTER, space=session.group)
        except IpcError as exc:
            return IpcResponse(failure=exc.failure, stage=exc.stage)
        except MemplaneError as exc:
            stopped = refused(exc)
            assert stopped is not None
            return IpcResponse(failure=stopped.failure, stage=stopped.stage)
        return self._call(name, arguments, session)

    def _call(self, name: str, arguments: Arguments, session: IpcSession) -> IpcResponse:
        caller = Caller(actor=session.id, adapter=ADAPTER, session=session.id)
        try:
            result = call_tool(self._plane.space(session.group, caller=caller), name, arguments)
        except MemplaneError as exc:
            mendable = isinstance(exc, InvalidRequest)
            if not mendable:
                _log.exception("%s failed in group %s", name, session.group)
            return IpcResponse(failure=handler_failure(name, exc), session=session, mendable=mendable)
        except Exception:  # noqa: BLE001 - a bug in one call must not stop the others
            _log.exception("%s failed in group %s", name, session.group)
            failure = Failure(code=Code.PLUGIN_ERROR, message="Unexpected error", retriable=False)
            return IpcResponse(failure=failure, session=session)
        return IpcResponse(result=result, session=session)

    def _respond(
        self, identity: bytes, message: IpcMessage, answer: IpcResponse, *, noted: bool = True
    ) -> bytes:
        error = None if answer.failure is None else msgspec.to_builtins(answer.failure)
        payload: dict[str, Any] = {"result": answer.result, "error": error}
        if self._errors_in_result and answer.mendable:
            payload = {"result": {"error": error}, "error": None}
        payload, paths = sanitize(payload)
        if noted:
            self._note(identity, message, answer, paths)
        session = answer.session
        return envelope(
            message,
            source=CORE if session is None else session.id,
            group="" if session is None else session.group,
            payload=payload,
            now=self._clock(),
        )

    def _note(self, identity: bytes, message: IpcMessage, answer: IpcResponse, paths: list[str]) -> None:
        if self._audit is None:
            return
        try:
            session = answer.session or self._groups.session(identity)
        except Forbidden:
            return  # without a group there is no file to log to
        line = AuditLine(
            group=session.group,
            source=session.id,
            topic=message.topic_text,
            correlation=message.correlation,
            stage=answer.stage.value,
            outcome="routed",
        )
        try:
            self._audit.append(*_audit_lines(line, answer, paths))
        except OSError:
            _log.exception("the audit log cannot be written")


def _audit_lines(line: AuditLine, answer: IpcResponse, paths: list[str]) -> list[AuditLine]:
    replace = msgspec.structs.replace
    failure = answer.failure
    if failure is None:
        lines = [line]
    elif answer.session is None:
        lines = [replace(line, outcome="rejected", reason=failure.message)]
    else:
        error = AuditError(failure.code, failure.message)
        failed = replace(line, outcome="error", error=error)
        lines = [
            replace(failed, phase="before_normalization"),
            replace(failed, phase="after_normalization"),
        ]
    if paths:
        lines.append(replace(line, outcome="sanitized", field_paths=tuple(paths)))
    return lines


def _tool_name(topic: Any) -> str:
    if not isinstance(topic, str):
        raise IpcError(Stage.CONSTRUCT, Code.VALIDATION_FAILED, "topic: must be string", field="topic")
    shown = topic[:_NAME_CHARS_MAX]
    if not topic.startswith(_PREFIX):
        raise _unknown(f'Malformed topic: "{shown}" (expected "tool.invoke.<name>")')
    name = topic.removeprefix(_PREFIX)
    if not name:
        raise _unknown(f'Malformed topic: "{shown}" (tool name is empty)')
    if name not in TOOLS:
        raise _unknown(f'Unknown tool: "{name[:_NAME_CHARS_MAX]}"')
    return name


def _unknown(text: str) -> IpcError:
    return IpcError(Stage.TOPIC, Code.UNKNOWN_TOOL, text)
