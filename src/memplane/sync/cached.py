"""An object store behind a copy on this machine: fast to read, safe to write, usable without a connection.

* Reading compares the copy with the manifest, which is asked for at most every `fresh_s` seconds: one request for all
  files that did not change, one more for each that did, when it is read. What the manifest does not know is asked for by
  version. With `validate="each"` every read is, for a place that others write to who keep no manifest.
* Writing is on disk here (`ahead.py`) before it is acknowledged, and in the store before the call returns; `interactions/`
  wait for up to 5 seconds or 4 KB, to be sent together.
* The manifest gets the entry of a written object within `manifest_s` seconds, so that many writes are one change of it.
* Without a connection, reads are answered from the copy and writes wait. `state()` says so. The next call that
  finds the store again catches up.

Any number of threads and processes may share a cache directory. No thread is needed: whatever is called next sends what
is due. With `background=True` a thread does so where nothing is called; it runs while something waits.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from memplane.clock import SECOND, Clock, Instant, iso, system_clock
from memplane.entropy import random_bytes
from memplane.errors import (
    Changed,
    InvalidRequest,
    ManifestUnreadable,
    MemplaneError,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
    Unchanged,
)
from memplane.safety.safe_directory import SafeDirectory
from memplane.sync import manifest as manifests
from memplane.sync.backend import Keys, Pause, bytes_of, has_lines_of, pause_s, text_of
from memplane.sync.manifest import Manifest, ManifestEntry
from memplane.sync.store import ABSENT, ObjectStore, StoredObject, checked, display_key, order
from memplane.sync.write_ahead import UnlistedObject, WriteBatch, WriteOperation, WriteQueue, digest_of

BATCHED = ("interactions/",)

_TRIES_MAX = 60
_AWAY_MAX_S = 60
_TICK_S = 1.0
_BYTES_MAX = 1 << 30

_log = logging.getLogger(__name__)


class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the cache and its connection to the store."""

    offline: bool
    problem: str | None
    """Why the store could not be used, or its manifest not be read; None where all is well."""
    pending: int
    """Bytes that are acknowledged and not yet in the store and its manifest."""
    as_of: Instant | None
    """When the manifest was last known to be as it is here; None: never."""


class CachedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text as the store had it."""

    key: str
    version: str
    sha256: str
    mtime: str = ""
    """As the manifest has it."""
    sent: str = ""
    """Token of the last batch that this copy includes."""
    data: bytes = b""

    def is_as(self, entry: ManifestEntry) -> bool:
        if entry.sha256 is not None:
            return entry.sha256 == self.sha256
        return (entry.size, entry.mtime) == (len(self.data), self.mtime)


class CachedBackend:
    """`TextBackend` over an object store and a local directory."""

    def __init__(
        self,
        store: ObjectStore,
        cache_dir: str | Path,
        *,
        validate: Literal["manifest", "each"] = "manifest",
        batched: tuple[str, ...] = BATCHED,
        batch_s: int = 5,
        batch_bytes: int = 4_096,
        fresh_s: int = 5,
        manifest_s: int = 0,
        background: bool = False,
        clock: Clock = system_clock,
        pause: Pause = time.sleep,
    ) -> None:
        self._store = store
        self._root = Path(cache_dir).expanduser().absolute()
        self._ahead = WriteQueue(self._root)
        self._copies = _Copies(self._root)
        self._validate = validate
        self._batched = batched
        self._batch = (batch_s * SECOND, batch_bytes)
        self._fresh = fresh_s * SECOND
        self._unlisted_max = manifest_s * SECOND
        self._clock = clock
        self._pause = pause
        self._known = self._copies.manifest()
        self._as_of: Instant | None = None
        self._problem: str | None = None
        self._away_until: Instant | None = None
        self._away_s = 0
        self._is_background = background
        self._ended = threading.Event()
        self._thread_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send what can be sent. What cannot stays on disk for the next."""
        self._ended.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self.flush()

    def state(self) -> CacheState:
        with self._ahead.locked():
            waiting = [one.size for one in self._ahead.waiting()]
            unlisted = [one.size or 1 for one in self._ahead.unlisted()]
        return CacheState(
            offline=self._away_until is not None,
            problem=self._problem,
            pending=sum(waiting) + sum(unlisted),
            as_of=self._as_of,
        )

    def read_text(self, key: str) -> str | None:
        self.tend()
        self._freshen(checked(key))
        with self._ahead.locked():
            copy = self._copies.load(key)
            operations = self._ahead.operations(key, sent=copy.sent if copy else "")
        if copy is None and not operations:
            self._may_be_absent(key)
            return None
        batch = WriteBatch(key=key, token="", operations=tuple(operations))
        return text_of(batch.applied(copy.data if copy else b""), key)

    def write_text(self, key: str, text: str) -> None:
        self._add(key, "write", text)
        self._deliver(key, is_new=True)
        self.tend()

    def append_text(self, key: str, text: str) -> None:
        self._add(key, "append", text)
        if not key.startswith(self._batched):
            self._deliver(key)
        self.tend()

    def exists(self, key: str) -> bool:
        entry = self._entries().get(checked(key)) if self._validate == "manifest" else None
        if entry is not None:
            return True
        self._freshen(key)
        with self._ahead.locked():
            return self._copies.load(key) is not None or bool(self._ahead.operations(key))

    def list(self, prefix: str = "") -> Keys:
        self.tend()
        keys = self._listed(prefix)
        with self._ahead.locked():
            keys |= {one.key for one in self._ahead.waiting()} | {one.key for one in self._ahead.unlisted()}
        return sorted((key for key in keys if key.startswith(prefix)), key=order)

    def adopt(self, key: str, data: bytes, version: str) -> None:
        """Keep an object that the caller put into the store itself, and list it in the manifest as any other write."""
        entry = self._copy(WriteBatch(key=checked(key), token="", operations=()), data, version)
        with self._ahead.locked():
            self._keep(entry)
        self._wake()
        self.tend()

    def flush(self) -> int:
        """Send all that waits, due or not, and return how many bytes still wait."""
        self._away_until = None
        self._send_pending(all_of_it=True)
        self._list_sent(all_of_it=True)
        return self.state().pending

    def tend(self) -> None:
        """Send what is due: what no longer may wait, and what an earlier call could not send."""
        if not self._is_away():
            self._send_pending(all_of_it=False)
            self._list_sent(all_of_it=False)

    def _wake(self) -> None:
        """Have a thread send what was just added, where one is wanted and none runs."""
        with self._thread_lock:
            if self._is_background and self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="memplane-cache", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_TICK_S):
            try:
                self.tend()
                with self._thread_lock:
                    if not self.state().pending:
                        self._thread = None
                        return
            except Exception as exc:  # noqa: BLE001 - a thread's edge: what waits is on disk, and is tried again
                self._problem = str(exc) if isinstance(exc, MemplaneError) else type(exc).__name__

    def _add(self, key: str, do: Literal["append", "write"], text: str) -> None:
        bytes_of(text, checked(key))
        with self._ahead.locked():
            copy = self._copies.load(key) if do == "write" else None
            base = copy.version if copy else ABSENT
            nonce = random_bytes(6).hex()
            self._ahead.add(
                WriteOperation(key=key, do=do, text=text, at=self._clock(), nonce=nonce, base=base)
            )
        self._wake()

    def _send_pending(self, *, all_of_it: bool) -> None:
        age, size = self._batch
        now = self._clock()
        with self._ahead.locked():
            waiting = self._ahead.waiting()
        for one in waiting:
            may_wait = one.key.startswith(self._batched) and not one.is_sending
            if all_of_it or not may_wait or one.size >= size or now - one.since >= age:
                try:
                    self._deliver(one.key, wait=all_of_it)
                except InvalidRequest as exc:
                    self._problem = str(exc)

    def _deliver(self, key: str, *, is_new: bool = False, wait: bool = True) -> None:
        """Put what waits for a key into the store, if it can be reached. `is_new`: it was just written. Without `wait`, it
        is left to another process that is sending."""
        if self._is_away():
            return
        with self._online(), self._ahead.alone(wait=wait) as is_ours:
            while is_ours:
                with self._ahead.locked():
                    batch = self._ahead.take(key)
                if batch is None:
                    return
                copy = self._sent_or_refused(batch, is_new=is_new and len(batch.operations) == 1)
                with self._ahead.locked():
                    self._keep(copy)
                    self._ahead.done(batch)

    def _sent_or_refused(self, batch: WriteBatch, *, is_new: bool) -> CachedText:
        """What the store will never take must not wait for ever, and must not be lost either."""
        try:
            return self._sent(batch, is_new=is_new)
        except InvalidRequest:
            with self._ahead.locked():
                self._copies.set_aside(batch.key, batch.applied(b""))
                self._ahead.done(batch)
            raise

    def _sent(self, batch: WriteBatch, *, is_new: bool) -> CachedText:
        """The object with the batch in it, once and for all."""
        got = self._guess(batch, is_new=is_new)
        for attempt in range(_TRIES_MAX):
            if got is None:
                got = self._store.get(batch.key) or StoredObject(b"", ABSENT)
                is_there = (
                    batch.is_in(got.data) if attempt == 0 else has_lines_of(batch.applied(b""), got.data)
                )
                if is_there and got.version != ABSENT:
                    return self._copy(batch, got.data, got.version)
                self._set_aside(batch, got)
            data = batch.applied(got.data)
            batch = self._ahead.attempting(batch, len(got.data))
            try:
                expect = None if is_new and batch.replaces else got.version
                return self._copy(batch, data, self._store.put(batch.key, data, expect=expect))
            except Changed:
                got = None
                self._pause(pause_s(attempt))
        raise RemoteUnavailable(
            f"{display_key(batch.key)} in {self._store.url} is changed by others all the time"
        )

    def _guess(self, batch: WriteBatch, *, is_new: bool) -> StoredObject | None:
        """What the object is thought to be, which saves asking: a write under its version finds out."""
        if batch.attempt is not None:
            return None
        if batch.replaces:
            return StoredObject(b"", ABSENT) if is_new else None
        with self._ahead.locked():
            copy = self._copies.load(batch.key)
        return None if copy is None else StoredObject(copy.data, copy.version)

    def _set_aside(self, batch: WriteBatch, got: StoredObject) -> None:
        """A delayed write replaces another machine's text: the last writer wins, and the replaced text is saved in
        `conflicts/`."""
        bases = [operation.base for operation in batch.operations if operation.do == "write"]
        if bases and got.version not in {ABSENT, bases[0]} and got.data != batch.applied(b""):
            self._copies.set_aside(batch.key, got.data)

    def _copy(self, batch: WriteBatch, data: bytes, version: str) -> CachedText:
        return CachedText(
            key=batch.key,
            version=version,
            sha256=hashlib.sha256(data).hexdigest(),
            mtime=iso(self._clock()),
            sent=batch.token,
            data=data,
        )

    def _keep(self, copy: CachedText) -> None:
        """A copy of what was just sent, and a note that the manifest lacks it. The caller holds the lock."""
        self._copies.save(copy)
        before = None if self._known is None else self._known[0].entries.get(copy.key)
        size = len(copy.data)
        self._ahead.unlist(UnlistedObject(key=copy.key, size=size, since=self._clock(), before=before))

    def _list_sent(self, *, all_of_it: bool) -> None:
        """Enter into the manifest what was sent, all of it in one change, once an entry has waited long enough."""
        now = self._clock()
        with self._ahead.locked():
            notes = self._ahead.unlisted()
        is_due = any(all_of_it or now - note.since >= self._unlisted_max for note in notes)
        if not is_due or self._is_away():
            return
        with self._online(), self._ahead.alone(wait=all_of_it) as is_ours:
            if is_ours:
                with self._ahead.locked():
                    notes = self._ahead.unlisted()
                self._enter(notes)
                with self._ahead.locked():
                    for note in notes:
                        self._ahead.listed(note.key)

    def _enter(self, notes: Sequence[UnlistedObject]) -> None:
        try:
            self._know(
                manifests.update(
                    self._store,
                    lambda manifest: manifest.with_entries(
                        {
                            note.key: entry
                            for note in notes
                            if (entry := self._entry(note, manifest)) is not None
                        }
                    ),
                    known=self._known,
                    clock=self._clock,
                    pause=self._pause,
                ),
                is_fresh=False,
            )
        except ManifestUnreadable as exc:
            self._problem = str(exc)

    def _entry(self, note: UnlistedObject, manifest: Manifest) -> ManifestEntry | None:
        """The entry of what was sent. Where another machine has changed the entry since, the object itself decides."""
        with self._ahead.locked():
            copy = self._copies.load(note.key)
        listed = manifest.entries.get(note.key)
        if copy is not None and listed != note.before and not (listed is not None and copy.is_as(listed)):
            copy = self._fetched(note.key, copy, listed)
        return (
            None if copy is None else ManifestEntry(size=len(copy.data), mtime=copy.mtime, sha256=copy.sha256)
        )

    def _entries(self) -> dict[str, ManifestEntry]:
        """What the manifest says, as fresh as `fresh_s` asks for, or as it was known last."""
        now = self._clock()
        if not self._is_away() and (self._as_of is None or now - self._as_of >= self._fresh):
            with self._online():
                self._refresh()
        return {} if self._known is None else dict(self._known[0].entries)

    def _refresh(self) -> None:
        known = self._known
        try:
            self._know(manifests.read(self._store, unless=known[1] if known and known[1] else None))
            if self._known is not None and self._known[1] == ABSENT:
                manifests.rebuild(self._store, clock=self._clock, pause=self._pause)
                self._know(manifests.read(self._store))
        except Unchanged:
            self._as_of = self._clock()
        except ManifestUnreadable as exc:
            self._problem, self._known, self._as_of = str(exc), None, self._clock()

    def _know(self, known: tuple[Manifest, str], *, is_fresh: bool = True) -> None:
        self._known = known
        if is_fresh:
            self._as_of, self._problem = self._clock(), None
        with self._ahead.locked():
            self._copies.save_manifest(*known)

    def _freshen(self, key: str) -> None:
        """Make the copy what the store has, if it can be reached and the copy may be something else."""
        entry = self._entries().get(key)
        with self._ahead.locked():
            copy = self._copies.load(key)
            sent = self._ahead.unlisted_since(key)
        is_known = copy is not None and entry is not None and copy.is_as(entry)
        is_new = copy is not None and sent is not None and self._clock() - sent < self._fresh
        if self._is_away() or ((is_known or is_new) and self._validate == "manifest"):
            return
        with self._online():
            self._fetched(key, copy, entry)

    def _fetched(self, key: str, copy: CachedText | None, entry: ManifestEntry | None) -> CachedText | None:
        """The object as it is in the store, kept as the copy; None where there is none."""
        mtime = entry.mtime if entry else iso(self._clock())
        try:
            got = self._store.get(key, unless=copy.version if copy else None)
        except Unchanged:
            if copy is not None and entry is not None and entry.sha256 is None:
                self._replace(copy, msgspec.structs.replace(copy, mtime=mtime))
            return copy
        if got is None:
            self._replace(copy, None, key)
            return None
        digest = hashlib.sha256(got.data).hexdigest()
        new = CachedText(key=key, version=got.version, sha256=digest, mtime=mtime, data=got.data)
        self._replace(copy, new, key)
        return new

    def _replace(self, old: CachedText | None, new: CachedText | None, key: str = "") -> None:
        """Does nothing if another process saved a newer copy."""
        with self._ahead.locked():
            there = self._copies.load(old.key if old else key)
            if (there.version if there else None) != (old.version if old else None):
                return
            if new is None:
                self._copies.drop(key)
                return
            begun = self._ahead.begun(new.key)
            if begun is not None and begun.is_in(new.data):
                new = msgspec.structs.replace(new, sent=begun.token)
            self._copies.save(new)

    def _listed(self, prefix: str) -> set[str]:
        entries = self._entries()
        is_whole = self._known is not None and all(entry.count is None for entry in entries.values())
        if not self._is_away() and not (is_whole and self._validate == "manifest"):
            with self._online():
                return {item.key for item in self._store.list(prefix) if not manifests.is_manifest(item.key)}
        with self._ahead.locked():
            copies = self._copies.keys() if self._is_away() else set()
        return {key for key, entry in entries.items() if entry.count is None} | copies

    def _may_be_absent(self, key: str) -> None:
        """Raises where we cannot say that there is no such text."""
        is_listed = self._known is not None and key in self._known[0].entries
        if self._away_until is not None and (self._known is None or is_listed):
            raise RemoteUnavailable(
                f"{display_key(key)} was never read here, and the store is away: {self._problem or self._store.url}"
            )

    def _is_away(self) -> bool:
        return self._away_until is not None and self._clock() < self._away_until

    @contextmanager
    def _online(self) -> Iterator[None]:
        """What fails in here because the store is away is left for later, and not tried again at once."""
        try:
            yield
        except (RemoteUnavailable, RemoteDenied) as exc:
            if self._away_until is None:
                _log.warning("%s; reads come from the cache and writes wait in %s", exc, self._root)
            self._away_s = min(_AWAY_MAX_S, max(1, self._away_s * 2))
            self._away_until = self._clock() + self._away_s * SECOND
            self._problem = str(exc)
        except RemoteError:
            raise
        else:
            if self._away_until is not None:
                self._problem = None
            self._away_until, self._away_s = None, 0


