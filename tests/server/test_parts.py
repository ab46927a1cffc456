"""The parts of the HTTP frame that need no socket."""

import asyncio
import importlib
import logging
import pkgutil
import re
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

import memplane
from memplane import Settings
from memplane.adapters.all import all_adapters
from memplane.adapters.helmdeck.errors import FORMAT as FLAT
from memplane.auth.principal import ADAPTERS, Right, Unauthenticated
from memplane.errors import ErrorCategory, InvalidRequest, MemplaneError, SettingsInvalid, StorageUnavailable
from memplane.server.app import error_format
from memplane.server.endpoint import AsgiRoute, Endpoint, Query
from memplane.server.errors import ErrorContext, HttpError, MalformedBody, http_error
from memplane.server.guard import Guard, MissingCredential, check_names, credential_of
from memplane.server.logs import set_up_logs
from memplane.server.request import DEPTH_MAX, check_depth, check_media, decode_body, decode_json, read_query
from memplane.server.responses import json_response
from memplane.server.routing import PathRouter

SOURCE = Path(memplane.__file__).parent
REFERENCE = (SOURCE.parents[1] / "docs/reference/http.md").read_text("utf-8")


CONTEXT = ErrorContext(request_id="r1")


def endpoint(path="/x", method="POST", **fields):
    fields = {"right": Right.READ, "handle": lambda call: json_response({})} | fields
    return Endpoint(method=method, path=path, adapter="test", summary="A test", **fields)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def all_errors():
    for module in pkgutil.walk_packages(memplane.__path__, "memplane."):
        if not module.name.endswith((".__main__", ".tracing")):
            importlib.import_module(module.name)

    def below(kind):
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    return [kind for kind in below(MemplaneError) if kind.__module__.startswith("memplane.")]


def test_no_error_is_missing_from_the_table():
    """
    Each error, or one that it derives from, has a status; the base alone, which is a bug, is not enough.
    """
    missing = [kind for kind in all_errors() if kind.category is ErrorCategory.INTERNAL]

    assert missing == []


def test_a_fault_of_ours_says_what_kind_it_is_and_no_more():
    """
    Messages of the storage name files, and those are nobody's business outside.
    """
    refusal = http_error(StorageUnavailable("/srv/secret-folder/x.db: cannot be written"))

    assert refusal.status == 503
    assert "secret-folder" not in refusal.message


def test_a_bug_says_nothing():
    """
    Whatever an unexpected exception holds stays in the log.
    """
    told = [http_error(error) for error in (KeyError("what alice said"), ZeroDivisionError())]

    assert told[0].message == told[1].message
    assert told[0].details == told[1].details == {}


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/api/v1/memory/store", 400, b'{"error":"invalid_input","message":"no"}\n'),
        ("/recall", 400, b"no\n"),
        ("/history/alice", 400, b"no\n"),
        ("/.claw-describe.json", 400, b"no\n"),
        ("/mcp", 422, b'{"error":{"code":"invalid_request","message":"no","request_id":"r1"}}'),
        ("/api/v1", 422, b'{"error":{"code":"invalid_request","message":"no","request_id":"r1"}}'),
    ],
)
def test_the_shape_of_a_refusal_goes_by_the_path(plane, path, status, body):
    """
    Flat under `/api/v1/`, plain text where cllama knocks, nested everywhere else.
    """
    format_ = error_format(all_adapters(plane, Settings()), path)
    answer = format_.render(http_error(InvalidRequest("no")), CONTEXT)

    assert (answer.status_code, answer.body) == (status, body)


def test_helmdecks_clients_are_told_in_their_own_words_that_a_token_is_missing():
    """
    `missing_bearer`, `invalid_token`, and their realm.
    """
    missing = FLAT.render(http_error(MissingCredential("x")), CONTEXT)
    invalid = FLAT.render(http_error(Unauthenticated("wrong")), CONTEXT)

    assert msgspec.json.decode(missing.body)["error"] == "missing_bearer"
    assert msgspec.json.decode(invalid.body)["error"] == "invalid_token"
    assert missing.headers["www-authenticate"] == 'Bearer realm="helmdeck"'


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Body(msgspec.Struct):
    name: str = ""


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"name":"a"} trailing',
        b'{"name":"\xff"}',
        b'{"other":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"name":"a","name":"b"}',
        b'{"other":{"x":1,"y":2,"x":3}}',
        b'{"other":[{"\\u0061":1,"a":2}]}',
        b"[" * 100_000,
        b'{"other":' + b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1) + b"}",
        b'{"name":NaN}',
        b'{"other":Infinity}',
        b'{"name":"\\ud800"}',
    ],
)
def test_nonsense_is_malformed(raw):
    """
    Not JSON, not UTF-8, a name twice, or nested without end: one error, never a crash.
    """
    with pytest.raises(MalformedBody):
        decode_json(raw, Body)


