"""EntraBot's daily summary."""

import asyncio
import json
from datetime import UTC, datetime
from html.parser import HTMLParser
from http import HTTPStatus

import pytest
from entrabot.errors import TokenExpiredError
from entrabot.tools import daily_summary
from entrabot.tools.daily_summary import (
    GRAPH_SENDMAIL_URL,
    archive_summary,
    next_run_at,
    render_summary_html,
    run_daily_summary,
    send_summary_email,
    triage_interactions,
)

from stub_server import Handler, StubServer

EMPTY = {"needs_you": [], "handled": [], "heads_up": []}
DAY = "2026-04-16"


def inbound(sender, at, *, channel="email", summary="question", **fields):
    ts = f"{DAY}T{at}:00+00:00"
    return {
        "id": f"in-{at}",
        "ts": ts,
        "channel": channel,
        "direction": "inbound",
        "sender": sender,
        "summary": summary,
    } | fields


def outbound(recipient, at, *, channel="email", summary="answer", **fields):
    made = inbound("agent@example.org", at, channel=channel, summary=summary, **fields)
    return made | {"id": f"out-{at}", "direction": "outbound", "recipient": recipient}


def sorted_into(entries, **given):
    return {
        name: [entry["id"] for entry in entries]
        for name, entries in triage_interactions(entries, **given).items()
    }


# Sorting


def test_an_empty_day_has_nothing_in_any_bucket():
    """
    And all three buckets.
    """
    assert triage_interactions([]) == EMPTY


def test_a_question_without_an_answer_needs_you():
    """
    And nothing else.
    """
    assert sorted_into([inbound("diana@example.org", "10:00")]) == EMPTY | {"needs_you": ["in-10:00"]}


def test_a_question_with_an_answer_is_handled():
    """
    What is shown is the answer.
    """
    day = [inbound("diana@example.org", "10:00"), outbound("diana@example.org", "10:30")]

    assert sorted_into(day) == EMPTY | {"handled": ["out-10:30"]}


def test_what_the_agent_began_is_a_heads_up():
    """
    Nobody asked for it.
    """
    day = [outbound("19:xyz@unq.gbl.spaces", "09:00", channel="teams_dm")]

    assert sorted_into(day) == EMPTY | {"heads_up": ["out-09:00"]}


def test_threads_do_not_mix():
    """
    In Teams a thread is a chat, whoever speaks in it; in mail it is a person.
    """
    group = "19:group@thread.v2"
    day = [
        inbound("diana@example.org", "10:00"),
        inbound("Henry", "11:00", channel="teams_group", metadata={"chat_id": group}),
        outbound(group, "11:05", channel="teams_group"),
        outbound("19:brandon@unq.gbl.spaces", "12:00", channel="teams_dm"),
    ]

    assert sorted_into(day) == {
        "needs_you": ["in-10:00"],
        "handled": ["out-11:05"],
        "heads_up": ["out-12:00"],
    }


def test_the_agents_own_mail_read_back_is_left_out():
    """
    A mailbox holds what was sent, too.
    """
    day = [inbound("agent@example.org", "23:11"), inbound("diana@example.org", "23:12")]

    assert sorted_into(day, agent_upn="agent@example.org") == EMPTY | {"needs_you": ["in-23:12"]}


def test_the_agents_own_address_is_known_in_any_case():
    """
    Addresses are.
    """
    day = [inbound("Agent@Example.ORG", "23:11")]

    assert sorted_into(day, agent_upn="agent@example.org") == EMPTY


def test_without_an_address_of_the_agent_nothing_is_left_out():
    """
    It cannot be known whose mail it is.
    """
    assert sorted_into([inbound("agent@example.org", "23:11")])["needs_you"] == ["in-23:11"]


# The page


def test_the_page_has_every_heading():
    """
    And the day.
    """
    page = render_summary_html(EMPTY, day=DAY)

    assert all(words in page for words in ("Needs you", "Handled", "Heads-up", DAY))


def test_the_page_shows_who_and_what():
    """
    Of every entry.
    """
    page = render_summary_html(EMPTY | {"needs_you": [inbound("diana@example.org", "10:00")]}, day=DAY)

    assert "diana@example.org" in page
    assert "question" in page


def test_an_empty_bucket_says_so():
    """
    A heading with nothing below it looks like a mistake.
    """
    assert render_summary_html(EMPTY, day=DAY).count("<p>—</p>") == 3


def test_the_page_asks_for_calibration():
    """
    By replying to it.
    """
    page = render_summary_html(EMPTY, day=DAY).lower()

    assert "calibrate" in page
    assert "reply" in page


# Sending


