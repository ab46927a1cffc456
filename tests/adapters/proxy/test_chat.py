"""`memplane chat`: a model that remembers, in a terminal or a pipe, with what was recalled beside each answer."""

import json
import socket

import httpx
import openai
import pytest

from memplane.adapters.proxy.chat import EchoModel, SingleKeyAuthenticator, answer_of, is_memplane
from memplane.auth.principal import Unauthenticated
from memplane.space import Space
from proxy_server import ALICE, fronting

BLOCK = "--- BEGIN MEMORY (from memplane) ---\n[kind=fact, score=0.90]\n{}\n--- END MEMORY ---"


def asked(*texts):
    return {"messages": [{"role": role, "content": text} for role, text in texts]}


class TestEchoModel:
    @pytest.mark.parametrize(
        ("request_", "answer"),
        [
            (asked(("user", "I moved to Lisbon")), "Noted."),
            (asked(("user", "Where do I live?")), "I do not know that yet."),
            (
                asked(("system", BLOCK.format("I moved to Lisbon")), ("user", "Where do I live?")),
                'You told me: "I moved to Lisbon"',
            ),
            (
                asked(
                    ("system", BLOCK.format("I like tea\nMy cat is Miso")), ("user", "What is my cat called?")
                ),
                'You told me: "My cat is Miso"',
            ),
            (
                asked(("user", "My cat is Miso"), ("assistant", "Noted."), ("user", "Who is my cat?")),
                'You told me: "My cat is Miso"',
            ),
            (asked(("system", BLOCK.format("Who is Miso?")), ("user", "Who?")), "I do not know that yet."),
            ({}, "Noted."),
            (
                {"messages": [None, {"role": "user", "content": [{"type": "text", "text": "Hm?"}]}]},
                "I do not know that yet.",
            ),
        ],
    )
    def test_it_says_what_it_was_told(self, request_, answer):
        """
        The same request has the same answer, and nothing is made up.
        """
        assert answer_of(request_) == answer

    def test_the_official_client_can_talk_to_it(self):
        """
        Whole answers, streams, the list of models.
        """
        messages = [{"role": "user", "content": "I like tea"}]
        with EchoModel() as model, openai.OpenAI(base_url=model.url, api_key="x", max_retries=0) as client:
            whole = client.chat.completions.create(model="echo", messages=messages)
            stream = client.chat.completions.create(model="echo", messages=messages, stream=True)
            streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)

            assert whole.choices[0].message.content == streamed == "Noted."
            assert [it.id for it in client.models.list()] == ["echo"]

    def test_it_refuses_what_it_does_not_know(self):
        """
        In the shape of a provider.
        """
        with EchoModel() as model, httpx.Client(base_url=model.url, timeout=60, trust_env=False) as client:
            answers = [
                client.get("/else"),
                client.post("/chat/completions", content="nonsense"),
                client.post("/embeddings", json={}),
            ]

            assert [answer.status_code for answer in answers] == [404, 400, 404]
            assert all(answer.json()["error"]["message"] for answer in answers)


