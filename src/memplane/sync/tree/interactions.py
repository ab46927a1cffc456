"""Turns as lines of daily interaction files, and lines of other programs as turns."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from memplane.clock import STATED_MAX, Instant, to_datetime, to_instant
from memplane.errors import InvalidRequest, MemplaneError
from memplane.ledger.history import parse_line
from memplane.ledger.history_text import extract_turns
from memplane.ledger.ids import DERIVED_PREFIXES
from memplane.ledger.payloads import INTERACTION, PromotePayload, TurnPayload, decode, encode
from memplane.memory.checks import check_depth, check_name, check_role, check_scope, check_text
from memplane.safety.redact import redact
from memplane.safety.sanitize import clean, visible
from memplane.space import Space
from memplane.sync.interactions import TERMINAL, Interaction, compose, day_of, detect_channel, key_of, parse
from memplane.sync.tree.behavioral import CALLER
from memplane.types import Entry, NewEntry, Op, Role, Visibility

LINE_BYTES_MAX = 1024 * 1024

_TEAMS = ("teams_dm", "teams_group")
_PART = "#"


class InteractionLine(msgspec.Struct, frozen=True):
    """One line of a day."""

    id: str
    at: Instant
    text: str


def day_files(
    space: Space, days: Collection[str] | None = None
) -> Iterator[tuple[str, list[InteractionLine]]]:
    """(path, lines) of each day on which something was said that is not forgotten, the oldest first."""
    found: dict[str, list[InteractionLine]] = {}
    seq = 0
    while entries := space.ledger.entries(after=seq):
        for entry in entries:
            day = day_of_entry(entry)
            if day is not None and (days is None or day in days):
                found.setdefault(key_of(day), []).extend(
                    InteractionLine(made.id, at, compose(made)) for at, made in interactions_of(entry)
                )
        seq = entries[-1].seq
    for path in sorted(found):
        if found[path]:
            yield path, sorted(found[path], key=lambda line: (line.at, line.id))


def day_of_entry(entry: Entry) -> str | None:
    """The day of an entry; None if it has no turn or cannot be read."""
    if not entry.body:
        return None
    try:
        if entry.op is Op.HISTORY:
            return day_of(to_datetime(parse_line(entry.body, trust_ids=True).at))
        said = decode(entry) if entry.op is Op.TURN else None
    except (MemplaneError, ValueError, TypeError, RecursionError, OverflowError):
        return None
    return day_of(to_datetime(said.at)) if isinstance(said, TurnPayload) else None


def joined(space: Space, lines: list[InteractionLine], there: bytes) -> bytes:
    """The day's file with the lines of other writers that were not imported, unchanged and in place, without
    forgotten content."""
    ours = {entry_id(line.id) for line in lines}
    kept: list[tuple[str | None, str]] = []
    for raw in there.decode("utf-8", "surrogateescape").split("\n"):
        theirs = parse(raw) if raw.strip() else None
        under = None if theirs is None else entry_id(theirs.id)
        if raw.strip() and under not in ours:
            kept.append((under, f"{raw}\n"))
    others = [under for under, _ in kept if under is not None]
    forgotten = space.ledger.status(others)[1] if others else set()
    rows = [(line.at, line.id, line.text) for line in lines]
    rows += [(_at(raw), "", raw) for under, raw in kept if under not in forgotten]
    return "".join(text for _, _, text in sorted(rows, key=lambda row: row[:2])).encode(
        "utf-8", "surrogateescape"
    )


def _at(raw: str) -> Instant:
    theirs = parse(raw)
    moment = None if theirs is None else theirs.moment
    return 1 << 62 if moment is None else to_instant(moment)


def interactions_of(entry: Entry) -> Iterator[tuple[Instant, Interaction]]:
    """What was said in an entry; of one that was removed, what is kept of it for its day's summary."""
    assert entry.body is not None
    if entry.op is Op.HISTORY:
        at = parse_line(entry.body, trust_ids=True).at
        for number, turn in enumerate(extract_turns(entry.body)):
            said = TurnPayload(role=turn.role, content=turn.text, at=at)
            if clean(turn.text):
                yield at, _line_of(entry.id if not number else f"{entry.id}{_PART}{number}", said)
        return
    payload = decode(entry)
    if isinstance(payload, PromotePayload):
        yield (
            payload.at,
            _line_of(payload.sources[0] if payload.sources else entry.id, _recorded_then(payload)),
        )
    elif isinstance(payload, TurnPayload) and clean(payload.content):
        yield payload.at, _line_of(entry.id, payload)


def _recorded_then(kept: PromotePayload) -> TurnPayload:
    line = kept.line and {**kept.line, "ts": to_datetime(kept.at).isoformat(timespec="microseconds")}
    return TurnPayload(
        role=kept.kind,
        content=kept.text,
        at=kept.at,
        conversation=kept.conversation,
        project=kept.project,
        speaker=kept.speaker,
        scope=kept.scope,
        metadata=line and {INTERACTION: line},
    )


