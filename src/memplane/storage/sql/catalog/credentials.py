"""`Credentials` in the catalog database."""

from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.clock import Instant
from memplane.storage.credentials import KeyRecord
from memplane.storage.sql.catalog.catalog import Catalog, CatalogWriter

_FIELDS = KeyRecord.__struct_fields__
_LISTS = frozenset({"spaces", "doors", "rights"})

_names = msgspec.json.Decoder(tuple[str, ...])


class SqlCredentials:
    """Its connections are its own, so that nobody who knocks waits for what others write into the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        """The catalog is closed with it."""
        self._catalog = catalog

    def add(self, record: KeyRecord, *, once: str | None = None) -> bool:
        def work(writer: CatalogWriter) -> bool:
            if once is not None and not writer.run("first_time", word=once):
                return False
            writer.run_many("add_key", [_row(record)])
            return True

        return self._catalog.write(work)

    def key(self, key_id: str) -> KeyRecord | None:
        found = self._catalog.read("key", id=key_id)
        return _record(found[0]) if found else None

    def keys_of_agent(self, agent: str) -> Sequence[KeyRecord]:
        return [_record(row) for row in self._catalog.read("keys_of_agent", agent=agent)]

    def list_keys(self) -> Sequence[KeyRecord]:
        return [_record(row) for row in self._catalog.read("keys")]

    def revoke(self, key_id: str, at: Instant) -> KeyRecord | None:
        if self.key(key_id) is None:
            return None
        self._catalog.write(lambda writer: writer.run("revoke", id=key_id, at=at))
        return self.key(key_id)

    def touch(self, key_id: str, at: Instant) -> None:
        self._catalog.try_jot(lambda writer: writer.run("touch", id=key_id, at=at))

    def lock(self, place: bytes, until: Instant, *, now: Instant) -> None:
        def work(writer: CatalogWriter) -> None:
            writer.run("forget_locks", now=now)
            writer.run("lock", place=place, until=until)

        self._catalog.try_jot(work)

    def locked_until(self, place: bytes) -> Instant | None:
        found = self._catalog.read("locked_until", place=place)
        return int(found[0][0]) if found else None

    def close(self) -> None:
        self._catalog.close()


def _row(record: KeyRecord) -> tuple[Any, ...]:
    return tuple(_column(name, getattr(record, name)) for name in _FIELDS)


def _column(name: str, value: Any) -> Any:
    return msgspec.json.encode(value).decode() if name in _LISTS and value is not None else value


def _record(row: Sequence[Any]) -> KeyRecord:
    fields = dict(zip(_FIELDS, row, strict=True))
    for name in _LISTS:
        if fields[name] is not None:
            fields[name] = _names.decode(fields[name])
    fields["passing"] = bool(fields["passing"])
    return KeyRecord(**fields)
