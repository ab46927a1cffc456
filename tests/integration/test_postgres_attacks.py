"""Attacks on the database engine: by what is said, by what is asked at once, and by whoever has the role of spaces."""

from memplane import Memplane
from memplane.config import Settings


def test_who_has_a_connection_never_waits_for_another_of_the_same(postgres_url):
    """
    A forget notes where its receipt is while it writes: as many of them as there are connections would keep each other,
    and everybody else, waiting.
    """
    with Memplane.open(postgres_url, embedder=None, settings=Settings(database_connections_max=1)) as plane:
        space = plane.space("alice")
        receipt = space.forget(entries=[space.retain("Forget this").id])
        space.create_collection("Lamps", id="lamps")
        space.upload("They flicker.", name="lamps.md", collection="lamps")

    assert receipt.counts["entries"] == 1
