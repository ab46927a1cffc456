"""Parse submitted forms."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from memplane.clock import DAY, INSTANT_MAX, Instant, parse_instant, to_datetime, to_instant
from memplane.console.cookies import CSRF_FIELD, CSRF_HEADER, check_csrf
from memplane.errors import InvalidRequest
from memplane.server.endpoint import HttpCall

# Days are in UTC, counted from 1970.


_FIRST = to_instant(datetime.min.replace(tzinfo=UTC)) // DAY


def parse_day(text: str, *, field: str) -> int | None:
    """Return the day in a field, or None if the field is empty."""
    return parse_instant(text, field=field) // DAY if text.strip() else None


def end_of(day: int) -> Instant:
    """Return the last moment of a day."""
    return min((day + 1) * DAY - 1, INSTANT_MAX)


def before(day: int, days: int) -> int:
    """Return the day `days` earlier, or the first representable day."""
    return max(_FIRST, day - days)


def written(day: int) -> str:
    """Format a day for a date field."""
    return to_datetime(day * DAY).date().isoformat()


MEDIA = "application/x-www-form-urlencoded"

_FIELDS_MAX = 200


class Form:
    """Return the form's fields; raise if its CSRF token is not valid."""

    def __init__(self, call: HttpCall) -> None:
        fields = _fields(call.raw)
        check_csrf(call.headers, call.headers.get(CSRF_HEADER, "") or fields.get(CSRF_FIELD, ""))
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        return self._fields.get(name, default).replace("\r\n", "\n")

    def value(self, name: str) -> str | None:
        """Return the field's value, or None if it is empty."""
        return self.text(name).strip() or None

    def checked(self, name: str) -> bool:
        return name in self._fields


def _fields(raw: bytes) -> Mapping[str, str]:
    try:
        given = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX
        )
    except (UnicodeDecodeError, ValueError) as exc:
        raise InvalidRequest("the form is not percent-encoded UTF-8") from exc
    return dict(given)
