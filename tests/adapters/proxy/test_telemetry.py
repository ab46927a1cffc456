"""What is told of turns through the proxy: counters, spans, `memory_op` lines; and never a key or a word."""

import contextlib
import io
import json
import threading

import pytest
import structlog
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from http_server import Keys, serving
from memplane import Settings
from memplane.adapters.all import all_adapters
from memplane.server.logs import RequestLog, set_up_logs
from memplane.server.metrics import Metrics
from memplane.server.tracing import Tracing
from memplane.space import Space
from memplane.telemetry import log_event
from provider_server import TOKENS, Provider, too_many, whole

SECRETS = ("sk-of-the-server-0123456789", "key-of-alice", "sk-of-the-client", "is called Rex")


@pytest.fixture
def told(open_plane):
    """Everything that listens, as `memplane serve` wires it."""
    metrics, exporter, events = Metrics(), InMemorySpanExporter(), []
    tracing = Tracing("http://localhost:1", SimpleSpanProcessor(exporter))
    provider, log = Provider(), io.StringIO()

    def listener(event):
        metrics.on_event(event)
        events.append(event)
        log_event(event)

    def passed(turn):
        metrics.on_turn(turn)
        tracing.on_turn(turn)

    settings = Settings(
        openai_base_url=provider.url,
        openai_api_key=SECRETS[0],
        metrics_open=True,
        proxy_prices=("priced-*=2/8/0.5", "text-embedding-3-small=0.02/0"),
        proxy_recall_ms=200,
        data=open_plane().settings.data,
    )
    keys = Keys()
    keys.add("key-of-alice", subject="alice", spaces={"alice"})
    plane = open_plane()
    with contextlib.redirect_stderr(log):
        set_up_logs("debug")
    adapters = all_adapters(plane, settings, metrics, authenticator=keys, listener=listener, passed=passed)
    with serving(
        plane, keys=keys, settings=settings, adapters=adapters, observers=[RequestLog(), metrics, tracing]
    ) as running:
        running.provider, running.events, running.log = provider, events, log
        running.spans = lambda: {span.name: span for span in exporter.get_finished_spans()}
        yield running
    tracing.close()
    provider.close()
    structlog.reset_defaults()


def ask(told, headers=None, **more):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "My dog is called Rex"}], **more}
    return told.client("key-of-alice").post("/v1/chat/completions", json=body, headers=headers)


def figures(told):
    return told.client(None).get("/metrics").text


def test_tokens_turns_and_cost_are_counted(told):
    """
    By upstream and kind, as the provider counts them; a refusal is a turn that was refused.
    """
    ask(told)
    ask(told, stream=True)
    priced = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}}
    told.provider.plan += [whole(json.dumps(priced).encode()), too_many]
    ask(told)
    ask(told)
    found = figures(told)

    assert 'memplane_proxy_turns_total{outcome="ok",upstream="openai"} 3.0' in found
    assert 'memplane_proxy_turns_total{outcome="refused",upstream="openai"} 1.0' in found
    assert f'memplane_proxy_tokens_total{{kind="prompt",upstream="openai"}} {2 * TOKENS[0] + 1}.0' in found
    assert (
        f'memplane_proxy_tokens_total{{kind="completion",upstream="openai"}} {2 * TOKENS[1] + 1}.0' in found
    )
    assert 'memplane_proxy_tokens_total{kind="cached",upstream="openai"} 5.0' in found
    assert 'memplane_proxy_cost_usd_total{upstream="openai"} 0.25' in found
    assert 'route="/v1/chat/completions"' in found


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_counted_with_memory_off_too(told, encoding, stream):
    """
    As they pass by, packed or not; nothing is said to be kept late, since nothing was to be kept.
    """
    headers = {"x-memplane-memory": "off", "accept-encoding": encoding or "identity"}
    answer = ask(told, headers, stream=stream)
    found = figures(told)

    assert answer.status_code == 200
    assert 'memplane_proxy_turns_total{outcome="ok",upstream="openai"} 1.0' in found
    assert f'memplane_proxy_tokens_total{{kind="prompt",upstream="openai"}} {TOKENS[0]}.0' in found
    assert f'memplane_proxy_tokens_total{{kind="completion",upstream="openai"}} {TOKENS[1]}.0' in found
    assert "kept_late_total{" not in found


def test_tokens_of_embeddings_are_counted_and_are_no_turns(told):
    """
    With what they cost by the list of prices.
    """
    usage = b'{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":2000000,"total_tokens":2000000}}'
    told.provider.plan.append(whole(usage))
    body = {"model": "text-embedding-3-small", "input": "Rex"}
    assert told.client("key-of-alice").post("/v1/embeddings", json=body).content == usage
    found = figures(told)

    assert 'memplane_proxy_tokens_total{kind="prompt",upstream="openai"} 2e+06' in found
    assert 'memplane_proxy_cost_usd_total{upstream="openai"} 0.04' in found
    assert "proxy_turns_total{" not in found


def test_a_price_is_for_what_the_provider_does_not_say(told):
    """
    One that is said counts as it is said.
    """
    ask(told, model="priced-2026")
    cost = (TOKENS[0] - 5) * 2.0 + 5 * 0.5 + TOKENS[1] * 8.0
    found = figures(told)

    assert f'memplane_proxy_cost_usd_total{{upstream="openai"}} {cost / 1_000_000}' in found


def test_a_turn_is_a_span_below_its_request(told):
    """
    With the names of OpenTelemetry's conventions, and nothing that was said.
    """
    ask(told)
    while "POST /v1/chat/completions" not in told.spans():
        threading.Event().wait(0.005)
    request, turn = told.spans()["POST /v1/chat/completions"], told.spans()["chat gpt-4o"]

    assert turn.parent.span_id == request.context.span_id
    assert turn.attributes["gen_ai.provider.name"] == "openai"
    assert turn.attributes["gen_ai.usage.input_tokens"] == TOKENS[0]
    assert "Rex" not in str(turn.attributes)


def test_a_recall_that_is_late_is_told_as_such(told, monkeypatch):
    """
    One `memory_op` line as the contract has it, with the model that was asked for.
    """
    ask(told)
    before = len(told.events)  # that one may have been late too
    let_go = threading.Event()

    def hanging(self, *_args, **_options):
        let_go.wait(20)
        raise ZeroDivisionError

    for name in ("recall", "recall_by_words", "brief"):
        monkeypatch.setattr(Space, name, hanging)
    answer = ask(told)
    let_go.set()

    assert answer.status_code == 200
    late = [event for event in told.events[before:] if event.memory_status == "timed_out"]
    assert [(event.memory_op, event.claw_id, event.model, event.memory_service) for event in late] == [
        ("recall", "alice", "gpt-4o", "memplane")
    ]


def test_no_log_holds_a_key_or_a_word(told):
    """
    Good turns, refused ones, and an upstream that cannot be reached, at the level that tells most.
    """
    ask(told)
    own = {"x-memplane-key": "key-of-alice", "authorization": "Bearer sk-of-the-client"}
    told.client(None).post("/v1/chat/completions", json={"model": "m", "messages": []}, headers=own)
    told.provider.plan.append(lambda asked: asked.hang_up())
    assert ask(told).status_code == 502
    told.client("wrong").post("/v1/chat/completions", json={})
    logged = told.log.getvalue() + figures(told) + str(told.events)

    assert "/v1/chat/completions" in logged
    assert [secret for secret in SECRETS if secret in logged] == []
