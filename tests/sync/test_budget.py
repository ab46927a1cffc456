"""The token budget: real counts for a known space, and advice that would help."""

import msgspec
import pytest

from memplane.recall.tokens import tokens_of
from memplane.sync.budget import LayerSize, advice, budget_of, measured
from memplane.sync.digests import digest_files, shorter
from memplane.sync.tree.daily import summaries_of


@pytest.fixture
def space(open_plane):
    return open_plane(retention="adr").space("alice")


def test_a_known_space_is_measured_layer_by_layer(space):
    """Size in bytes and tokens in tokens, each layer by itself; what is too old to be loaded does not count."""
    space.store("preference", "Prefers tea")
    space.store("fact", "Has a cat")
    space.retain("Grüß Gott", at="2026-11-14T10:00:00Z")
    space.retain("long ago", at="2026-11-01T10:00:00Z")
    own = [summary.html for summary in summaries_of(space)]
    found = budget_of(space, summaries=[b"<h1>Yesterday</h1>", own[0].encode()])
    behavioral, raw, digests, summaries, facts = found.layers
    line = "2026-11-14T10:00:00.000Z user: Grüß Gott\n"

    assert (behavioral.layer, behavioral.bytes) == (
        "All behavioral memory",
        len("- [preference] Prefers tea\n"),
    )
    assert (raw.layer, raw.items, raw.bytes) == ("7 days raw interactions", 1, len(line.encode()))
    assert raw.tokens == tokens_of(line)
    assert (digests.layer, digests.tokens) == ("30 days weekly digests", 0)
    assert (summaries.layer, summaries.items) == ("30 days daily summaries", 3)
    assert summaries.bytes == 18 + sum(len(page.encode()) for page in own)
    assert facts.items == 1
    assert found.tokens == sum(layer.tokens for layer in found.layers)
    assert found.fits
    assert found.advice[0].startswith("It fits comfortably")
    assert behavioral.tokens_by_bytes == 7


def test_without_a_policy_everything_counts(open_plane):
    space = open_plane(budget_tokens=10).space("alice")
    for day in range(1, 11):
        space.retain("We talked about the weather.", at=f"2026-11-{day:02}T10:00:00Z")
    found = budget_of(space)

    assert (found.layers[1].layer, found.layers[1].items) == ("All raw interactions", 10)
    assert not found.fits
    assert "MEMPLANE_RETENTION_RAW_DAYS=1" in found.advice[1]


def test_advice_shortens_the_rawest_layer_first_and_no_more_than_needed():
    raw = LayerSize(
        layer="7 days raw interactions",
        days=7,
        items=7,
        bytes=28_000,
        tokens=7_000,
        setting="MEMPLANE_RETENTION_RAW_DAYS",
    )
    rules = LayerSize(layer="All behavioral memory", days=None, items=1, bytes=4_000, tokens=1_000)

    assert list(advice([rules, raw], 8_000)) == [
        "It fits with little room left: 8,000 of 8,000 tokens, 100 %."
    ]
    over = list(advice([rules, raw], 6_000))
    assert over[0] == "It is 2,000 tokens over the budget of 6,000."
    assert over[1].startswith("7 days raw interactions: keep 5 of 7 days")
    assert len(over) == 2
    much = list(advice([msgspec.structs.replace(rules, tokens=50_000), raw], 6_000))
    assert "keep 1 of 7 days" in much[1]
    assert "'All behavioral memory'" in much[2]


def test_measuring_counts_bytes_not_characters():
    assert measured("x", ["é", "日本"]).bytes == 8


# ── digests as files ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_week_is_a_file(space):
    """Named after the ISO week, with a part for each day; a later day goes to its end."""
    space.retain("My sister Anna lives in Lisbon.", at="2026-11-02T10:00:00Z")
    space.compact()
    ((path, first),) = digest_files(space)
    space.retain("We decided to use Postgres.", at="2026-11-05T10:00:00Z")
    space.retain("My brother Max lives in Porto.", at="2025-12-29T10:00:00Z")
    space.compact()
    files = dict(digest_files(space))

    assert path == "compacted/2026-45.md"
    assert list(files) == ["compacted/2026-01.md", path]
    assert files[path].startswith(first)
    text = first.decode()
    assert text.startswith("# Week 2026-45\n\n2026-11-02 to 2026-11-08, in UTC.\n<!-- ")
    assert "-->\n\n## 2026-11-02\n\n- " in text
    assert all(shorter(line.id) in text for line in space.overview.digest_lines() if line.day == "2026-11-02")


def test_content_is_data(space):
    """No line of a digest can pass for a heading, a link or a tag."""
    space.retain("We decided to use <b> and *stars* and [x](y) and `code` # now.\n# Heading", at="2026-11-02")
    space.compact()
    ((_, data),) = digest_files(space)
    text = data.decode()

    assert r"use \<b\> and \*stars\* and \[x\](y) and \`code\` \#" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Week 2026-45", "## 2026-11-02"]


def test_what_was_said_twice_on_a_day_is_told_once(space):
    space.retain("My sister Anna lives in Lisbon.", at="2026-11-02T10:00:00Z")
    space.retain("My sister Anna lives in Lisbon.", at="2026-11-02T11:00:00Z")
    space.compact()
    ((_, data),) = digest_files(space)

    assert data.decode().count("lives in Lisbon") == 1
    assert len([line for line in space.overview.digest_lines() if "Lisbon" in line.text]) == 2


def test_a_large_layer_is_estimated(space, clock):
    """From some of its items, and says so; what is small is counted."""
    for number in range(40):
        space.retain(f"Something was said about number {number:02}", at=clock.moment)
        space.store("preference", f"Prefers number {number:02}")
    clock.advance(days=2)
    space.enrich()
    exact, about = budget_of(space), budget_of(space, sample=10)

    assert not exact.estimated
    assert [layer.items for layer in about.layers] == [layer.items for layer in exact.layers]
    assert [layer.estimated for layer in about.layers[:2]] == [True, True]
    for left, right in zip(about.layers[:2], exact.layers[:2], strict=True):
        assert abs(left.tokens - right.tokens) <= right.tokens / 5
    assert budget_of(space, sample=100) == exact