class TestChat:
    def test_told_in_one_conversation_known_in_the_next(self, cli):
        """
        The whole loop, offline: the proxy keeps the turn, recalls it, and the model is told.
        """
        first = cli("chat", "--space", "alice", "-c", "one", stdin="My cat is called Miso.\n\n")
        second = cli(
            "chat", "--space", "alice", "-c", "two", stdin="What is the name of my cat?\n/quit\nnever said\n"
        )

        assert (first.code, first.out.split("\n")[0]) == (0, "> My cat is called Miso.")
        assert second.code == 0
        assert 'You told me: "My cat is called Miso."' in second.out
        assert "recalled (" in second.out
        assert "never said" not in second.out

    def test_json(self, cli):
        """
        One document with every exchange and what was recalled for it.
        """
        cli("chat", stdin="My cat is called Miso.\n")
        document = cli("chat", "--json", stdin="What is the name of my cat?\n").json

        assert (document["space"], document["model"]) == ("default", "echo")
        (exchange,) = document["exchanges"]
        assert exchange["said"] == "What is the name of my cat?"
        assert "My cat is called Miso." in [it["text"] for it in exchange["recalled"]]

    def test_what_is_shown_is_what_was_told(self, cli, monkeypatch):
        """
        Nothing is recalled a second time: the blocks are those that the model had before it.
        """
        cli("chat", "--space", "alice", stdin="My cat is called Miso.\nMy dog is called Rex.\n")
        recalls, recall = [], Space.recall
        monkeypatch.setattr(
            Space, "recall", lambda *args, **options: recalls.append(1) or recall(*args, **options)
        )
        told = []
        monkeypatch.setattr(
            "memplane.adapters.proxy.chat.answer_of", lambda asked: told.append(json.dumps(asked)) or "Well."
        )
        document = cli("chat", "--json", "--space", "alice", stdin="Who are my cat and my dog?\n").json

        (exchange,) = document["exchanges"]
        assert len(recalls) == 1
        assert exchange["recalled"]
        assert all(json.dumps(it["text"])[1:-1] in told[0] for it in exchange["recalled"])

    def test_hostile_text_does_not_steer_the_terminal(self, cli):
        """
        What was said comes back without what would move a cursor.
        """
        done = cli("chat", stdin="\x1b[31mred\x1b]0;title\x07\n")

        assert "\x1b" not in done.out
        assert "\x07" not in done.out

    def test_another_space_is_another_memory(self, cli):
        """
        What Alice told is not recalled for Bob.
        """
        cli("chat", "--space", "alice", stdin="My cat is called Miso.\n")

        assert "Miso" not in cli("chat", "--space", "bob", stdin="What is the name of my cat?\n").out

    def test_any_upstream_gets_a_proxy(self, cli):
        """
        A provider that is no Memplane server is talked to through one of this process.
        """
        with EchoModel() as model:
            cli("chat", "--url", model.url, "--model", "any", stdin="My cat is called Miso.\n")
            done = cli("chat", "--url", model.url, "-c", "two", stdin="Who is my cat?\n")

        assert 'You told me: "My cat is called Miso."' in done.out

    def test_through_a_server(self, cli, open_plane, tmp_path):
        """
        With a Memplane server's address the memory is that server's, and the key comes from the environment.
        """
        with EchoModel() as model, fronting(open_plane, openai_base_url=model.url) as fronted:
            fronted.plane.space("alice").store("fact", "Her cat is called Miso")
            cli.wiring = type(cli.wiring)(
                open=cli.wiring.open,
                environment={"MEMPLANE_DATA": str(tmp_path / "here"), "MEMPLANE_TOKEN": ALICE},
            )
            assert is_memplane(f"{fronted.server.url}/v1")
            done = cli("chat", "--url", fronted.server.url, "--space", "alice", stdin="Who is the cat?\n")

        assert 'You told me: "Her cat is called Miso' in done.out
        assert not (tmp_path / "here").exists()

    def test_help_is_not_something_said(self, cli):
        """
        It is told how to go on, and the model hears nothing.
        """
        done = cli("chat", "--json", stdin="/help\nHello\n")

        assert [exchange["said"] for exchange in done.json["exchanges"]] == ["Hello"]
        assert "/quit exits" in done.err

    def test_an_upstream_that_is_not_there(self, cli):
        """
        Said in one line, with exit code 1.
        """
        with socket.socket() as taken:  # or somebody else might listen there meanwhile
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            done = cli("chat", "--url", url, stdin="Hello\n")

        assert done.code == 1
        assert done.err.startswith("memplane: no answer: ")

    def test_what_is_no_address(self, cli):
        """
        Before anything is opened.
        """
        assert cli("chat", "--url", "nonsense", stdin="Hello\n").code == 1


def test_the_chats_key_opens_its_own_space_only():
    """
    While it runs, others on this machine can reach the port, and not the memory.
    """
    keys = SingleKeyAuthenticator("alice")

    assert keys.authenticate(keys.key, peer="").spaces == {"alice"}
    with pytest.raises(Unauthenticated):
        keys.authenticate("guess", peer="")
    assert json.dumps(sorted(keys.authenticate(keys.key, peer="").rights)) == '["read", "write"]'
