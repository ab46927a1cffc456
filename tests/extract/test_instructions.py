"""Which sentences instruct an agent for later."""

import pytest

from memplane.extract.catalog import load_catalog
from memplane.extract.rules import extract

LASTING = [
    "keep answers under 100 words from now on",
    "Answer in French from now on, please.",
    "Henceforth reply in Spanish",
    "Please answer me only in German",
    "Call me Captain",
    "please refer to me as Doctor Lee",
    "Stop using emojis!",
    "No emojis, ever.",
    "When I ask about flights, prefer aisle seats",
    "whenever you write code, add type hints",
    "I\u2019d like you to be brief",
    "Bitte antworte immer auf Englisch.",
    "A partir de ahora llámame jefa.",
    "Appelle-moi Capitaine.",
    "Responda sempre em inglês",
    "Dammi del tu",
    "Всегда отвечай мне по-английски.",
    "Noem me altijd Baas",
    "Odpowiadaj zawsze po polsku",
    "以后都叫我老板。",
    "これからは英語で答えて。",
    "항상 존댓말로 대답해 줘.",
    "actually, answer in English from now on",
    "No, call me Steve",
    "Actually, from now on use spaces",
    # Withdrawals, which end an earlier one
    "stop answering in French",
    "You don\u2019t need to answer in French any more.",
    "emojis are fine again",
    "you can write longer answers again",
    "you may push to main now",
    "Ne réponds plus en français.",
    "Du musst nicht mehr auf Französisch antworten",
    "不用再用法语回答",
]
OTHER = [
    "Answer in French",  # perhaps this once
    "Use metric units",
    "call me tomorrow",
    "Call me Monday",
    "call me when you land",
    "Never have I seen such a mess",
    "I want you to know that I care",
    "My dad always calls me Captain",
    "Stop using my car, I told him",
    "When I ask about it, they say no",
    "From now on I live in Porto",
    "No worries",
    "Could you call me Captain?",
    "Llámame mañana",
    "A partir de ahora trabajo en Madrid",
    "Il parle toujours trop",
    "Я всегда отвечаю на письма",
    "大家都叫我老王",
    "Actually, don't go there",
    "Actually, I answer in French",
    "Arrête de pleurer",
    "You can see the sea now",
    "My parents are fine now, they called again",
    "I don't need to answer in French any more",
    "The kids are fine again",
]


def instructed(text, role="user"):
    return [
        claim.object_text
        for claim in extract(text, role=role, catalog=load_catalog())
        if claim.predicate == "instructs"
    ]


@pytest.mark.parametrize("text", LASTING)
def test_what_is_meant_to_last_instructs(text):
    """
    In the user's words. Others do not instruct.
    """
    assert instructed(text) == [text.rstrip(" .!\u3002")]
    assert instructed(text, role="assistant") == []


@pytest.mark.parametrize("text", OTHER)
def test_other_sentences_do_not(text):
    assert instructed(text) == []
