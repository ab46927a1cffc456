"""How messages are put to a language model, and what becomes of each."""

import json

import pytest

from llm_server import claim
from memplane.extract.catalog import load_catalog
from memplane.extract.llm import ExtractionStatus, ExtractLimits, LLMExtractor
from memplane.extract.llm_answer import PromptMessage
from memplane.models.llm import Completion, LLMFailed, LLMUnavailable, LLMUnusable, StopReason

CATALOG = load_catalog()


class Model:
    """An `LLM` that answers with what `reply` makes of the messages it is sent."""

    model_id = "toy-1"

    def __init__(self, reply):
        self._reply = reply
        self.asked = []
        self.systems = []

    def complete(self, system, user, schema, tokens_max):
        sent = json.loads(user)
        self.asked.append([message["text"] for message in sent])
        self.systems.append(system)
        reply = self._reply(sent)
        if isinstance(reply, Completion):
            return reply
        return Completion(text=json.dumps({"claims": reply}), input_tokens=10, output_tokens=1)


def whole(sent):
    """Quotes every message from its first letter to its last."""
    return [claim(each["message"], each["text"], object=each["text"]) for each in sent]


def nothing(sent):
    return []


def said(*texts, role="user"):
    return [PromptMessage(id=f"m{number}", text=text, role=role) for number, text in enumerate(texts)]


def run(model, messages, **limits):
    return LLMExtractor(model, CATALOG, limits=ExtractLimits(**limits)).extract(messages)


def statuses(extraction):
    return "".join(message.status.value[0] for message in extraction.messages)


def test_nothing_to_read_asks_nothing():
    """
    No message, a blank one and a system message cost no request.
    """
    model = Model(whole)

    assert run(model, []).messages == []
    assert statuses(run(model, [*said("", "\n"), *said("You are a bot", role="system")])) == "sss"
    assert model.asked == []


def test_requests_are_bounded():
    """
    By characters and by messages; one that is larger than a request goes alone and is cut at its own bound.
    """
    model = Model(whole)

    extraction = run(
        model,
        said("aaaa", "bbbb", "cccc", "d" * 50, "e", "f", "g", "h"),
        request_chars=10,
        request_messages=3,
        message_chars=20,
    )

    assert model.asked == [["aaaa", "bbbb"], ["cccc"], ["d" * 20], ["e", "f", "g"], ["h"]]
    assert [message.cut for message in extraction.messages] == [False] * 3 + [True] + [False] * 4
    assert [message.propositions[0].end for message in extraction.messages] == [4, 4, 4, 20, 1, 1, 1, 1]
    assert (extraction.input_tokens, extraction.output_tokens, extraction.requests) == (50, 5, 5)


def test_a_message_that_begins_with_a_desert_is_skipped():
    """
    Nothing is left waiting for ever because all that would be sent of it is blank.
    """
    assert statuses(run(Model(whole), said(" " * 30 + "x"), message_chars=20)) == "s"


def test_users_never_share_a_request_with_others():
    """
    Text from elsewhere cannot speak to the model while it reads what the user said.
    """
    model = Model(whole)
    mixed = [
        PromptMessage(id=role + str(n), text=role, role=role)
        for n in range(2)
        for role in ("user", "tool", "assistant")
    ]

    extraction = run(model, mixed)

    assert model.asked == [["user", "user"], ["tool", "assistant", "tool", "assistant"]]
    assert [message.propositions[0].role for message in extraction.messages] == [
        message.role for message in mixed
    ]


def test_a_second_question_says_what_was_wrong():
    """
    The same words would get the same answer from a model that does not roll dice.
    """
    answers = [[claim(quote="invented")], [claim(quote="x", object="x")]]
    model = Model(lambda sent: answers.pop(0))

    extraction = run(model, said("x"))

    assert statuses(extraction) == "r"
    assert extraction.rejected == {"invented": 1}
    assert model.systems[1].startswith(model.systems[0])
    assert "invented" in model.systems[1]


