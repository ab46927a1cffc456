"""What the programs do that the tests of identity start."""

from contextlib import closing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event

from memplane import Memplane
from memplane.auth.principal import Unauthenticated

PATIENCE_SECONDS = 120


def first_serve(data: str, begin: Barrier, answers: Queue) -> None:
    """What every server does when it starts; answers the owner's key, or None."""
    with Memplane.open(data, embedder=None) as plane, closing(plane.identity()) as identity:
        begin.wait(PATIENCE_SECONDS)
        minted = identity.owner_key()
        answers.put(None if minted is None else minted.bearer.reveal())


def serve_requests(data: str, bearer: str, warm: Event, revoked: Event, answers: Queue) -> None:
    """Let a caller in again and again; once it is revoked, answers how the very next request ends."""
    with Memplane.open(data, embedder=None) as plane, closing(plane.identity()) as identity:
        identity.authenticate(bearer, peer="here")
        warm.set()
        while not revoked.is_set():
            try:
                identity.authenticate(bearer, peer="here")
            except Unauthenticated:  # it was revoked, and this process knew before it was told
                break
        try:
            answers.put(identity.authenticate(bearer, peer="here").subject)
        except Unauthenticated as refused:
            answers.put(str(refused))
