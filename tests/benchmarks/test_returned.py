"""What `memplane eval returned` measures, on data made up for it."""

import json

import pytest

from eval_samples import CASES, LOCOMO, LONGMEMEVAL
from memplane.errors import InvalidRequest
from memplane_eval.report import EvaluationRequest
from memplane_eval.retrieval import EvalTurn
from memplane_eval.returned.cases import load_cases
from memplane_eval.returned.received import PlainLines, Shown
from memplane_eval.returned.workbench import START
from memplane_eval.run import run


@pytest.fixture
def measured(tmp_path):
    def measure(document, **options):
        path = tmp_path / "data.json"
        path.write_text(json.dumps(document))
        return run(EvaluationRequest(subject="returned", path=path, embeddings=False, **options))

    return measure


# ── whether a text is shown ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_text_is_shown_wherever_it_stands_in_its_line():
    """
    Kind, date and speaker around it, another case, and a final full stop make no difference.
    """
    shown = Shown(
        "Known:\n- [preference] User prefers tea with milk and two sugars in the morning (2026-06-01)"
    )

    assert shown.has("Prefers tea with milk and two sugars in the morning.")
    assert not shown.has("Prefers tea with milk and two sugars in the evening.")
    assert not shown.has("")


def test_a_short_text_is_most_of_its_line():
    """
    "Yes" inside a long sentence is not the turn that said yes.
    """
    long = "- 2026-06-01 Tom: yesterday we walked along the river for hours, and in the end nobody knew where the car was"

    assert Shown("- 2026-06-01 Tom: Yes!").has("Yes!")
    assert not Shown(long).has("Yes!")


def test_a_long_text_may_be_an_excerpt():
    """
    A hundred characters in a row are enough; single sentences of another turn are not.
    """
    text = " ".join(f"Stop {number} of the tour is a village with a market." for number in range(20))

    assert Shown(f"- 2026-06-01 assistant: …{text[300:500]}…").has(text)
    assert not Shown("- 2026-06-01 assistant: …is a village with a market.…").has(text)


def test_words_of_an_answer():
    """
    The share of its words, whatever their order; None where there is no word to look for.
    """
    shown = Shown("- 2026-06-01 Tom: we met in May 2019, near the lake")

    assert shown.share_of_words("7 May 2019") == pytest.approx(2 / 3)
    assert shown.share_of_words("to") is None


def test_plain_lines_stay_within_the_budget():
    """
    Best first; a line that does not fit is skipped for a shorter one after it.
    """
    texts = ["one two three", " ".join(["long"] * 200), "four"]
    turns = [
        EvalTurn(id=str(place), session=0, speaker="user", text=text, at=START)
        for place, text in enumerate(texts)
    ]
    lines = PlainLines(turns)
    budget = lines.tokens([0, 2])

    assert lines.text([2]) == "- 2026-06-01 user: four"
    assert lines.filled([1, 0, 2], budget) == [0, 2]
    assert lines.filled([1, 0, 2], budget - 1) == [0]


# ── case files ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_of_case_files_is_one_set(tmp_path):
    """
    A limit counts the pairs of each space, and turns and instructions of each language. Other files are left alone.
    """
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(CASES))
    (tmp_path / "other.json").write_text("[]")

    whole, limited = load_cases(tmp_path), load_cases(tmp_path, 1)

    assert (len(whole.spaces), len(whole.turns), len(whole.instructions)) == (2, 4, 4)
    assert [len(space.pairs) for space in whole.spaces] == [2, 2]
    assert [len(space.memories) for space in limited.spaces] == [2, 2]
    assert [len(space.pairs) for space in limited.spaces] == [1, 1]
    assert (len(limited.turns), len(limited.instructions)) == (1, 1)


@pytest.mark.parametrize(
    "document",
    [
        {"spaces": [{"language": "en"}]},
        {
            "spaces": [
                {"language": "en", "memories": [], "pairs": [{"memory": 0, "question": "Where do I live?"}]}
            ]
        },
        [{"neither": 1}],
    ],
)
def test_another_kind_of_file_is_refused(measured, document):
    """
    A pair without its memory, a missing field, or a list of something else.
    """
    with pytest.raises(InvalidRequest):
        measured(document)


# ── the measurements ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_cases_are_measured_beside_baselines(measured):
    """
    Pairs, needless turns, instructions and repetition; without LoCoMo the large space is skipped, and the report says so.
    """
    report = measured(CASES)
    groups = {row.group for row in report.rows}

    assert report.systems == ("memplane", "bm25")
    assert groups == {
        "stored, small space",
        "stored, small space, by language",
        "said, small space",
        "said, small space, by language",
        "no memory needed: stored, small space",
        "no memory needed: stored, small space, by language",
        "no memory needed: said, small space",
        "no memory needed: said, small space, by language",
        "instructions, small space",
        "repetition",
    }
    assert any("skipped" in note for note in report.notes)
    assert report.value("memory in the text, budget 400", group="said, small space", system="bm25") == 1.0
    assert report.value("memory in the text", group="said, small space") is not None


def test_a_locomo_file_fills_the_space_of_1000(measured, tmp_path):
    """
    Its turns are in the same space as the memories, and the baselines get them too.
    """
    filler = tmp_path / "locomo.json"
    filler.write_text(json.dumps(LOCOMO))
    report = measured(CASES, filler=filler)

    assert {row.questions for row in report.rows if row.group == "stored, space of 1,000"} == {2}
    assert report.value("applies: in the text", group="instructions, space of 1,000") is not None
    assert any("4 turns of LoCoMo" in note for note in report.notes)


@pytest.mark.parametrize("samples", [LOCOMO, LONGMEMEVAL])
def test_evidence_is_a_curve_over_the_budget(measured, samples):
    """
    One group a budget, with all systems; a question that names the words of its evidence gets it.
    """
    report = measured(samples)
    groups = list(dict.fromkeys(row.group for row in report.rows))

    assert groups[0] == "default"
    assert groups[1:6] == ["budget 400", "budget 800", "budget 1,200", "budget 1,600", "budget 2,000"]
    assert groups[6:] == ["8 blocks"]
    for group in groups:
        assert report.value("evidence", group=group) == 1.0
        assert report.value("evidence", group=group, system="bm25") is not None
    used = report.value("tokens, mean", group="budget 400")
    assert used is not None
    assert 0 < used <= 400
    assert report.value("evidence per 1,000 tokens", group="budget 400") == pytest.approx(1_000 / used)


def test_the_words_of_the_answer_are_counted(measured):
    """
    Where the data has an answer.
    """
    assert measured(LOCOMO).value("words of the answer", group="default") == 1.0
    assert measured(LONGMEMEVAL).value("words of the answer", group="default") is None
