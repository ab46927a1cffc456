"""Programs that use one catalog at once; each runs in a process of its own and tells on a pipe what it did."""

import itertools
import os
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from memplane import Memplane, Settings
from memplane.auth.limits import QuotaResource
from memplane.errors import QuotaExceeded, RateLimited
from memplane.storage.catalog.directory import ResourceKind

LIMIT = 100
RATE = 30
ENDPOINT = "POST /v6/ingest"
TENANT = "default"
AT = 1_790_000_000_000_000


def plane_on(data: str | Path, **settings: int) -> Memplane:
    """On a clock that stands still: all of it is one minute of one month, however long it takes."""
    return Memplane.open(data, embedder=None, settings=Settings(**settings), clock=lambda: AT)


def ingest(data: str, begin: Barrier, times: int, pipe: Connection) -> None:
    """Ingest so often, and tell how often it was allowed."""
    with plane_on(data, quota_ingest_events=LIMIT) as plane:
        begin.wait()
        allowed = 0
        for _ in range(times):
            try:
                with plane.quota.using(TENANT, QuotaResource.INGEST):
                    allowed += 1
            except QuotaExceeded:
                plane.meter.count(TENANT, ENDPOINT, failed=True)
            else:
                plane.meter.count(TENANT, ENDPOINT, ingest_events=1)
    pipe.send(allowed)


def recall(data: str, begin: Barrier, times: int, pipe: Connection) -> None:
    """As `ingest`, under a rate."""
    with plane_on(data, recall_per_minute=RATE) as plane:
        begin.wait()
        allowed = 0
        for _ in range(times):
            try:
                with plane.quota.using(TENANT, QuotaResource.RECALL):
                    allowed += 1
            except RateLimited:
                continue
    pipe.send(allowed)


def work_until_killed(data: str, name: str, pipe: Connection) -> None:
    """Count, take, note and forget; a line for everything that was done."""
    plane = plane_on(data, quota_ingest_events=1_000_000)
    space = plane.space(name)
    for number in itertools.count(1):
        with plane.quota.using(TENANT, QuotaResource.INGEST):
            pass
        plane.meter.count(TENANT, ENDPOINT, ingest_events=1)
        plane._parts.directory.note(
            TENANT, ResourceKind.DOCUMENT, f"{name}-{number}", name, now=plane.clock()
        )
        written = number % 5 == 0
        if written:
            plane.meter.write()
        space.store("fact", f"fact {number}")
        receipt = space.forget(everything=True)
        os.write(pipe.fileno(), f"{number} {int(written)} {receipt.id}\n".encode())
