"""The memory-plane door's translation, without a server."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import costly

from clawdapus import entry_line, later
from conftest import fresh_plane
from memplane import Settings
from memplane.adapters.clawdapus.history_pages import page_of, parse_limit
from memplane.adapters.clawdapus.recall import LATE, PlaneRecallHandler, answer_of
from memplane.adapters.importers import scrubbed_lines
from memplane.auth.principal import Forbidden, Principal, Right
from memplane.config import settings_from
from memplane.recall.result import RecallBlock
from memplane.recall.timebox import TimeBox
from memplane.safety.outgoing import is_blocked
from memplane.safety.redact import find_secrets
from memplane.server.endpoint import Endpoint, HttpCall

TEXT = st.text(st.characters(codec="utf-8"), max_size=3_000)
ANYTHING = st.one_of(
    TEXT,
    st.builds(
        "".join,
        st.lists(st.sampled_from(['"', "\\", "漢", "\n", "é", "x" * 99, "tea ", "\U0001f600"]), max_size=400),
    ),
)
NAMES = st.one_of(
    st.sampled_from(["raw_transcript", " Session_Tail", "turn", "fact", "transcript_tail"]),
    st.text(max_size=20),
)


def block(text, *, kind="turn", source="user-turn", score=0.5):
    return RecallBlock(id="e", text=text, kind=kind, source=source, ts="2026-11-15T08:30:00Z", score=score)


@given(
    blocks=st.lists(st.builds(block, ANYTHING, kind=NAMES, source=NAMES), max_size=20),
    degraded=st.lists(st.text(st.characters(codec="utf-8"), max_size=400), max_size=9),
)
def test_an_answer_is_always_within_its_limits(blocks, degraded):
    """
    Whatever the blocks, the answer is one that cllama takes: blocks, bytes of text, bytes in all, kinds and sources.
    """
    answer = answer_of(blocks, degraded)

    memories = json.loads(answer)["memories"]
    assert len(answer) <= 16_384
    assert len(memories) <= 8
    assert sum(len(one["text"].encode()) for one in memories) <= 8_192
    assert not any(is_blocked(one["kind"], one["source"]) for one in memories)
    assert all(one["text"].strip() for one in memories)


def test_a_block_that_does_not_fit_gives_way_to_a_smaller_one():
    """
    Order is kept; only what is too large is left out.
    """
    answer = json.loads(answer_of([block("a" * 5_000), block("b" * 5_000), block("c" * 3_000)], ()))

    assert [one["text"][0] for one in answer["memories"]] == ["a", "c"]


@costly(25)
@given(
    texts=st.lists(ANYTHING.filter(lambda text: text.strip()), min_size=1, max_size=6),
    question=ANYTHING,
)
def test_recall_is_within_its_limits_whatever_is_stored(texts, question):
    """
    The whole way, from what agents said to the bytes that leave; no other agent's words are among them.
    """
    with fresh_plane() as plane:
        for number, text in enumerate(texts):
            line = entry_line(text, text, at=later(number)).line
            plane.space("analyst").retain_entry(line)
        plane.space("other").retain_entry(entry_line("zebrazebra tea").line)
        recaller = PlaneRecallHandler(Settings(recall_answer_ms=60_000))
        try:
            asked = {"agent_id": "analyst", "messages": [{"role": "user", "content": question}]}
            answer = recaller.handle(called(plane, asked)).body
        finally:
            recaller.close()

    assert isinstance(answer, bytes)
    assert len(answer) <= 16_384
    memories = json.loads(answer)["memories"]
    assert len(memories) <= 8
    assert sum(len(one["text"].encode()) for one in memories) <= 8_192
    assert b"zebrazebra" not in answer
    assert not any(find_secrets(one["text"]) for one in memories)


def called(plane, body, *, spaces=None, rights=frozenset(Right), waited_s=0.0):
    endpoint = Endpoint(
        method="POST", path="/recall", adapter="plane", summary="", handle=None, right=Right.READ
    )
    principal = Principal(tenant="default", subject="s", spaces=spaces, rights=rights)
    raw = json.dumps(body).encode()
    scope = {"type": "http", "method": "POST", "path": "/recall", "headers": []}
    return HttpCall(
        scope, plane, endpoint, principal=principal, query={}, raw=raw, body=raw, waited_s=waited_s
    )


@pytest.mark.parametrize(
    "agent", ["analyst", " analyst ", "analyst\u200b", "Analyst", "*", "other/../analyst"]
)
def test_a_credential_for_another_agent_opens_nothing(plane, agent):
    """
    However the id is written.
    """
    plane.space("analyst").retain("tea")
    recaller = PlaneRecallHandler(Settings())
    try:
        with pytest.raises(Forbidden):
            recaller.handle(called(plane, {"agent_id": agent}, spaces=frozenset({"other"})))
    finally:
        recaller.close()


# ── in time ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_thorough_answer_wins_if_it_is_in_time():
    """
    The quick one is not even asked.
    """
    box = TimeBox()

    assert box.answer(lambda: "thorough", lambda: pytest.fail("asked"), seconds=60) == "thorough"
    box.close()


def test_who_waited_too_long_for_a_thread_is_not_kept_waiting(plane):
    """
    The time counts from when the request came in: after the limit it is answered by words, and much later, when the
    client is gone, a busy server says so at once.
    """
    plane.space("analyst").retain("tea with lemon")
    recaller = PlaneRecallHandler(Settings(recall_answer_ms=60_000))
    body = {"agent_id": "analyst", "messages": [{"role": "user", "content": "tea?"}]}
    try:
        answers = [
            json.loads(recaller.handle(called(plane, body, waited_s=waited)).body)
            for waited in (0.0, 61.0, 601.0)
        ]
    finally:
        recaller.close()

    assert ["tea" in str(answer["memories"]) for answer in answers] == [True, True, False]
    assert answers[2]["degraded"] == [LATE]


def test_an_error_in_time_is_an_error():
    """
    An empty answer would hide an outage.
    """
    box = TimeBox()

    with pytest.raises(ZeroDivisionError):
        box.answer(lambda: 1 // 0, lambda: "quick", seconds=60)
    box.close()


def test_what_is_late_does_not_pile_up():
    """
    One that hangs leaves the quick answer; when all threads hang, those that wait never begin, and none is owed.
    """
    release, began = threading.Event(), []

    def hanging():
        began.append(1)
        release.wait(60)
        return "late"

    box = TimeBox(threads=1)
    try:
        assert box.answer(hanging, lambda: "quick", seconds=2.0) == "quick"
        assert box.answer(hanging, hanging, seconds=1.0) is None
        assert box.answer(hanging, lambda: "quick", seconds=0.01) is None
    finally:
        release.set()
        box.close()
    assert len(began) <= 2


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


@costly(30)
@given(
    seconds=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    own=st.sets(st.integers(0, 29)),
    failed=st.sets(st.integers(0, 29)),
    limit=st.integers(1, 5),
)
def test_pages_by_time_tell_everything_once(seconds, own, failed, limit):
    """
    Whoever pages by the last second they saw meets every entry once, in the order of time: lines of a proxy, turns of
    other doors within a second, and turns that failed.
    """
    with fresh_plane() as plane:
        space = plane.space("analyst")
        for number, second in enumerate(seconds):
            if number in own:
                space.retain(f"turn {number}", at=later(second + number / 100))
            else:
                status = "error" if number in failed else ""
                space.retain_entry(entry_line(f"turn {number}", at=later(second), status=status).line)
        found, after = [], None
        while seqs := page_of(space, after, None, limit).seqs:
            lines = [json.loads(line) for line in scrubbed_lines(space, seqs)]
            found += lines
            after = lines[-1]["ts"]

    assert len({line["id"] for line in found}) == len(found) == len(seconds)
    assert [line["ts"] for line in found] == sorted(line["ts"] for line in found)


def test_following_the_next_page_ends_with_fractions_of_a_second(space):
    """
    A line may say its time more exactly than in seconds; no page is told again and again.
    """
    for number in range(5):
        line = entry_line(f"turn {number}").line.replace(b"12:00:00Z", b"12:00:00.%dZ" % number)
        space.retain_entry(line)

    first = page_of(space, None, None, 1)

    assert (len(first.seqs), first.following) == (5, {})


def test_limits_are_read_as_go_reads_them():
    """
    The number that the text begins with.
    """
    assert [parse_limit(text) for text in (None, "", "7", " 7", "+7x", "99999")] == [100, 100, 7, 7, 7, 1_000]


def test_settings_name_the_history_and_never_show_its_token():
    """
    The variables that `claw up` sets.
    """
    settings = settings_from(
        {
            "CLAW_HISTORY_URL": "http://cllama:8080/history",
            "CLAW_HISTORY_TOKEN": "mem-history:0011",
            "CLAW_HISTORY_AGENT_IDS": "a, b,c",
        }
    )

    assert settings.claw_history_agent_ids == ("a", "b", "c")
    assert settings.claw_history_url == "http://cllama:8080/history"
    assert "mem-history:0011" not in repr(settings)