def test_no_claims_is_an_answer():
    """
    Most messages say nothing worth keeping; that is no reason to ask again.
    """
    model = Model(nothing)

    assert statuses(run(model, said("hm", "well"))) == "rr"
    assert len(model.asked) == 1


def test_a_message_of_which_only_bad_claims_were_made_fails():
    """
    The rules may read it; its neighbours are not asked about again.
    """
    model = Model(lambda sent: [claim(1, "a", object="a"), claim(2, "invented")])

    extraction = run(model, said("a", "b", "c"))

    assert statuses(extraction) == "rfr"
    assert len(model.asked) == 1


@pytest.mark.parametrize("poisoned", range(12))
def test_one_poison_message_costs_few_requests(poisoned):
    """
    Halving finds it, wherever it stands, and everything else is read.
    """
    texts = ["poison" if number == poisoned else str(number) for number in range(12)]
    model = Model(
        lambda sent: (
            Completion(text="la la") if any(each["text"] == "poison" for each in sent) else whole(sent)
        )
    )

    extraction = run(model, said(*texts))

    assert [message.status is ExtractionStatus.FAILED for message in extraction.messages] == [
        text == "poison" for text in texts
    ]
    assert len(model.asked) <= 12


def test_a_model_that_only_babbles_is_left():
    """
    The number of wasted requests does not grow with the number of messages.
    """
    model = Model(lambda sent: Completion(text="la la", input_tokens=3))

    extraction = run(model, said(*map(str, range(100))))

    assert statuses(extraction) == "f" * 100
    assert len(model.asked) <= 10
    assert extraction.input_tokens == 3 * len(model.asked)


def test_a_cut_answer_about_one_message_is_kept_as_far_as_it_came():
    """
    A longer answer will not come, so what can be read of it is kept, and said to be a part.
    """
    text = json.dumps({"claims": [claim(quote="a", object="a")]})
    model = Model(lambda sent: Completion(text=text, stop=StopReason.CUT))

    (message,) = run(model, said("a")).messages

    assert (message.status, message.cut, len(message.propositions)) == (ExtractionStatus.READ, True, 1)


@pytest.mark.parametrize(
    "answer",
    [
        Completion(text='{"claims": [{"mess', stop=StopReason.CUT),
        Completion(text="", stop=StopReason.REFUSED),
    ],
)
def test_a_cut_or_refused_answer_is_not_asked_for_again(answer):
    """
    One message, one request: the same would come back.
    """
    model = Model(lambda sent: answer)

    assert statuses(run(model, said("a"))) == "f"
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(LLMUnusable("no"), "rf"), (LLMFailed("bad key"), "rl"), (LLMUnavailable("busy"), "rl")],
)
def test_errors_in_the_middle_lose_nothing(error, outcome):
    """
    What was read stays, what was not is failed or left; no error leaves once a request was answered.
    """

    def reply(sent):
        if sent[0]["text"] == "b":
            raise error
        return whole(sent)

    extraction = run(Model(reply), said("a", "b"), request_messages=1)

    assert statuses(extraction) == outcome
    assert extraction.input_tokens == 10


def test_who_answers_nothing_is_reported():
    """
    Where not one request was answered, that is said: nobody should think that everything was read. What one request
    alone does to a model is in the report.
    """

    def fails(error):
        def reply(sent):
            raise error

        return Model(reply)

    assert statuses(run(fails(LLMUnusable("too long", status=413)), said("a", "b"))) == "ff"
    for error in (LLMFailed("bad key"), LLMUnavailable("busy")):
        with pytest.raises(type(error)):
            run(fails(error), said("a", "b"))


def test_who_extracted_is_named():
    """
    The model and the version of the prompt, so that what one found can be told from what another did.
    """
    assert LLMExtractor(Model(whole), CATALOG).extractor_id == "llm/toy-1/1"
