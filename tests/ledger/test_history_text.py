"""What is remembered of an entry, for each API and both forms of a response."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.ledger.history_text import SpokenTurn, extract_turns

MEMORY = "--- BEGIN MEMORY (from mem-svc) ---\n[kind=profile]\nlikes tea\n--- END MEMORY ---"
RUNTIME = (
    f"[Runtime context for this invocation. This is not a user instruction.]\n\n{MEMORY}\n\nCurrent time: now"
)
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]}


def turns_of(request=None, reply=None, **more):
    """Role and text of each turn of an entry with this request and JSON reply."""
    entry = {"version": 1, "request_original": request, "response": {"format": "json", "json": reply}, **more}
    return [(turn.role, turn.text) for turn in extract_turns(json.dumps(entry).encode())]


def reply_of(body):
    return [text for role, text in turns_of(None, body) if role == "assistant"]


def streamed(*events, data="data: ", end="\n\n"):
    """The reply in an event stream of these events."""
    lines = [data + (event if isinstance(event, str) else json.dumps(event)) for event in events]
    entry = {"response": {"format": "sse", "text": end.join(lines) + end}}
    return [turn.text for turn in extract_turns(json.dumps(entry).encode())]


def delta(**members):
    return {"choices": [{"index": 0, "delta": members}]}


def chat(*messages):
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


def test_the_last_exchange_is_what_was_said():
    """
    Of the conversation that is sent whole every turn, only the newest user message and the reply count.
    """
    request = chat(("system", "Be brief."), ("user", "One?"), ("assistant", "One."), ("user", "Two?"))

    assert turns_of(request, ANSWER) == [("user", "Two?"), ("assistant", "Hello.")]


def test_the_request_upstream_is_never_read():
    """
    What was recalled into the prompt is not remembered as if it had been said.
    """
    effective = chat(("system", MEMORY), ("user", "secret of the effective request"))

    assert turns_of(chat(("user", "Hi")), ANSWER, request_effective=effective) == [
        ("user", "Hi"),
        ("assistant", "Hello."),
    ]
    assert turns_of(None, None, request_effective=effective) == []


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "unknown", None, 7, ["user"]])
def test_other_roles_are_not_heard(role):
    """
    Instructions and earlier replies are not what the user says.
    """
    assert turns_of(chat((role, "Be brief."))) == []


@pytest.mark.parametrize(
    "context",
    [RUNTIME, f"\n{RUNTIME}", MEMORY, RUNTIME.split("\n", maxsplit=1)[0]],
)
@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: [{"type": "text", "text": text}]])
def test_runtime_context_is_not_user_speech(context, wrap):
    """
    The proxy may speak in the user's name; the user's own last words are found before it.
    """
    request = chat(("user", "My own words"), ("user", wrap(context)))

    assert turns_of(request) == [("user", "My own words")]


def test_runtime_context_beside_speech_in_one_message_is_left_out():
    """
    Only the part that the proxy added is skipped.
    """
    parts = [{"type": "text", "text": RUNTIME}, {"type": "text", "text": "My own words"}]

    assert turns_of(chat(("user", parts))) == [("user", "My own words")]


def test_memory_inside_speech_is_cut_out_of_it():
    """
    Where a memory block stands in the middle of the user's words, the words around it are heard.
    """
    (turn,) = turns_of(chat(("user", f"My own words\n{MEMORY}\nand more")))

    assert turn[1].split() == ["My", "own", "words", "and", "more"]


def test_a_quoted_marker_alone_is_speech():
    """
    A user who asks about the block has not injected one.
    """
    text = "What does --- BEGIN MEMORY (from x) --- mean?"

    assert turns_of(chat(("user", text))) == [("user", text)]


def test_parts_of_a_message_are_joined():
    """
    Text parts of all APIs are read, pictures are not.
    """
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:…"}},
        {"type": "input_text", "text": "a cat"},
        "and a dog",
        {"type": "text", "text": None},
        7,
    ]

    assert turns_of(chat(("user", parts))) == [("user", "Look:\na cat\nand a dog")]


def test_openai_tool_results_follow_the_user():
    """
    Results since the last user message are heard in order, older ones are not.
    """
    request = chat(
        ("user", "Old"),
        ("tool", "old result"),
        ("user", "Weather?"),
        ("assistant", None),
        ("tool", '{"sky":"clear"}'),
        ("tool", [{"type": "text", "text": "wind 3"}]),
        ("function", {"any": ["json", 1]}),
    )

    assert turns_of(request) == [
        ("user", "Weather?"),
        ("tool", '{"sky":"clear"}'),
        ("tool", "wind 3"),
        ("tool", '{"any":["json",1]}'),
    ]


def test_anthropic_tool_results_are_not_the_user():
    """
    A tool result in a message of the user is a tool's, and the user spoke before it.
    """
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "clear"}]}
    request = chat(("user", "Weather?"), ("assistant", [{"type": "tool_use"}]), ("user", [result]))
    interrupted = chat(("user", "Weather?"), ("user", [result, {"type": "text", "text": "Never mind"}]))

    assert turns_of({**request, "system": "Be brief."}) == [("user", "Weather?"), ("tool", "clear")]
    assert turns_of(interrupted) == [("tool", "clear"), ("user", "Never mind")]


def test_responses_input_is_heard():
    """
    OpenAI's responses take a string or items, tool outputs among them.
    """
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "function_call", "name": "sky", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "clear"},
    ]

    assert turns_of({"instructions": "Be brief.", "input": "Hi"}) == [("user", "Hi")]
    assert turns_of({"input": items}) == [("user", "Weather?"), ("tool", "clear")]


def test_chat_completion_reply():
    """
    Content, refusal and tool calls of the first choice are the reply.
    """
    call = {"type": "function", "function": {"name": "sky", "arguments": '{ "at": "Köln", "ids": [1, 2] }'}}
    message = {
        "content": "Let me look.",
        "refusal": None,
        "tool_calls": [call, {"function": {"name": "now"}}],
    }

    assert reply_of({"choices": [{"message": message}, {"message": {"content": "second"}}]}) == [
        'Let me look.\ntool_call sky {"at":"Köln","ids":[1,2]}\ntool_call now {}'
    ]
    assert reply_of({"choices": [{"message": {"content": None, "refusal": "No."}}]}) == ["No."]
    assert reply_of({"choices": [{"text": "plain completion"}]}) == ["plain completion"]


def test_responses_reply():
    """
    Messages and function calls are read, reasoning is not.
    """
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": "hm"},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Hello."}, {"type": "refusal", "refusal": "No."}],
        },
        {"type": "function_call", "name": "sky", "arguments": '{"a": 1}'},
    ]

    assert reply_of({"output": output}) == ['Hello.\nNo.\ntool_call sky {"a":1}']


def test_anthropic_reply():
    """
    Text and tool use are read, thinking is not.
    """
    content = [
        {"type": "thinking", "thinking": "hm", "text": "hm"},
        {"type": "text", "text": "Hello."},
        {"type": "tool_use", "name": "sky", "input": {"at": "Köln"}},
    ]

    assert reply_of({"role": "assistant", "content": content}) == ['Hello.\ntool_call sky {"at":"Köln"}']


def test_chat_completion_stream():
    """
    Deltas of text and of several tool calls are put together, also where the name or an index comes late.
    """
    assert streamed(
        delta(role="assistant", content=""),
        delta(content="Let "),
        delta(content="me\u2028 look."),
        delta(tool_calls=[{"index": 0, "function": {"name": "sky", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"at": '}}]),
        delta(tool_calls=[{"index": 1, "function": {"name": "now"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '"Köln"}'}}]),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"choices": [], "usage": {}},
        "[DONE]",
    ) == ['Let me\u2028 look.\ntool_call sky {"at":"Köln"}\ntool_call now {}']


def test_completion_stream():
    """
    The older completions stream their text without a delta.
    """
    assert streamed({"choices": [{"text": "Hel"}]}, {"choices": [{"text": "lo."}]}) == ["Hello."]


def test_anthropic_stream():
    """
    Blocks are put together by their index, thinking is left out.
    """
    assert streamed(
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo."}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "name": "sky", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"at": "K'},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": 'öln"}'},
        },
        {"type": "content_block_stop", "index": 2},
    ) == ['Hello.\ntool_call sky {"at":"Köln"}']


def test_responses_stream():
    """
    The whole at the end is the reply; where the stream broke off, its pieces are.
    """
    pieces = [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "lo."},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "function_call", "name": "sky", "arguments": '{"a": 1}'},
        },
    ]
    whole = {"output": [{"type": "message", "content": [{"type": "output_text", "text": "The whole."}]}]}

    assert streamed(*pieces) == ['Hello.\ntool_call sky {"a":1}']
    assert streamed(*pieces, {"type": "response.completed", "response": whole}) == ["The whole."]
    assert streamed(*pieces, {"type": "response.completed", "response": {}}) == [
        'Hello.\ntool_call sky {"a":1}'
    ]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n"])
@pytest.mark.parametrize("data", ["data: ", "data:", ": comment\ndata: ", "event: x\ndata: "])
def test_any_spelling_of_an_event_stream_is_read(data, end):
    """
    Line ends, comments, event names and missing empty lines make no difference.
    """
    assert streamed(delta(content="Hel"), delta(content="lo."), "[DONE]", data=data, end=end) == ["Hello."]


def test_one_event_may_span_several_data_lines():
    """
    Lines of one event are joined before they are read.
    """
    stream = 'data: {"choices":[{"delta":\ndata: {"content":"Hello."}}]}\n\n'

    assert extract_turns(json.dumps({"response": {"format": "sse", "text": stream}}).encode()) == [
        SpokenTurn("assistant", "Hello.")
    ]


def test_arguments_that_are_not_json_are_kept_as_text():
    """
    A model may write broken arguments; what it meant is still worth a line.
    """
    message = {"tool_calls": [{"function": {"name": "sky", "arguments": '{"at":\n  Köln'}}]}

    assert reply_of({"choices": [{"message": message}]}) == ['tool_call sky {"at": Köln']


@pytest.mark.parametrize("number", ["1e999", "1" * 400, "-0"])
def test_odd_numbers_and_half_emojis_do_not_cost_the_turn(number):
    """
    Whatever Go lets into the ledger is read, and no text is left that cannot be stored.
    """
    line = (
        rb'{"request_original":{"n":NUMBER,"messages":[{"role":"user","content":"hi \ud83d \ud83d\ude00"}]}}'
    )

    (turn,) = extract_turns(line.replace(b"NUMBER", number.encode()))

    assert turn == SpokenTurn("user", "hi \ufffd 😀")


def test_broken_tool_calls_do_not_cost_the_reply():
    """
    Calls without a function, a name or writable arguments are left out or shortened, the rest is read.
    """
    huge = json.loads("[" * 500 + "]" * 500)
    calls = [
        None,
        {},
        {"function": None},
        {"function": {"name": 7}},
        {"function": {"name": "sky", "arguments": huge}},
    ]

    (reply,) = reply_of({"choices": [{"message": {"content": "Hello.", "tool_calls": calls}}]})
    (stream,) = streamed(delta(content="Hello.", tool_calls=calls[:4]))

    assert reply.startswith("Hello.\ntool_call sky [[[")
    assert stream == "Hello."


def test_nothing_said_is_no_turn():
    """
    Empty texts and error bodies are not remembered.
    """
    assert turns_of(chat(("user", " \n")), {"error": {"message": "overloaded"}}) == []
    assert extract_turns(b"not json") == extract_turns(b"[]") == extract_turns(b"{}") == []
    assert extract_turns(b"[" * 100_000) == []


WORDS = st.sampled_from(
    [
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "user",
        "tool",
        "assistant",
        "tool_result",
        "tool_use",
        "output",
        "message",
        "choices",
        "delta",
        "tool_calls",
        "function",
        "function_call",
        "name",
        "arguments",
        "index",
        "refusal",
        "content_block",
        "content_block_start",
        "content_block_delta",
        "text_delta",
        "partial_json",
        "response",
        "response.completed",
        "response.output_text.delta",
    ]
)
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda shapes: st.lists(shapes, max_size=3) | st.dictionaries(WORDS, shapes, max_size=5),
    max_leaves=25,
)


@settings(deadline=None, max_examples=300)
@given(SHAPES, SHAPES, st.booleans())
def test_no_shape_raises(request, reply, stream):
    """
    Any JSON in the place of a request, a body or an event yields turns with text, or none.
    """
    text = f"data: {json.dumps(reply)}\n\ndata: {json.dumps(request)}\n\n"
    response = {"format": "sse", "text": text} if stream else {"format": "json", "json": reply}

    turns = extract_turns(json.dumps({"request_original": request, "response": response}).encode())

    assert all(turn.role in {"user", "tool", "assistant"} and turn.text.strip() for turn in turns)
    assert all(turn.text.encode() for turn in turns)


@given(st.binary(max_size=100))
def test_no_bytes_raise(raw):
    """
    Bytes that are no entry have nothing to say.
    """
    assert extract_turns(raw) == []
