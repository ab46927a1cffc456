"""Which texts count as English: the decision on the encoder is fast, robust and the same everywhere."""

import hashlib

import pytest

from memplane.models.language import evidence, is_english, language_weights

WEIGHTS = "2c521792210b7b4174547668ccf0f4a62676c40569fddfa34b4fe99d44eaed4f"


def test_the_weights_are_those_we_measured():
    """
    The decision is a part of the model: other weights need another model id.
    """
    assert hashlib.sha256(language_weights().read_bytes()).hexdigest() == WEIGHTS
    assert language_weights().stat().st_size < 200_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "hi",
        "ok",
        "no",
        "thanks!",
        "what is my job?",
        "where do I live",
        "Prefers tea",
        "volcano",
        "pizza",
        "Kubernetes v1.29",
        "Berlin",
        "Luna",
        "María José García",
        "Jürgen's birthday is in May",
        "She lives in São Paulo",
        "Is Oscar Melanie's pet?",
        "Los Angeles",
        "user: hi",
        "https://example.com/straße/über/uns",
        "someone@beispiel.de",
        "12345",
        "3.14 + 2",
        "😀🐈",
        "!?…",
        "def wohnung(x): return x_und + 1",
        "`ich_wohne_hier()`",
        "git rebase -i HEAD~3",
        "SELECT * FROM users WHERE id = 1;",
        "LGTM",
        "/usr/share/doc/über",
        "half \ud83d a pair",
        "\x00\x07",
        "Δ is the change in x, and π is about 3.14",
        "She said guten Morgen to me and then we talked about the weather for an hour",
        "My notes about the trip to Kyoto (京都) last spring, when we saw the temples",
    ],
)
def test_english_and_whatever_has_no_language(text):
    """
    English, names, numbers, code, addresses, emoji and nothing at all count as English.
    """
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "hallo",
        "wo wohne ich?",
        "Ich arbeite bei Google als Software Engineer",
        "Termin beim Zahnarzt",
        "bonjour",
        "où est-ce que j'habite ?",
        "J'utilise Docker et Kubernetes",
        "¿dónde trabajo?",
        "Prefiero el té",
        "onde eu moro?",
        "dove lavoro?",
        "il mio cane si chiama Fido",
        "Waar woon ik?",
        "Gdzie pracuję?",
        "Nerede oturuyorum?",
        "Var bor jag?",
        "Tôi thích cà phê",
        "Saya suka kopi",
        "Pidän kahvista",
        "我喜欢猫",
        "基金申请必须在3月14日中午之前提交。",
        "私の猫の名前は Luna です",
        "내 고양이 이름은 Luna",
        "أين أعمل؟",
        "Я использую Kubernetes и PostgreSQL каждый день",
        "Πού δουλεύω;",
        "איפה אני גר?",
        "मुझे बिल्लियाँ पसंद हैं",
        "Er sagte good morning zu mir und dann haben wir eine Stunde über das Wetter geredet",
    ],
)
def test_other_languages(text):
    """
    Other scripts and other languages are recognised, also in a few words and with English words among theirs.
    """
    assert not is_english(text)


def test_long_texts_are_read_as_far_as_an_encoder_reads():
    """
    Megabytes cost no more than a page, and one long token is no word.
    """
    text = "This is an English sentence about the weather. " * 60

    assert evidence(text) == evidence(text + "Und das hier ist Deutsch. " * 100_000)
    assert evidence("straßenbahnhaltestelle" * 10_000) == evidence("")
