"""The overview of a space while another embedding model takes over."""

import pytest
from tests.support.stub_embedder_enrich import BagOfWords


@pytest.fixture
def plane(open_plane):
    """Filled with one model, opened with another."""
    space = open_plane(embedder=BagOfWords("first")).space("alice")
    space.retain("I live in Lisbon.")
    space.enrich()
    return open_plane(embedder=BagOfWords("second"), recall_work_ms=0)


def test_the_overview_shows_a_change_of_the_model(plane, open_page):
    """
    What is left is counted and both models are named; when all is embedded, neither is shown.
    """
    page = open_page()
    page.goto("/console/space/@alice")
    before = page.inner_text("main")
    plane.space("alice").enrich()
    page.reload()
    after = page.inner_text("main")

    assert "The embedding model changed from first to second." in before
    assert "PENDING EMBEDDINGS" in before.upper()
    assert "embedding" not in after.lower()
