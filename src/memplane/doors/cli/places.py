"""Places in object storage that a command takes something in from."""

from memplane.doors.cli.exits import NothingThere
from memplane.objects.manifest import KEY as MANIFEST
from memplane.objects.store import ObjectStore


def require_something(store: ObjectStore) -> None:
    """Taking in from a place where nothing is would look like success; mostly the address is mistyped."""
    if not any(True for prefix in (MANIFEST, "") for _ in store.list(prefix)):
        raise NothingThere(f"nothing is at {store.url}; check the address, or push or export to it first")
