"""Daily summaries of a space as files: `summaries/YYYY-MM-DD.html|json`, generated from the ledger.

After compaction removed a day's raw entries, its summary is generated from the lines that compaction kept, so it
stays the same. Forgotten content is in neither. A day without content has no summary.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from memplane.clock import DAY
from memplane.compaction.days import shortened_line
from memplane.compaction.retention import day_start, retention_of
from memplane.errors import InvalidRequest, NotFound
from memplane.safety.sanitize import encodable
from memplane.space import Space
from memplane.sync.digests import COMMENT, NOTE, digest_files
from memplane.sync.interactions import checked_day
from memplane.sync.summaries import Buckets, counts_of, html_key, json_key, render, triage
from memplane.sync.tree.interactions import entry_id, interactions_of, without_secrets
from memplane.types import Role

_KEY = re.compile(r"summaries/(\d{4}-\d{2}-\d{2})\.(?:html|json)")


class DailySummary(msgspec.Struct, frozen=True):
    """The summary of a day, as its two files."""

    day: str
    buckets: Buckets

    @property
    def counts(self) -> dict[str, int]:
        return counts_of(self.buckets)

    @property
    def html(self) -> str:
        return f"{COMMENT}\n{encodable(render(self.buckets, day=self.day))}"

    @property
    def json(self) -> str:
        return json.dumps({"day": self.day, "counts": self.counts, "note": NOTE}, indent=2) + "\n"


def generated_files(space: Space, days: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """(path, content) of all that is made out of the rest: every digest, and the summaries of these days, or of all."""
    yield from digest_files(space)
    for summary in summaries_of(space, days):
        yield html_key(summary.day), summary.html.encode()
        yield json_key(summary.day), summary.json.encode()


def summaries_of(space: Space, days: Collection[str] | None = None) -> Iterator[DailySummary]:
    """Past days within the retention period, oldest first."""
    for day in summary_days(space):
        if (days is None or day in days) and (summary := _daily(space, day)):
            yield summary


def summary_of(space: Space, day: str) -> DailySummary:
    """One day; raises `NotFound` if there is nothing to summarize."""
    if day_start(checked_day(day)) + DAY > space.now():
        raise InvalidRequest(f"{day} is not over yet (in UTC); ask for a day that is past", field="day")
    summary = _daily(space, day) if _has_summary(space, day) else None
    if summary is None:
        raise NotFound("summary", day)
    return summary


def summary_in_part(space: Space, day: str, limit: int) -> DailySummary | None:
    """The summary of at most that many entries of a day, for estimates."""
    return _daily(space, day, limit=limit)


def is_expired_summary(space: Space, path: str) -> bool | None:
    """Whether a summary's retention has expired; None if its day is not past. False for any other file."""
    day = day_of_summary(path)
    if day is None:
        return False
    return None if day_start(day) + DAY > space.now() else not _has_summary(space, day)


def day_of_summary(path: str) -> str | None:
    """The day of a summary file; None for any other file."""
    found = _KEY.fullmatch(path)
    try:
        return None if found is None else checked_day(found[1])
    except InvalidRequest:
        return None


def summary_days(space: Space) -> list[str]:
    """The days that have a summary, the oldest first."""
    return [day for day in space.overview.days() if _has_summary(space, day)]


def _has_summary(space: Space, day: str) -> bool:
    return retention_of(space.settings).retains_summary_of(day, space.now())


def _daily(space: Space, day: str, *, limit: int | None = None) -> DailySummary | None:
    """In the order of time, then id, so that the order is the same before and after the raw day is removed."""
    found: list[tuple[Any, dict[str, Any]]] = []
    begin = day_start(day)
    for entry in space.overview.entries_on(day, limit=limit):
        for place, (at, made) in enumerate(interactions_of(entry)):
            role = (made.metadata or {}).get("role", Role.USER)
            if role in (Role.USER, Role.ASSISTANT) and begin <= at < begin + DAY:
                found.append(((at, entry_id(made.id), place), made.fields()))
    found.sort(key=lambda pair: pair[0])
    order = {line["id"]: number for number, (_, line) in enumerate(found)}
    buckets = triage([line for _, line in found])
    for bucket in (buckets["needs_you"], buckets["handled"], buckets["heads_up"]):
        bucket.sort(key=lambda line: order[line["id"]])
        bucket[:] = [without_secrets(line | {"summary": shortened_line(line["summary"])}) for line in bucket]
    return DailySummary(day, buckets) if found else None
