"""The worker that the fleet's crash tests kill."""

import signal
import threading
from multiprocessing.synchronize import Event

from tests.support.stub_embedder_enrich import BagOfWords
from tests.support.worker_victim import clock

from memplane import Memplane, Settings


def opened(url: str, **options: object) -> Memplane:
    settings = Settings(worker_lease_s=1, worker_failures_max=1_000)
    return Memplane.open(url, embedder=BagOfWords(dimension=8), clock=clock, settings=settings, **options)  # type: ignore[arg-type]


def work(url: str, listening: Event) -> None:
    """Until somebody says stop, or kills it; `listening` when it can be said."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    listening.set()
    with opened(url, background=True):
        ended.wait()
