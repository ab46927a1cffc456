"""What the frame counts of requests, and what it tells of quotas, over real sockets."""

import msgspec
import pytest

from http_server import serving
from memplane.adapters.claiv.errors import FORMAT
from memplane.auth.limits import QuotaResource
from memplane.auth.principal import Right
from memplane.errors import NotFound
from memplane.server.endpoint import Adapter, Endpoint
from memplane.server.responses import json_response


class Said(msgspec.Struct):
    """A body."""

    text: str


def ingest(call):
    with call.using(QuotaResource.INGEST):
        call.space("alice").retain(call.body.text)
    call.spent.tokens += 1_200
    return json_response({"ok": True})


def recall(call):
    with call.using(QuotaResource.RECALL):
        return json_response({"ok": True})


def missing(call):
    with call.using(QuotaResource.INGEST):
        raise NotFound("document", call.path_params["id"])


def endpoint(method, path, handle, **fields):
    return Endpoint(
        method=method,
        path=path,
        adapter="v6",
        summary="",
        **{"right": Right.READ, "handle": handle, **fields},
    )


ADAPTER = Adapter(
    name="v6",
    paths=("/v6/",),
    errors=FORMAT,
    routes=(
        endpoint("POST", "/v6/test/ingest", ingest, body=Said, right=Right.WRITE),
        endpoint("POST", "/v6/test/recall", recall),
        endpoint("GET", "/v6/test/documents/{id}", missing),
        endpoint("GET", "/v6/test/open", lambda _: json_response({}), right=None),
    ),
)


@pytest.fixture
def serve(open_plane):
    def serve_(**settings):
        return serving(open_plane(**settings), adapters=[ADAPTER])

    return serve_


def test_requests_are_counted_by_template(serve):
    """
    With their bytes, errors, events and tokens, for the tenant of the credential; who was not let in is nobody.
    """
    with serve() as server:
        server.keys.add("other", subject="o", tenant="other")
        client, other = server.client(), server.client("other")
        answers = [client.post("/v6/test/ingest", json={"text": "hello"}) for _ in range(2)]
        answers += [client.post("/v6/test/ingest", json={"wrong": 1})]
        answers += [client.get("/v6/test/documents/a-secret-name"), client.get("/v6/nothing/here")]
        other.post("/v6/test/recall")
        server.client("wrong").post("/v6/test/recall")
        server.client(None).get("/v6/test/open")
        whole = server.plane.usage.summary("default", "today").totals
        found = {one.endpoint: one for one in server.plane.usage.breakdown("default").endpoints}
        others = server.plane.usage.breakdown("other").endpoints

    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert {name: (one.requests, one.errors) for name, one in found.items()} == {
        "POST /v6/test/ingest": (3, 1),
        "GET /v6/test/documents/{id}": (1, 1),
    }
    assert all(one.avg_latency_ms > 0 for one in found.values())
    assert (whole.ingest_events, whole.tokens, whole.work_units) == (2, 2_400, 4)
    assert whole.request_bytes == sum(len(answer.request.content) for answer in answers[:4])
    assert whole.response_bytes == sum(len(answer.content) for answer in answers[:4])
    assert [one.endpoint for one in others] == ["POST /v6/test/recall"]


def quota_headers(answer):
    return {name: value for name, value in answer.headers.items() if name.startswith("x-quota")}


def test_a_quota_is_told_and_kept(serve):
    """
    From eighty percent on with every answer, refusals as well; then 429 with everything a program needs.
    """
    with serve(quota_ingest_events=5, plan="free") as server:
        client = server.client()
        answers = [client.post("/v6/test/ingest", json={"text": "hello"}) for _ in range(6)]
        answers += [client.post("/v6/test/recall"), client.get("/v6/test/documents/d")]
        other = server.keys.add("other", subject="o", tenant="other")
        unwarned = server.client(other).post("/v6/test/recall")

    reset = "2026-12-01T00:00:00Z"
    assert [answer.status_code for answer in answers] == [200] * 5 + [429, 200, 429]
    assert [quota_headers(answer).get("x-quota-ingests-pct") for answer in answers] == [
        None,
        None,
        None,
        "80",
        "100",
        "100",
        "100",
        "100",
    ]
    assert quota_headers(answers[3]) == {
        "x-quota-warning": "approaching_limit",
        "x-quota-ingests-pct": "80",
        "x-quota-reset-date": reset,
    }
    error = answers[5].json()["error"]
    assert error["code"] == "quota_exceeded"
    assert error["details"] == {
        "plan": "free",
        "reset_date": reset,
        "usage": {"ingest_events": 5, "limit": 5},
    }
    assert quota_headers(unwarned) == {}


def test_a_rate_says_how_long_to_wait(serve, clock):
    """
    In the envelope and in the header.
    """
    with serve(recall_per_minute=1) as server:
        client = server.client()
        answers = [client.post("/v6/test/recall") for _ in range(2)]
        clock.advance(seconds=60)
        answers.append(client.post("/v6/test/recall"))

    assert [answer.status_code for answer in answers] == [200, 429, 200]
    error = answers[1].json()["error"]
    assert (error["code"], error["details"]) == ("rate_limited", {"retry_after": 60})
    assert answers[1].headers["retry-after"] == "60"


def test_what_failed_costs_no_quota(serve):
    """
    A refused ingest is no event.
    """
    with serve(quota_ingest_events=1) as server:
        client = server.client()
        assert client.get("/v6/test/documents/d").status_code == 404

        assert client.post("/v6/test/ingest", json={"text": "hello"}).status_code == 200
        assert client.post("/v6/test/ingest", json={"text": "hello"}).status_code == 429