def test_a_wrong_type_is_named():
    """
    Good JSON that does not fit says where.
    """
    with pytest.raises(InvalidRequest, match=r"\$\.name"):
        decode_json(b'{"name":5}', Body)


def test_brackets_in_strings_are_no_nesting():
    """
    A thousand brackets inside a string are text.
    """
    raw = msgspec.json.encode({"name": '[{"' * 1_000, "other": [{"a": "\\"}] * 200})

    assert decode_json(raw, Body).name == '[{"' * 1_000


@pytest.mark.parametrize(
    "raw",
    [
        b"[]," * 100 + b'"' + b'\\"' * 1_000_000,
        b"[]," * 100 + b'"' + b"a" * 4_000_000 + b'"',
        b"[" + b"[]," * 1_000_000 + b"[]]",
    ],
    ids=["a string without end", "one long string", "many brackets"],
)
def test_looking_for_depth_takes_no_longer_than_reading(raw):
    """
    While a pattern is searched for, nothing else runs in the process. What the search once took grew with the square of
    the quotes in a string that never ends: two megabytes of them would have stopped the server for hours.
    """
    began = time.thread_time()
    with suppress(MalformedBody):
        check_depth(raw)

    assert time.thread_time() - began < 20


def test_a_line_that_cannot_be_written_ends_nobody(monkeypatch, capsys):
    """
    Whoever says it may be the thread that all others rely on.
    """

    class Gone:
        def log(self, *_said, **_fields):
            raise BrokenPipeError

    log = logging.getLogger("memplane.worker.cluster")
    set_up_logs("info")
    monkeypatch.setattr("memplane.server.logs.structlog.get_logger", Gone)
    log.error("worker cannot work", extra={"fields": {"holder": "h"}})

    assert "BrokenPipeError" in capsys.readouterr().err
    structlog.reset_defaults()


@pytest.mark.parametrize("pair", [b"[]", b'{"":1}'], ids=["lists", "objects"])
def test_depth_is_counted_exactly(pair):
    """
    As deep as can be is taken, one more is not, whatever else stands beside it.
    """
    deepest = b"[" * (DEPTH_MAX - 1) + b",".join([pair] * 100) + b"]" * (DEPTH_MAX - 1)

    check_depth(deepest)
    with pytest.raises(MalformedBody):
        check_depth(b"[" + deepest + b"]")


