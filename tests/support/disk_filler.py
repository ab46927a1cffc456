"""A program that writes until there is no room, and goes on when there is: `python disk_filler.py FOLDER BYTES`.

The limit is `RLIMIT_FSIZE`, so no other process is affected; with 0 bytes it is the size of the file system, which the program makes
larger afterwards. Prints a JSON object."""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

from memplane import Memplane
from memplane.errors import StorageFull, StorageUnavailable

SECRET = "wxqzvkjphy"


def limited(folder: str, size: int) -> None:
    if not size:
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        return
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def main(folder: str, size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    found: dict[str, object] = {}
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space("alice")
        space.retain(f"The code of the gate is {SECRET}", id="gate")
        if size:
            limited(folder, size)
        kept: list[str] = []
        refused = 0
        while refused < 5:
            try:
                kept.append(space.retain(f"Number {len(kept)}: " + "lantern " * 200).id)
            except (StorageFull, StorageUnavailable):
                refused += 1
        found["readable"] = space.turns(limit=1)[0].text[:9] == f"Number {len(kept) - 1}: "[:9]
        try:
            found["forgotten"] = space.forget(entries=["gate"]).off_disk
        except (StorageFull, StorageUnavailable):
            found["forgotten"] = None
        limited(folder, resource.RLIM_INFINITY if size else 0)
        if found["forgotten"] is None:
            space.forget(entries=["gate"])
        plane._daily_maintenance("default", "alice")
        there = {entry.id for entry in space.ledger.entries(limit=100_000)}
        found |= {
            "kept": len(kept),
            "lost": len(set(kept) - there),
            "extra": len(there - set(kept)),
            "problems": len(space.ledger.verify().problems) + len(space.ledger.check()),
            "off_disk": space.ledger.receipts()[-1].off_disk,
        }
        space.retain("And on")
    content = b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
    found["traces"] = content.count(SECRET.encode())
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
