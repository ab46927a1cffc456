"""The parts of the proxy by themselves: splicing, upstreams, credentials, headers, what an answer says."""

import base64
import gzip
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane import Settings
from memplane.adapters.all import all_adapters
from memplane.adapters.proxy.answer import ProviderResponse, UsageReader
from memplane.adapters.proxy.apis import Api, ChatRequest, NotPlain, api_of, items_of, members_of
from memplane.adapters.proxy.credentials import ProxyCredentials
from memplane.adapters.proxy.headers import to_client, to_upstream
from memplane.adapters.proxy.prices import Prices
from memplane.adapters.proxy.upstreams import Upstreams
from memplane.auth.principal import Unauthenticated
from memplane.config import settings_from
from memplane.errors import SettingsInvalid
from memplane.server.app import error_format
from memplane.server.errors import ErrorContext, HttpError
from memplane.telemetry import Charge
from provider_server import chat, chat_stream, message_stream, response_stream

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), max_size=6)
BLANKS = st.sampled_from(["", " ", "\n", "\t ", "  \r\n"])


@st.composite
def spelled(draw, value):
    """JSON as anybody may write it: blanks anywhere, characters escaped or not."""
    if isinstance(value, dict):
        inner = ",".join(
            f"{draw(BLANKS)}{draw(spelled(name))}{draw(BLANKS)}:{draw(BLANKS)}{draw(spelled(item))}{draw(BLANKS)}"
            for name, item in value.items()
        )
        return f"{{{inner or draw(BLANKS)}}}"
    if isinstance(value, list):
        inner = ",".join(f"{draw(BLANKS)}{draw(spelled(item))}{draw(BLANKS)}" for item in value)
        return f"[{inner or draw(BLANKS)}]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def requests(draw):
    api = draw(st.sampled_from(list(Api)))
    name = "input" if api is Api.RESPONSES else "messages"
    body = {
        "model": draw(TEXTS),
        name: draw(MESSAGES),
        "extra": draw(st.floats(allow_nan=False, allow_infinity=False)),
    }
    if api is Api.RESPONSES and draw(st.booleans()):
        body[name] = draw(TEXTS)
    order = draw(st.permutations(list(body)))
    return api, draw(spelled({name: body[name] for name in order})).encode()


@given(requests(), TEXTS, TEXTS)
def test_memory_is_put_in_and_nothing_else_changes(request_, brief, context):
    """
    Taken out again, the client's bytes are left, every one of them and in order; and the result is JSON.
    """
    api, raw = request_
    asked = ChatRequest(api, raw)
    changes = asked.with_memory(brief, context)
    made = asked.effective(changes)

    left, taken_out = made, 0
    for span, new in sorted(changes, key=lambda change: change[0].start):
        assert span.start == span.end
        assert left.startswith(new, span.start)
        left, taken_out = left[: span.start] + left[span.start + len(new) :], taken_out + len(new)
    assert left == raw
    assert len(made) == len(raw) + taken_out
    json.loads(made)


@given(requests())
def test_where_memory_goes(request_):
    """
    The brief before whoever speaks first but the system; what bears on the turn before the user's last words, for
    Anthropic behind them.
    """
    api, raw = request_
    asked = ChatRequest(api, raw)
    made = json.loads(asked.effective(asked.with_memory("BRIEF", "CONTEXT")))
    messages = made["input" if api is Api.RESPONSES else "messages"]
    texts = [json.dumps(one) for one in messages]
    brief = next(at for at, text in enumerate(texts) if '"BRIEF"' in text)
    context = next(at for at, text in enumerate(texts) if '"CONTEXT"' in text)
    others = [one for at, one in enumerate(messages) if at not in {brief, context}]

    assert others == asked.messages
    roles = [one["role"] for one in messages]
    if api is Api.MESSAGES:
        assert brief == 0
        assert "user" not in roles[context + 1 :]
        assert context == len(messages) - 1 or roles[context - 1] == "user"
    else:
        assert all(role in {"system", "developer"} for role in roles[:brief])
        assert context == len(messages) - 1 or (
            roles[context + 1] == "user" and "user" not in roles[context + 2 :]
        )


