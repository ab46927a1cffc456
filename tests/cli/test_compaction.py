"""Compaction, retention and the budget on the command line."""

import os
from datetime import UTC, datetime, timedelta

import pytest
from tests.cli.test_cli import Terminal

from memplane.sync.digests import is_generated
from memplane.terminal.call import Wiring

DAY = "2026-11-02"


@pytest.fixture
def adr(cli, monkeypatch):
    """A space with one raw day, whose time is over whenever this runs."""
    environment = {**cli.wiring.environment, "MEMPLANE_RETENTION": "adr", "MEMPLANE_EMBEDDING": "none"}
    wiring = Wiring(open=cli.wiring.open, environment=environment, actor="tester")
    monkeypatch.setattr(cli, "wiring", wiring)
    with_plane = wiring.open(None, environment)
    space = with_plane.space("default")
    for said in ("Hello!", "I prefer Teams over email.", "My sister Anna lives in Lisbon."):
        space.retain(said, at=f"{DAY}T10:00:00Z")
    space.enrich()
    with_plane.close()
    return cli


def test_a_dry_run_says_what_would_be_done(adr, monkeypatch):
    """And changes nothing."""
    before = adr("stats", "--json").json
    done = adr("compact", "--dry-run")

    assert done.code == 0
    assert f"{DAY}: 3 entries processed, 3 would be removed" in done.out
    assert "draft: " in done.out
    assert "Teams" in done.out
    assert adr("stats", "--json").json == before


def test_compact_and_review(adr):
    """A day goes, a draft is confirmed by the id as it is shown, and the proof holds."""
    done = adr("compact", "--json").json
    assert [(day["day"], day["removed"]) for day in done["days"]] == [(DAY, 3)]
    listed = adr("compact", "review")
    found = adr("compact", "review", "--json").json
    (draft,) = found["learnings"]
    short = draft["id"][: len("learn-") + 12]
    assert short in listed.out
    assert {it["outcome"] for it in found["judgements"]} == {"learn", "digest", "discard"}
    assert "a greeting" in listed.out
    decided = adr("compact", "review", "--confirm", short, "--json").json["learnings"][0]
    again = adr("compact", "review", "--reject", short)

    assert (decided["standing"], decided["by"]) == ("confirmed", "tester")
    assert decided["memory"] in adr("compact", "review").out
    assert (again.code, again.out) == (1, "")
    assert "delete that memory instead" in again.err
    assert adr("ledger", "verify").code == 0
    assert adr("compact").out == ""


def test_review_names_what_it_does_not_know(adr):
    adr("compact")
    unknown = adr("compact", "review", "--confirm", "learn-nobody")

    assert unknown.code == 1
    assert "no draft id starts with 'learn-nobody'" in unknown.err
    assert adr("compact", "review", "--confirm", "").code == 1


def test_a_day_must_be_one(adr):
    done = adr("compact", "--day", "soon")

    assert done.code == 1
    assert "such as 2026-11-15" in done.err


def test_retention_in_words(adr):
    done = adr("retention")

    assert "Turns are kept for 7 days, then compacted and removed." in done.out
    assert f"Due now: 1 raw day ({DAY} to {DAY}) with 3 entries" in done.out
    adr("compact")
    after = adr("retention")
    assert "Nothing is due." in after.out
    assert "1 draft needs review" in after.out
    assert adr("retention", "--json").json["policy"]["raw_days"] == 7


def test_budget_prints_the_table(adr, tmp_path):
    (tmp_path / "summaries").mkdir()
    (tmp_path / "summaries" / f"{DAY}.html").write_text("<h1>done</h1>")
    adr("compact")
    done = adr("budget", "--summaries", str(tmp_path / "summaries"))
    found = adr("budget", "--json").json

    assert [word for word in ("Layer", "Size", "Tokens") if word not in done.out] == []
    assert [
        name
        for name in ("All behavioral memory", "7 days raw interactions", "30 days weekly digests", "Total")
        if name not in done.out
    ] == []
    assert "It fits comfortably" in done.out
    assert (found["fits"], found["budget_tokens"]) == (True, 400_000)
    assert found["layers"][2]["tokens"] > 0
    assert adr("budget", "--summaries", str(tmp_path / "nowhere")).code == 1


@pytest.mark.parametrize(
    ("answer", "standing"),
    [("y\n", "confirmed"), ("n\n", "rejected"), ("\n", "open")],
    ids=["yes", "no", "later"],
)
def test_on_a_terminal_review_asks(adr, shell, answer, standing):
    """About every draft that waits; whoever does not know yet decides later."""
    adr("compact")
    path = os.environ.get("PYTHONPATH", "")
    shell.environment |= {"MEMPLANE_RETENTION": "adr", "MEMPLANE_EMBEDDING": "none", "PYTHONPATH": path}
    terminal = Terminal(shell, "compact", "review")
    shown = terminal.wait_for("Enter to skip: ")
    terminal.type(answer)
    code, out = terminal.end()

    assert "I prefer Teams over email" in shown
    assert (code, standing in out) == (0, True)
    assert adr("compact", "review", "--json").json["learnings"][0]["standing"] == standing


def test_a_day_is_told_in_short(cli):
    """
    Yesterday, unless a day is named: for people, for programs, and as the page that a sync writes.
    """
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    cli("retain", "Can you <call> me?", "--speaker", "Bob", "--at", f"{day}T10:00:00Z")
    told, page = cli("summary").out, cli("summary", "default", "--day", day, "--html").out
    found = cli("summary", "--json").json

    assert "Bob: Can you <call> me?" in told
    assert "Heads-up: none" in told
    assert "Can you &lt;call&gt; me?" in page
    assert is_generated(page.encode())
    assert found["counts"] == {"needs_you": 1, "handled": 0, "heads_up": 0}
    assert [it["sender"] for it in found["needs_you"]] == ["Bob"]
    assert cli("summary", "--html", "--json").json["html"].strip() == page.strip()


@pytest.mark.parametrize(
    ("day", "why"), [("2020-01-01", "no summary"), ("2999-01-01", "not over yet"), ("tomorrow", "no day")]
)
def test_a_day_that_cannot_be_told(cli, day, why):
    cli("retain", "Hello")
    done = cli("summary", "--day", day)

    assert (done.code, done.out) != (0, "")
    assert why in done.err
