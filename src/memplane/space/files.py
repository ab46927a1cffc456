"""Files that an agent keeps under `/memories`. A file is a keyed fact whose key is its path: every adapter finds it, each edit is
a put that keeps the previous version, and a rename is a put that supersedes the file under its old path. Folders exist
through the paths below them."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from memplane.clock import Instant, to_instant
from memplane.errors import InvalidRequest, NotFound, PathTaken
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import PutPayload, decode
from memplane.memory.checks import check_encodable, check_not_injected
from memplane.memory.paths import ROOT, checked_path, folders_above, is_path
from memplane.memory.recorder import present
from memplane.safety.sanitize import SanitizedText, Splice
from memplane.space.context import SpaceContext
from memplane.space.deprecated import CallableListing
from memplane.space.forgetting import finish_forget
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.store import Reader, Writer
from memplane.types import Memory, Op, Receipt

CATEGORY = "memory_files"

_PAGE = 100


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a folder, and its size as shown."""

    path: str
    bytes: int


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file without secrets and invisible characters."""

    path: str
    text: str


class Files(CallableListing):
    """`space.files`: a small tree of texts. Each call is one transaction, so two agents that edit at once lose nothing."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    def read(self, path: str) -> File:
        """One file; `NotFound` for a folder, too."""
        path = checked_path(path)
        with self._context.operation("file") as reader:
            memory = reader.memories.by_key(path, now=self._context.clock())
            if memory is None:
                raise NotFound("file", path)
            return File(path=path, text=SanitizedText(_value(reader, memory)).text)

    def create(self, path: str, text: str) -> File:
        """Create a file, and the folders above it. An existing file is not overwritten."""
        path, now = checked_path(path), self._context.clock()
        if path == ROOT:
            raise PathTaken(path)
        self._check_content(text)

        def work(writer: Writer) -> None:
            _check_free(writer, path, now)
            if sum(1 for _ in _below(writer, ROOT, now)) >= self._context.settings.files_max:
                raise InvalidRequest(
                    f"there are {self._context.settings.files_max:,} files already; delete some", field="path"
                )
            self._context.recorder.put(
                writer, Op.PUT, PutPayload(key=path, value=text, category=CATEGORY, at=now), now
            )

        self._context.write("create_file", work)
        return File(path=path, text=SanitizedText(text).text)

    def edit(self, path: str, edit: Callable[[str], Iterable[Splice]]) -> File:
        """Change a file. `edit` receives the text as it is shown and returns the replacements; if it raises, nothing is
        changed."""
        path, now = checked_path(path), self._context.clock()

        def work(writer: Writer) -> str:
            memory = writer.memories.by_key(path, now=now)
            if memory is None:
                raise NotFound("file", path)
            veil = SanitizedText(_value(writer, memory))
            text = veil.spliced(edit(veil.text))
            self._check_content(text)
            self._context.recorder.put(writer, Op.PUT, _next_version(memory, path, text, now), now)
            return text

        return File(path=path, text=SanitizedText(self._context.write("edit_file", work)).text)

    def rename(self, path: str, new_path: str) -> int:
        """Move a file, or a folder with everything in it; returns the number of files. No file is overwritten."""
        old, new, now = checked_path(path), checked_path(new_path, field="new_path"), self._context.clock()
        if old == ROOT:
            raise InvalidRequest(f"the {ROOT} directory itself stays where it is", field="path")

        def work(writer: Writer) -> int:
            moving = _of(writer, old, now)
            if new == ROOT:
                raise PathTaken(new)
            if new.startswith(f"{old}/"):
                raise InvalidRequest("a folder cannot be moved into itself", field="new_path")
            _check_free(writer, new, now)
            for memory in moving:
                self._move(writer, memory, checked_path(new + _key(memory).removeprefix(old)), now)
            return len(moving)

        return self._context.write("rename_file", work)

    def delete(self, path: str) -> Receipt:
        """Forget a file, or a folder with everything in it: every version, also under earlier paths."""
        path, now = checked_path(path), self._context.clock()
        if path == ROOT:
            raise InvalidRequest(f"the {ROOT} directory itself cannot be deleted", field="path")

        def work(writer: Writer) -> Receipt:
            # Versions from another machine or an edit by hand do not name the version they replaced.
            versions = [
                id_
                for memory in _of(writer, path, now)
                for version in (memory, *writer.memories.history(_key(memory)))
                for id_ in _versions(writer, version.entry_id)
            ]
            return self._context.recorder.forget(
                writer, ForgetScope(entries=tuple(dict.fromkeys(versions))), reason="deleted"
            )

        return finish_forget(self._context, self._context.write("delete_file", work))

    def _move(self, writer: Writer, memory: Memory, target: str, now: Instant) -> None:
        if writer.memories.holder(target) is not None:  # expired, and not swept yet
            self._context.recorder.forget(writer, ForgetScope(key=target), reason="expired", op=Op.SWEEP)
        put = _next_version(memory, target, _value(writer, memory), now)
        put = msgspec.structs.replace(put, created=to_instant(memory.created_at))
        entry = self._context.recorder.record(writer, new_id("put", now), Op.PUT, put, memory.id, now=now)
        present(writer.memories.get(entry.id))

    def _check_content(self, text: str) -> None:
        check_encodable(text, field="text", bytes_max=self._context.settings.file_bytes_max)
        if text.strip():
            check_not_injected(text, field="text")

    # Last, because in a class body the name of this method hides the type `list` from what follows.
    def list(self, folder: str = ROOT) -> list[FileEntry]:
        """Every file in the folder and below it, by path."""
        folder = checked_path(folder)
        with self._context.operation("files") as reader:
            found = [
                FileEntry(path=_key(memory), bytes=len(memory.text.encode("utf-8")))
                for memory in _below(reader, folder, self._context.clock())
            ]
        return sorted(found, key=lambda entry: entry.path.split("/"))


