"""Search over MCP is by meaning as well, and over Carapace's protocol by words, as each of them promises."""

import pytest

from memplane.adapters.carapace.tools import call_tool
from memplane.adapters.mcp.server import TOOLS
from stub_embedder import Synonyms

ASKED = {"query": "drink", "include_superseded": False, "limit": 20}


@pytest.fixture
def embedder():
    return Synonyms()


@pytest.fixture
def space(open_plane, embedder):
    space = open_plane(embedder=embedder).space("alice")
    for text in ("Prefers tea", "Keeps the lamp on the desk", "Takes the train to Milan"):
        space.store("preference", text)
    return space


def search(space, **more):
    return TOOLS["memory_search"].run(space, ASKED | {"words_only": False} | more)


def test_mcp_finds_what_means_the_same(space):
    """
    As text and as data; not if only words are asked for.
    """
    found = search(space)

    assert found.data["results"][0]["content"] == "Prefers tea"
    assert 0 < found.data["results"][0]["relevance_score"] <= 0.5
    assert found.data["degraded"] == []
    assert "Prefers tea" in found.text
    assert search(space, words_only=True).data == {"results": [], "degraded": []}
    assert search(space, type="fact").data["results"] == []


def test_replaced_memories_are_marked(space):
    """
    In text and content; Carapace's contract is the content as it was stored.
    """
    (tea,) = space.search("tea", words_only=True)
    space.store("preference", "Prefers cocoa", supersedes=tea.id)
    marked = "Prefers tea (since replaced; now: Prefers cocoa)"
    found = search(space, query="prefers", include_superseded=True)
    recalled = TOOLS["memory_recall"].run(space, {"query": "tea", "include_superseded": True})

    assert [one["content"] for one in found.data["results"]][:2] == ["Prefers cocoa", marked]
    assert f"- [preference] {marked} ({tea.id})" in found.text
    assert marked in [block["text"] for block in recalled.data["blocks"]]
    plugin = call_tool(space, "memory_search", {"query": "tea", "include_superseded": True, "limit": 1})
    assert plugin["results"][0]["content"] == "Prefers tea"


def test_mcp_says_that_it_has_only_words(space, embedder):
    """
    Where the model is down.
    """
    embedder.queries_fail = True

    found = search(space, query="tea")

    assert [one["content"] for one in found.data["results"]] == ["Prefers tea"]
    assert found.data["degraded"] == ["embedding: the stub is down"]
    assert "The answer may be incomplete: embedding: the stub is down." in found.text


def test_carapace_compares_words(space):
    """
    Its contract is a full-text search.
    """
    assert call_tool(space, "memory_search", ASKED) == {"results": []}
    found = call_tool(space, "memory_search", ASKED | {"query": "tea"})["results"]
    assert [one["content"] for one in found] == ["Prefers tea"]
