"""The training data as it is read: questions keep pointing at the turns that answer them."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from training.data import (
    Corpus,
    Question,
    Turn,
    as_asked,
    long_conversations,
    read_json,
    read_questions,
    read_text,
)
from training.language import dialogue_texts, everyday_texts, lexicon_words, technical_texts
from training.rules import questions_about

ROOT = Path(__file__).parent.parent.parent / "training"
LANGUAGES = 12


def corpus_of(count):
    corpus = Corpus()
    for number in range(count):
        names = f"Person{number}", f"Friend{number}"
        corpus.dialogues.append(
            [Turn(names[at % 2], f"{names[1 - at % 2]}, fact {number}-{at}") for at in range(6)]
        )
        corpus.questions.append(
            Question("made up", f"What did {names[0]} say about {at_of(number)}?", number, (at_of(number),))
        )
    return corpus


def at_of(number):
    return number % 6


def test_a_long_conversation_keeps_the_evidence_of_its_questions():
    """
    Dialogues are put together and people renamed; each question still points at the turn that said the same.
    """
    long = long_conversations(corpus_of(10), 4, random.Random(1))

    assert [len(dialogue) for dialogue in long.dialogues] == [24, 24, 12]
    for number, question in enumerate(long.questions):
        (place,) = question.evidence
        assert long.dialogues[question.dialogue][place].text.endswith(f"fact {number}-{at_of(number)}")


def test_a_long_conversation_is_between_two_people():
    """
    Speakers, the names they call each other and the names in the questions are those of the same two.
    """
    long = long_conversations(corpus_of(10), 4, random.Random(1))

    for number, dialogue in enumerate(long.dialogues):
        names = {turn.speaker for turn in dialogue}
        assert len(names) == 2
        assert {turn.text.split(",")[0] for turn in dialogue} == names
        asked = [question.text for question in long.questions if question.dialogue == number]
        assert all(any(name in text for name in names) for text in asked)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("What did Ana cook?", "What did I cook?"),
        ("What is Ana's job?", "What is my job?"),
        ("Who is Anabel?", "Who is Anabel?"),
        ("what is my job?", "what is my job?"),
    ],
)
def test_a_question_is_asked_as_recall_asks_it(text, asked):
    """
    Recall replaces a speaker's name by `I` before it embeds a query, so the model is trained on that.
    """
    dialogue = [Turn("Ana", "Hello"), Turn("user", "Hello")]

    assert as_asked(Question("made up", text, 0, (0,)), dialogue) == asked


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("My favorite food is ramen.", {"food"}),
        ("I work as a nurse.", {"job", "living", "work", "career"}),
        ("I live in Lisbon.", {"live", "from", "home", "city"}),
        ("I play the violin.", {"instrument", "musical"}),
    ],
)
def test_a_statement_gives_questions_that_it_answers(statement, words):
    """
    Rules turn a short statement into questions, in the first or the third person.
    """
    questions = questions_about(statement, "Ana", random.Random(1))

    assert questions
    assert all(words & set(question.lower().rstrip("?").split()) for question in questions)
    assert all(
        "Ana" in question or {"I", "my", "me"} & set(question.rstrip("?").split()) for question in questions
    )


def test_a_statement_without_a_rule_gives_no_question():
    assert questions_about("Rain again today.", "Ana", random.Random(1)) == []


@pytest.mark.parametrize("path", sorted((ROOT / "pairs").glob("*")), ids=lambda path: path.name)
def test_written_questions_point_at_turns(path):
    """
    Every question of the shipped data names a dialogue and turns that are there.
    """
    corpus = Corpus()
    read_questions(corpus, "written", path)

    assert corpus.questions
    for question in corpus.questions:
        turns = corpus.dialogues[question.dialogue]
        assert question.text.strip()
        assert question.evidence
        assert all(0 <= at < len(turns) and turns[at].text.strip() for at in question.evidence)


def test_written_translations_are_complete():
    """
    Every row and every word is there in all languages.
    """
    rows = [row for path in (ROOT / "translations").glob("languages*") for row in read_json(path)]
    words = [
        line for path in (ROOT / "translations").glob("lexicon*") for line in read_text(path).splitlines()
    ]

    assert rows
    assert words
    fields = {"memory", "turn", "question", "other"}
    assert all(len(row) == LANGUAGES and all(set(said) == fields for said in row.values()) for row in rows)
    assert all(text.strip() for row in rows for said in row.values() for text in said.values())
    assert all(len(line.split("\t")) == LANGUAGES for line in words)


def test_a_compressed_file_reads_like_a_plain_one(tmp_path):
    content = json.dumps({"dialogues": [[{"speaker": "Ana", "text": "Olá"}]], "questions": []})
    (tmp_path / "plain.json").write_text(content, "utf-8")
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(content.encode()))

    assert read_json(tmp_path / "plain.json") == read_json(tmp_path / "packed.json.gz")


def test_the_language_function_is_fitted_on_the_written_data():
    """
    The readers find the files of this folder: English conversations, and rows and words in all languages.
    """
    dialogues = dialogue_texts(ROOT / "pairs", random.Random(1))
    assert dialogues
    assert all(english for _, english in dialogues)
    for texts in (everyday_texts(ROOT / "translations"), lexicon_words(ROOT / "translations")):
        share = Counter(english for _, english in texts)
        assert share[False] > 3 * share[True] > 0


def test_the_language_function_is_fitted_on_prepared_texts(tmp_path):
    """
    In the files that `training.texts` writes. A translation that is still English is left out.
    """
    rows = [{"en": "a small tool", "de": "ein kleines Werkzeug", "fr": "a small tool", "ru": "инструмент"}]
    (tmp_path / "multilingual").mkdir()
    for path, content in (
        ("texts.json.gz", ["a small tool", "hello"]),
        ("multilingual/translations.json.gz", rows),
    ):
        (tmp_path / path).write_bytes(gzip.compress(json.dumps(content).encode()))

    found = set(technical_texts(tmp_path, random.Random(1)))

    assert found == {("a small tool", True), ("hello", True), ("ein kleines Werkzeug", False)}
