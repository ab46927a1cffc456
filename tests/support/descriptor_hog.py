"""A program with few file descriptors that uses many spaces: `python descriptor_hog.py FOLDER LIMIT SPACES`. Prints a JSON object."""

import json
import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memplane import Memplane
from memplane.errors import StorageBusy

THREADS = 8
OPEN = Path("/proc/self/fd")


def main(folder: str, limit: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with Memplane.open(folder, embedder=None) as plane, ThreadPoolExecutor(THREADS) as threads:
        owners = [f"owner-{number}" for number in range(count)]

        def write(owner: str) -> None:
            plane.space(owner).retain(f"The lamp of {owner} is green", id="lamp")

        def read(owner: str) -> bool:
            return plane.space(owner).turns()[0].text == f"The lamp of {owner} is green"

        list(threads.map(write, owners))
        right = sum(threads.map(read, owners))
        most = sum(1 for _ in OPEN.iterdir()) if OPEN.is_dir() else 0
        hogged = hog()
        list(threads.map(write, owners[: THREADS * 2]))  # known already, and each file must be opened
        plane.space("newcomer").retain("A space made when there are none left")
        hogged += hog()
        alone = None
        try:
            threads.submit(read, owners[-1]).result()
        except StorageBusy as exc:  # other files have them all
            alone = exc.code
        for descriptor in hogged:
            os.close(descriptor)
        recovered = sum(threads.map(read, owners))
    sys.stdout.write(json.dumps({"right": right, "most": most, "alone": alone, "recovered": recovered}))


def hog() -> list[int]:
    """Take every descriptor that is left."""
    taken: list[int] = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return taken


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
