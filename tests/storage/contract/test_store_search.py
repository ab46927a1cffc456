"""The search half of the contract: words are found in every script, before and after turns reach the index."""

import unicodedata
from datetime import timedelta

import pytest

from memplane.storage.filter import Filter
from memplane.storage.words import stems_of, words_of

NOW = Filter(now=0)

FOUND = {
    "english": ("She was running marathons", "running"),
    "english stem": ("She was running marathons", "run"),
    "english plural": ("three cats", "cat"),
    "upper case": ("Uses PostgreSQL daily", "postgresql"),
    "digits": ("Flight TP1234 at 0730", "tp1234"),
    "french accents": ("Réservé au café", "café"),
    "without the accent": ("Réservé au café", "cafe"),
    "with an accent too many": ("a cafe", "café"),
    "german": ("Die Straße ist überfüllt", "überfüllt"),
    "polish": ("Zażółć gęślą jaźń", "gęślą"),
    "turkish": ("İstanbul'da yaşıyor", "yaşıyor"),
    "vietnamese": ("Tôi sống ở Hà Nội", "Nội"),
    "russian": ("Она живёт в Москве", "Москве"),
    "russian upper case": ("Она живёт в Москве", "МОСКВЕ"),
    "ukrainian": ("Їжак у тумані", "їжак"),
    "greek": ("Ζει στην Αθήνα", "Αθήνα"),
    "greek lower case": ("ΑΘΗΝΑ", "αθηνα"),
    "arabic": ("هي تعيش في القاهرة", "القاهرة"),
    "persian joiner": ("او می\u200cخواهد برود", "خواهد"),
    "hebrew": ("היא גרה בירושלים", "בירושלים"),
    "hindi": ("वह दिल्ली में रहती है", "दिल्ली"),
    "hindi vowel signs": ("मुझे किताबें पसंद हैं", "किताबें"),
    "bengali": ("সে ঢাকায় থাকে", "ঢাকায়"),
    "tamil": ("அவள் சென்னையில் வசிக்கிறாள்", "சென்னையில்"),
    "georgian": ("ის თბილისში ცხოვრობს", "თბილისში"),
    "armenian": ("Նա ապրում է Երևանում", "Երևանում"),
    "amharic": ("አዲስ አበባ", "አበባ"),
    "thai": ("เธออาศัยอยู่ที่กรุงเทพ", "กรุงเทพ"),
    "thai inside": ("เธออาศัยอยู่ที่กรุงเทพ", "อาศัย"),
    "lao": ("ຂ້ອຍຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
    "khmer": ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
    "burmese": ("သူမရန်ကုန်မှာနေတယ်", "ရန်ကုန်"),
    "chinese": ("她住在上海的公寓里", "上海"),
    "chinese whole": ("她住在上海的公寓里", "她住在上海"),
    "chinese at the end": ("她喜欢上海", "上海"),
    "one chinese character": ("她住在上海的公寓里", "海"),
    "last chinese character": ("她喜欢茶", "茶"),
    "chinese beside latin": ("她用iPhone手机", "手机"),
    "latin beside chinese": ("她用iPhone手机", "iphone"),
    "rare chinese": ("𠮷野家で食べた", "𠮷野家"),
    "japanese": ("彼女は東京に住んでいます", "東京"),
    "japanese inside": ("彼女は東京に住んでいます", "住んで"),
    "katakana": ("コーヒーが好き", "コーヒー"),
    "half-width katakana": ("ｺｰﾋｰが好き", "コーヒー"),
    "korean": ("그녀는 서울에 살고 있다", "서울"),
    "korean whole word": ("그녀는 서울에 살고 있다", "서울에"),
    "one korean syllable": ("차를 좋아해요", "차"),
    "full-width": ("Ｈｅｌｌｏ　Ｗｏｒｌｄ", "hello"),
    "found by full-width": ("hello world", "ｈｅｌｌｏ"),
    "ligature": ("ofﬁce hours", "office"),
    "emoji": ("Launched today 🚀", "🚀"),
    "emoji in a row": ("🎉🎉🎉", "🎉"),
    "emoji touching a word": ("party🎉", "🎉"),
    "word touching an emoji": ("party🎉 tonight", "party"),
    "word after an emoji": ("🎉party tonight", "party"),
    "emoji beside chinese": ("生日快乐🎂", "快乐"),
    "new emoji": ("I am 🫠", "🫠"),
    "flag": ("moved to 🇵🇹", "🇵🇹"),
    "emoji with a skin": ("👍🏽 fine", "👍"),
    "emoji by its skin": ("👍🏽 fine", "👍🏽"),
    "heart with a selector": ("I ❤️ it", "❤"),
    "heart without a selector": ("I ❤ it", "❤️"),
    "joined emoji": ("the 👩‍👩‍👧 is well", "👩‍👩‍👧"),
    "word touching a sign": ("Memplane™ runs", "Memplane"),
    "degrees": ("20°C outside", "20"),
    "unit sign": ("a 5㎏ bag", "kg"),
    "number touching a unit sign": ("a 5㎏ bag", "5"),
    "mixed": ("Réunion с Иваном 在北京 🎉", "北京"),
    "punctuated": ("e-mail: ann@example.com!", "example"),
    "quoted": ('he said "never again"', '"never"'),
    "apostrophe": ("don't panic", "don't"),
}


def ask(reader, text, where=NOW, limit=50):
    return reader.turns.match(words_of(text), where, limit=limit), reader.memories.match(
        words_of(text), where, limit=limit
    )


@pytest.mark.parametrize(("text", "query"), FOUND.values(), ids=FOUND.keys())
def test_words_are_found_in_any_script(scribe, text, query):
    """A turn is found by its words at once, and still after it moved into the index; so is a memory."""
    scribe.turn("nothing to see here")
    scribe.turn(text, id="turn")
    scribe.memory("nothing either")
    scribe.memory(text, id="memory")
    with scribe.store.read() as reader:
        before, memories = ask(reader, query)
    scribe.index()
    with scribe.store.read() as reader:
        after, _ = ask(reader, query)

    assert [memory.id for memory in memories] == ["memory"]
    assert [turn.entry_id for turn in before] == ["turn"]
    assert [turn.entry_id for turn in after] == ["turn"]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", ["Réservé", "Đặng Thị", "서울에", "がぎぐ", "Ångström", "Ἀθῆναι"])
def test_composed_and_decomposed_are_the_same(scribe, text, form):
    """However a keyboard spells it, what is written in one form is found in every other."""
    scribe.turn(unicodedata.normalize(form, text), id="turn")
    queries = [unicodedata.normalize(other, text) for other in ("NFC", "NFD", "NFKC", "NFKD")]
    with scribe.store.read() as reader:
        before = [len(ask(reader, query)[0]) for query in queries]
    scribe.index()
    with scribe.store.read() as reader:
        after = [len(ask(reader, query)[0]) for query in queries]

    assert before == after == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("她住在上海", "北京"),
        ("她住在上海", "海上"),
        ("東京都", "京東"),
        ("party🎉", "🚀"),
        ("running", "jog"),
        ("Москва", "Минск"),
        ("서울", "부산"),
        ("cat", "category"),
    ],
)
def test_other_words_are_not_found(scribe, text, query):
    """Finding everything would not be finding: what a text does not hold, it is not found by."""
    scribe.turn(text)
    scribe.memory(text)
    with scribe.store.read() as reader:
        before = ask(reader, query)
    scribe.index()
    with scribe.store.read() as reader:
        after = ask(reader, query)

    assert before == after == ([], [])


