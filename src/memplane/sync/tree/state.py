"""What is kept under a key, as files: facts in one, an agent's own files each as it is, and files of others, which are
carried along unread."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from memplane.clock import (
    INSTANT_MAX,
    SECOND,
    STATED_MAX,
    Instant,
    iso,
    just_after,
    parse_instant,
    to_instant,
)
from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.payloads import PutPayload, decode, encode
from memplane.memory.checks import check_encodable, check_tags
from memplane.memory.facts import TTL_DEFAULT, TTL_MAX, TTL_MIN, checked_fact
from memplane.memory.paths import ROOT, checked_path, is_path
from memplane.space import Space
from memplane.space.files import CATEGORY
from memplane.sync.tree.behavioral import CALLER, FileForgotten, FileNews, FileUnchanged, Verdict, restored
from memplane.sync.tree.names import FILES, digits_of, put_id, quoted, unquoted
from memplane.sync.tree.report import WrittenFiles
from memplane.types import Memory, NewEntry, Op

CARRIED_FILES = "tree_files"
"""The category of stored files that recall does not return."""
CARRIED_BYTES_MAX = 256 * 1024

_ALL = 1_000_000


class StateFact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact of `state/facts.json`; `entry` is what it was read from."""

    value: str
    category: str | None = None
    tags: tuple[str, ...] = ()
    created: str | None = None
    updated: str | None = None
    expires: str | None = None
    entry: str | None = None


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def facts_file(space: Space) -> bytes | None:
    """Every fact under a key, by key; None where there is none."""
    facts = {
        memory.key: StateFact(
            value=memory.text,
            category=memory.category,
            tags=memory.tags,
            created=iso(memory.created_at),
            updated=iso(memory.updated_at),
            expires=None if memory.expires_at is None else iso(memory.expires_at),
            entry=memory.id,
        )
        for memory in space.facts.list(limit=_ALL)
        if memory.key is not None and not is_path(memory.key)
    }
    if not facts:
        return None
    document = {"schema_version": 1, "facts": {key: facts[key] for key in sorted(facts)}}
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def facts_in(data: bytes) -> dict[str, Any]:
    """The facts of such a file, each still to be read."""
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
        return msgspec.convert(document.get("facts", {}), dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise InvalidRequest(
            f'it is not JSON of the form {{"facts": {{"key": {{"value": …}}}}}}: {exc}'
        ) from exc


def judged_fact(space: Space, live: Memory | None, key: str, raw: Any, modified: Instant | None) -> Verdict:
    """What a fact in the file means for this space."""
    try:
        fact = msgspec.convert({"value": raw} if isinstance(raw, str) else raw, StateFact)
    except msgspec.MsgspecError as exc:
        raise InvalidRequest(str(exc)) from exc
    base = None if fact.entry is None else _put(space, fact.entry)
    if fact.entry is not None and space.ledger.status([fact.entry])[1]:
        return FileForgotten()
    if live is not None and _same(fact, live.text, live.category, live.tags):
        return FileUnchanged()
    if base is not None and (live is None or live.id != base[0]) and _is_version(space, fact, key, base[0]):
        return FileUnchanged()  # an older value, or one that has expired
    at = _put_at(space, fact, live, modified)
    before = base[1] if base is not None else None
    value = fact.value if before is None else restored(before.value, fact.value)
    tags = check_tags(fact.tags, space.settings)
    put = checked_fact(
        key,
        value,
        category=fact.category or (live.category if live else None),
        tags=tags,
        ttl=None,
        at=at,
        bytes_max=space.settings.entry_bytes_max,
    )
    put = msgspec.structs.replace(put, expires=_expires(fact, at), created=_created(fact, live, at))
    id_ = put_id(put.key, fact.entry or "", msgspec.json.encode([put.value, put.category, put.tags]).decode())
    if live is None and fact.entry is not None and base is None and _is_free(space, fact.entry):
        id_ = fact.entry
    return _new_put(
        space, id_, put, odds=() if live is None or base is None or base[0] == live.id else (live.id,)
    )


def _put_at(space: Space, fact: StateFact, live: Memory | None, modified: Instant | None) -> Instant:
    """When it was put: as the file says where the fact is not known here, and after what it replaces."""
    at = space.now() if modified is None else modified
    if live is not None:
        return max(at, just_after(to_instant(live.updated_at)))
    stated = at if fact.updated is None else parse_instant(fact.updated, field="updated")
    return stated if stated <= STATED_MAX else at


def _is_version(space: Space, fact: StateFact, key: str, entry_id: str) -> bool:
    """Whether it says what was said then. What was redacted then is compared as it was shown."""
    for memory in space.history(key):
        if memory.id == entry_id:
            return _same(fact, memory.text, memory.category, memory.tags)
    found = _put(space, entry_id)
    return found is not None and _same(fact, found[1].value, found[1].category, found[1].tags)


def _same(fact: StateFact, value: str, category: str | None, tags: tuple[str, ...]) -> bool:
    return (
        fact.value.strip() == value.strip() and fact.category in (None, category) and tuple(fact.tags) == tags
    )


def _expires(fact: StateFact, at: Instant) -> Instant:
    """As the file says; but no fact lives for ever, nor ends as it comes."""
    lasts = int(TTL_DEFAULT.total_seconds()) * SECOND
    if fact.expires is not None:
        lasts = parse_instant(fact.expires, field="expires") - at
    shortest, longest = (int(length.total_seconds()) * SECOND for length in (TTL_MIN, TTL_MAX))
    return min(at + min(max(lasts, shortest), longest), INSTANT_MAX)


def _created(fact: StateFact, live: Memory | None, at: Instant) -> Instant | None:
    if live is not None:
        return to_instant(live.created_at)
    return None if fact.created is None else min(parse_instant(fact.created, field="created"), at)


# ── an agent's own files ─────────────────────────────────────────────────────────────────────────────────────────


def agent_files(space: Space) -> Iterator[tuple[str, str, str]]:
    """(path, text, entry id) of every file that an agent keeps."""
    for memory in sorted(space.facts.list(f"{ROOT}/", limit=_ALL), key=lambda memory: memory.key or ""):
        if memory.key is None or not is_path(memory.key):
            continue
        try:
            yield (
                f"{FILES}/{quoted(memory.key.removeprefix(ROOT)[1:])}",
                space.files.read(memory.key).text,
                memory.id,
            )
        except NotFound:
            continue  # forgotten since


def judged_file(
    space: Space, path: str, data: bytes, written: WrittenFiles, modified: Instant | None
) -> Verdict:
    """What a file below `files/` means for this space."""
    key = checked_path(f"{ROOT}/{unquoted(path.removeprefix(f'{FILES}/'))}")
    text = _decoded(data, space.settings.file_bytes_max)
    entry = written.base(path)
    known, forgotten = space.ledger.status([entry] if entry is not None else [])
    if forgotten:
        return FileForgotten()
    live = next((memory for memory in space.facts.list(key, limit=_ALL) if memory.key == key), None)
    if written.is_as_written(path, data):
        if known:
            return FileUnchanged()
    elif live is not None and space.files.read(key).text == text:
        return FileUnchanged()
    if live is None and len(space.files.list()) >= space.settings.files_max:
        raise InvalidRequest(f"there are {space.settings.files_max:,} files already; delete some")
    before = None if live is None else _put(space, live.id)
    id_ = put_id(key, entry or "", text)
    if written.is_as_written(path, data) and entry is not None and _is_free(space, entry):
        id_ = entry
    at = max(
        space.now() if modified is None else modified, just_after(to_instant(live.updated_at)) if live else 0
    )
    if live is None or before is None or live.id == entry:
        value = text if before is None else restored(before[1].value, text)
        created = None if live is None else to_instant(live.created_at)
        return _new_put(
            space, id_, PutPayload(key=key, value=value, category=CATEGORY, at=at, created=created)
        )
    return _judged_beside(
        space, PutPayload(key=key, value=text, category=CATEGORY, at=at), entry or "", live.id
    )


def _judged_beside(space: Space, put: PutPayload, entry: str, live: str) -> Verdict:
    """A file that was edited there and changed here: the other version is kept under another name."""
    beside = _beside(put.key, put.value)
    taken = bool(space.ledger.status([put_id(put.key, entry, put.value)])[0])
    if taken or any(memory.key == beside for memory in space.facts.list(beside, limit=_ALL)):
        return FileUnchanged()
    id_ = put_id(beside, entry, put.value)
    return _new_put(space, id_, msgspec.structs.replace(put, key=beside), odds=(live,))


def _beside(key: str, text: str) -> str:
    """Where the other version of a file is kept."""
    folder, _, name = key.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    mark = f"conflict-{digits_of(text, 8)}"
    return checked_path(f"{folder}/{f'{stem}.{mark}.{ending}' if dot and stem else f'{name}.{mark}'}")


# ── files of others ──────────────────────────────────────────────────────────────────────────────────────────────


def carried_files(space: Space) -> Iterator[tuple[str, str, str]]:
    """(path, text, entry id) of every file that is carried along."""
    rows = space.facts.list(f"{CARRIED_FILES}/", category=CARRIED_FILES, runs=True, limit=_ALL)
    for memory in sorted(rows, key=lambda memory: memory.key or ""):
        found = _put(space, memory.id)
        if found is not None:
            yield found[1].key.removeprefix(f"{CARRIED_FILES}/"), found[1].value, memory.id


def judged_carried(
    space: Space,
    path: str,
    data: bytes,
    written: WrittenFiles,
    modified: Instant | None,
    *,
    name: str | None = None,
) -> Verdict:
    """What a file of others means: the newest is carried on, and those before it are in its history. `name` is what it
    is kept as, where that is not its path."""
    text = _decoded(data, CARRIED_BYTES_MAX)
    key = f"{CARRIED_FILES}/{name or path}"
    entry = written.base(path)
    known, forgotten = space.ledger.status([entry] if entry is not None else [])
    if forgotten:
        return FileForgotten()
    live = next(
        (m for m in space.facts.list(key, category=CARRIED_FILES, runs=True, limit=_ALL) if m.key == key),
        None,
    )
    before = None if live is None else _put(space, live.id)
    if before is not None and before[1].value == text:
        return FileUnchanged()
    if known and written.is_as_written(path, data):
        return FileUnchanged()
    at = max(
        space.now() if modified is None else modified, just_after(to_instant(live.updated_at)) if live else 0
    )
    id_ = put_id(key, live.id if live is not None else "", text)
    if written.is_as_written(path, data) and entry is not None and _is_free(space, entry):
        id_ = entry
    put = PutPayload(key=key, value=text, category=CARRIED_FILES, at=at)
    odds = (live.id,) if live is not None and entry is not None and entry != live.id else ()
    return _new_put(space, id_, put, odds=odds)


# ── what they have in common ─────────────────────────────────────────────────────────────────────────────────────


def _new_put(space: Space, id_: str, put: PutPayload, *, odds: tuple[str, ...] = ()) -> Verdict:
    known, forgotten = space.ledger.status([id_])
    if forgotten:
        return FileForgotten()
    if known:
        return FileUnchanged()
    return FileNews(NewEntry(id_, Op.PUT, encode(put), CALLER, None, put.at), odds)


def _put(space: Space, entry_id: str) -> tuple[str, PutPayload] | None:
    entry = space.ledger.entries_by_id([entry_id]).get(entry_id)
    if entry is None or entry.op is not Op.PUT or not entry.body:
        return None
    payload = decode(entry)
    return (entry.id, payload) if isinstance(payload, PutPayload) else None


def _is_free(space: Space, entry_id: str) -> bool:
    """Whether an id that a file names can be that of what it says."""
    return entry_id.startswith("put-") and len(entry_id) <= 512 and not any(space.ledger.status([entry_id]))  # noqa: PLR2004


def _decoded(data: bytes, bytes_max: int) -> str:
    if len(data) > bytes_max:
        raise InvalidRequest(f"the file has {len(data):,} bytes and at most {bytes_max:,} are kept; split it")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(f"the file is not UTF-8 (byte {exc.start}); convert it first") from exc
    check_encodable(text, field="text")
    return text


def modified_at(modified: datetime | None) -> Instant | None:
    return None if modified is None else min(to_instant(modified), STATED_MAX)
