"""How long each layer of memory is kept, as a person can read it."""

from datetime import UTC, date, datetime, timedelta

import msgspec

from memplane.clock import DAY, Instant, to_datetime, to_instant
from memplane.config import Settings
from memplane.errors import InvalidRequest, SettingsInvalid

_PROFILES: dict[str, dict[str, int | None]] = {
    "forever": {"raw": None, "summaries": None, "digests": None},
    "adr": {"raw": 7, "summaries": 30, "digests": 30},
}
"""Days by layer; None is forever."""
_DAYS_MAX = 36_500


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """Days after which a layer is removed; None is never. Behavioral memory has no limit: it stays until it is
    forgotten."""

    profile: str
    raw_days: int | None
    """What was said, as it was said; removed once its day is compacted."""
    summary_days: int | None
    """Daily summaries."""
    digest_days: int | None
    """Weekly digests, from when they were last written on; and learnings, from when they were rejected."""
    confirm: str
    """Who decides about learnings: a `person`, or the policy, `auto`."""

    def retains_summary_of(self, day: str, now: Instant) -> bool:
        """Whether the summary of that day is within its retention."""
        return self.summary_days is None or day_start(day) >= first_retained(self.summary_days, now)

    @property
    def words(self) -> list[str]:
        """The policy in sentences."""
        who = {
            "person": "Drafts wait until a person confirms or rejects them.",
            "auto": "Drafts of the owner are confirmed automatically.",
        }[self.confirm]
        return [
            _describe_days("Turns", self.raw_days, "then compacted and removed"),
            _describe_days("Daily summaries", self.summary_days, "then removed"),
            _describe_days("Weekly digests", self.digest_days, "counted from their last change"),
            "Behavioral memories, keyed facts, documents and explicitly stored memories are kept until forgotten.",
            who,
        ]


def _describe_days(what: str, days: int | None, then: str) -> str:
    if days is None:
        return f"{what} are kept forever."
    return f"{what} are kept for {days} {'day' if days == 1 else 'days'}, {then}."


def retention_of(settings: Settings) -> Retention:
    """The profile, with the days that are set for one layer in place of its own."""
    profile = _PROFILES[settings.retention]

    def days(layer: str, given: int | None) -> int | None:
        if given is None:
            return profile[layer]
        if not 0 <= given <= _DAYS_MAX:
            raise SettingsInvalid(
                f"retention of {layer}: {given} is no number of days; give 1 to {_DAYS_MAX:,}, or 0 for ever"
            )
        return given or None

    return Retention(
        profile=settings.retention,
        raw_days=days("raw", settings.retention_raw_days),
        summary_days=days("summaries", settings.retention_summary_days),
        digest_days=days("digests", settings.retention_digest_days),
        confirm=settings.compact_confirm,
    )


def first_retained(days: int, now: Instant) -> Instant:
    """The first moment of the first day (UTC) that is kept still, where so many are: on day N, what is removed is day
    N - days and whatever is older."""
    return now - now % DAY - (days - 1) * DAY


def day_of(instant: Instant) -> str:
    """`2026-11-15`, in UTC."""
    return to_datetime(instant).date().isoformat()


def day_start(day: str) -> Instant:
    """The first moment of a day."""
    try:
        found = date.fromisoformat(day)
    except (ValueError, TypeError) as exc:
        raise InvalidRequest(f"{day!r} is not a day; give one such as 2026-11-15", field="day") from exc
    return to_instant(datetime(found.year, found.month, found.day, tzinfo=UTC))


def week_of(day: str) -> str:
    """`2026-46`: the ISO week a day is in, as the digest of that week is called."""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-{week:02}"


def last_day_of(week: str) -> date:
    """The Sunday a week ends with."""
    year, number = week.split("-")
    return date.fromisocalendar(int(year), int(number), 1) + timedelta(days=6)
