"""The OpenAI-compatible embedder, against a real server that behaves badly."""

import base64
import json
import logging
import struct

import numpy as np
import pytest

from memplane.errors import SettingsInvalid
from memplane.models.embedding import EmbeddingFailed, EmbeddingUnavailable
from memplane.models.embedding_openai import EmbeddingEndpoint, OpenAIEmbedder
from stub_server import Handler, StubServer

KEY = "key-that-nobody-may-see"
DIMENSION = 4


class Server(StubServer):
    """Answers with what `plan` says, one step a request; then as a good endpoint does."""

    def __init__(self):
        self.plan = []
        self.requests = []
        self.waits = []
        server = self

        class Answering(Handler):
            def answer(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, dict(self.headers), body))
                step = server.plan.pop(0) if server.plan else good
                try:
                    status, headers, answer = step(server, body)
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

        super().__init__(Answering, "/v1")

    def embedder(self, **changes):
        settings = {"model": "m", "dimension": DIMENSION, "url": self.url, "key": KEY, "timeout_s": 60.0}
        return OpenAIEmbedder(EmbeddingEndpoint(**(settings | changes)), sleep=self.waits.append)


def vector_of(text):
    return [float(len(text)), 1.0, 2.0, 3.0]


def good(server, body):
    items = [{"index": n, "embedding": vector_of(text)} for n, text in enumerate(body["input"])]
    return 200, {}, {"object": "list", "data": items[::-1]}


def status(code, **headers):
    return lambda server, body: (code, {k.replace("_", "-"): v for k, v in headers.items()}, {"error": KEY})


def says(answer):
    return lambda server, body: (200, {}, answer)


def hangs(server, body):
    server.release.wait(120)
    return good(server, body)


def hangs_up(server, body):
    raise ConnectionAbortedError


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def unit(text):
    vector = np.array(vector_of(text), np.float32)
    return vector / np.linalg.norm(vector)


def test_texts_come_back_in_order_and_normalised(server):
    """
    Rows of length one in the order asked, though the endpoint sends them in another; batches are invisible.
    """
    texts = ["a" * n for n in range(1, 8)]

    vectors = server.embedder(batch_texts_max=3).embed_texts(texts)

    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert [len(body["input"]) for _, _, body in server.requests] == [3, 3, 1]


def test_what_is_asked(server):
    """
    The path, the key, the model, and the number of dimensions where it is wanted.
    """
    server.embedder(send_dimension=True, query_prefix="query: ").embed_query("x")
    server.embedder(key=None).embed_texts(["x"])

    (path, headers, body), (_, without_key, plain) = server.requests
    assert (path, headers["Authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")
    assert body == {"model": "m", "input": ["query: x"], "encoding_format": "float", "dimensions": DIMENSION}
    assert "Authorization" not in without_key
    assert "dimensions" not in plain


def test_no_texts_ask_nothing(server):
    """
    An empty batch has no rows and costs no request.
    """
    assert server.embedder().embed_texts([]).shape == (0, DIMENSION)
    assert server.requests == []


@pytest.mark.parametrize("text", ["", "half \ud83d a pair", "我喜欢猫", "x" * 100_000])
def test_any_string_can_be_sent(server, text):
    """
    Nothing is sent that an endpoint would refuse: no empty input, no broken surrogate, nothing beyond its window.
    """
    assert server.embedder().embed_texts([text]).shape == (1, DIMENSION)
    (sent,) = server.requests[0][2]["input"]
    assert 0 < len(sent) <= 24_000


@pytest.mark.parametrize(
    ("step", "waited"),
    [
        (status(429, Retry_After="7"), 7),
        (status(503, Retry_After="99999"), 30),
        (status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), 0),
    ],
)
def test_it_waits_as_long_as_it_is_told(server, step, waited):
    """
    Retry-After is obeyed, as seconds or as a date, up to half a minute.
    """
    server.plan = [step]

    assert np.allclose(server.embedder().embed_texts(["abc"])[0], unit("abc"), atol=1e-6)
    assert server.waits == [waited]


@pytest.mark.parametrize("step", [status(500), status(502), status(429, Retry_After="soon"), hangs_up])
def test_it_tries_again_with_longer_and_longer_waits(server, step):
    """
    What may pass is tried again, each wait about twice the last.
    """
    server.plan = [step, step]

    assert server.embedder().embed_texts(["abc"]).shape == (1, DIMENSION)
    assert len(server.requests) == 3
    assert 0.25 <= server.waits[0] <= 0.5 <= server.waits[1] <= 1.0