class Mail:
    """Microsoft Graph's sendMail."""

    def __init__(self):
        self.status, self.asked = 202, []
        mail = self

        class Answering(Handler):
            def answer(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                mail.asked.append((self.path, self.headers["Authorization"], body))
                self.send_response(mail.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = StubServer(Answering, "/v1.0/me/sendMail")


@pytest.fixture
def mail(monkeypatch):
    mail = Mail()
    assert daily_summary.GRAPH_SENDMAIL_URL == "https://graph.microsoft.com/v1.0/me/sendMail"
    monkeypatch.setattr(daily_summary, "GRAPH_SENDMAIL_URL", mail.server.url)
    yield mail
    mail.server.close()


def send():
    asyncio.run(
        send_summary_email(token="tok", html="<p>hi</p>", subject="Daily summary", to=["b@example.org"])
    )


def test_a_page_is_sent_through_graph(mail):
    """
    As HTML, to whom it was to be sent, with the token.
    """
    send()

    ((path, authorization, body),) = mail.asked
    assert path == "/v1.0/me/sendMail"
    assert GRAPH_SENDMAIL_URL.endswith(path)
    assert authorization == "Bearer tok"
    assert body["message"] == {
        "subject": "Daily summary",
        "body": {"contentType": "HTML", "content": "<p>hi</p>"},
        "toRecipients": [{"emailAddress": {"address": "b@example.org"}}],
    }


def test_401_is_an_expired_token_here_too(mail):
    """
    So that one place handles it.
    """
    mail.status = HTTPStatus.UNAUTHORIZED

    with pytest.raises(TokenExpiredError):
        send()


# Keeping


@pytest.fixture
def folder(entrabot_settings, tmp_path):
    return tmp_path / "data"


def test_the_page_is_kept(folder):
    """
    Under its day, and the key is returned.
    """
    key = archive_summary(day=DAY, html="<p>hi</p>", buckets=EMPTY)

    assert key == "summaries/2026-04-16.html"
    assert (folder / key).read_text() == "<p>hi</p>"


def test_the_numbers_are_kept_beside_it(folder):
    """
    For programs.
    """
    buckets = EMPTY | {"needs_you": [{"summary": "a"}, {"summary": "b"}], "handled": [{"summary": "c"}]}

    archive_summary(day=DAY, html="", buckets=buckets)

    kept = (folder / "summaries" / "2026-04-16.json").read_text()
    counts = {"needs_you": 2, "handled": 1, "heads_up": 0}
    assert kept == json.dumps({"day": DAY, "counts": counts}, indent=2)


# When


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param("2026-04-16T17:00", "2026-04-17T00:00", id="before five"),
        pytest.param("2026-04-17T01:00", "2026-04-18T00:00", id="after five"),
        pytest.param("2026-04-17T00:00", "2026-04-18T00:00", id="at five"),
    ],
)
def test_the_next_one_is_due_at_five_in_the_afternoon_seven_hours_behind_utc(now, due):
    """
    Always later than now, so that none runs twice.
    """
    moment = next_run_at(now=datetime.fromisoformat(now).replace(tzinfo=UTC))

    assert moment == datetime.fromisoformat(due).replace(tzinfo=UTC)


# Beyond


def test_a_question_after_the_answer_needs_you_again():
    """
    Beside the answer to the one before.
    """
    day = [
        inbound("d@example.org", "10:00"),
        outbound("d@example.org", "10:30"),
        inbound("d@example.org", "11:00"),
        inbound("d@example.org", "11:30"),
    ]

    assert sorted_into(day) == EMPTY | {"handled": ["out-10:30"], "needs_you": ["in-11:30"]}


def test_times_are_compared_as_times():
    """
    Noon in Lisbon in April is eleven of UTC, which is before the answer, whatever the digits look like.
    """
    day = [
        outbound("d@example.org", "11:30"),
        inbound("d@example.org", "12:00") | {"ts": "2026-04-16T12:00:00+01:00"},
    ]

    assert sorted_into(day) == EMPTY | {"handled": ["out-11:30"]}


def test_teams_without_a_chat_id_goes_by_the_sender():
    """
    And lines with odd fields do not stop the day.
    """
    day = [
        inbound("Henry", "10:00", channel="teams_dm"),
        inbound("Henry", "10:05", channel="teams_dm", metadata=None),
        {"id": "odd", "direction": "inbound", "sender": 7, "channel": None, "metadata": []},
    ]

    assert sorted_into(day)["needs_you"] == ["in-10:05", "odd"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


@pytest.mark.parametrize("field", ["sender", "summary", "channel", "ts"])
def test_what_was_said_is_never_markup(field):
    """
    Whoever writes to the agent writes into this page.
    """
    evil = "<script>alert(1)</script><img src=x onerror='x'>\"&amp;"
    entry = inbound("d", "10:00") | {field: evil}

    page = render_summary_html(EMPTY | {"needs_you": [entry]}, day="<b>day</b>")

    parser = Tags()
    parser.feed(page)
    assert not {"script", "img", "b"} & set(parser.tags)
    assert "&lt;script&gt;" in page


def test_a_day_that_is_none_is_no_key(folder):
    """
    A page is not written anywhere else.
    """
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        archive_summary(day="../../evil", html="", buckets=EMPTY)


def test_a_whole_day_is_summarized(folder, mail):
    """
    Read, sorted, kept, and sent where there is a token.
    """
    path = folder / "interactions" / f"{DAY}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(inbound("d@example.org", "10:00")) + "\nnot a line\n")

    told = asyncio.run(run_daily_summary(day=DAY))
    sent = asyncio.run(run_daily_summary(day=DAY, token="tok", to=["b@example.org"]))

    assert told == {
        "day": DAY,
        "counts": {"needs_you": 1, "handled": 0, "heads_up": 0},
        "archive": f"summaries/{DAY}.html",
        "sent_to": [],
    }
    assert sent == told | {"sent_to": ["b@example.org"]}
    assert mail.asked[0][2]["message"]["body"]["content"] == (folder / told["archive"]).read_text("utf-8")