def _next_version(memory: Memory, path: str, text: str, now: Instant) -> PutPayload:
    """The next version, with the category, tags and expiry of the last one."""
    return PutPayload(
        key=path,
        value=text,
        category=memory.category or CATEGORY,
        tags=memory.tags,
        at=now,
        expires=None if memory.expires_at is None else to_instant(memory.expires_at),
    )


def _key(memory: Memory) -> str:
    return memory.key or ""


def _value(reader: Reader, memory: Memory) -> str:
    """The text as it was written, from the ledger: the memory has a redacted copy."""
    entry = reader.ledger.get(memory.entry_id)
    payload = None if entry is None or entry.body is None else decode(entry)
    return payload.value if isinstance(payload, PutPayload) else memory.text


def _below(reader: Reader, folder: str, now: Instant) -> Iterator[Memory]:
    """The files below a folder, read page by page because together they may be large."""
    where = Filter(now=now, key_prefix=f"{folder}/")
    offset = 0
    while page := reader.memories.find(where, limit=_PAGE, offset=offset):
        yield from (memory for memory in page if is_path(_key(memory)))
        offset += len(page)


def _of(reader: Reader, path: str, now: Instant) -> list[Memory]:
    """The file with this path, or the files of the folder."""
    file = reader.memories.by_key(path, now=now)
    found = [file] if file is not None else list(_below(reader, path, now))
    if not found:
        raise NotFound("file", path)
    return found


def _check_free(reader: Reader, path: str, now: Instant) -> None:
    if reader.memories.by_key(path, now=now) is not None or next(_below(reader, path, now), None) is not None:
        raise PathTaken(path)
    for folder in folders_above(path):
        if reader.memories.by_key(folder, now=now) is not None:
            raise InvalidRequest(f"{folder} is a file, so nothing can lie in it", field="path")


def _versions(reader: Reader, entry_id: str) -> Iterator[str]:
    """This entry and those it replaced, by the references in the ledger, which a purge does not remove."""
    next_id: str | None = entry_id
    while next_id is not None:
        yield next_id
        entry = reader.ledger.get(next_id)
        next_id = None if entry is None else entry.ref