@pytest.mark.parametrize(
    "word",
    [
        '"',
        '""',
        'a"b',
        "'",
        "AND",
        "OR",
        "NOT",
        "NEAR(a b)",
        "*",
        "a*",
        "^a",
        "-a",
        "text:a",
        "turn_index:a",
        "(",
        ")",
        "{a}",
        "a AND b",
        "",
        " ",
        "\x00",
        "a\x00b",
        ";",
        "--",
        "%",
        "\\",
        "a,b",
        "+",
    ],
)
def test_nothing_is_an_operator(scribe, word):
    """No word is ever a syntax error or an operator, whatever stands in it."""
    scribe.turn("plain words")
    scribe.index()
    scribe.turn("plain waiting")
    scribe.memory("plain memory")

    with scribe.store.read() as reader:
        assert reader.turns.match([word], NOW, limit=9) == []
        assert reader.memories.match([word], NOW, limit=9) == []
        assert len(reader.turns.match([word, "plain"], NOW, limit=9)) == 2
        assert len(reader.memories.match([word, "plain"], NOW, limit=9)) == 1


def test_no_words_match_nothing(scribe):
    """Asking for no word finds no text."""
    scribe.turn("a")
    scribe.memory("a")

    with scribe.store.read() as reader:
        assert reader.turns.match([], NOW, limit=9) == []
        assert reader.memories.match([], NOW, limit=9) == []


def test_any_of_the_words_is_enough(scribe):
    """A text holding one of the words is a match; one holding more of them comes first."""
    scribe.memory("apple pie with cinnamon", id="one")
    scribe.memory("cherry and apple", id="two")
    scribe.memory("bread", id="none")

    with scribe.store.read() as reader:
        found = reader.memories.match(["apple", "cherry"], NOW, limit=9)
    assert [memory.id for memory in found] == ["two", "one"]


def test_a_limit_is_a_limit(scribe):
    """No more than asked for comes back."""
    for _ in range(5):
        scribe.memory("apple")
    scribe.turns(["apple"] * 5)
    scribe.index()

    with scribe.store.read() as reader:
        assert len(reader.memories.match(["apple"], NOW, limit=2)) == 2
        assert len(reader.turns.match(["apple"], NOW, limit=2)) == 2


def test_memories_are_found_by_key_and_tags(scribe):
    """What one would call it finds it."""
    scribe.memory("dark", id="m", key="preferences/theme", category="c", tags=("coding style",))

    with scribe.store.read() as reader:
        for word in ("dark", "preferences", "theme", "coding", "style"):
            assert [memory.id for memory in reader.memories.match([word], NOW, limit=9)] == ["m"]


