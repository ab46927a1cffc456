"""EntraBot's log of what came in and went out."""

import json
from datetime import UTC, datetime

import pytest
from entrabot.tools import interaction_log
from entrabot.tools.interaction_log import detect_channel, log_interaction, read_day
from hypothesis import given
from hypothesis import strategies as st

from memplane.sync import interactions

NOON = datetime(2026, 4, 17, 12, 0, tzinfo=UTC)
TODAY = "2026-04-17"


@pytest.fixture
def folder(entrabot_settings, tmp_path, monkeypatch):
    """Where the log is, on a day that does not end while a test runs."""
    monkeypatch.setattr(interaction_log, "_now", lambda: NOON)
    return tmp_path / "data" / "interactions"


def lines(folder, day=TODAY):
    return [json.loads(line) for line in (folder / f"{day}.jsonl").read_text("utf-8").splitlines()]


def note(**fields):
    return log_interaction(
        **{"channel": "terminal", "direction": "inbound", "sender": "u", "summary": "x"} | fields
    )


# Which channel


@pytest.mark.parametrize(
    ("chat_id", "channel"),
    [
        pytest.param("19:4444_4d4a65ef@unq.gbl.spaces", "teams_dm", id="between two"),
        pytest.param("19:4c8d47b5ea0b@thread.v2", "teams_group", id="of a group"),
        pytest.param(None, "terminal", id="none"),
        pytest.param("", "terminal", id="empty"),
        pytest.param("19:something@futureformat", "teams_unknown", id="of a kind to come"),
    ],
)
def test_a_chat_id_says_its_channel(chat_id, channel):
    """
    By how it ends.
    """
    assert detect_channel(chat_id) == channel


# Writing


def test_a_line_goes_to_the_days_file(folder):
    """
    With what was given.
    """
    note(
        channel="teams_dm",
        direction="outbound",
        sender="agent@example.org",
        recipient="19:xyz@unq.gbl.spaces",
        summary="Sent the plan",
        action="send_teams_message",
        content_ref="msg-123",
    )

    (line,) = lines(folder)
    assert line["channel"] == "teams_dm"
    assert line["direction"] == "outbound"
    assert line["sender"] == "agent@example.org"
    assert line["summary"] == "Sent the plan"


def test_the_directory_is_made(folder):
    """
    With the first line.
    """
    assert not folder.exists()

    note()

    assert folder.is_dir()


def test_lines_of_a_day_stand_in_their_order(folder):
    """
    In one file.
    """
    for number in range(3):
        note(summary=f"Message {number}")

    assert [line["summary"] for line in lines(folder)] == ["Message 0", "Message 1", "Message 2"]


def test_a_new_file_begins_at_midnight_of_utc(folder, monkeypatch):
    """
    Wherever the machine is.
    """
    monkeypatch.setattr(interaction_log, "_now", lambda: datetime(2026, 4, 16, 23, 45, tzinfo=UTC))
    note(summary="late")
    monkeypatch.setattr(interaction_log, "_now", lambda: datetime(2026, 4, 17, 0, 15, tzinfo=UTC))
    note(summary="early")

    assert [line["summary"] for line in lines(folder, "2026-04-16")] == ["late"]
    assert [line["summary"] for line in lines(folder, "2026-04-17")] == ["early"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"channel": ""}, id="channel"),
        pytest.param({"direction": "sideways"}, id="direction"),
        pytest.param({"summary": ""}, id="summary"),
    ],
)
def test_a_line_that_says_too_little_is_a_value_error(folder, fields):
    """
    It names the field, and nothing is written.
    """
    with pytest.raises(ValueError, match=next(iter(fields))):
        note(**fields)

    assert not folder.exists()


# What a line says


def test_a_line_has_its_fields(folder):
    """
    And its time in UTC.
    """
    returned = note()

    (line,) = lines(folder)
    assert list(line) == ["id", "ts", "channel", "direction", "sender", "summary"]
    assert line["ts"] == "2026-04-17T12:00:00+00:00"
    assert line == returned


