"""A correct object store that is nothing but a dictionary: what others are compared with, and what faults are put
around."""

import threading
from datetime import UTC, datetime, timedelta

from memplane.errors import Changed, Unchanged
from memplane.sync.store import ABSENT, ObjectInfo, StoredObject, checked, order

_BEGINNING = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)


class MemoryObjects:
    """`ObjectStore`; its versions count its writes, and so do its times."""

    def __init__(self, name="memory"):
        self.url = f"memory://{name}"
        self.writes = 0
        self._objects = {}
        self._lock = threading.Lock()

    def get(self, key, *, unless=None):
        with self._lock:
            found = self._objects.get(checked(key))
        if found is None:
            return None
        if found.version == unless:
            raise Unchanged(key)
        return found

    def put(self, key, data, *, expect=None):
        with self._lock:
            found = self._objects.get(checked(key))
            if expect is not None and expect != (ABSENT if found is None else found.version):
                raise Changed(key)
            self.writes += 1
            self._objects[key] = StoredObject(bytes(data), f"v{self.writes}")
            return self._objects[key].version

    def delete(self, key):
        with self._lock:
            self._objects.pop(checked(key), None)

    def list(self, prefix=""):
        with self._lock:
            found = sorted(self._objects.items(), key=lambda item: order(item[0]))
        for key, got in found:
            if key.startswith(prefix):
                moment = _BEGINNING + timedelta(seconds=int(got.version[1:]))
                yield ObjectInfo(key, len(got.data), got.version, moment)
