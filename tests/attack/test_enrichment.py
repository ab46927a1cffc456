"""Enrichment: one message takes a bounded part of it, and a shutdown ends it between two texts."""

import threading

from memplane import Memplane
from memplane.extract.catalog import load_catalog
from memplane.extract.rules import extract
from memplane.worker.pace import Pace, Speed
from stub_embedder import StubEmbedder


def test_facts_are_read_from_the_beginning_of_a_long_message():
    """
    What follows a million characters is stored and searched, but not read for facts.
    """
    filler = "lorem ipsum dolor.\n" * 60_000
    claims = extract(f"I live in Rome.\n{filler}I live in Oslo.", role="user", catalog=load_catalog())

    assert [claim.object_text for claim in claims if "live" in claim.relation_phrase] == ["Rome"]


def test_a_stopped_step_takes_no_further_piece():
    """
    A shutdown is a deadline that has passed.
    """
    stopped = threading.Event()
    pace, speed = Pace(make_way=lambda: None, is_stopped=stopped.is_set), Speed(0.001)

    assert pace.fitting([1.0] * 8, speed) > 0
    stopped.set()
    assert pace.fitting([1.0] * 8, speed) == 0


def test_a_shutdown_does_not_wait_for_all_texts(tmp_path):
    """
    Closing while a step embeds many texts ends it after those that are being embedded.
    """
    begun, go_on = threading.Event(), threading.Event()

    class Slow(StubEmbedder):
        calls = 0

        def embed_texts(self, texts):
            Slow.calls += 1
            begun.set()
            assert go_on.wait(60)
            return super().embed_texts(texts)

    plane = Memplane.open(tmp_path, embedder=Slow(), llm=None, background=True)
    space = plane.space("alice")
    for number in range(40):
        space.retain(f"turn {number}", conversation="c")
    assert begun.wait(60)
    closing = threading.Thread(target=plane.close)
    closing.start()
    while not plane._parts.background._stopped.is_set():
        threading.Event().wait(0.005)
    before = Slow.calls
    go_on.set()
    closing.join(60)

    assert not closing.is_alive()
    assert Slow.calls <= before + 1
