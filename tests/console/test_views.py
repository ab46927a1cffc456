"""What pages say, asked without a browser: of history that was said long before it was kept, of chains, and of lists."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from console_pages import signed_in

SPACE = "/console/space/@alice"
LONG_AGO = datetime(2026, 3, 7, 12, tzinfo=UTC)


@pytest.fixture
def look(console, identity):
    """`look("/timeline")` is the text of a page of Alice's space."""
    cookie = signed_in(identity, console.url)
    client = console.client(None, cookies={cookie["name"]: cookie["value"]})

    def look_(path):
        answer = client.get(SPACE + path)
        assert answer.status_code == 200, answer.text
        return answer.text

    return look_


@pytest.fixture
def imported(plane):
    """Said months ago, kept today."""
    space = plane.space("alice")
    said = (
        "I live in Berlin.",
        "I like my coffee black, here in Berlin.",
        "I moved to Lisbon. How did I like my coffee in Berlin?",
    )
    for number, text in enumerate(said):
        space.retain(
            text, id=f"said-{number}", conversation=f"c{number}", at=LONG_AGO + timedelta(days=number)
        )
    space.enrich()
    return space


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0]


def test_a_turn_is_shown_with_what_was_known_before_it(look, imported):
    """
    Neither what it says itself nor what came later is told for it, whenever it was kept; the page says what this is.
    """
    first, second, last = (
        between(look(f"/timeline/@said-{number}"), 'id="rerun"', "</pre>") for number in range(3)
    )

    assert first == ""
    assert "Berlin" in second
    assert "coffee" not in second
    assert "Lisbon" not in second
    assert "not a record" in second
    assert "coffee" in last
    assert "Lisbon" not in last


def test_history_stands_where_it_was_said(look, imported, clock):
    """
    Rows tell when it was said and when it was kept; a filter of time and the slider go by when it was said.
    """
    imported.put("theme", "dark", ttl=timedelta(days=1))
    shown = look("/timeline")
    assert (
        f'<dt>expires</dt><dd class="said">{clock.moment + timedelta(days=1):%Y-%m-%d %H:%M:%S}</dd>' in shown
    )
    assert f'said <time datetime="{LONG_AGO.isoformat()}"' in shown
    assert f'recorded <time datetime="{clock.moment.isoformat()}"' in shown
    march = look("/timeline?since=2026-03-08&until=2026-03-09")
    assert march.count('<li class="happening"') == 1
    assert "coffee black" in march
    slider = re.search(r'<input id="slider"[^>]*>', look("/recall"))[0]

    assert 'data-from="2026-03-07"' in slider
    assert f'max="{(clock.moment.date() - LONG_AGO.date()).days + 1}"' in slider


def test_a_derived_memory_shows_what_it_replaced(look, imported):
    """
    Both ways, as what was stored does; and how often each was told, even where it never was.
    """
    old = imported.memories(state="superseded")[0]
    new = imported.memory(old.superseded_by)
    imported.recall("Where do I live?")
    shown = [look(f"/memories/@{memory.id}") for memory in (old, new)]

    for page in shown:
        chain = between(page, "Versions", "</ol>")
        assert chain.index(old.id) < chain.index(new.id)
    assert '<dt>Recalled</dt><dd class="mono">0 times</dd>' in shown[0]
    assert '<dt>Recalled</dt><dd class="mono">once</dd>' in shown[1]


def test_documents_that_are_not_there(look, imported):
    """
    The command that is named exists, and an empty collection can still be asked.
    """
    collection = imported.documents.create_collection("papers")
    nothing, empty = look("/documents"), look(f"/documents?collection={collection.id}")

    assert "memplane document upload FILE</code>" in nothing
    assert f"document upload FILE --collection {collection.id}</code>" in empty
    assert 'role="search"' in empty
    assert "No matching passages" in look(f"/documents?collection={collection.id}&q=bees")


def test_a_name_that_nothing_is_known_about_leads_to_those_that_hold_it(look, plane):
    """
    Somebody is called by a part of the name that facts have for them.
    """
    space = plane.space("alice")
    space.retain("My husband Rui lives in Porto.")
    space.enrich()
    subject = next(memory.subject for memory in space.memories() if memory.subject != "user")
    assert subject != "rui"
    offered = between(look("/graph?subject=Rui"), 'id="alike"', "</p>")

    assert offered.count("<a ") == 1
    assert "rui" in offered
    assert 'id="alike"' not in look("/graph?subject=Nobody")
    assert 'id="alike"' not in look("/graph?subject=%22*")


def test_pages_count_alike(look, imported):
    """
    What is current, wherever memories are counted.
    """
    current = len([memory for memory in imported.memories() if memory.state != "superseded"])
    assert imported.memories(state="superseded")

    assert f"<dt>Current memories</dt><dd>{current}</dd>" in look("")
    assert f" of {current} current memories" in look("/brief")


def test_a_narrowed_timeline_says_so(look, imported):
    """
    That nothing is added to it; and fields offer what there is, but for names that hide what they are.
    """
    imported.retain("Psst.", conversation="c\u202e1")
    whole, narrowed = look("/timeline"), look("/timeline?conversation=c1")

    assert "added at the top" in between(whole, 'id="live"', "</p>")
    assert "data-live" in whole
    assert "not added" in between(narrowed, 'id="live"', "</p>")
    assert "data-live" not in narrowed
    for page in (whole, narrowed):
        offered = re.findall(
            r'<option value="([^"]*)">', between(page, '<datalist id="conversations">', "</datalist>")
        )
        assert offered == ["c0", "c1", "c2"]


def test_a_receipt_can_be_printed_and_left(look, imported):
    """
    And whatever page it is, the zone of its times is named once.
    """
    imported.forget(entries=["said-0"])
    receipt = look(f"/receipts/@{imported.ledger.receipts()[0].id}")

    assert "data-prints" in receipt
    assert receipt.count('href="/console/space/@alice/receipts"') == 3
    for path in ("", "/timeline", "/memories", "/audit"):
        assert look(path).count("All times are in UTC") == 1
