"""Searching the memories of a space by meaning."""

import pytest

from stub_embedder import Synonyms

MEMORIES = "/console/space/@alice/memories"


@pytest.fixture
def embedder():
    return Synonyms()


@pytest.fixture
def plane(open_plane, embedder):
    opened = open_plane(embedder=embedder)
    space = opened.space("alice")
    for text in ("Prefers tea", "Keeps the lamp on the desk", "Takes the train to Milan"):
        space.store("preference", text)
    return opened


def test_similar_memories_are_marked(open_page):
    """
    Those without a word of the query; *words only* leaves them out.
    """
    page = open_page()
    page.goto(f"{MEMORIES}?q=drink")
    assert "Prefers tea" in page.inner_text("tbody tr >> nth=0")
    assert "similar" in page.inner_text("tbody tr >> nth=0")

    page.check("text=words only")
    page.wait_for_selector("text=No matching memories.")
    page.fill("#q", "tea")
    page.wait_for_selector("tbody tr")
    assert "similar" not in page.inner_text("tbody")


def test_it_says_if_only_words_were_compared(open_page, embedder):
    """
    Where the model is down.
    """
    embedder.queries_fail = True
    page = open_page()
    page.goto(f"{MEMORIES}?q=tea")

    assert "embedding: the stub is down" in page.inner_text("#found")
    assert "Prefers tea" in page.inner_text("tbody")