def test_spans_are_those_of_the_values():
    """
    Whatever stands around them, and with half a character in them.
    """
    raw = b' { "a" : [ 1 , {"b":"\\ud83d"} ,"x" ],\n"c":"\\"}" , "d":{} } '
    spans = members_of(raw)

    assert {name: raw[slice(*span)] for name, span in spans.items()} == {
        "a": b'[ 1 , {"b":"\\ud83d"} ,"x" ]',
        "c": b'"\\"}"',
        "d": b"{}",
    }
    assert [raw[slice(*span)] for span in items_of(raw, spans["a"])] == [b"1", b'{"b":"\\ud83d"}', b'"x"']


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"1", b"{", b'{"a":1,"a":2}', b'{"a":1,"\\u0061":1}', b'{"a":1}x', b'{"a":\xff}']
)
def test_what_two_readers_would_read_differently_is_not_plain(raw):
    """
    No object, or a name that stands twice in it.
    """
    with pytest.raises(NotPlain):
        ChatRequest(Api.CHAT, raw)


@pytest.mark.parametrize(
    ("method", "path", "api"),
    [
        ("POST", "/v1/chat/completions", Api.CHAT),
        ("POST", "/openai/deployments/x/chat/completions", Api.CHAT),
        ("POST", "/v1/responses", Api.RESPONSES),
        ("POST", "/v1/messages", Api.MESSAGES),
        ("GET", "/v1/chat/completions", None),
        ("POST", "/v1/messages/count_tokens", None),
        ("POST", "/v1/completions", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("POST", "/v1/threads/thread_1/messages", None),
    ],
)
def test_which_api_a_path_speaks(method, path, api):
    """
    Only what asks for a turn has memory.
    """
    assert api_of(method, path) is api


# ── upstreams ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "path", "address"),
    [
        ("https://api.openai.com/v1", "/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:11434", "/v1/models", "http://127.0.0.1:11434/v1/models"),
        ("https://x.example/openai/v2/", "/v1/models", "https://x.example/openai/v2/models"),
        ("anthropic+https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("anthropic+https://x.example/v1", "/v1/messages", "https://x.example/v1/messages"),
        ("anthropic+https://x.example/base", "/v1/messages", "https://x.example/base/v1/messages"),
        (
            "azure+https://x.example",
            "/openai/deployments/d/embeddings",
            "https://x.example/openai/deployments/d/embeddings",
        ),
    ],
)
def test_where_a_path_is_upstream(url, path, address):
    """
    OpenAI's base URLs have the version in them and Anthropic's have not.
    """
    upstream = Upstreams(Settings(upstreams=(f"u={url}",))).named("u")

    assert upstream.address(path, "") == address
    assert upstream.address(path, "a=1") == f"{address}?a=1"


@pytest.mark.parametrize(
    "changes",
    [
        {"upstreams": ("vllm",)},
        {"upstreams": ("=http://x",)},
        {"upstreams": ("a/b=http://x",)},
        {"upstreams": ("vllm=ftp://x",)},
        {"upstreams": ("vllm=other+http://x",)},
        {"upstreams": ("vllm=http://user:secret@x",)},
        {"upstream_keys": ("nobody=key",)},
        {"openai_base_url": "api.openai.com"},
        {"openai_api_key": "two\nlines"},
    ],
)
def test_an_upstream_that_could_never_be_asked_is_refused(changes):
    """
    At the start, with words that say what to give, and never with a key in them.
    """
    with pytest.raises(SettingsInvalid) as refused:
        Upstreams(Settings(**changes))

    assert "secret" not in str(refused.value)
    assert "lines" not in str(refused.value)


def test_keys_are_settings_and_never_shown():
    """
    From the environment or a file; `repr` hides them.
    """
    environment = {
        "OPENAI_API_KEY": "sk-one",
        "ANTHROPIC_API_KEY": "sk-two",
        "MEMPLANE_UPSTREAMS": "vllm=http://127.0.0.1:1/v1, b=http://127.0.0.1:2",
        "MEMPLANE_UPSTREAM_KEYS": "vllm=sk-three",
    }
    settings = settings_from(environment)

    assert Upstreams(settings).named("vllm").key == "sk-three"
    for secret in ("sk-one", "sk-two", "sk-three"):
        assert secret not in repr(settings)
        assert secret not in repr(Upstreams(settings).named("vllm"))


# ── credentials and headers ──────────────────────────────────────────────────────────────────────────────────────

KEY = "mp_0123456789abcdef_" + "a" * 43
AGENT = "alice:" + "0" * 48


def token(issuer):
    claims = base64.urlsafe_b64encode(json.dumps({"iss": issuer}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


@pytest.mark.parametrize("ours", [KEY, AGENT, token("helmdeck")])
def test_what_is_ours_is_known_by_its_form(ours):
    """
    Wherever it stands it says who knocks, and it never goes along, though the client has another key beside it.
    """
    credentials = ProxyCredentials(Settings())
    both = {"authorization": "Bearer sk-provider", "x-api-key": ours}
    twice = {"authorization": f"Bearer {ours}", "x-memplane-key": "another"}

    assert credentials.own_credential(both) == ours
    assert credentials.providers(both, authenticated=True) == {"authorization"}
    assert credentials.own_credential(twice) == "another"
    assert credentials.providers(twice, authenticated=True) == frozenset()
    assert credentials.providers({"authorization": f"Bearer {ours}"}, authenticated=False) == frozenset()


def test_a_providers_key_is_the_clients_business():
    """
    With ours in its own header it goes along; alone, it is what we are shown, and it is not taken for anything else.
    """
    credentials = ProxyCredentials(Settings())
    azure = {"authorization": f"Bearer {token('https://login.example')}", "x-memplane-key": KEY}
    gateway = {"authorization": "Bearer two.dots.only", "x-memplane-key": KEY}

    assert credentials.providers(azure, authenticated=True) == {"authorization"}
    assert credentials.providers(gateway, authenticated=True) == {"authorization"}
    assert credentials.own_credential({"authorization": "Bearer sk-provider"}) == "sk-provider"
    assert credentials.providers({"authorization": "Bearer sk-provider"}, authenticated=True) == frozenset()
    assert credentials.providers({"authorization": "Bearer sk-provider"}, authenticated=False) == {
        "authorization"
    }
    with pytest.raises(Unauthenticated):
        credentials.own_credential({})


def test_a_providers_key_alone_opens_nothing_and_is_told_apart():
    """
    Whoever forgot to change the key hears what to change; a key of ours beside it, or an agent's token, is as ever.
    """
    credentials = ProxyCredentials(Settings())

    for place in ({"authorization": "Bearer sk-provider"}, {"x-api-key": "sk-ant-provider"}):
        with pytest.raises(Unauthenticated, match="a provider's key: replace it with a Memplane key"):
            credentials.credential(place)
        assert credentials.credential({**place, "x-memplane-key": KEY}) == KEY
    assert credentials.credential({"authorization": "Bearer sk-agent:secret"}) == "sk-agent:secret"


def test_headers_that_end_here():
    """
    Those of one connection, those it names, ours, and credentials that are not a provider's; also where one came twice.
    """
    sent = [
        (b"host", b"here"),
        (b"connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"1"),
        (b"te", b"trailers"),
        (b"content-length", b"3"),
        (b"cookie", b"session=1"),
        (b"x-memplane-space", b"alice"),
        (b"x-forwarded-for", b"10.0.0.1"),
        (b"authorization", b"Bearer sk-provider"),
        (b"authorization", b"Bearer ours"),
        (b"x-api-key", b"ours"),
        (b"accept-encoding", b"gzip;q=1, br, zstd"),
        (b"openai-beta", b"a"),
        (b"openai-beta", b"b"),
    ]
    went = to_upstream(
        sent, provider_keys=frozenset({"authorization"}), own_key={"authorization": "no"}, readable=True
    )
    back = to_client(
        [(b"Connection", b"close"), (b"Set-Cookie", b"x"), (b"X-RateLimit", b"1"), (b"Date", b"d")]
    )

    assert list(went.items()) == [
        ("authorization", "Bearer sk-provider"),
        ("accept-encoding", "gzip;q=1"),
        ("openai-beta", "a"),
        ("openai-beta", "b"),
    ]
    assert back == [(b"x-ratelimit", b"1")]


@pytest.mark.parametrize(
    ("path", "headers", "shape"),
    [
        (
            "/v1/chat/completions",
            {},
            {"error": {"message": "no", "type": "not_found_error", "param": None, "code": "c"}},
        ),
        (
            "/v1/messages",
            {},
            {"type": "error", "error": {"type": "not_found_error", "message": "no"}, "request_id": "r"},
        ),
        (
            "/v1/models",
            {"anthropic-version": "x"},
            {"type": "error", "error": {"type": "not_found_error", "message": "no"}, "request_id": "r"},
        ),
        ("/v1/usage/summary", {}, {"error": {"code": "c", "message": "no", "request_id": "r"}}),
    ],
)
def test_a_refusal_has_the_providers_shape(plane, path, headers, shape):
    """
    By the path, or by the header that Anthropic's clients send; paths of another door keep that door's.
    """
    context = ErrorContext(request_id="r", path=path, headers=headers)
    format_ = error_format(all_adapters(plane, Settings()), path)
    made = format_.render(HttpError(404, "c", "no"), context)

    assert msgspec.json.decode(made.body) == shape


# ── what an answer says ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "events", [chat_stream("One two"), message_stream("One two"), response_stream("One two")]
)
@given(size=st.integers(1, 400))
def test_the_end_of_a_stream_is_seen_wherever_it_is_cut(events, size):
    """
    The mark is found once, with the piece that completes it; not before, and not because a text speaks of it.
    """
    whole = b"".join(events).replace(b"One two", b"say message_stop or [DONE] or response.completed")
    answer = ProviderResponse(media="text/event-stream", encoding="")
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    marked = [at for at, piece in enumerate(pieces) if answer.add(piece)]

    assert marked
    assert (marked[0] + 1) * size >= whole.index(events[-1][:12])
    assert answer.charge().completion_tokens == 7
    assert not answer.failed()


@given(size=st.integers(1, 200))
def test_what_a_text_says_of_ends_is_no_end(size):
    """
    A mark begins a line. One inside a text is none though a piece, or what is remembered of the last, begins with it; nor
    is a name that a client chose and the provider repeats.
    """
    said = {"choices": [{"delta": {"content": "then comes data: [DONE] and event: error, is it not?"}}]}
    told = {"type": "response.created", "response": {"metadata": {"type": "response.completed"}}}
    whole = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in (said, told, said))
    answer = ProviderResponse(media="text/event-stream", encoding="")

    assert not any(answer.add(whole[at : at + size]) for at in range(0, len(whole), size))
    assert not answer.failed()


def test_numbers_that_only_python_writes_are_no_obstacle():
    """
    Servers in Python answer with NaN and Infinity; the turn is kept, with nothing in their place.
    """
    answer = ProviderResponse(media="application/json", encoding="")
    answer.add(b'{"choices":[{"message":{"content":"Hi"},"p":-Infinity,"q":NaN}]}')

    assert answer.payload().json == b'{"choices":[{"message":{"content":"Hi"},"p":null,"q":null}]}'


def test_usage_of_every_api():
    """
    Prompt, completion and cached tokens under the names each API has for them, and what it cost where that is said.
    """
    streamed = ProviderResponse(media="text/event-stream", encoding="")
    streamed.add(b"".join(message_stream("x")))
    priced = ProviderResponse(media="application/json", encoding="")
    priced.add(b'{"usage":{"prompt_tokens":3,"completion_tokens":4,"cost":0.25}}')
    odd = ProviderResponse(media="application/json", encoding="")
    odd.add(
        b'{"usage":{"prompt_tokens":"many","completion_tokens":-4,"cost":"dear","prompt_tokens_details":7}}'
    )
    whole = ProviderResponse(media="application/json", encoding="")
    whole.add(chat("x"))

    charge = streamed.charge()
    assert (charge.prompt_tokens, charge.completion_tokens, charge.cached_tokens) == (21, 7, 5)
    assert (whole.charge().prompt_tokens, whole.charge().cached_tokens) == (21, 5)
    assert priced.charge().cost_usd == 0.25
    assert (odd.charge().prompt_tokens, odd.charge().completion_tokens, odd.charge().cost_usd) == (0, 0, None)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_tally_reads_usage_wherever_it_is_cut(size, packed):
    """
    Of an answer of any length, and not what a text says of usage.
    """
    said = json.dumps({"choices": [{"message": {"content": '"usage": {"prompt_tokens": 9}' * 500}}]})
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
    raw = said[:-1].encode() + b', "usage": ' + json.dumps(usage, indent=1).encode() + b"}"
    sent = gzip.compress(raw) if packed else raw
    tally = UsageReader(encoding="gzip" if packed else "")
    for at in range(0, len(sent), size):
        tally.add(sent[at : at + size])

    assert tally.charge() == Charge(prompt_tokens=12, completion_tokens=3, cached_tokens=5)


def test_a_tally_gives_up_on_what_it_cannot_read():
    """
    An encoding nobody knows here, no encoding at all where one was said, and a bomb.
    """
    bomb = gzip.compress(b" " * (8 << 20) + b'{"usage":{"prompt_tokens":1}}')
    for encoding, sent in (("br", b"\x00"), ("gzip", b"{}"), ("gzip", bomb)):
        tally = UsageReader(encoding=encoding)
        tally.add(sent)
        tally.add(b'{"usage":{"prompt_tokens":1}}')

        assert tally.charge() == Charge()


def test_prices_go_by_the_longest_name_that_fits():
    """
    Cached tokens cost as much as others unless something else is said.
    """
    prices = Prices(["gpt-4o=2.5/10/1.25", "gpt-*=1/2", "*=0/0"])

    assert prices.of("gpt-4o").of(prompt=1_000_000, completion=100_000, cached=400_000) == 3.0
    assert prices.of("gpt-5-mini").of(prompt=1_000_000, completion=0, cached=9_000_000) == 1.0
    assert prices.of("llama").of(prompt=1, completion=1, cached=0) == 0.0
    assert Prices([]).of("gpt-4o") is None


@pytest.mark.parametrize(
    "text", ["gpt-4o", "gpt-4o=1", "=1/2", "gpt-4o=a/b", "gpt-4o=1/2/3/4", "x=-1/2", "x=nan/1"]
)
def test_a_price_that_is_none_is_refused(text):
    """
    With how to write one.
    """
    with pytest.raises(SettingsInvalid, match=r"gpt-4o=2\.50/10/1\.25"):
        Prices([text])


def test_an_answer_that_cannot_be_read_is_no_fault():
    """
    Packed in a way nobody here knows, broken, or no JSON: it is passed on all the same.
    """
    for encoding, piece in (("br", b"\x0b\x02"), ("gzip", b"no gzip"), ("", b"<html>")):
        answer = ProviderResponse(media="application/json", encoding=encoding)

        assert answer.add(piece) is False
        assert not answer.failed()
        assert answer.charge().prompt_tokens == 0
        assert answer.payload().json is None
