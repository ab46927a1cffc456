"""What was said, by the time it was said at, in pages that never part a second."""

import msgspec

from memplane.clock import SECOND, Instant
from memplane.errors import MemplaneError
from memplane.ledger.history import parse_line
from memplane.ledger.payloads import Said, decode
from memplane.storage.base import Reader, SaidAt
from memplane.types import Entry, Op


class SaidPage(msgspec.Struct, frozen=True):
    """Entries in the order they were said. Session histories tell time in seconds, and their readers ask for what came
    after the last time they saw: so a page that would end within a second goes on to its end, however many that are."""

    said: list[SaidAt]
    more: bool


def said_since(reader: Reader, after: Instant, limit: int) -> SaidPage:
    silent = [said for said in map(silent_said, reader.hidden()) if said is not None and said.at > after]
    found = sorted([*reader.said_between(after, None, limit=limit), *silent], key=_order)[:limit]
    if len(found) < limit:
        return SaidPage(found, more=False)
    until = found[-1].at - found[-1].at % SECOND + SECOND
    page = reader.said_between(after, until, limit=None) + [said for said in silent if said.at < until]
    more = any(said.at >= until for said in silent) or bool(reader.said_between(until - 1, None, limit=1))
    return SaidPage(sorted(page, key=_order), more=more)


def _order(said: SaidAt) -> tuple[Instant, int]:
    return said.at, said.seq


def silent_said(entry: Entry) -> SaidAt | None:
    """Entries that show no turn are on record all the same: a managed turn that failed, a reply without words."""
    if entry.op not in (Op.TURN, Op.HISTORY) or entry.body is None:
        return None
    try:
        if entry.op is Op.HISTORY:
            return SaidAt(entry.seq, parse_line(entry.body, trust_ids=True).at)
        said = decode(entry)
    except (MemplaneError, msgspec.MsgspecError, ValueError):
        return None
    assert isinstance(said, Said)
    return SaidAt(entry.seq, said.at - said.at % SECOND)
