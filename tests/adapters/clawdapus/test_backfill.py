"""Catching up from a proxy's `/history` by itself, from a real server that misbehaves."""

import pytest

from clawdapus import Cllama, cut_off, entry_line, failing, later, silent
from http_server import serving
from memplane import Settings
from memplane.adapters.clawdapus.backfill import HistoryBackfill


@pytest.fixture
def cllama():
    proxy = Cllama()
    yield proxy
    proxy.close()


@pytest.fixture
def pull(plane, cllama):
    """Runs a backfill to its end and returns what it says; `waits` is how long it would have waited."""

    def run(*agents, waits=None, **changes):
        settings = Settings(
            claw_history_url=changes.pop("url", cllama.url),
            claw_history_token=changes.pop("token", cllama.token),
            claw_history_agent_ids=agents or ("analyst",),
            redact_ledger=changes.pop("redact_ledger", False),
        )
        noted = [] if waits is None else waits
        backfill = HistoryBackfill(
            plane, settings, wait=lambda _stop, seconds: bool(noted.append(seconds)), **changes
        )
        backfill.start()
        backfill._thread.join(240)
        return {progress.agent: progress for progress in backfill._progress}

    return run


def history(count, *, per_second=1):
    return [entry_line(f"turn {number}", at=later(number // per_second)).line for number in range(count)]


def ids(plane, agent="analyst"):
    return [entry.id for entry in plane.space(agent).ledger.entries()]


def test_every_agent_is_caught_up(plane, cllama, pull):
    """
    Each agent's history arrives in its own space and can be searched.
    """
    cllama.histories = {"analyst": history(3), "a b/c": [entry_line("The penguin is in Porto").line]}

    told = pull("analyst", "a b/c", "unknown")

    assert [(told[name].state, told[name].added) for name in told] == [
        ("done", 3),
        ("done", 1),
        ("failed", 0),
    ]
    assert plane.space("a b/c").search("penguin")
    assert plane.space("analyst").search("penguin") == []
    assert "404" in told["unknown"].error


@pytest.mark.parametrize("per_second", [1, 7, 40])
def test_pages_lose_nothing_within_a_second(plane, cllama, pull, per_second):
    """
    The proxy cuts pages within a second and pages by seconds; every entry arrives all the same.
    """
    cllama.histories = {"analyst": history(200, per_second=per_second)}

    told = pull(page_lines=50)

    assert (told["analyst"].state, told["analyst"].added) == ("done", 200)


def test_turns_that_began_early_and_ended_late_arrive(plane, cllama, pull):
    """
    The proxy writes a turn down when it ends, under the time it began: a page must not skip over it.
    """
    lines = history(20)
    cllama.histories = {"analyst": lines[10:] + lines[:10]}

    told = pull(page_lines=5)

    assert told["analyst"].added == 20


def test_running_again_adds_nothing_and_asks_for_the_end_only(plane, cllama, pull):
    """
    Idempotent by entry id; a new start goes on where the last one stopped.
    """
    cllama.histories = {"analyst": [entry_line(f"turn {n}", at=later(n * 60)).line for n in range(100)]}
    pull()
    cllama.asked.clear()
    cllama.histories["analyst"].append(entry_line("one more", at=later(6_000)).line)

    told = pull()

    assert (told["analyst"].added, told["analyst"].state) == (1, "done")
    assert told["analyst"].known < 20
    assert len(ids(plane)) == len(set(ids(plane))) == 101


def test_forgotten_entries_stay_forgotten(plane, cllama, pull):
    """
    A backfill brings nothing back.
    """
    line = entry_line("The penguin is in Porto")
    cllama.histories = {"analyst": [line.line]}
    plane.space("analyst").forget(entries=[line.id])

    told = pull()

    assert (told["analyst"].forgotten, told["analyst"].added) == (1, 0)
    assert plane.space("analyst").search("penguin") == []


def test_trouble_passes(plane, cllama, pull):
    """
    A 500, a hang-up in the middle of a line and a busy proxy are tried again, later each time.
    """
    cllama.histories = {"analyst": history(30)}
    cllama.plan = [failing(500), cut_off, failing(503), cut_off]
    waits = []

    told = pull(waits=waits)

    assert (told["analyst"].state, told["analyst"].added, told["analyst"].rejected) == ("done", 30, 0)
    assert len(waits) == 4


def test_attempts_are_bounded_and_others_have_their_turn(plane, cllama, pull):
    """
    A proxy that never answers well is left alone after a while; the next agent is tried.
    """
    cllama.histories = {"analyst": history(3), "other": history(2)}
    cllama.plan = [failing(500)] * 10
    waits = []

    told = pull("analyst", "other", waits=waits)

    assert [(one.state, one.added) for one in told.values()] == [("failed", 0), ("done", 2)]
    assert len(waits) == 9
    assert "500" in told["analyst"].error


def test_a_wrong_token_is_not_tried_again(cllama, pull):
    """
    403 is for the operator to mend; the token is not in what is said of it.
    """
    cllama.histories = {"analyst": history(3)}
    waits = []

    told = pull(waits=waits, token="not-the-token")

    assert (told["analyst"].state, waits) == ("failed", [])
    assert "403" in told["analyst"].error
    assert "not-the-token" not in repr(told)


def test_one_bad_line_does_not_stop_it(plane, cllama, pull):
    """
    A line that is no entry is counted and passed over.
    """
    lines = history(10)
    lines[3] = b'{"version":1,"ts":"2026-04-03T12:0'
    lines[6] = b'{"version":9,"ts":"2026-04-03T12:00:06Z"}'
    cllama.histories = {"analyst": lines}

    told = pull()

    assert (told["analyst"].state, told["analyst"].added, told["analyst"].rejected) == ("done", 8, 2)


def test_a_slow_proxy_is_given_up(cllama, pull):
    """
    An answer that does not come is a failure like another.
    """
    cllama.histories = {"analyst": history(1)}
    cllama.plan = [silent]

    told = pull(timeout_s=0.2)

    assert (told["analyst"].state, told["analyst"].added) == ("done", 1)


def test_more_than_a_page_within_one_second_does_not_stop_it(plane, cllama, pull):
    """
    The proxy tells a thousand at most and only by seconds: of a second with more, the rest cannot be had. What comes
    after it can.
    """
    cllama.histories = {"analyst": [*history(1_050, per_second=1_050), entry_line("after", at=later(5)).line]}

    told = pull()

    assert (told["analyst"].state, told["analyst"].added) == ("done", 1_001)


def test_a_proxy_that_tells_one_page_for_ever_is_left(plane, cllama, pull):
    """
    It says so rather than ask again without end.
    """
    cllama.histories = {"analyst": history(1_200)}
    cllama.page = lambda _handler: (
        200,
        b"".join(line + b"\n" for line in cllama.histories["analyst"][:1_000]),
    )

    told = pull()

    assert (told["analyst"].state, told["analyst"].added) == ("failed", 1_000)
    assert "repeatedly" in told["analyst"].error


@pytest.mark.parametrize("url", ["ftp://cllama/history", "cllama:8080/history", "http://"])
def test_a_url_that_cannot_be_is_said_and_stops_nobody(pull, url):
    """
    The server starts, and says what is wrong.
    """
    told = pull(url=url)

    assert told["analyst"].state == "failed"
    assert "CLAW_HISTORY_URL" in told["analyst"].error


def test_a_redirect_is_not_followed(cllama, pull):
    """
    It would carry the token to somewhere nobody named.
    """

    def elsewhere(_proxy, handler):
        handler.send_response(302)
        handler.send_header("Location", cllama.url + "/other")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    cllama.histories = {"analyst": history(1), "other": history(1)}
    cllama.plan = [elsewhere]

    assert pull()["analyst"].state == "failed"
    assert len(cllama.asked) == 1


def test_secrets_do_not_reach_the_ledger_where_that_is_asked(plane, cllama, pull):
    """
    A proxy replays its ledger unscrubbed; with `redact_ledger` none of it is kept here.
    """
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    cllama.histories = {"analyst": [entry_line(f"my token is {secret}").line]}

    pull(redact_ledger=True)

    (entry,) = plane.space("analyst").ledger.entries()
    assert secret.encode() not in entry.body


def test_one_process_of_several_does_it(plane, cllama, pull):
    """
    Who comes second leaves it to the first.
    """
    cllama.histories = {"analyst": history(3)}
    cllama.plan = [silent]
    settings = Settings(
        claw_history_url=cllama.url, claw_history_token=cllama.token, claw_history_agent_ids=("analyst",)
    )
    first = HistoryBackfill(plane, settings)
    first.start()
    while not cllama.asked:
        first._thread.join(0.01)

    assert pull()["analyst"].state == "elsewhere"
    assert first.degraded() == ("backfill",)
    cllama.release.set()
    first.close()
    assert pull()["analyst"].state == "done"


def test_ready_says_that_it_is_catching_up(plane, cllama):
    """
    `/readyz` is ready, and has a code for what is not there yet.
    """
    cllama.plan = [silent]
    settings = Settings(
        claw_history_url=cllama.url, claw_history_token=cllama.token, claw_history_agent_ids=("analyst",)
    )
    with serving(plane, settings=settings) as running:
        ready = running.client(None).get("/readyz")
        cllama.release.set()

    assert (ready.status_code, ready.json()["degraded"]) == (200, ["backfill"])


def test_the_server_starts_at_once_and_catches_up_beside(plane, cllama):
    """
    A proxy that hangs keeps neither the start nor the end of the server waiting for long.
    """
    cllama.plan = [silent]
    settings = Settings(
        claw_history_url=cllama.url, claw_history_token=cllama.token, claw_history_agent_ids=("analyst",)
    )
    with serving(plane, settings=settings) as running:
        assert running.client().get("/health").status_code == 200
        cllama.release.set()