def _line_of(id_: str, said: TurnPayload) -> Interaction:
    """The line of a turn. A line of another program is reproduced as written, without secrets."""
    source = (said.metadata or {}).get(INTERACTION)
    if isinstance(source, dict):
        fields = without_secrets({**source, "id": id_, "summary": clean(said.content)})
        made = parse(msgspec.json.encode(fields).decode())
        if made is not None:
            return made
    channel = detect_channel(said.conversation)
    metadata: dict[str, Any] = {}
    if said.role not in (Role.USER, Role.ASSISTANT):
        metadata["role"] = said.role
    if said.conversation is not None:
        metadata["chat_id"] = said.conversation
    if said.project is not None:
        metadata["project"] = said.project
    if said.scope is not Visibility.GLOBAL:
        metadata["scope"] = said.scope.value
    outbound = said.role == Role.ASSISTANT
    return Interaction(
        id=id_,
        ts=to_datetime(said.at).isoformat(timespec="microseconds"),
        channel=channel if channel in _TEAMS else TERMINAL,
        direction="outbound" if outbound else "inbound",
        sender=said.speaker or said.role,
        summary=clean(said.content),
        recipient=said.conversation if outbound and channel in _TEAMS else None,
        metadata=metadata or None,
    )


def without_secrets(value: Any) -> Any:
    match value:
        case str():
            return redact(visible(value)).text
        case dict():
            return {str(name): without_secrets(inner) for name, inner in value.items()}
        case list():
            return [without_secrets(inner) for inner in value]
    return value


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def drafts_of(space: Space, data: bytes) -> tuple[list[NewEntry], list[tuple[int, str]]]:
    """The lines of a day that are not known here, as turns; and (number, why) of those that cannot be taken."""
    drafts: dict[str, NewEntry] = {}
    rejected: list[tuple[int, str]] = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if not raw.strip():
            continue
        try:
            draft = _draft(raw)
        except (InvalidRequest, ValueError, RecursionError, OverflowError) as exc:
            rejected.append((number, str(exc)))
            continue
        drafts.setdefault(draft.id, draft)
    ids = {id_: entry_id(id_) for id_ in drafts}
    known, forgotten = (
        space.ledger.status(list(dict.fromkeys([*ids, *ids.values()]))) if ids else (set(), set())
    )
    seen = known | forgotten
    return [drafts[id_] for id_, under in ids.items() if id_ not in seen and under not in seen], rejected


def entry_id(id_: str) -> str:
    """One entry of a session history makes several lines."""
    first, mark, number = id_.rpartition(_PART)
    return first if mark and number.isdecimal() else id_


def _draft(raw: bytes) -> NewEntry:
    if len(raw) > LINE_BYTES_MAX:
        raise InvalidRequest(f"the line has {len(raw):,} bytes and at most {LINE_BYTES_MAX:,} are read")
    line = parse(raw.decode("utf-8"))
    if line is None:
        raise InvalidRequest("this is no line of an interaction")
    if line.moment is None:
        raise InvalidRequest("ts is not a time")
    check_text(line.id, field="id", chars_max=512)
    if line.id.startswith(DERIVED_PREFIXES):
        raise InvalidRequest("id: ids of this form belong to what is derived")
    at = to_instant(line.moment)
    if at > STATED_MAX:
        raise InvalidRequest("ts is out of range")
    said = _turn_payload(line, at)
    plain = line.fields() | {"ts": to_datetime(at).isoformat(timespec="microseconds")}
    if _line_of(line.id, said).fields() != plain:
        source = {name: value for name, value in line.fields().items() if name not in ("id", "summary")}
        check_depth(source, field="metadata")
        said = msgspec.structs.replace(said, metadata={INTERACTION: source})
    return NewEntry(line.id, Op.TURN, encode(said), CALLER, None, at)


def _turn_payload(line: Interaction, at: Instant) -> TurnPayload:
    metadata = line.metadata or {}
    role = Role.ASSISTANT if line.direction == "outbound" else Role.USER
    conversation, project = _name(metadata.get("chat_id")), _name(metadata.get("project"))
    chosen: dict[str, Any] = {"role": role.value, "scope": Visibility.GLOBAL}
    if (given := metadata.get("role")) is not None and isinstance(given, str):
        chosen["role"] = _or(lambda: check_role(given), role.value)
    if (reach := metadata.get("scope")) is not None and isinstance(reach, str):
        chosen["scope"] = check_scope(reach, conversation=conversation, project=project)
    return TurnPayload(
        content=check_text(line.summary, field="summary"),
        at=at,
        conversation=conversation,
        project=project,
        speaker=_name(line.sender) if line.sender != chosen["role"] else None,
        **chosen,
    )


def _name(value: Any) -> str | None:
    return _or(lambda: check_name(value, field="name"), None) if isinstance(value, str) else None


def _or(work: Any, default: Any) -> Any:
    """Values that are not valid names stay in the metadata."""
    try:
        return work()
    except InvalidRequest:
        return default