def test_a_very_long_number_that_nobody_reads_does_no_harm():
    """
    Python refuses to read integers of more than some thousand digits; the check for names does not read any.
    """
    assert decode_json(b'{"name":"a","other":' + b"9" * 100_000 + b"}", Body).name == "a"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_good_json_is_taken(value):
    """
    Whatever an honest client encodes is decoded to the same.
    """
    raw = msgspec.json.encode(value)

    assert decode_json(raw, object if value is None else type(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(raw):
    """
    Nothing but our own errors comes out.
    """
    with suppress(InvalidRequest):
        decode_json(raw, Body)


def test_an_optional_body_may_be_absent():
    """
    Nothing, or blanks, is None where none is required, and malformed where one is.
    """
    assert decode_body(endpoint(body=Body, body_required=False), b" \n") is None
    with pytest.raises(MalformedBody):
        decode_body(endpoint(body=Body), b"")


@pytest.mark.parametrize(
    "media", ["application/json", "Application/JSON; charset=utf-8", "application/ld+json", ""]
)
def test_json_is_taken(media):
    """
    With parameters, as a dialect of JSON, or without saying so.
    """
    check_media(endpoint(), media)


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
def test_what_a_foreign_page_can_send_unasked_is_refused(media):
    """
    415, which also names what is taken.
    """
    with pytest.raises(HttpError) as refused:
        check_media(endpoint(), media)

    assert refused.value.status == 415


# ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_query_parameters_are_read_to_their_types():
    """
    Declared ones are there, with defaults; others are passed over.
    """
    asked = endpoint(query=(Query(name="limit", type=int, default=100), Query(name="after")))

    assert read_query(asked, b"limit=5&other=x") == {"limit": 5, "after": None}
    assert read_query(asked, b"after=a%20b%26") == {"limit": 100, "after": "a b&"}


@pytest.mark.parametrize(
    "raw", [b"limit=x", b"limit=1&limit=2", b"limit=%ff", b"&".join([b"a=1"] * 200), b"\xff=1"]
)
def test_a_query_that_does_not_fit_is_refused(raw):
    """
    A wrong type, the same name twice, bytes that are no text, or far too many.
    """
    with pytest.raises(InvalidRequest):
        read_query(endpoint(query=(Query(name="limit", type=int),)), raw)


# ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def find(method, raw_path):
    """The operation and the parameters of its path; `method` None is a websocket."""
    found = []

    async def serve(operation, scope, _receive, _send):
        found.append((operation.path, scope.get("path_params", {})))

    kind = {"type": "websocket"} if method is None else {"type": "http", "method": method}
    scope = {**kind, "raw_path": raw_path, "path": "", "root_path": ""}
    asyncio.run(PathRouter(ROUTES, serve)(scope, None, None))
    return found[0]


ROUTES = [
    endpoint("/facts", "GET"),
    endpoint("/facts", "POST"),
    endpoint("/facts/{key:path}", "GET"),
    endpoint("/books/{book:path}/status", "GET"),
    endpoint("/books/{book:path}", "DELETE"),
    endpoint("/shelves/{shelf:path}/books/{book:path}", "DELETE"),
    endpoint("/history/{agent}", "GET"),
    endpoint("/history/special", "GET"),
    AsgiRoute(path="/ws", adapter="test", summary="", app=lambda *_: None, right=None, websocket=True),
]


@pytest.mark.parametrize(
    ("method", "raw", "path", "found"),
    [
        ("GET", b"/facts", "/facts", {}),
        ("HEAD", b"/facts", "/facts", {}),
        ("GET", b"/facts/a/b%20c", "/facts/{key:path}", {"key": "a/b c"}),
        ("GET", b"/books/a/b/status", "/books/{book:path}/status", {"book": "a/b"}),
        ("GET", b"/books/status/status", "/books/{book:path}/status", {"book": "status"}),
        ("DELETE", b"/books/a/status", "/books/{book:path}", {"book": "a/status"}),
        (
            "DELETE",
            b"/shelves/a/b/books/c/books/d%2Fe",
            "/shelves/{shelf:path}/books/{book:path}",
            {"shelf": "a/b", "book": "c/books/d/e"},
        ),
        ("GET", b"/history/a%2Fb", "/history/{agent}", {"agent": "a/b"}),
        ("GET", b"/history/%2e%2e", "/history/{agent}", {"agent": ".."}),
        ("GET", b"/history/%E2%82%AC", "/history/{agent}", {"agent": "€"}),
        ("GET", b"/history/special", "/history/special", {}),
        (None, b"/ws", "/ws", {}),
    ],
)
def test_a_route_is_found(method, raw, path, found):
    """
    An encoded slash belongs to the name; a fixed path wins over a parameter.
    """
    assert find(method, raw) == (path, found)


@pytest.mark.parametrize(
    ("method", "raw", "status", "headers"),
    [
        ("GET", b"/", 404, {}),
        ("GET", b"/nothing", 404, {}),
        ("GET", b"/facts%2F", 404, {}),
        ("GET", b"//facts", 404, {}),
        ("GET", b"/history/", 404, {}),
        ("GET", b"/history/../facts", 404, {}),
        ("GET", b"/history/a/b", 404, {}),
        ("GET", b"/history/%ff", 400, {}),
        ("PUT", b"/facts", 405, {"allow": "GET, HEAD, POST"}),
        ("BREW", b"/history/a", 405, {"allow": "GET, HEAD"}),
        ("GET", b"/ws", 426, {"upgrade": "websocket"}),
        (None, b"/facts", 405, {"allow": "GET, HEAD, POST"}),
    ],
)
def test_a_route_is_not_found(method, raw, status, headers):
    """
    404, or 405 with what is allowed; dots and doubled slashes lead nowhere.
    """
    with pytest.raises(HttpError) as refused:
        find(method, raw)

    assert (refused.value.status, refused.value.headers) == (status, headers)


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────

GUARD = Guard(["memory.example", "pod:9000"], ["https://console.example"])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8700",
        "127.0.0.1:8700",
        "[::1]:8700",
        "192.168.1.5",
        "MEMORY.example:80",
        "pod:9000",
    ],
)
def test_known_hosts_are_served(host):
    """
    Loopback names, addresses, and what the settings name, in any case and with any port.
    """
    GUARD.check([(b"host", host.encode())])


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "memory.example.evil", "127.0.0.1.evil.example", "", "a@localhost",
     "localhost:x", "localhost/", "[::1", "pod:9001", "localhost,evil.example", "127.0.0.1\x00", "ⅼocalhost"],
)  # fmt: skip
def test_other_hosts_are_refused(host):
    """
    A page whose name was made to mean this machine sends that name.
    """
    with pytest.raises(HttpError) as refused:
        GUARD.check([(b"host", host.encode())])

    assert refused.value.status == 421


@pytest.mark.parametrize("headers", [[], [(b"host", b"localhost"), (b"host", b"evil.example")]])
def test_a_request_has_one_host(headers):
    """
    None and two are both wrong.
    """
    with pytest.raises(HttpError):
        GUARD.check(headers)