def test_turns_reach_the_index_by_themselves(scribe):
    """Whoever only writes never has to call for it, and whether a turn waits or not makes no difference to who
    searches."""
    for number in range(300):
        scribe.turn(f"common word{number}")

    with scribe.store.read() as reader:
        for number in (0, 1, 63, 64, 65, 150, 298, 299):
            assert len(reader.turns.match([f"word{number}"], NOW, limit=9)) == 1
        assert len(reader.turns.match(["common"], NOW, limit=1_000)) == 300
        assert reader.words.lag() == 0


def test_a_limit_holds_for_what_waits_too(scribe):
    """Turns that wait for the index and turns in it share the limit, and neither crowds out the other."""
    scribe.turns(["apple"] * 30, conversation="indexed")
    scribe.index()
    scribe.turns(["apple"] * 30, conversation="waiting")

    with scribe.store.read() as reader:
        found = reader.turns.match(["apple"], NOW, limit=10)
        assert len(reader.turns.match(["apple"], NOW, limit=100)) == 60
    assert len(found) == 10
    assert {turn.conversation for turn in found} == {"indexed", "waiting"}


def test_newest_finds_the_latest_that_match(scribe, clock):
    """Where ranking would take too long, the last written that match are enough."""
    for number in range(6):
        scribe.memory("apple", id=f"m{number}")
        scribe.turn("apple", id=f"t{number}")
        clock.advance(seconds=1)
    scribe.memory("pear")
    scribe.turn("pear")
    for _ in range(2):
        with scribe.store.read() as reader:
            memories = reader.memories.match(["apple"], NOW, limit=2, newest=True)
            turns = reader.turns.match(["apple"], NOW, limit=2, newest=True)
        assert [memory.id for memory in memories] == ["m5", "m4"]
        assert [turn.entry_id for turn in turns] == ["t5", "t4"]
        scribe.index()


def test_erasing_reaches_turns_on_both_sides_of_the_index(scribe):
    """A turn is gone from search whether it was indexed or still waited, and its neighbours are not."""
    indexed, kept = scribe.turns(["zebra one", "zebra two"])
    scribe.index()
    waiting, waits = scribe.turns(["zebra three", "zebra four"])
    victims = [(turn.seq, turn.entry_id) for turn in (indexed, waiting)]
    scribe.store.write(lambda writer: writer.ledger.erase(victims, position=1, at=1, reason=""))

    with scribe.store.read() as reader:
        assert {turn.text for turn in reader.turns.match(["zebra"], NOW, limit=9)} == {kept.text, waits.text}
    scribe.index()
    with scribe.store.read() as reader:
        assert {turn.text for turn in reader.turns.match(["zebra"], NOW, limit=9)} == {kept.text, waits.text}
    assert scribe.store.check() == []


def test_match_obeys_the_filter(scribe, clock):
    """Conditions narrow a match as they narrow a list, on both sides of the index."""
    now = clock()
    scribe.turn("zebra", id="a", conversation="c", at=clock.moment - timedelta(days=1))
    scribe.turn("zebra", id="b", conversation="d", project="p")

    for _ in range(2):
        with scribe.store.read() as reader:
            for conditions, wanted in [
                ({"conversation": "c"}, {"a"}),
                ({"project": "p"}, {"b"}),
                ({"since": now}, {"b"}),
                ({"until": now}, {"a"}),
                ({"conversation": "c", "since": now}, set()),
                ({}, {"a", "b"}),
            ]:
                found = reader.turns.match(["zebra"], Filter(now=now, **conditions), limit=9)
                assert {turn.entry_id for turn in found} == wanted
        scribe.index()


def test_frequencies_count_texts(scribe):
    """In how many texts a stem stands: turns and memories, indexed or waiting, each counted once."""
    scribe.turns(["apples and apples", "an apple", "pears"])
    scribe.memory("apple pie")
    stems = [stems_of(word)[0] for word in ("apples", "pears", "plums")]
    with scribe.store.read() as reader:
        before = reader.words.frequencies(stems)
    scribe.index()
    with scribe.store.read() as reader:
        after = reader.words.frequencies(stems)

    assert after == {"appl": 3, "pear": 1, "plum": 0}
    assert before == after


def test_corpus_size_is_about_right(scribe):
    """Zero when empty, and never far from the number of memories and turns."""
    with scribe.store.read() as reader:
        assert reader.words.corpus_size() == 0

    scribe.turns(["x"] * 20)
    for _ in range(10):
        scribe.memory("x")

    with scribe.store.read() as reader:
        assert 30 <= reader.words.corpus_size() <= 60


def test_a_long_text_is_found_by_its_last_word(scribe):
    """There is no length beyond which words are lost."""
    text = " ".join(f"word{n}" for n in range(60_000)) + " zebra"
    scribe.turn(text)
    scribe.memory(text)
    with scribe.store.read() as reader:
        before = ask(reader, "zebra")
    scribe.index()
    with scribe.store.read() as reader:
        after = ask(reader, "zebra")

    assert [len(found) for found in (*before, *after)] == [1, 1, 1, 1]
