"""What `memplane eval` measures, on data made up for it."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from eval_samples import CONSOLIDATION, LOCOMO, MULTIHOP, SCENARIOS, write_samples
from memplane.errors import InvalidRequest
from memplane_eval import conflicts
from memplane_eval.changes import ChangeCase
from memplane_eval.files import SOURCES, DataMissing, data_directory, read_json, usual_files
from memplane_eval.languages import checked_cases
from memplane_eval.multihop import load_multihop, multihop_rows, reachable
from memplane_eval.product import memplane
from memplane_eval.report import EvaluationRequest, Report, Row
from memplane_eval.retrieval import (
    EvalQuestion,
    EvalStore,
    EvalTurn,
    RetrievalResult,
    _locomo_store,
    bm25,
    first_questions,
    load_longmemeval,
)
from memplane_eval.returned.cases import bundled
from memplane_eval.run import run
from memplane_eval.systems import QuestionResult, by_scores, finders, latency_rows, query_all, rows_of

AT = datetime(2025, 3, 3, 9, 5, tzinfo=UTC)


@pytest.fixture
def data(tmp_path):
    return write_samples(tmp_path / "data")


def found(places=(), facts=(), score=0.0):
    return RetrievalResult(places=list(places), facts=list(facts), score=score, embedding_ms=1.0, rest_ms=2.0)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_subject_finds_its_files(data):
    """
    Under its usual name, gzipped or plain; both where a subject has two.
    """
    assert {subject: len(usual_files(subject, data)) for subject in SOURCES} == {
        "locomo": 1,
        "longmemeval": 1,
        "msc": 1,
        "conflicts": 2,
        "temporal": 2,
        "multihop": 1,
    }


@pytest.mark.parametrize("subject", SOURCES)
def test_an_absent_file_says_where_it_comes_from(tmp_path, subject):
    """
    The error names the folder, the variable, the command and the origin.
    """
    with pytest.raises(DataMissing) as raised:
        usual_files(subject, tmp_path)

    message = str(raised.value)
    assert str(tmp_path) in message
    assert "MEMPLANE_EVAL_DATA" in message
    assert f"memplane eval {subject} FILE" in message
    assert all(source.origin in message for source in SOURCES[subject])


def test_the_folder_comes_from_the_environment():
    """
    MEMPLANE_EVAL_DATA, else the folder beside the project.
    """
    assert str(data_directory({"MEMPLANE_EVAL_DATA": "/data"})) == "/data"
    assert str(data_directory({})) == "."


def test_what_is_no_json_is_refused(tmp_path):
    """
    Neither a missing nor a broken file is a bug.
    """
    (tmp_path / "x.json").write_bytes(b"\x1f\x8bbroken")

    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_json(tmp_path / "x.json")
    with pytest.raises(DataMissing):
        read_json(tmp_path / "y.json")


# ── the measure ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_means_by_group():
    """
    All questions first, then each group; a system without a metric has no value there.
    """
    rows = list(rows_of({"a": [("x", {"m": 1.0}), ("y", {"m": 0.0, "n": 0.5})], "b": [("x", {"m": 0.5})]}))

    assert [(row.group, row.metric, row.questions, row.values) for row in rows] == [
        ("all", "m", 2, {"a": 0.5, "b": 0.5}),
        ("all", "n", 1, {"a": 0.5}),
        ("x", "m", 1, {"a": 1.0, "b": 0.5}),
        ("y", "m", 1, {"a": 0.0}),
        ("y", "n", 1, {"a": 0.5}),
    ]


def test_latency_is_told_in_parts():
    """
    The question as a whole, its embedding and the rest, p50 and p95 each.
    """
    store = _locomo_store(LOCOMO[0])
    asked = {"a": [QuestionResult(store=store, question=store.questions[0], found=found())]}

    assert [(row.metric, row.values["a"], row.unit) for row in latency_rows(asked)] == [
        ("question p50", 3.0, "ms"),
        ("question p95", 3.0, "ms"),
        ("its embedding p50", 1.0, "ms"),
        ("its embedding p95", 1.0, "ms"),
        ("the rest p50", 2.0, "ms"),
        ("the rest p95", 2.0, "ms"),
    ]


def test_a_report_gives_its_values():
    """
    By metric, group and system; None for what was not measured.
    """
    row = Row(metric="m", group="g", questions=1, values={"memplane": 0.5, "bm25": 0.25})
    report = Report(subject="x", file="x.json", systems=("memplane", "bm25"), rows=(row,))

    assert report.value("m", group="g") == 0.5
    assert report.value("m", group="g", system="bm25") == 0.25
    assert (report.value("m"), report.value("m", group="g", system="dense")) == (None, None)


def test_a_limit_counts_questions_over_all_stores():
    """
    A store that no question is left for goes; the others stay whole.
    """
    store = _locomo_store(LOCOMO[0])
    stores = [store, msgspec.structs.replace(store, name="other")]

    assert [len(kept.questions) for kept in first_questions(stores, 3)] == [2, 1]
    assert [kept.name for kept in first_questions(stores, 2)] == ["conv-1"]
    assert first_questions(stores, None) == stores


def test_longmemeval_can_be_limited(data):
    """
    The first questions with the sessions they need.
    """
    (path,) = usual_files("longmemeval", data)

    (store,) = load_longmemeval(path, 1)
    assert (len(store.turns), len(store.questions)) == (3, 1)


def test_baselines_are_checked():
    """
    An unknown one, and one that needs vectors where there are none, are the caller's to mend.
    """
    assert list(finders(["bm25", "bm25"], None)) == ["memplane", "bm25"]
    with pytest.raises(InvalidRequest, match="bm25 and dense"):
        finders(["bm26"], None)
    with pytest.raises(InvalidRequest, match="needs embeddings"):
        finders(["dense"], None)


def test_progress_ends_at_its_total():
    """
    It grows with every question and ends complete.
    """
    seen = []

    query_all([_locomo_store(LOCOMO[0])], {"bm25": by_scores(bm25, None)}, lambda *step: seen.append(step))
    assert seen == [(4, 6), (5, 6), (6, 6)]


# ── through the product ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_product_finds_turns_by_place():
    """
    What was retained is found by recall, and comes back as the place it had; names stay with who said it.
    """
    store = _locomo_store(LOCOMO[0])

    with memplane(None)(store) as ask:
        answers = [ask(question) for question in store.questions]

    assert [answer.places[0] for answer in answers] == [0, 2]
    assert all(answer.rest_ms > 0 and answer.score for answer in answers)
    assert all(len(set(answer.places)) == len(answer.places) for answer in answers)


def test_the_product_tells_what_holds():
    """
    Of two places to live, the later one is told and the earlier is not.
    """
    (store,) = conflicts.load_scenarios(SCENARIOS)

    with memplane(None)(store) as ask:
        told = "\n".join(ask(store.questions[0]).facts)

    assert "Bergen" in told
    assert "Oslo" not in told


# ── conflicts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def scenario_values(facts):
    (store,) = conflicts.load_scenarios(SCENARIOS)
    asked = {"memplane": [QuestionResult(store=store, question=store.questions[0], found=found(facts=facts))]}
    rows = conflicts.scenario_rows(SCENARIOS, asked)
    return {row.metric: row.values["memplane"] for row in rows if row.group == "all"}


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        (["I live in Bergen."], (1, 1, 1, 1)),
        (["I live in Oslo.", "I moved to Bergen."], (0, 1, 0, 0)),
        (["I like tea.", "I moved to Bergen."], (1, 1, 1, 0)),
        (["I moved from Oslo to Bergen."], (0, 1, 0, 0)),
        (["I live in Oslo."], (0, 0, 0, 0)),
        ([], (0, 0, 1, 0)),
    ],
)
def test_scenarios_are_scored_by_what_is_told(facts, values):
    """
    Active: the current value is told and the superseded one is not; first: both of the first fact alone.
    """
    assert tuple(scenario_values(facts).values()) == values


def test_only_questions_about_now_are_asked():
    """
    A scenario without one is left out.
    """
    (store,) = conflicts.load_scenarios(SCENARIOS)
    assert [question.text for question in store.questions] == ["Where does the user live now?"]
    assert [turn.session for turn in store.turns] == [0, 1]
    assert conflicts.load_scenarios([{**SCENARIOS[0], "questions": SCENARIOS[0]["questions"][1:]}]) == []


def test_numbered_facts_are_scored_by_the_first():
    """
    The lines come a minute apart; the answer counts in the first fact and in the first five.
    """
    (store,) = conflicts.load_consolidation(CONSOLIDATION)
    told = found(facts=["Bergen is the capital.", "Oslo is the capital."])
    asked = {"memplane": [QuestionResult(store=store, question=store.questions[0], found=told)]}
    rows = list(conflicts.consolidation_rows(CONSOLIDATION, asked))

    assert [turn.text[:3] for turn in store.turns] == ["0. ", "1. "]
    assert store.turns[0].at < store.turns[1].at
    assert [row.values["memplane"] for row in rows[:2]] == [0.0, 1.0]


# ── multihop ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_articles_are_documents(data):
    """
    A span says its title and source; a question's evidence is every span of its articles.
    """
    (path,) = usual_files("multihop", data)
    articles = load_multihop(path)

    assert articles.documents[0].name == "Ferry strike (The Daily)"
    assert articles.store.turns[0].text.startswith("Ferry strike (The Daily)\n\nFerries stood still")
    assert articles.store.turns[0].at == datetime(2024, 1, 2, 8, 45, 59, tzinfo=UTC)
    assert [len(question.evidence) for question in articles.store.questions] == [2, 0]
    assert [fact.held for fact in next(iter(articles.evidence.values()))] == [{0: 7}, {1: 5}]
    assert reachable(articles) == 1.0


def test_a_limit_brings_as_many_distractors(data):
    """
    One question with two articles is searched among four.
    """
    (path,) = usual_files("multihop", data)

    assert {turn.session for turn in load_multihop(path, 1).store.turns} == {0, 1, 2, 3}


def test_the_published_files_are_read_too(tmp_path):
    """
    The questions alone, with corpus.json beside them.
    """
    (tmp_path / "MultiHopRAG.json").write_text(json.dumps(MULTIHOP["questions"]))
    (tmp_path / "corpus.json").write_text(json.dumps(MULTIHOP["corpus"]))

    assert len(load_multihop(tmp_path / "MultiHopRAG.json").store.turns) == 5


def test_multihop_figures(data):
    """
    Shares of documents and of evidence, all documents or not, and how often an answerable question scores higher.
    """
    (path,) = usual_files("multihop", data)
    articles = load_multihop(path)
    answered, null = articles.store.questions
    asked = {
        "one": [
            QuestionResult(store=articles.store, question=answered, found=found([0, 2, 3], score=2.0)),
            QuestionResult(store=articles.store, question=null, found=found([4], score=1.0)),
        ],
        "both": [
            QuestionResult(store=articles.store, question=answered, found=found([1, 0], score=1.0)),
            QuestionResult(store=articles.store, question=null, found=found([4], score=1.0)),
        ],
    }
    rows = {(row.group, row.metric): row.values for row in multihop_rows(articles, asked)}

    assert rows["all", "document@5"] == {"one": 0.5, "both": 1.0}
    assert rows["all", "all documents@10"] == {"one": 0.0, "both": 1.0}
    assert rows["all", "evidence"] == {"one": 0.5, "both": 1.0}
    assert rows["all", "words precision"] == pytest.approx({"one": 7 / 26, "both": 12 / 19})
    assert rows["even questions", "document@5"] == {"one": 0.5, "both": 1.0}
    assert rows["all", "nothing told"] == rows["null_query", "nothing told"] == {"one": 0.0, "both": 0.0}
    assert rows["null_query", "abstention AUC"] == {"one": 1.0, "both": 0.5}


# ── from a file to a report ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("subject", "compare", "metrics"),
    [
        ("locomo", ("bm25",), {"turn@5", "turn@10", "turn@20", "session@5", "session@10", "question p50"}),
        ("longmemeval", ("bm25",), {"turn@10", "session@5"}),
        ("multihop", ("bm25",), {"document@5", "evidence", "words IoU", "nothing told"}),
        ("conflicts", ("bm25",), {"question p95"}),
        ("msc", (), {"F1", "precision", "recall", "exact"}),
        ("temporal", (), {"accuracy"}),
    ],
)
def test_every_subject_gives_its_metrics(data, subject, compare, metrics):
    """
    Each file of a subject becomes a report whose shares are between 0 and 1.
    """
    for path in usual_files(subject, data):
        report = run(EvaluationRequest(subject=subject, path=path, compare=compare, embeddings=False))

        assert metrics <= {row.metric for row in report.rows}
        assert report.systems == ("memplane", *compare)
        assert all(0 <= value <= 1 for row in report.rows if not row.unit for value in row.values.values())


@pytest.mark.parametrize("subject", SOURCES)
@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '[{"a": 1}]', '{"corpus": [], "questions": []}', "3"])
def test_data_of_another_kind_is_refused(tmp_path, subject, content):
    """
    Whatever the JSON, the error is ours and names a file; there is no measure of nothing.
    """
    path = tmp_path / "x.json"
    path.write_text(content)

    with pytest.raises(InvalidRequest, match=r"x\.json|corpus\.json"):
        run(EvaluationRequest(subject=subject, path=path, embeddings=False))


def test_a_speaker_that_is_a_role_has_no_name():
    """
    LongMemEval's user and assistant are roles; LoCoMo's people are users with names.
    """
    turns = [
        EvalTurn(id="1", session=0, speaker="assistant", text="The wifi code hangs in the hall.", at=AT),
        EvalTurn(id="2", session=0, speaker="Nadia", text="My wifi broke.", at=AT),
    ]
    question = EvalQuestion(
        text="What did you tell me about the wifi code?", category="x", evidence=frozenset({0})
    )

    with memplane(None)(EvalStore(name="x", turns=turns, questions=[question])) as ask:
        assert set(ask(question).places) == {0, 1}


def test_a_turn_without_visible_text_is_left_out(tmp_path):
    """
    Downloaded conversations have turns of nothing but a zero-width space; the others keep their places.
    """
    said = ["\u200b", "", "I live in Lisbon.", " \u200b\n", "Lisbon is warm."]
    turns = [
        EvalTurn(id=str(place), session=0, speaker="user", text=text, at=AT)
        for place, text in enumerate(said)
    ]
    question = EvalQuestion(text="Lisbon", category="x", evidence=frozenset({2}))
    store = EvalStore(name="s", turns=turns, questions=[question])

    with memplane(None)(store) as ask:
        assert sorted(ask(question).places) == [2, 4]


# ── languages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def language_cases(path, rows):
    path.write_text(json.dumps(rows), "utf-8")
    return EvaluationRequest(subject="languages", path=path, embeddings=False)


def test_a_question_finds_its_memory_in_its_language(tmp_path):
    """
    By words alone a question finds the memory of its own language, and not that of another.
    """
    rows = [
        {
            "en": {"memory": f"The {english} is green", "question": f"Which colour is the {english}?"},
            "de": {"memory": f"{german} hat eine Farbe", "question": f"Welche Farbe hat {german}?"},
        }
        for english, german in (("bicycle", "Fahrrad"), ("kitchen", "Kueche"), ("garden", "Garten"))
    ]

    report = run(language_cases(tmp_path / "cases.json", rows))

    assert report.systems == ("memplane",)
    assert report.value("en", group="one language") == report.value("de", group="one language") == 1.0
    assert report.value("en", group="across languages") < 1.0


@pytest.mark.parametrize(
    "rows", [[], [{"en": {"memory": "a", "question": "b"}}, {"de": {}}]], ids=["none", "uneven"]
)
def test_rows_without_all_languages_are_refused(tmp_path, rows):
    """
    A figure of one language would be the mean of other cases than that of another.
    """
    with pytest.raises(InvalidRequest, match="same languages"):
        run(language_cases(tmp_path / "cases.json", rows))


@pytest.mark.parametrize("path", sorted(bundled("languages").glob("*.json")), ids=lambda path: path.stem)
def test_the_bundled_languages_are_complete(path):
    """
    Eleven languages, more than twenty memories each, no text twice.
    """
    rows = checked_cases(read_json(path))

    assert len(rows) >= 20
    assert len(rows[0]) == 11
    for language in rows[0]:
        texts = [text for row in rows for text in row[language].values()]
        assert len(set(texts)) == len(texts) == 2 * len(rows)


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def change_case(kind, earlier, later, current, outdated):
    said = [{"text": earlier, "at": "2025-01-10T09:00:00"}, {"text": later, "at": "2025-06-10T09:00:00"}]
    return {
        "id": f"{kind}-1",
        "kind": kind,
        "statements": said,
        "question": "where do I live?",
        "current": current,
        "outdated": outdated,
    }


def changes(path, *cases):
    path.write_text(json.dumps(cases), "utf-8")
    return run(EvaluationRequest(subject="changes", path=path, embeddings=False))


def test_what_was_replaced_must_be_marked(tmp_path):
    """
    A move is right if the old place is marked; a statement that still holds is right if it is not.
    """
    report = changes(
        tmp_path / "cases.json",
        change_case("update", "I live in Lisbon.", "I live in Berlin now.", ["Berlin"], ["Lisbon"]),
        change_case("repeat", "I live in Porto.", "I live in Porto, by the river.", ["Porto"], []),
    )

    assert report.value("what is current") == report.value("what is current", group="update") == 1.0
    assert report.value("wrongly replaced") == 0.0


def test_an_unmarked_outdated_statement_is_wrong(tmp_path):
    """
    The agent cannot tell which of two unmarked statements is current.
    """
    told = change_case("update", "We live in a tent.", "We live on a boat.", ["boat"], ["tent"])

    report = changes(tmp_path / "cases.json", {**told, "question": "do we live in a tent or on a boat?"})

    assert report.value("what is current") == 0.0


@pytest.mark.parametrize("path", sorted(bundled("changes").glob("*.json")), ids=lambda path: path.stem)
def test_the_bundled_changes_quote_their_statements(path):
    """
    Every part that counts as current or outdated is in a statement.
    """
    cases = msgspec.convert(read_json(path), list[ChangeCase])

    assert len({case.id for case in cases}) == len(cases) >= (200 if path.stem.startswith("plain") else 300)
    for case in cases:
        said = " ".join(statement.text for statement in case.statements).lower()
        assert all(part.lower() in said for part in (*case.current, *case.outdated))