class _Copies:
    """The copies and the last known manifest on disk. The caller holds the lock."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def load(self, key: str) -> CachedText | None:
        raw = self._read("copies", digest_of(key))
        if raw is None:
            return None
        head, _, data = raw.partition(b"\n")
        try:
            return msgspec.structs.replace(msgspec.json.decode(head, type=CachedText), data=data)
        except msgspec.MsgspecError:
            return None  # a damaged copy is no copy

    def save(self, copy: CachedText) -> None:
        head = msgspec.json.encode(msgspec.structs.replace(copy, data=b""))
        self._write("copies", digest_of(copy.key), head + b"\n" + copy.data)

    def drop(self, key: str) -> None:
        with self._folder("copies") as folder:
            folder.remove(digest_of(key))

    def keys(self) -> set[str]:
        with self._folder("copies") as folder:
            names = [name for name in folder.names() if not name.startswith(".")]
            heads = [(folder.read(name, bytes_max=_BYTES_MAX) or b"").partition(b"\n")[0] for name in names]
        return {msgspec.json.decode(head, type=CachedText).key for head in heads if head}

    def set_aside(self, key: str, data: bytes) -> None:
        name = f"{digest_of(key)[:16]}-{hashlib.sha256(data).hexdigest()[:16]}"
        self._write("conflicts", f"{name}.key", key.encode())
        self._write("conflicts", name, data)

    def manifest(self) -> tuple[Manifest, str] | None:
        raw = self._read("manifest", "known.json")
        try:
            return None if raw is None else msgspec.json.decode(raw, type=tuple[Manifest, str])
        except msgspec.MsgspecError:
            return None

    def save_manifest(self, manifest: Manifest, version: str) -> None:
        self._write("manifest", "known.json", msgspec.json.encode((manifest, version)))

    def _read(self, folder: str, name: str) -> bytes | None:
        with self._folder(folder) as there:
            return there.read(name, bytes_max=_BYTES_MAX)

    def _write(self, folder: str, name: str, data: bytes) -> None:
        with self._folder(folder) as there:
            there.replace(name, data, durable=folder == "conflicts")

    @contextmanager
    def _folder(self, name: str) -> Iterator[SafeDirectory]:
        with SafeDirectory.root(self._root) as root, root.below(name, create=True, mode=0o700) as folder:
            yield folder
