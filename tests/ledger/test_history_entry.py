"""Writing entries. `GO_LINES` were written by a real Go from the same values (1.19 and 1.27 agree)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.clock import parse_instant
from memplane.ledger.gojson import NotJson
from memplane.ledger.history import (
    Payload,
    TokenUsage,
    ToolCall,
    ToolRound,
    compose_line,
    entry_id,
    parse_line,
)

NO_MODEL = {"claw_id": "", "path": "", "requested_model": "", "effective_provider": "", "effective_model": ""}
CHAT = {
    "claw_id": "analyst",
    "path": "/v1/chat/completions",
    "requested_model": "openai/gpt-4o",
    "effective_provider": "openai",
    "effective_model": "gpt-4o",
}
GO_USAGE = TokenUsage(prompt_tokens=1, completion_tokens=2, reported_cost_usd=1e-07, total_rounds=2)

GO_LINES = [
    (
        {
            **CHAT,
            "at": "2026-11-15T06:28:17Z",
            "request_original": (
                b'{ "model": "openai/gpt-4o", "temperature": 0.70, "messages": [\n'
                b'  {"role": "user", "content": "Is 1 < 2 && 2 > 1?"}\n] }'
            ),
            "request_effective": {
                "model": "gpt-4o",
                "temperature": 0.7,
                "messages": [{"role": "user", "content": "Is 1 < 2 && 2 > 1?"}],
            },
            "response": Payload(
                json=(
                    '{"id": "chatcmpl-1", "choices": [{"index": 0, "message": '
                    '{"role": "assistant", "content": "Yes\\u2026 \\/ ✓"}}]}'
                ).encode()
            ),
            "usage": TokenUsage(prompt_tokens=10, completion_tokens=5, reported_cost_usd=7.5e-05),
        },
        (
            r'{"version":1,"id":"hist1_028af8439ab36a96e1beff7e2fb69c2c85b9d3e9b722d3a4e7b3dcd7928319b4",'
            r'"ts":"2026-11-15T06:28:17Z","claw_id":"analyst","path":"/v1/chat/completions",'
            r'"requested_model":"openai/gpt-4o","effective_provider":"openai","effective_model":"gpt-4o",'
            r'"status_code":200,"stream":false,"request_original":{"model":"openai/gpt-4o","temperature":0.70,'
            r'"messages":[{"role":"user","content":"Is 1 \u003c 2 \u0026\u0026 2 \u003e 1?"}]},"request_effective":'
            r'{"messages":[{"content":"Is 1 \u003c 2 \u0026\u0026 2 \u003e 1?","role":"user"}],"model":"gpt-4o",'
            r'"temperature":0.7},"response":{"format":"json","json":{"id":"chatcmpl-1","choices":[{"index":0,'
            r'"message":{"role":"assistant","content":"Yes\u2026 \/ ✓"}}]}},"usage":{"prompt_tokens":10,'
            r'"completion_tokens":5,"reported_cost_usd":0.000075}}'
        ),
    ),
    (
        {
            "at": "2026-04-03T12:00:00Z",
            "claw_id": "crew-0",
            "path": "/v1/messages",
            "requested_model": "anthropic/claude",
            "effective_provider": "anthropic",
            "effective_model": "claude",
            "stream": True,
            "request_original": {"messages": [{"role": "user", "content": "Grüße 😀"}], "stream": True},
            "response": Payload(
                text=(
                    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
                    '{"type":"text_delta","text":"<hi> & \u2028bye"}}\n\n'
                )
            ),
        },
        (
            r'{"version":1,"id":"hist1_5fb283df8eb0d166ca612c4426de57c485c5ef4b88502e9b0b301a5a0b1ab00e",'
            r'"ts":"2026-04-03T12:00:00Z","claw_id":"crew-0","path":"/v1/messages",'
            r'"requested_model":"anthropic/claude","effective_provider":"anthropic","effective_model":"claude",'
            r'"status_code":200,"stream":true,"request_original":{"messages":[{"role":"user",'
            r'"content":"Grüße 😀"}],"stream":true},"response":{"format":"sse","text":"event: content_block_delta\n'
            r"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
            r'\"text\":\"\u003chi\u003e \u0026 \u2028bye\"}}\n\n"},"usage":{}}'
        ),
    ),
    (
        {
            **CHAT,
            "at": "2026-11-15T23:59:59Z",
            "requested_model": "m",
            "effective_provider": "p",
            "effective_model": "m",
            "status": "ok",
            "request_original": b'{"messages":[]}',
            "request_effective": b'{"messages":[]}',
            "response": Payload(json={"choices": []}),
            "usage": GO_USAGE,
            "tool_trace": [
                ToolRound(
                    round=1,
                    wall_time_ms=12,
                    prompt_tokens=9,
                    tool_calls=(
                        ToolCall(
                            name="svc.tool",
                            arguments=b'{ "q": "a&b", "id": "inner" }',
                            result=b"[1.0, 1e2]",
                            latency_ms=3,
                            service="svc",
                            status="ok",
                            status_code=200,
                            duplicate=True,
                            duplicate_of_round=1,
                            duplicate_count=1,
                            duplicate_streak=1,
                        ),
                    ),
                    round_usage=GO_USAGE,
                ),
                ToolRound(round=2),
            ],
        },
        (
            r'{"version":1,"id":"hist1_80922c913fd2753b335fba91139b03f5cf4ebaa1f0f33ffd37eb80dd26079c8c",'
            r'"status":"ok","ts":"2026-11-15T23:59:59Z","claw_id":"analyst","path":"/v1/chat/completions",'
            r'"requested_model":"m","effective_provider":"p","effective_model":"m","status_code":200,"stream":false,'
            r'"request_original":{"messages":[]},"request_effective":{"messages":[]},"response":{"format":"json",'
            r'"json":{"choices":[]}},"usage":{"prompt_tokens":1,"completion_tokens":2,"reported_cost_usd":1e-7,'
            r'"total_rounds":2},"tool_trace":[{"round":1,"wall_time_ms":12,"prompt_tokens":9,"tool_calls":['
            r'{"name":"svc.tool","arguments":{"q":"a\u0026b","id":"inner"},"result":[1.0,1e2],"latency_ms":3,'
            r'"service":"svc","status":"ok","status_code":200,"duplicate":true,"duplicate_of_round":1,'
            r'"duplicate_count":1,"duplicate_streak":1}],"round_usage":{"prompt_tokens":1,"completion_tokens":2,'
            r'"reported_cost_usd":1e-7,"total_rounds":2}},{"round":2,"round_usage":{}}]}'
        ),
    ),
    (
        {**NO_MODEL, "at": "2026-01-01T00:00:00Z", "status_code": 0, "response": Payload()},
        (
            r'{"version":1,"id":"hist1_8f732461c2307549ace1ef26b1ba11c270785d0397fabf3aa6c6bf8376e17360",'
            r'"ts":"2026-01-01T00:00:00Z","claw_id":"","path":"","requested_model":"","effective_provider":"",'
            r'"effective_model":"","status_code":0,"stream":false,"response":{"format":"sse"},"usage":{}}'
        ),
    ),
    (
        {
            **NO_MODEL,
            "at": "2026-01-01T00:00:00.9Z",
            "claw_id": 'tab\tquote"back\\slash\x01\x7f<&>\u2029',
            "status": "error",
            "status_code": 502,
            "request_original": rb'{"id":"hist1_nested","s":"\ud83d"}',
            "response": Payload(json=b"null"),
            "usage": TokenUsage(reported_cost_usd=0),
        },
        r'{"version":1,"id":"hist1_5fcbef37e4033a53177006a3bcdb48c9cb784a39d4f216d062823d54b8700d04",'
        r'"status":"error","ts":"2026-01-01T00:00:00Z",'
        r'"claw_id":"tab\tquote\"back\\slash\u0001' + "\x7f" + r'\u003c\u0026\u003e\u2029","path":"",'
        r'"requested_model":"","effective_provider":"","effective_model":"","status_code":502,"stream":false,'
        r'"request_original":{"id":"hist1_nested","s":"\ud83d"},"response":{"format":"json","json":null},'
        r'"usage":{"reported_cost_usd":0}}',
    ),
]


JSON_OBJECTS = st.dictionaries(
    st.text(max_size=5) | st.just("id"),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda values: (
            st.lists(values, max_size=3)
            | st.dictionaries(st.just("id") | st.text(max_size=3), values, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)
ENTRIES = st.fixed_dictionaries(
    {
        "at": st.integers(-(10**15), 10**17),
        "claw_id": st.text(max_size=8),
        "path": st.text(max_size=8),
        "requested_model": st.text(max_size=8),
        "effective_provider": st.text(max_size=8),
        "effective_model": st.text(max_size=8),
        "status_code": st.integers(0, 599),
        "stream": st.booleans(),
        "request_original": st.none() | JSON_OBJECTS,
        "request_effective": st.none() | JSON_OBJECTS,
        "response": st.builds(Payload, json=st.none() | JSON_OBJECTS, text=st.text(max_size=20)),
        "usage": st.builds(
            TokenUsage,
            prompt_tokens=st.integers(0, 9),
            reported_cost_usd=st.none() | st.floats(0, 1e30),
            total_rounds=st.integers(0, 2),
        ),
        "tool_trace": st.lists(
            st.builds(
                ToolRound,
                round=st.integers(0, 3),
                tool_calls=st.tuples(
                    st.builds(ToolCall, name=st.text(max_size=5), arguments=st.none() | JSON_OBJECTS)
                ),
            ),
            max_size=2,
        ),
        "status": st.sampled_from(["", "ok", "error"]),
    }
)


@pytest.mark.parametrize(("values", "line"), GO_LINES)
def test_a_composed_line_is_the_one_go_writes(values, line):
    """
    Key order, omitted members, spelling and id are those of a real Go program, to the byte.
    """
    composed = compose_line(**{**values, "at": parse_instant(values["at"], field="at")})

    assert composed.line == line.encode()
    assert composed.id == line[19:89]


@settings(deadline=None)
@given(ENTRIES)
def test_a_composed_line_proves_its_id(values):
    """
    Every composed line is a valid entry that comes back as it was made.
    """
    composed = compose_line(**values)

    assert entry_id(composed.line) == composed.id
    assert parse_line(composed.line) == composed


@settings(deadline=None)
@given(JSON_OBJECTS, JSON_OBJECTS, st.sampled_from([None, 1, "\t"]))
def test_layout_of_raw_members_does_not_change_the_id(request, reply, indent):
    """
    The same tokens with other whitespace are the same entry.
    """
    dense, spread = (
        compose_line(
            **CHAT,
            at=0,
            request_original=f" {json.dumps(request, **layout)}\n".encode(),
            response=Payload(json=json.dumps(reply, **layout).encode()),
        )
        for layout in ({"separators": (",", ":")}, {"indent": indent})
    )

    assert spread == dense


def test_a_value_and_its_text_are_the_same_entry():
    """
    A member may be given as a value or as JSON text.
    """
    as_value = compose_line(**CHAT, at=0, request_original={"n": 1}, response=Payload(json={"a": [1, "<"]}))
    as_text = compose_line(
        **CHAT, at=0, request_original=b'{"n": 1}', response=Payload(json=b'{"a": [1, "<"]}')
    )

    assert as_value == as_text


def test_only_the_effective_request_is_sorted():
    """
    The agent's own request keeps the order in which it came.
    """
    request = {"b": 1, "a": {"d": 1, "c": 2}}
    line = compose_line(
        **CHAT, at=0, request_original=request, request_effective=request, response=Payload()
    ).line

    assert b'"request_original":{"b":1,"a":{"d":1,"c":2}}' in line
    assert b'"request_effective":{"a":{"c":2,"d":1},"b":1}' in line


def test_absent_and_empty_raw_members_are_omitted_but_null_is_written():
    """
    As in Go, a raw message of no bytes is left out and one that says null is not.
    """
    line = compose_line(
        **CHAT, at=0, request_original=b"", request_effective=b"null", response=Payload()
    ).line

    assert b"request_original" not in line
    assert b'"request_effective":null' in line


def test_a_raw_member_that_is_not_json_is_refused():
    """
    No broken line is ever written.
    """
    with pytest.raises(NotJson):
        compose_line(**CHAT, at=0, request_original=b'{"a":', response=Payload())


def test_time_is_kept_in_whole_seconds():
    """
    The format has no fractions, so the instant returned has none either, before 1970 too.
    """
    composed = compose_line(**CHAT, at=-1, response=Payload())

    assert b'"ts":"1969-12-31T23:59:59Z"' in composed.line
    assert composed.at == -1_000_000
