"""Explicitly stored memories as files that people read and write: front matter, then the text.

A generated file contains the `id` of its memory, which never changes, and the `entry` of the version it shows if
that is a later one. Editing the file replaces that version. A file without an id was written by someone else: its
id is derived from its path, and the file stays as it is until its memory changes here.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

import msgspec

from memplane.clock import STATED_MAX, Instant, iso, just_after, parse_instant
from memplane.errors import InvalidRequest
from memplane.ledger.ids import DERIVED_PREFIXES
from memplane.ledger.payloads import FileFrame, StorePayload, encode
from memplane.memory.checks import check_name, check_not_injected, check_tags, check_text
from memplane.safety.redact import redact
from memplane.safety.sanitize import SanitizedText, Splice
from memplane.space import Space
from memplane.sync.tree.frontmatter import Value, part, with_members, written
from memplane.sync.tree.names import (
    INDEX,
    TYPES,
    description_of,
    digits_of,
    file_name,
    kind_of,
    memory_id,
    title_of,
)
from memplane.sync.tree.versions import LiveVersion, Version, Versions
from memplane.types import STORABLE_KINDS, Caller, Kind, NewEntry, Op, State

FILE_BYTES_MAX = 1024 * 1024
"""A memory may be longer in a file than `store` takes it; what is longer than this is a document."""
CALLER = Caller("", "tree")

_OWN_FIELDS = ("id", "entry", "created", "updated", "state", "at_odds")
"""Members that locate a file; changing them has no effect."""
_SAID = ("type", "kind", "tags", "conversation", "project")
_INDEX_MARK = (
    "<!-- memplane: this list is written anew with every change; take this line out to keep your own -->"
)
_MARKDOWN = re.compile(r"([\\`*_\[\]()#|!~])")
_UNSAFE_IN_A_LINK = re.compile(r"[^A-Za-z0-9_./-]")


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says."""

    path: str
    """Below its folder."""
    head: str
    content: str
    tail: str
    members: dict[str, Any]

    @property
    def id(self) -> str | None:
        return _text(self.members, "id")

    @property
    def entry(self) -> str | None:
        return _text(self.members, "entry") or self.id


class FileUnchanged(msgspec.Struct, frozen=True):
    """The file says what is known, or was."""


class FileForgotten(msgspec.Struct, frozen=True):
    """The file says something that was forgotten here."""


class FileNews(msgspec.Struct, frozen=True):
    """The file says something new."""

    draft: NewEntry
    replaced: tuple[str, ...] = ()
    """Memories that replaced the edited one, and are kept in addition to the edit."""


Verdict = FileUnchanged | FileForgotten | FileNews


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def memory_files(space: Space) -> Iterator[tuple[str, str, str]]:
    """(path below its folder, text, entry id) of every memory that was stored on purpose and holds, and of their index."""
    versions = Versions(space)
    odds: dict[str, list[str]] = {}
    for conflict in space.review.conflicts():
        odds.setdefault(conflict.left.id, []).append(conflict.right.id)
        odds.setdefault(conflict.right.id, []).append(conflict.left.id)
    taken: set[str] = {INDEX.casefold()}
    listed: list[tuple[str, str, str]] = []
    for live in versions.live():
        path = _free_path(_path_of(versions, live.version), live.version.id, taken)
        shown = SanitizedText(live.version.stored.content).text
        if not shown.strip():
            continue
        text = _file_of(versions, live, shown, odds.get(live.version.id, []))
        members = part(text).members if live.version.stored.page else {}
        name = _text(members, "name") or title_of(shown)
        listed.append((path, name, _text(members, "description") or description_of(shown)))
        yield path, text, live.version.id
    if listed:
        yield INDEX, _index(listed), ""


def is_our_index(text: str) -> bool:
    """Whether an index was written here; another one is a person's own."""
    return _INDEX_MARK in text


def _index(listed: list[tuple[str, str, str]]) -> str:
    lines = [
        f"- [{_as_markdown(name)}]({_as_link(path)}): {_as_markdown(description)}"
        for path, name, description in sorted(listed)
    ]
    return "\n".join(["# Memory", "", _INDEX_MARK, "", *lines, ""])


def _as_markdown(text: str) -> str:
    plain = redact(" ".join(text.split())).text
    return _MARKDOWN.sub(r"\\\1", plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _as_link(path: str) -> str:
    return _UNSAFE_IN_A_LINK.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8")), path
    )


def _path_of(versions: Versions, version: Version) -> str:
    page = next(
        (each.stored.page for each in versions.chain(version) if each.stored.page and each.stored.page.path),
        None,
    )
    if page is not None:
        return page.path
    root = versions.get(versions.root(version)) or version
    return file_name(root.id, root.stored.kind, SanitizedText(root.stored.content).text)


def _free_path(path: str, id_: str, taken: set[str]) -> str:
    """Two memories may claim one file; the later one gets a name of its own. Names that differ in case only are one name
    on some disks."""
    stem = path.removesuffix(".md")
    for free in (path, f"{stem}-{digits_of(id_, 8)}.md", f"{stem}-{digits_of(id_, 64)}.md"):
        if free.casefold() not in taken:
            path = free
            break
    taken.add(path.casefold())
    return path


