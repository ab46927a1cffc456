"""Fitting a calibration: on made-up signals, and from files to a file that recall reads."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_samples import CASES, LOCOMO
from memplane.errors import InvalidRequest
from memplane.extract.relevance import Question
from memplane.recall.calibration import Logistic, Wording, calibration_of
from memplane.recall.standing import APPLIES_MIN, shared_words, vector_signals, word_signals
from memplane_eval.calibrate import __main__ as calibrate
from memplane_eval.calibrate.fitting import fitted, linear, perceptron, wording_rows
from memplane_eval.calibrate.samples import OF_ONE_MODEL, Sample
from memplane_eval.calibrate.standing import _limit, fit_standing
from memplane_eval.returned.cases import CaseInstruction, Cases, CaseTurn
from stub_embedder import StubEmbedder


def drawn(count=400):
    """Points of a plane, labelled by the side of a line that does not pass through the origin."""
    rows = np.random.default_rng(1).normal(size=(count, 2))
    return rows, (2 * rows[:, 0] - rows[:, 1] > 0.5).astype(np.float64)


def test_a_separable_set_is_recovered():
    rows, labels = drawn()

    beta = fitted(rows, labels, np.ones(len(rows)), l2=1e-3)
    values = rows @ beta[:-1] + beta[-1]

    assert ((values > 0) == (labels == 1)).mean() > 0.99
    assert beta[0] / beta[1] == pytest.approx(-2, rel=0.1)
    assert beta[2] / beta[1] == pytest.approx(0.5, rel=0.2)


def test_a_vector_function_learns_what_no_line_separates():
    """
    Two opposite corners against the other two.
    """
    rows = np.random.default_rng(2).normal(size=(600, 2))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(np.float64)

    hidden, output = perceptron(rows, labels, members=1)
    values = np.maximum(rows @ hidden[:, :-1].T + hidden[:, -1], 0) @ output

    assert ((values > values.mean()) == (labels == 1)).mean() > 0.85


def test_wording_tells_apart_by_words():
    """
    The function is evaluated as recall does it, from 16-bit weights; it also holds for texts it was not fitted on.
    """
    things = ["dog", "car", "garden", "boss", "flat"]
    texts = [f"what is my {thing} called?" for thing in things] + [f"define {thing}" for thing in things]
    labels = np.array([1.0] * 5 + [0.0] * 5)

    wording = Wording(linear(wording_rows(texts), labels).astype(np.float16).tobytes())

    assert min(map(wording, texts[:5])) > max(map(wording, texts[5:]))
    assert wording("what is my cat called?") > wording("define cat")


def test_a_sample_keeps_what_speaks_for_an_item():
    """
    A signal that would count against an item is left out, except distance and size; a constant one gets no weight.
    """
    rows, labels = drawn()
    sample = Sample(["words", "nearness", "behind", "time"])
    for (good, bad), label in zip(rows, labels, strict=True):
        sample.add({"words": good, "nearness": bad, "behind": bad, "other": 9.0}, label)

    found = sample.fit()

    assert set(found.weights) == {"words", "behind"}
    assert found.weights["words"] > 0 > found.weights["behind"]
    assert found({"words": 2.0}) > 0.9
    assert found({"words": -1.0}) < 0.1


def test_balance_ignores_how_often_each_label_occurs():
    rows, labels = drawn()
    few = [at for at in range(len(rows)) if not labels[at] or at % 8 == 0]
    sample = Sample(["words", "behind"])
    for at in few:
        sample.add({"words": rows[at, 0], "behind": rows[at, 1]}, labels[at])

    plain, balanced = sample.fit(), sample.fit(balanced=True)

    assert balanced.bias > plain.bias


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60),
    st.floats(0.0, 0.5),
)
def test_a_working_point_is_reached_by_few_wrong_ones(values, share):
    """
    Also if many values are equal, as counts of words are.
    """
    limit = _limit(values, share)
    wrong = [value for value, label in values if not label]

    assert sum(value >= limit for value in wrong) <= share * len(wrong)


def an_instruction(scope, stored, applies, other=()):
    return CaseInstruction(
        language="en", scope=scope, kind="instruction", stored=stored, applies=applies, other=other
    )


def test_instructions_are_told_apart_with_any_model():
    """
    Whatever the model's similarities are: those for every answer, and those that concern a turn.
    """
    things = ["bread", "soup", "trains", "roses", "shoes", "chess", "paint", "boats"]
    turns = tuple(CaseTurn("en", f"what is the meaning of {number}") for number in range(40))
    rules = [an_instruction("every answer", f"Reply in {thing} language", ("hi",)) for thing in things]
    rules += [
        an_instruction("some", f"Buy {thing} on credit", (f"order {thing} now",), ("hi there",))
        for thing in things
    ]
    embedder = StubEmbedder()
    found = fit_standing(Cases(turns=turns, instructions=tuple(rules)), embedder)

    def signals(rule, turn):
        vector = embedder.embed_texts([rule])[0]
        assert found.instructions is not None
        shared = {"shared": shared_words(rule, Question(turn))}
        return {
            **word_signals(rule),
            **shared,
            **vector_signals(vector, embedder.embed_query(turn), found.instructions),
        }

    assert found.every(signals("Reply in poetry language", "hi")) >= APPLIES_MIN
    assert found.every(signals("Buy bread on credit", "hi")) < APPLIES_MIN
    assert found.standing(signals("Buy bread on credit", "order bread now")) >= APPLIES_MIN
    assert found.standing(signals("Buy bread on credit", "what is the meaning of 3")) < APPLIES_MIN


def test_both_kinds_of_instructions_are_required():
    with pytest.raises(InvalidRequest, match="instructions for every answer"):
        fit_standing(Cases(instructions=(an_instruction("some", "Use pnpm", ("install it",)),)), None)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """`files(*options)` runs the command with small files and returns the folder it writes to."""

    def run(*options, conversations=True):
        folder = tmp_path / "written"
        folder.mkdir(exist_ok=True)
        cases, locomo = tmp_path / "cases.json", tmp_path / "locomo.json"
        cases.write_text(json.dumps(CASES))
        locomo.write_text(json.dumps(LOCOMO))
        given = ["--locomo", str(locomo)] if conversations else []
        arguments = [str(folder), "--cases", str(cases), *given, *options]
        monkeypatch.setattr(sys, "argv", ["calibrate", *arguments])
        calibrate.main()
        return folder

    return run


def test_the_file_that_is_written_is_the_one_that_recall_loads(files):
    """
    Named as recall looks for it, with every part fitted and thresholds in their order.
    """
    folder = files("--words-only")
    assert {path.name for path in folder.iterdir()} == {"words-only.json", "wording.json"}
    found = calibration_of("words-only", folder)

    assert found != calibration_of("words-only")
    for part in (found.need, found.turn, found.memory, found.stored, found.every, found.standing):
        assert isinstance(part, Logistic)
        assert not part.weights.keys() & OF_ONE_MODEL
    assert found.need.weights
    assert 0 < found.maybe_min <= found.likely_min < 1
    assert found.personal is None


def test_long_conversations_are_required(files, capsys):
    with pytest.raises(SystemExit):
        files("--words-only", conversations=False)

    assert "long conversations are needed" in capsys.readouterr().err