def test_fields_that_need_not_be_there_are_kept(folder):
    """
    And those that were not given are not there.
    """
    given = {
        "recipient": "agent@example.org",
        "action": "noted",
        "content_ref": "AAMk",
        "metadata": {"subject": "Re: Apollo", "conversationId": "AAQk"},
    }

    note(**given)

    (line,) = lines(folder)
    assert {name: line[name] for name in given} == given


def test_every_line_has_an_id_of_its_own(folder):
    """
    Even if it says the same.
    """
    for _ in range(5):
        note()

    assert len({line["id"] for line in lines(folder)}) == 5


# Reading


def test_a_day_is_read_in_order(folder):
    """
    All of its lines.
    """
    note(summary="one")
    note(summary="two")

    assert [line["summary"] for line in read_day(TODAY)] == ["one", "two"]


def test_a_day_without_a_file_is_empty(folder):
    """
    And no error.
    """
    assert read_day("1999-01-01") == []


def test_any_day_can_be_read(folder, monkeypatch):
    """
    Not only today.
    """
    monkeypatch.setattr(interaction_log, "_now", lambda: datetime(2026, 4, 10, 12, 0, tzinfo=UTC))
    note(summary="hi")

    assert [line["summary"] for line in read_day("2026-04-10")] == ["hi"]


def test_a_line_that_is_none_is_passed_over(folder):
    """
    Somebody edited the file, or a machine went down; the others are there.
    """
    note(summary="good")
    with (folder / f"{TODAY}.jsonl").open("a") as file:
        file.write("this is not json\n[1]\n\n")
    note(summary="after")

    assert [line["summary"] for line in read_day(TODAY)] == ["good", "after"]


# Beyond


def test_a_line_cut_off_by_a_crash_takes_no_other_with_it(folder):
    """
    What was written next stands behind it on the same line.
    """
    note(summary="before")
    with (folder / f"{TODAY}.jsonl").open("a") as file:
        file.write('{"id": "1", "ts": "2026-04-17T1')
    note(summary="after")

    assert [line["summary"] for line in read_day(TODAY)] == ["before", "after"]


def test_summaries_are_trimmed(folder):
    """
    Blanks around them say nothing; blanks alone are no summary.
    """
    assert note(summary="  hi \n")["summary"] == "hi"
    with pytest.raises(ValueError, match="summary"):
        note(summary=" \n")


def test_a_time_in_another_zone_is_written_to_its_day_of_utc(folder, monkeypatch):
    """
    Nine in the evening in Seattle is tomorrow.
    """
    monkeypatch.setattr(interaction_log, "_now", lambda: datetime.fromisoformat("2026-04-16T21:00:00-07:00"))
    note()

    assert lines(folder)[0]["ts"] == "2026-04-17T04:00:00+00:00"


LETTERS = st.text(st.characters(exclude_categories=()), max_size=20)


@given(LETTERS.filter(str.strip), st.dictionaries(LETTERS, LETTERS, max_size=3))
def test_whatever_is_said_is_one_line_and_comes_back(summary, metadata):
    """
    However a reader splits lines, and whatever letters there are, even halves of some.
    """
    entry = interactions.interaction(
        channel="email", direction="inbound", sender="a", summary=summary, metadata=metadata, at=NOON
    )

    line = interactions.compose(entry)

    assert len(line.splitlines()) == 1
    assert interactions.parse(line.encode("utf-8").decode("utf-8")) == entry


def test_what_others_say_beyond_our_fields_is_kept():
    """
    A line is read and written without losing any of it.
    """
    line = (
        '{"id": "1", "ts": "2026-04-17T12:00:00Z", "channel": "email", "direction": "inbound", "sender": "a", '
        '"summary": "b", "recipient": 7, "mood": {"level": 3}}\n'
    )

    entry = interactions.parse(line)

    assert entry.more == {"recipient": 7, "mood": {"level": 3}}
    assert json.loads(interactions.compose(entry)) == json.loads(line)


@pytest.mark.parametrize(
    "key", ["interactions/2026-02-30.jsonl", "interactions/x/2026-04-17.jsonl", "other.jsonl"]
)
def test_only_a_days_file_is_a_day(key):
    """
    Other files below the prefix are somebody else's.
    """
    assert interactions.day_of_key(key) is None
    assert interactions.day_of_key("interactions/2026-04-17.jsonl") == "2026-04-17"