def test_it_gives_up(server):
    """
    After the last attempt the error says that it may pass, and nothing more is sent.
    """
    server.plan = [status(500)] * 9

    with pytest.raises(EmbeddingUnavailable, match="answered 500; 3 attempts") as caught:
        server.embedder(attempts_max=3).embed_texts(["abc"])
    assert caught.value.retryable
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 404])
def test_it_does_not_insist(server, code):
    """
    What will not pass is not tried again.
    """
    server.plan = [status(code)]

    with pytest.raises(EmbeddingFailed, match=f"answered {code}") as caught:
        server.embedder().embed_texts(["abc"])
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server):
    """
    The key goes where the settings say and nowhere else.
    """
    server.plan = [status(307, Location="/elsewhere")]

    with pytest.raises(EmbeddingFailed, match="answered 307"):
        server.embedder().embed_texts(["abc"])
    assert [path for path, _, _ in server.requests] == ["/v1/embeddings"]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"{", "not an embedding answer"),
        (b"\xff\xfe", "not an embedding answer"),
        ({"data": "none"}, "not an embedding answer"),
        ({"data": [{"embedding": [None, 1, 2, 3]}]}, "not an embedding answer"),
        ({"data": []}, "asked for 1 vectors"),
        ({"data": [{"index": 5, "embedding": [1, 2, 3, 4]}]}, "asked for 1 vectors"),
        ({"data": [{"embedding": [1, 2, 3]}]}, "vectors of 3 numbers where the settings say 4"),
        ({"data": [{"embedding": "%%%"}]}, "neither a list"),
        (
            {"data": [{"embedding": base64.b64encode(struct.pack("<4f", *[float("nan")] * 4)).decode()}]},
            "other than",
        ),
    ],
)
def test_a_wrong_answer_is_refused(server, answer, complaint):
    """
    Bad JSON, the wrong number of vectors, the wrong dimension and what is no number are errors, never vectors.
    """
    server.plan = [says(answer)]

    with pytest.raises(EmbeddingFailed, match=complaint):
        server.embedder().embed_texts(["abc"])


def test_base64_is_understood(server):
    """
    Some endpoints send packed numbers although they were asked for a list.
    """
    packed = base64.b64encode(struct.pack("<4f", 0, 3, 0, 4)).decode()
    server.plan = [says({"data": [{"embedding": packed}]})]

    assert server.embedder().embed_texts(["abc"])[0] == pytest.approx([0, 0.6, 0, 0.8])


def test_a_silent_endpoint_is_left(server):
    """
    An attempt ends with its timeout, and the whole call soon after the last.
    """
    server.plan = [hangs, hangs]

    with pytest.raises(EmbeddingUnavailable, match=r"TimeoutError.*2 attempts"):
        server.embedder(timeout_s=0.2, attempts_max=2).embed_texts(["abc"])


def test_nobody_listens():
    """
    An address where nothing answers is an error that may pass.
    """
    embedder = OpenAIEmbedder(
        EmbeddingEndpoint(model="m", dimension=4, url="http://127.0.0.1:1/v1", attempts_max=1)
    )

    with pytest.raises(EmbeddingUnavailable, match="cannot be reached: ConnectionRefusedError"):
        embedder.embed_query("x")


def test_the_key_is_never_shown(server, caplog):
    """
    No log line, error or representation holds the key, nor what the endpoint says, which may quote it.
    """
    caplog.set_level(logging.DEBUG)
    server.plan = [status(401)]
    embedder = server.embedder(url=server.url.replace("://", f"://user:{KEY}@") + f"?key={KEY}")
    with pytest.raises(EmbeddingFailed) as caught:
        server.embedder().embed_texts(["abc"])
    shown = [str(caught.value), repr(caught.value), str(caught.value.__cause__), caplog.text]
    shown += [repr(embedder._endpoint), str(embedder._endpoint), embedder.model_id, repr(embedder)]

    assert not [text for text in shown if KEY in text]


@pytest.mark.parametrize("changes", [{"url": "file:///etc/passwd"}, {"dimension": 0}, {"attempts_max": 0}])
def test_settings_that_cannot_work_are_refused(changes):
    """
    What can never work is said when the embedder is made.
    """
    with pytest.raises(SettingsInvalid):
        OpenAIEmbedder(EmbeddingEndpoint(**({"model": "m", "dimension": 4} | changes)))
