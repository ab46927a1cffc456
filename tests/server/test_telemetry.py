"""What the server tells of itself: readiness, metrics, logs and spans."""

import contextlib
import io
import json
import os
import shutil
import threading

import pytest
import structlog
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from http_server import serving
from memplane import Memplane, Settings
from memplane.adapters.all import all_adapters
from memplane.auth.principal import Right
from memplane.errors import StorageBusy
from memplane.server.endpoint import Adapter, Endpoint
from memplane.server.logs import RequestLog, fault, set_up_logs
from memplane.server.metrics import Metrics
from memplane.server.responses import json_response
from memplane.server.tracing import Tracing


def memory_door():
    """One call that does something with memory."""

    def handle(call):
        space = call.space("alice")
        space.retain("the secret plan", conversation="c1")
        return json_response({"found": len(space.search("plan"))})

    def fail(call):
        raise KeyError("token=ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d")

    def endpoint(path, work):
        return Endpoint(method="GET", path=path, adapter="tool", summary="", handle=work, right=Right.WRITE)

    return Adapter(name="tool", routes=(endpoint("/remember/{who}", handle), endpoint("/fail", fail)))


def test_ready_means_that_one_can_write(server, tmp_path):
    """
    A data directory that cannot be written is a 503 with the code of the error and no path.
    """
    client = server.client(None)
    assert client.get("/readyz").json() == {"ready": True, "problems": [], "degraded": []}


def test_not_ready_when_the_data_directory_is_no_directory(tmp_path):
    """
    503, whoever asks, and nothing about where it is.
    """
    with Memplane.open(tmp_path / "file", embedder=None) as plane, serving(plane) as running:
        shutil.rmtree(tmp_path / "file", ignore_errors=True)
        (tmp_path / "file").write_text("in the way")
        answer = running.client(None).get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "problems": ["storage_unavailable"], "degraded": []}


def test_not_ready_when_the_catalog_is_damaged(tmp_path):
    """
    Without it nobody can be let in.
    """
    (tmp_path / "catalog.db").write_bytes(os.urandom(8_192))
    with Memplane.open(tmp_path, embedder=None) as plane, serving(plane) as running:
        answer = running.client(None).get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["problems"] in (["storage_corrupt"], ["key_mismatch"])


def awaited(look, count):
    """What is told of a request is told when it was answered, so perhaps a moment later."""
    while len(found := look()) < count:
        threading.Event().wait(0.005)
    return found


@pytest.fixture
def told(tmp_path):
    """A server with everything that listens: metrics, spans, logs."""
    metrics, exporter = Metrics(), InMemorySpanExporter()
    tracing = Tracing("http://localhost:1", SimpleSpanProcessor(exporter))

    def listener(event):
        metrics.on_event(event)
        tracing.on_event(event)

    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        set_up_logs("info")
    settings = Settings(metrics_open=True)
    try:
        with Memplane.open(tmp_path / "data", embedder=None, listener=listener) as plane:
            adapters = [*all_adapters(plane, settings, metrics), memory_door()]
            observers = [RequestLog(), metrics, tracing]  # told in the other order
            with serving(plane, settings=settings, adapters=adapters, observers=observers) as running:
                running.spans = lambda count: awaited(exporter.get_finished_spans, count)
                running.log = lambda count: [
                    json.loads(line) for line in awaited(lambda: log.getvalue().splitlines(), count)
                ]
                yield running
    finally:
        tracing.close()
        structlog.reset_defaults()


def test_metrics_count_requests_and_operations(told):
    """
    By template and status, never by a name somebody chose; open, because the setting says so.
    """
    client = told.client()
    client.get("/remember/somebody")
    client.get("/nowhere/somebody")
    client.request("PURGE", "/healthz")
    told.log(3)
    figures = told.client(None).get("/metrics").text

    assert 'memplane_http_requests_total{method="GET",route="/remember/{who}",status="200"} 1.0' in figures
    assert 'memplane_http_requests_total{method="GET",route="(none)",status="404"} 1.0' in figures
    assert 'memplane_http_requests_total{method="OTHER",route="(none)",status="405"} 1.0' in figures
    assert 'memplane_memory_operations_total{operation="retain",status="succeeded"} 1.0' in figures
    assert "somebody" not in figures


def test_metrics_need_a_key_unless_they_are_opened(server):
    """
    Nothing but health and the description is open by itself.
    """
    assert server.client(None).get("/metrics").status_code == 401
    assert server.client().get("/metrics").headers["content-type"].startswith("text/plain")
    limited = server.keys.add("limited", subject="x", adapters={"plane"})
    assert server.client(limited).get("/metrics").status_code == 403


def test_spans_follow_a_request_into_memory(told):
    """
    One for the request, under the caller's own trace, and one for each operation below it; no content in any.
    """
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    told.client().get("/remember/somebody", headers={"traceparent": parent})
    spans = {span.name: span for span in told.spans(3)}

    request = spans["GET /remember/{who}"]
    retained, searched = spans["create_memory retain"], spans["search_memory search"]
    assert format(request.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert {span.parent.span_id for span in (retained, searched)} == {request.context.span_id}
    assert request.attributes["http.response.status_code"] == 200
    assert retained.attributes["gen_ai.operation.name"] == "create_memory"
    assert retained.attributes["gen_ai.memory.store.id"] == "alice"
    assert "secret" not in str([dict(span.attributes) for span in told.spans(3)])


def test_a_fault_is_logged_once_and_without_its_secrets(told):
    """
    The line of the request holds where it happened; a token in a message does not reach it.
    """
    answer = told.client().get("/fail")
    lines = told.log(1)

    assert answer.status_code == 500
    assert [line["event"] for line in lines] == ["request"]
    assert lines[0]["id"] == answer.headers["x-request-id"]
    assert "KeyError" in lines[0]["error"]
    assert "ghp_Ab3d" not in lines[0]["error"]


def test_what_a_door_says_no_to_is_no_fault(told):
    """
    Anybody can be told that nobody can log in here. That is one line, and where it was said does not matter.
    """
    answer = told.client(None).post("/api/v1/auth/login", json={"username": "a", "password": "b"})
    line = told.log(1)[0]

    assert answer.status_code == 503
    assert (line["level"], line["code"]) == ("info", answer.json()["error"])
    assert "error" not in line


def test_an_error_of_ours_needs_no_traceback():
    """
    It says what it is.
    """
    assert fault(StorageBusy("x.db is held")) == "StorageBusy: x.db is held"
