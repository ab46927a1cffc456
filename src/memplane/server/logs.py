"""Server logs on stderr: one line per request, and errors. JSON for programs, plain text on a terminal. Logs never
contain a credential, a query string or a body."""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import structlog

from memplane.errors import MemplaneError, SettingsInvalid
from memplane.safety.redact import redact
from memplane.server.errors import HttpError
from memplane.server.exchange import HttpExchange

_FAULT_STATUS = 500
_TRACE_CHARS_MAX = 16_000

_shared: list[structlog.typing.Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
]


def set_up_logs(level: str) -> None:
    """Configure logging of a server process, including libraries that use the `logging` module."""
    number = logging.getLevelNamesMapping()[level.upper()]
    renderer = _renderer()
    structlog.configure(
        processors=[*_shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_shared, structlog.stdlib.add_logger_name, _redacted],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    cluster = logging.getLogger("memplane.worker.cluster")
    cluster.handlers[:] = [_WithFields()]
    cluster.setLevel(number)
    cluster.propagate = False
    logging.getLogger("memplane").setLevel(max(number, logging.WARNING) if number > logging.DEBUG else number)


class _WithFields(logging.Handler):
    """Writes the log lines of workers, which have additional fields."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; like every handler, never raise into the thread that logs."""
        try:
            fields = dict(getattr(record, "fields", {}))
            error = record.exc_info[1] if record.exc_info else None
            if isinstance(error, Exception):
                fields["trace"] = fault(error)
            structlog.get_logger().log(record.levelno, record.getMessage(), **fields)
        except Exception:  # noqa: BLE001 - whatever it is
            self.handleError(record)


def set_up_memory_log(place: str | None) -> None:
    """Write `memory_op` lines, one event per line, to a file or (`-`) to stdout; None disables them."""
    if place is None:
        return
    handler: logging.Handler
    if place == "-":
        handler = logging.StreamHandler(sys.stdout)
    else:
        try:
            handler = logging.FileHandler(Path(place).expanduser(), encoding="utf-8")
        except OSError as exc:
            raise SettingsInvalid(f"MEMPLANE_MEMORY_LOG: {place} cannot be written: {exc.strerror}") from exc
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("memplane.memory_op")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


class RequestLog:
    """An `Observer` that logs one line per request."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()

    def begin(self, exchange: HttpExchange) -> None:
        pass

    def end(self, exchange: HttpExchange) -> None:
        line: dict[str, Any] = {
            "id": exchange.request_id,
            "method": exchange.method or "WEBSOCKET",
            "route": None if exchange.route is None else exchange.route.path,
            "status": exchange.status,
            "ms": round(exchange.seconds * 1_000, 2),
        }
        if exchange.code:
            line["code"] = exchange.code
        if exchange.gone:
            line["gone"] = True
        # An adapter raises `HttpError` on purpose, with any status.
        meant = isinstance(exchange.error, HttpError) and not exchange.broken
        if exchange.error is not None and not meant and (exchange.status >= _FAULT_STATUS or exchange.broken):
            self._log.error("request", **line, error=fault(exchange.error))
        else:
            self._log.info("request", **line)


def fault(error: Exception) -> str:
    """Return a known error's message; any other error is a bug, so return its redacted traceback."""
    if isinstance(error, MemplaneError):
        return redact(f"{type(error).__name__}: {error}").text
    return redact("".join(traceback.format_exception(error))[-_TRACE_CHARS_MAX:]).text


def _redacted(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["event"] = redact(str(event["event"])).text
    if event.get("exc_info"):
        error = sys.exc_info()[1] if event["exc_info"] is True else event["exc_info"][1]
        event["error"] = redact("".join(traceback.format_exception(error))[-_TRACE_CHARS_MAX:]).text
    event.pop("exc_info", None)
    return event


def _renderer() -> structlog.typing.Processor:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer()
