"""Search under any question anyone can type, and every word of any text found again."""

import unicodedata
from itertools import count

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.conftest import HandClock, costly

from engines import both_engines
from memplane import Memplane
from memplane.errors import InvalidRequest
from memplane.safety.fence import BEGIN, END, strip_injected
from memplane.safety.redact import redact
from memplane.safety.sanitize import visible

pytestmark = both_engines

OPERATORS = [
    *"\"'*^(){}[]:;,+-_%\\/|&~`!@#$<>=?.",
    "AND",
    "OR",
    "NOT",
    "NEAR",
    "NEAR(a b, 2)",
    "text:",
    "turn_index:",
    '"a" AND (',
    "a*",
    "^a",
    "--",
    "/*",
    "*/",
    "'; DROP TABLE turn; --",
    "\x00",
    "\x01",
    "\x1b",
    "\x7f",
    "\x85",
    "\u2028",
    "\u200b",
    "\u202e",
    "\ufeff",
    "\ufffe",
    "\ud800",
    "\udfff",
    "\U0010ffff",
    BEGIN,
    END,
    "zebra",
    "日本語",
    "🎉",
    "👩‍👩‍👧",
    "é",
    "e\u0301",
    "ﬁ",
    "İ",
    "ß",
    "क्षि",
    "กรุงเทพ",
    " ",
    "\n",
]
ANY_CHARACTER = st.characters(exclude_categories=())
QUESTION = st.lists(st.sampled_from(OPERATORS) | st.text(ANY_CHARACTER, max_size=8), max_size=20).map(
    "".join
) | st.text(ANY_CHARACTER, max_size=80)

LATIN = st.text(st.characters(codec="latin-1", categories=["L", "N"]), min_size=1, max_size=12)
LETTERS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
SCRIPTS = st.sampled_from(
    [
        *[
            "running",
            "cafés",
            "Straße",
            "Москва",
            "Αθήνα",
            "القاهرة",
            "ירושלים",
            "दिल्ली",
            "ঢাকায়",
            "தமிழ்",
            "กรุงเทพมหานคร",
            "ភ្នំពេញ",
            "ရန်ကုန်",
        ],
        *[
            "上海市",
            "東京都",
            "カタカナ",
            "ひらがな",
            "서울특별시",
            "𠮷野家",
            "ｆｕｌｌ",
            "ﬁne",
            "İstanbul",
            "ŉ",
            "ǅ",
            "x²",
            "½",
            "Ⅻ",
            "①",
        ],
    ]
)
INFLECTED = [
    *[
        "Lisbon",
        "metrics",
        "preferences",
        "running",
        "relational",
        "ponies",
        "happily",
        "aging",
        "operational",
    ],
    *["café", "Москва", "東京都", "カタカナ", "Straße"],
]
WORDS = st.lists(LATIN | LETTERS | SCRIPTS, min_size=1, max_size=8)
BETWEEN = st.sampled_from(
    [" ", ", ", "\n", "\t", " - ", "/", "_", "...", "。", "「", " (", "🎉", "™", "☃️", "\u2028"]
)


@pytest.fixture
def new_space(home):
    """A space nobody used yet, one per example, in a plane they share."""
    numbers = count()
    with home.fresh() as data, Memplane.open(data, embedder=None, clock=HandClock()) as plane:
        yield lambda: plane.space(f"space {next(numbers)}")


@pytest.fixture
def filled(new_space):
    """A space with a little of everything, some of it indexed and some waiting."""
    space = new_space()
    for number in range(70):
        space.retain(f"zebra {number} 日本語 🎉 café")
    space.store("fact", "zebra memory", tags=["AND"])
    space.put("text:", "zebra value")
    return space


@given(QUESTION)
@example("")
@example("\ud800")
@example("\x00" * 9)
@example('"' * 999)
@example("(" * 999)
@example("a OR " * 999)
@example("zebra " * 10_000)
@example("日" * 65_536)
@example("x" * 65_536)
@example("🎉" * 20_000)
@example("e" + "\u0301" * 20_000)
def test_no_question_is_an_error(filled, question):
    """Search and recall answer anything, and every score of an answer is above 0 and at most 1."""
    hits = [*filled.search(question), *filled.search(question, typing=True)]
    recalled = filled.recall(question, conversation="c")

    asked = question.encode("utf-8", "replace").decode().strip()
    assert all(0 < hit.score <= 1 for hit in hits) if asked else all(hit.score == 0 for hit in hits)
    assert recalled.text == "" or recalled.text.endswith(END)


@given(QUESTION)
def test_no_question_changes_anything(filled, question):
    """Asking leaves the space as it was."""
    before = filled.overview.stats()
    filled.search(question, include_superseded=True, limit=100)

    assert filled.overview.stats() == before


@costly(25)
@given(WORDS, st.data())
@example(["party", "tonight"], None)
def test_a_text_is_found_by_each_of_its_words(new_space, words, data):
    """Whatever script, whatever stands between them, before and after the text moves into the index, composed or
    decomposed: a turn and a memory are found by every word they hold."""
    text = words[0]
    for word in words[1:]:
        text += ("🎉" if data is None else data.draw(BETWEEN)) + word
    assume(redact(text).text == text)
    space = new_space()
    space.retain(text, id="turn")
    memory = space.store("fact", text)
    wanted = {"turn", memory.id}

    for _ in range(2):
        for word in words:
            for spelling in (word, unicodedata.normalize("NFD", word), unicodedata.normalize("NFC", word)):
                assert {hit.id for hit in space.search(spelling)} == wanted, (spelling, text)
        space.ledger.catch_up()


@costly(15)
@given(st.sampled_from(INFLECTED), st.sampled_from(INFLECTED), st.data())
def test_a_memory_is_found_while_its_words_are_typed(new_space, first, last, data):
    """However much of a word there is yet, whatever the index cuts off its end; by whole words before all others, and by
    beginnings only while somebody types."""
    space = new_space()
    wanted = space.store("fact", f"{first} {last}").id
    other = space.store("fact", f"Zz{last}").id
    typed = last[: data.draw(st.integers(1, len(last)))]
    found = [hit.id for hit in space.search(typed, typing=True)]
    assert found == [wanted]
    assert [hit.id for hit in space.search(f"{first} {typed}", typing=True)] == [wanted]
    assert space.search(f"qqqq {typed} ", typing=True) == space.search(f"qqqq {typed} ")
    assert other not in found


@costly(40)
@given(st.text(ANY_CHARACTER, min_size=1, max_size=60))
def test_any_text_can_be_kept_and_forgotten(new_space, text):
    """What is accepted comes back and can be taken out of every index again; what is refused leaves nothing."""
    space = new_space()
    try:
        kept = space.retain(text)
        memory = space.store("fact", text)
    except InvalidRequest:
        assert space.ledger.entries() == []
        return
    space.ledger.catch_up()
    if redact(visible(text)).text == visible(text) == strip_injected(text):
        assert {hit.text for hit in space.search()} == {text}
    space.forget(entries=[kept.id, memory.entry_id])

    assert space.search(text) == space.search() == []
    assert space.ledger.check() == []
    with space._context.read() as reader:
        assert reader.words.corpus_size() <= 1
        assert set(reader.words.frequencies(["zebra"]).values()) == {0}