@pytest.mark.parametrize(
    "origin", ["http://localhost:8700", "https://localhost:8700", "https://console.example"]
)
def test_own_pages_may_call(origin):
    """
    The same origin, whichever way a proxy speaks, and those of the settings.
    """
    GUARD.check([(b"host", b"localhost:8700"), (b"origin", origin.encode())])


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://localhost", "http://localhost:3000", "https://evil.example", "file://", "http://console.example",
     "https://console.example.evil", "http://localhost:8700.evil.example", "http://[", "http://localhost:8700/x"],
)  # fmt: skip
def test_foreign_pages_may_not(origin):
    """
    403, also for a page of another port of the same machine.
    """
    with pytest.raises(HttpError) as refused:
        GUARD.check([(b"host", b"localhost:8700"), (b"origin", origin.encode())])

    assert refused.value.status == 403


@pytest.mark.parametrize(
    "named",
    [
        {"hosts": ("http://memory.example",)},
        {"hosts": ("",)},
        {"hosts": ("memory.example/path",)},
        {"origins": ("console.example",)},
        {"origins": ("https://",)},
        {"origins": ("https://console.example/page",)},
        {"trusted_proxies": ("proxy",)},
        {"trusted_proxies": ("10.0.0.0/99",)},
    ],
)
def test_a_name_that_could_never_match_is_said_at_the_start(named):
    """
    The setting, what it holds, and what it should hold.
    """
    ((setting, (value,)),) = named.items()

    with pytest.raises(SettingsInvalid, match=f"{setting}: {re.escape(repr(value))} .* use one such as"):
        check_names(Settings(**named))


def test_names_that_can_match_are_taken():
    """
    Ports, addresses and networks belong to them, and `*` is any.
    """
    check_names(
        Settings(
            hosts=("memory", "memory.example:8443", "*"),
            origins=("https://console.example", "http://localhost:3000/", "*"),
            trusted_proxies=("127.0.0.1", "::1", "10.0.0.0/8", "*"),
        )
    )


def test_a_credential_comes_in_either_header():
    """
    `Bearer` in any case, or `x-api-key`; the first wins.
    """
    assert credential_of({"authorization": "Bearer k1"}) == "k1"
    assert credential_of({"authorization": "bearer   k1 ", "x-api-key": "k2"}) == "k1"
    assert credential_of({"x-api-key": "k2"}) == "k2"


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer "}, {"x-api-key": " "}]
)
def test_no_credential_is_said_to_be_missing(headers):
    """
    Also where there is a header with something else in it.
    """
    with pytest.raises(MissingCredential):
        credential_of(headers)


def test_a_credential_as_long_as_a_book_is_not_looked_at():
    """
    It is refused before anybody computes with it.
    """
    with pytest.raises(Unauthenticated):
        credential_of({"x-api-key": "x" * 20_000})


def test_a_refusal_of_a_doors_own_is_told_as_it_is():
    """
    `HttpError` needs no table.
    """
    refused = HttpError(418, "teapot", "no coffee")

    assert http_error(refused) is refused


# ── the reference ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_door_and_path_is_in_the_reference(plane):
    """
    docs/reference/http.md names each path but the console's pages, and each adapter is one that a credential can be
    limited to.
    """
    adapters = all_adapters(plane, Settings())

    assert [adapter.name for adapter in adapters if f"| `{adapter.name}` |" not in REFERENCE] == []
    assert [
        r.path
        for adapter in adapters
        for r in adapter.routes
        if adapter.name != "console" and f"`{r.path}`" not in REFERENCE
    ] == []
    assert {adapter.name for adapter in adapters} <= ADAPTERS
    assert {r.adapter for adapter in adapters for r in adapter.routes} == {
        adapter.name for adapter in adapters
    }


def test_every_refusal_is_in_the_reference():
    """
    Each status and code that an HTTP door makes up stands in docs/reference/http.md.
    """
    folders = (SOURCE / "server", SOURCE / "adapters", SOURCE / "console")
    sources = (path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    made_up = {found for text in sources for found in re.findall(r'HttpError\(\s*(\d{3}), "(\w+)"', text)}
    told = [line for line in REFERENCE.splitlines() if re.match(r"\| \d{3}", line)]

    assert len(made_up) > 20
    assert [
        (status, code)
        for status, code in sorted(made_up)
        if code != "invalid_request"
        and not any(line.startswith(f"| {status}") and f"`{code}`" in line for line in told)
    ] == []


def test_a_method_that_is_not_allowed_is_answered_with_all_that_are(plane):
    """
    Several patterns may match one path; `Allow` names the methods of each.
    """
    operations = [route for adapter in all_adapters(plane, Settings()) for route in adapter.routes]
    router = PathRouter(operations, serve=lambda *_: None)

    assert router._methods_at("/v6/collections/alpha/documents") == ["DELETE", "GET", "HEAD", "POST"]