def _file_of(versions: Versions, live: LiveVersion, shown: str, odds: list[str]) -> str:
    page = live.version.stored.page
    if (
        page is not None
        and "id" not in part(page.head).members
        and live.memory.state is State.ACTIVE
        and page.path
    ):
        return redact(page.head).text + shown + page.tail
    page = page or versions.page(live.version)
    members = _members_of(versions, live, odds)
    if page is None:
        said: dict[str, Value | None] = {"name": title_of(shown), "description": description_of(shown)}
        lines = [
            f"{name}: {written(value)}\n" for name, value in {**said, **members}.items() if value is not None
        ]
        return f"---\n{''.join(lines)}---\n{shown}\n"
    head = redact(page.head).text
    before = part(head).members
    if kind_of(_text(before, "type") or "") is live.version.stored.kind or "type" not in members:
        members.pop("type", None)
    if _text(before, "type") is None:
        members["type"] = TYPES[live.version.stored.kind]
    head = with_members(head, members)
    return head + shown + ("\r\n" if head.endswith("\r\n") else "\n")


def _members_of(versions: Versions, live: LiveVersion, odds: list[str]) -> dict[str, Value | None]:
    stored, id_ = live.version.stored, live.version.id
    root = versions.root(live.version)
    began = versions.get(root) or live.version
    return {
        "type": TYPES[stored.kind],
        "id": root,
        "entry": id_ if id_ != root else None,
        "kind": stored.kind.value,
        "tags": [redact(tag).text for tag in stored.tags] or None,
        "created": iso(began.stored.at),
        "updated": iso(stored.at),
        "conversation": stored.conversation,
        "project": stored.project,
        "state": live.memory.state.value if live.memory.state is not State.ACTIVE else None,
        "at_odds": sorted(odds) or None,
    }


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_file(path: str, data: bytes) -> FileContent:
    """What the file says; `InvalidRequest` where it cannot be a memory."""
    if len(data) > FILE_BYTES_MAX:
        raise InvalidRequest(
            f"the file has {len(data):,} bytes and a memory at most {FILE_BYTES_MAX:,}; add it as a document instead"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(f"the file is not UTF-8 (byte {exc.start}); convert it first") from exc
    parted = part(text)
    head, body = parted.head, parted.body
    if _text(parted.members, "id"):
        content = body.removesuffix("\r\n" if head.endswith("\r\n") else "\n")
    else:
        inner = body.lstrip("\r\n")
        head, content = head + body[: len(body) - len(inner)], inner.rstrip("\r\n \t")
        body = inner
    tail = body[len(content) :]
    if not content.strip():
        raise InvalidRequest(
            "the file says nothing below its front matter; forget the memory instead of emptying it"
        )
    return FileContent(path=path, head=head, content=content, tail=tail, members=parted.members)


def judged(
    space: Space, versions: Versions, file: FileContent, modified: Instant | None, *, moved: bool = False
) -> Verdict:
    """What the file means for this space. Nothing is changed; `InvalidRequest` where it cannot be taken. `moved` says
    that its memory was written under another name, which is gone."""
    entry_id = file.entry or memory_id(file.path)
    check_text(entry_id, field="id", chars_max=512)
    if entry_id.startswith(DERIVED_PREFIXES):
        raise InvalidRequest("id: ids of this form belong to what is derived; leave it out, or give another")
    named = list(dict.fromkeys([entry_id, file.id or entry_id]))
    known, forgotten = space.ledger.status(named)
    if entry_id in forgotten:
        return FileForgotten()
    base = versions.get(entry_id)
    if base is None and entry_id in known:
        raise InvalidRequest(f"id: {entry_id!r} is that of something else; leave it out, or give another")
    if base is None and file.id in known:
        base = versions.get(str(file.id))
        base = None if base is None else versions.heads(base)[-1]
    if base is None:
        at = _created_at(space, file, modified)
        return FileNews(NewEntry(entry_id, Op.STORE, _body(space, file, None, at), CALLER, None, at))
    if file.entry is None:
        base = _edited(versions, base)
    if _matches_version(file, base, versions) and not moved:
        return FileUnchanged()
    return _edit(space, versions, file, base, modified)


def _edited(versions: Versions, first: Version) -> Version:
    """The version that an edit without an `entry` was based on: the newest one that was read from the file."""
    heads = versions.heads(first)
    newest = max(
        heads, key=lambda head: (head.stored.page is not None, head.entry.recorded, head.id), default=first
    )
    return next((each for each in versions.chain(newest) if each.stored.page is not None), newest)


def _edit(
    space: Space, versions: Versions, file: FileContent, base: Version, modified: Instant | None
) -> Verdict:
    others = [head for head in versions.heads(base) if head.id != base.id]
    if any(_matches_version(file, head, versions) for head in others):
        return FileUnchanged()
    at = max(
        space.now() if modified is None else modified,
        just_after(base.entry.recorded),
        just_after(base.stored.at),
    )
    body = _body(space, file, base, at)
    said = msgspec.json.decode(body)
    del said["at"]  # two who read the same edit at different times read the same edit
    id_ = memory_id(base.id, msgspec.json.encode(said, order="sorted").decode())
    known, forgotten = space.ledger.status([id_])
    if forgotten:
        return FileForgotten()
    if known:
        return FileUnchanged()
    odds = tuple(head.id for head in others if versions.is_current(head))
    return FileNews(NewEntry(id_, Op.STORE, body, CALLER, base.id, at), odds)


def _body(space: Space, file: FileContent, base: Version | None, at: Instant) -> bytes:
    settings = space.settings
    content = file.content if base is None else restored(base.stored.content, file.content)
    stored = StorePayload(
        kind=_kind(file, base),
        content=check_not_injected(check_text(content, field="content"), field="content"),
        at=at,
        tags=check_tags(_tags(file, base), settings),
        conversation=check_name(_text(file.members, "conversation"), field="conversation"),
        project=check_name(_text(file.members, "project"), field="project"),
        page=FileFrame(file.path, file.head, file.tail),
    )
    body = encode(stored)
    if len(body) > settings.entry_bytes_max:
        raise InvalidRequest(
            f"the file makes an entry of {len(body):,} bytes, at most {settings.entry_bytes_max:,} are kept; split it"
        )
    return body


def restored(kept: str, edited: str) -> str:
    """The edited text with secrets restored: placeholders that are still there become the secret again."""
    sanitized = SanitizedText(kept)
    if sanitized.text == kept:
        return edited
    before, after = sanitized.text.splitlines(keepends=True), edited.splitlines(keepends=True)
    at = [0]
    for line in before:
        at.append(at[-1] + len(line))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return sanitized.spliced(
        Splice(at[i1], at[i2], "".join(after[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )


def _matches_version(file: FileContent, version: Version, versions: Versions) -> bool:
    """Whether the file says what this version says, whatever its line ends and its YAML look like."""
    stored = version.stored
    if _normalized(file.content) not in (
        _normalized(stored.content),
        _normalized(SanitizedText(stored.content).text),
    ):
        return False
    if _kind(file, version) is not stored.kind or _display_tags(_tags(file, version)) != _display_tags(
        stored.tags
    ):
        return False
    if (_text(file.members, "conversation"), _text(file.members, "project")) != (
        stored.conversation,
        stored.project,
    ):
        return False
    page = stored.page or versions.page(version)
    if page is not None:
        return _bare(file.head) in (_bare(page.head), _bare(redact(page.head).text))
    shown = SanitizedText(stored.content).text
    titles = {"name": title_of(shown), "description": description_of(shown)}
    return _bare(file.head) in (_bare(""), _bare(with_members("", titles)))


def _bare(head: str) -> str:
    """What a head says beyond what a memory has a place for, as it was written."""
    return (
        with_members(head, dict.fromkeys((*_OWN_FIELDS, *_SAID))).replace("\r\n", "\n").removeprefix("\ufeff")
    )


def _display_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(redact(tag).text for tag in tags))


def _normalized(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")


def _kind(file: FileContent, base: Version | None) -> Kind:
    """What the file says it is. Who changes the type alone means the kind too."""
    given, type_ = _text(file.members, "kind"), _text(file.members, "type")
    if type_ is None and given is None and base is None:
        type_ = file.path.rsplit("/", 1)[-1].partition("_")[0]
    kind = Kind(given) if given in STORABLE_KINDS else None
    if base is None:
        return kind or kind_of(type_ or "")
    if kind is not None and kind is not base.stored.kind:
        return kind
    if type_ is not None and type_ in TYPES.values() and type_ != TYPES[base.stored.kind]:
        page = base.stored.page
        if page is None or _text(part(page.head).members, "type") != type_:
            return kind_of(type_)
    return base.stored.kind


def _tags(file: FileContent, base: Version | None) -> tuple[str, ...]:
    match file.members.get("tags"):
        case str() as text:
            tags = tuple(tag for tag in (part.strip() for part in text.split(",")) if tag)
        case list() as items if all(isinstance(item, str) for item in items):
            tags = tuple(items)
        case None:
            tags = ()
        case _:
            raise InvalidRequest("tags: give a list of words", field="tags")
    if base is not None:
        hidden = {redact(tag).text: tag for tag in base.stored.tags}
        tags = tuple(hidden.get(tag, tag) for tag in tags)
    return tags


def _created_at(space: Space, file: FileContent, modified: Instant | None) -> Instant:
    """The creation time of a memory that is not known here."""
    for name in ("updated", "created"):
        try:
            at = parse_instant(_text(file.members, name) or "", field=name)
        except InvalidRequest:
            continue
        if at <= STATED_MAX:
            return at
    return space.now() if modified is None else modified


def _text(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) and value.strip() else None
