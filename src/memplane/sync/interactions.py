"""The interaction log: one JSON line per message, one file per UTC day.

Other programs write these files too, and people edit them. Lines that cannot be parsed are skipped and kept, and
unknown fields are preserved.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

import msgspec

from memplane.errors import InvalidRequest
from memplane.ledger import gojson

Direction = Literal["inbound", "outbound"]

PREFIX: Final = "interactions/"
TERMINAL: Final = "terminal"

_SUFFIX = ".jsonl"
_DIRECT, _GROUP = "@unq.gbl.spaces", "@thread.v2"
_NEEDED = ("id", "ts", "channel", "direction", "sender", "summary")
_OPTIONAL = ("recipient", "action", "content_ref", "metadata")
_BEGINNING = '{"id"'
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

# Readers of such files split at whatever Unicode calls a line end, and no file holds half a character.
_NOT_IN_A_LINE = re.compile("[\x7f\u0085\u2028\u2029\ud800-\udfff]")


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """One message that came in or went out. `more` holds what other writers say of it beyond that."""

    id: str
    ts: str
    channel: str
    direction: Direction
    sender: str
    summary: str
    recipient: str | None = None
    action: str | None = None
    content_ref: str | None = None
    metadata: dict[str, Any] | None = None
    more: dict[str, Any] = {}

    @property
    def moment(self) -> datetime | None:
        """When it was, in UTC; None where the line says no time that exists."""
        try:
            moment = datetime.fromisoformat(self.ts)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def fields(self) -> dict[str, Any]:
        """The object of its line, in the order of the line: what is not given is not there."""
        given = {name: getattr(self, name) for name in _NEEDED}
        given |= {name: value for name in _OPTIONAL if (value := getattr(self, name)) is not None}
        return given | {name: value for name, value in self.more.items() if name not in given}


def interaction(
    *,
    channel: str,
    direction: str,
    sender: str,
    summary: str,
    recipient: str | None = None,
    action: str | None = None,
    content_ref: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    at: datetime,
    id: str | None = None,
) -> Interaction:
    """Create and validate an interaction; raises `InvalidRequest` for invalid fields."""
    if not channel:
        raise InvalidRequest(
            "channel is required: where it was said, such as teams_dm or email", field="channel"
        )
    if not summary or not summary.strip():
        raise InvalidRequest("summary is required", field="summary")
    return Interaction(
        id=id or str(uuid.uuid4()),
        ts=_utc(at).isoformat(),
        channel=channel,
        direction=_direction(direction),
        sender=sender,
        summary=summary.strip(),
        recipient=recipient,
        action=action,
        content_ref=content_ref,
        metadata=None if metadata is None else dict(metadata),
    )


def _direction(given: str) -> Direction:
    match given:
        case "inbound":
            return "inbound"
        case "outbound":
            return "outbound"
    raise InvalidRequest(f"direction is inbound or outbound, not {given!r}", field="direction")


def detect_channel(chat_id: str | None) -> str:
    """The channel of a Teams chat id; `terminal` without one."""
    if not chat_id:
        return TERMINAL
    if chat_id.endswith(_DIRECT):
        return "teams_dm"
    return "teams_group" if chat_id.endswith(_GROUP) else "teams_unknown"


def compose(entry: Interaction) -> str:
    """Its line, with the line end."""
    return line_of(entry.fields())


def line_of(fields: Mapping[str, Any]) -> str:
    """An object as one line that stays one line, however it is split, and that UTF-8 can hold."""
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidRequest(f"metadata cannot be written as JSON: {exc}", field="metadata") from exc
    return _NOT_IN_A_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def parse(line: str) -> Interaction | None:
    """The interaction on a line; None for any other line."""
    fields = logged(line)
    if fields is None or not _whole(fields):
        return None
    if fields["direction"] not in {"inbound", "outbound"}:
        return None
    known: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for name, value in fields.items():
        fits = name in _NEEDED or (
            isinstance(value, dict) if name == "metadata" else name in _OPTIONAL and isinstance(value, str)
        )
        (known if fits else more)[name] = value
    return Interaction(**known, more=more)


def object_of(line: str) -> dict[str, Any] | None:
    """The JSON object on a line; None for anything else, such as half a line after a crash."""
    try:
        gojson.check_values(line.encode("utf-8", "replace"))
        found = json.loads(line)
    except (ValueError, RecursionError, gojson.NotJson):
        return None
    return found if isinstance(found, dict) else None


def logged(line: str) -> dict[str, Any] | None:
    """The object on a log line. After a crash, a truncated line and the next one share a line; the second one is
    found there."""
    found = object_of(line)
    if found is None and (behind := line.rfind(_BEGINNING)) > 0:
        found = object_of(line[behind:])
        return found if found is not None and _whole(found) else None
    return found


def logged_in(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a log, with all their fields; other lines are skipped."""
    for line in text.split("\n"):
        found = logged(line) if line.strip() else None
        if found is not None:
            yield found


def _whole(fields: Mapping[str, Any]) -> bool:
    return all(isinstance(fields.get(name), str) for name in _NEEDED)


def day_of(moment: datetime | date) -> str:
    """`2026-04-17`: the day of UTC a moment falls on."""
    return (_utc(moment).date() if isinstance(moment, datetime) else moment).isoformat()


def checked_day(day: str) -> str:
    """Validate a day given as text; raises `InvalidRequest` for an invalid one."""
    try:
        if _DAY.fullmatch(day):
            return date.fromisoformat(day).isoformat()
    except ValueError:
        pass
    raise InvalidRequest(f"{day!r} is no day; give it as YYYY-MM-DD, such as 2026-04-17", field="day")


def key_of(day: str | datetime | date) -> str:
    """`interactions/2026-04-17.jsonl`."""
    return f"{PREFIX}{day if isinstance(day, str) else day_of(day)}{_SUFFIX}"


def day_of_key(key: str) -> str | None:
    """The day of an interactions key; None for any other key."""
    if not (key.startswith(PREFIX) and key.endswith(_SUFFIX)):
        return None
    try:
        return checked_day(key[len(PREFIX) : -len(_SUFFIX)])
    except InvalidRequest:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
