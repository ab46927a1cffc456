"""EntraBot's log of incoming and outgoing messages."""

import logging
from datetime import UTC, datetime
from typing import Any

from memplane.adapters.entrabot.storage.backend import get_backend
from memplane.errors import InvalidRequest
from memplane.sync.interactions import compose, detect_channel, interaction, key_of, logged

__all__ = ["detect_channel", "log_interaction", "read_day"]

_log = logging.getLogger("entrabot.tools.interaction_log")


def _now() -> datetime:
    """Replaced by tests."""
    return datetime.now(UTC)


def log_interaction(
    *,
    channel: str,
    direction: str,
    sender: str,
    summary: str,
    recipient: str | None = None,
    action: str | None = None,
    content_ref: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Append a line to the day's log and return it. Raises `ValueError` for an invalid channel, direction or
    summary."""
    at = _now()
    try:
        entry = interaction(
            channel=channel,
            direction=direction,
            sender=sender,
            summary=summary,
            recipient=recipient,
            action=action,
            content_ref=content_ref,
            metadata=metadata,
            at=at,
        )
        line = compose(entry)
    except InvalidRequest as exc:
        raise ValueError(str(exc)) from exc
    get_backend().append_text(key_of(at), line)
    return entry.fields()


def read_day(day: str) -> list[dict[str, Any]]:
    """The interactions of a UTC day, in file order. Lines that are not JSON are skipped."""
    text = get_backend().read_text(key_of(day))
    entries: list[dict[str, Any]] = []
    for number, line in enumerate((text or "").split("\n"), start=1):
        if not line.strip():
            continue
        entry = logged(line)
        if entry is None:
            _log.warning("line %d of %s is not JSON and was skipped", number, key_of(day))
        else:
            entries.append(entry)
    return entries
