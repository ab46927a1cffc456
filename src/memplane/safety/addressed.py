"""Whether a text gives orders to the agent that reads it: a learned score over concepts, words and structure.

Ordinary text is dismissed by a look at its words. What remains is cut into windows of one or two sentences, and each window
gets a score from a linear model (`learned/injection.txt`, made by `training/injection.py`). The highest score counts, so an
order is as visible in a long document as alone.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from memplane.models.linear import Linear, load_linear
from memplane.safety.vocabulary import UNSPACED, WORD, vocabulary

THRESHOLD = 0.5
"""The score of a probable order. `provenance` holds back text from a program well below it."""
_LONG_CHARS, _LONG_SHARE, _LONG_MAX = 300, 0.5, 2.0
"""A long text has more windows that may have a high score by chance, so its score counts less, up to a limit."""
_STRONG = frozenset(
    ["drop", "rules", "agent", "secret", "hide", "role", "authority", "tool", "user", "answer"]
)
_MEDIUM = frozenset(
    ["send", "reveal", "act", "data", "memory", "money", "force", "mode", "prior", "doc", "told", "consent", "rank", "say",
     "turnover"]
)  # fmt: skip
_GATE_MIN = 3
"""A strong concept counts two, a medium one counts one; with less than this, nothing is scored."""
_SENTENCE_CHARS_MAX = 320
_SENTENCE = re.compile("(?<=[.!?])\\s+|[\\n\\r\u3002\uff01\uff1f\u061f\u0964]+|(?<=\\])\\s+|(?=<[!/a-z])")
_WORDS_MAX = 80
_HOPELESS = -6.0
"""A window whose concepts and structure are below this is not looked at more closely."""
_BREAK = re.compile(r"[,;:.!?()\[\]<>\"\u2014\u2013/#*|-]")
_CONNECTIVES = frozenset(
    [
        "please",
        "and",
        "then",
        "now",
        "also",
        "instead",
        "first",
        "must",
        "should",
        "shall",
        "always",
        "never",
        "not",
        "t",
        "to",
        "just",
        "kindly",
        "will",
        "bitte",
        "und",
        "dann",
        "jetzt",
        "immer",
        "nie",
        "nicht",
        "zu",
        "et",
        "puis",
        "ensuite",
        "toujours",
        "ne",
        "y",
        "luego",
        "ahora",
        "siempre",
        "no",
        "e",
        "poi",
        "ora",
        "sempre",
        "non",
        "i",
        "potem",
        "teraz",
        "zawsze",
        "nie",
        "en",
        "daarna",
        "nu",
        "altijd",
        "niet",
        "и",
        "затем",
        "не",
        "ve",
        "sonra",
        "och",
        "sedan",
        "inte",
    ]
)
"""Words before the verb of an order."""
_NAME = re.compile(r"([^\W_]{2,20})[,:]")
_NAMED = frozenset(["agent", "authority", "user"])
_PREFIX_CHARS = 5

_READERS = r"\b(?:ai|ais|assistants?|agents?|llms?|models?|bots?|copilot|claude|chatgpt|gpt|reviewers?|summari[sz]ers?)\b"
_STRUCTURE = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("role", r"^\W{0,8}(?:system|assistant|user|human|developer|tool|admin|ai|agent|model)\b[^\w\n]{0,4}[:\]>)]"),
        ("to", r"\b(?:note|message|notice|memo|attention|hint|instructions?|task|todo|dear|to)\b[^.\n]{0,16}" + _READERS),
        ("if", r"\bif (?:you(?: a|')re|an|any|the) (?:an? |)(?:ai|llm|language|assistant|agent|model|bot|automated)"),
        ("comment", r"<!--|/\*|^\s{0,8}(?:#|//|--|\*|;)"),
        ("tag", r"</?[a-z_]{3,20}>"),
        ("hiddenstyle", r"display ?: ?none|font-size ?: ?0|visibility ?: ?hidden|opacity ?: ?0|aria-hidden|color ?: ?(?:white|#fff)"),
        ("json", r"\"(?:role|system|instructions?|tool|function|content|action)\" ?:"),
        ("fence", r"-{3}|={3}|#{2}|`{3}|\*{3}|\[/?[a-z_ ]{3,24}\]"),
        ("end", r"\bend of (?:the )?(?:\w{1,12} ){0,2}(?:document|email|data|context|results?|input|content|message|page|file|text|output|article)"),
        ("url", r"https?://|www\."),
        ("mail", r"[\w.+-]@[\w-]"),
        ("quoted", r"[\"“”«»„]"),
        ("question", r"\?\W{0,3}$"),
        ("code", r"\(\)|[{};=]{1}\s|\bdef \w|\breturn\b|=>"),
    )
)  # fmt: skip


class Sentence(NamedTuple):
    """A sentence with its words, and the concepts among them in their order."""

    text: str
    words: list[str]
    concepts: list[str]


def score(folded: str, words: set[str], heads: set[str]) -> float | None:
    """The highest score of a window of the folded text; None if the text was dismissed."""
    unspaced = not folded.isascii() and UNSPACED.search(folded) is not None
    distinct = vocabulary().distinct(words, heads)
    if unspaced:
        distinct.update(found.concept for found in vocabulary().anywhere(folded))
    if not _passes(distinct):
        return None
    model = load_linear("injection", "memplane.safety")
    best = max((_weigh(model, window) for window in windows(folded, unspaced=unspaced)), default=None)
    if best is None or len(folded) <= _LONG_CHARS:
        return best
    return best - min(_LONG_MAX, _LONG_SHARE * math.log2(len(folded) / _LONG_CHARS))


def _passes(concepts: set[str]) -> bool:
    strong = len(concepts & _STRONG)
    return 2 * strong + len(concepts & _MEDIUM) >= (_GATE_MIN if strong else _GATE_MIN + 1)


def windows(folded: str, *, unspaced: bool) -> Iterator[Sentence]:
    """Each sentence, and each with the next one, if they have enough concepts to be scored."""
    before: Sentence | None = None
    for text in _sentences(folded):
        here = _sentence(text, unspaced=unspaced)
        if _passes(set(here.concepts)):
            yield here
        if before is not None and (before.concepts or here.concepts):
            both = Sentence(
                f"{before.text} {text}", before.words + here.words, before.concepts + here.concepts
            )
            if _passes(set(both.concepts)):
                yield both
        before = here


def _sentences(folded: str) -> Iterator[str]:
    for piece in _SENTENCE.split(folded):
        for start in range(0, len(piece), _SENTENCE_CHARS_MAX):
            if text := piece[start : start + _SENTENCE_CHARS_MAX].strip():
                yield text


def _sentence(text: str, *, unspaced: bool) -> Sentence:
    words = WORD.findall(text)[:_WORDS_MAX]
    concepts = vocabulary().known(words)
    if unspaced and UNSPACED.search(text):
        concepts += [found.concept for found in vocabulary().anywhere(text)]
    return Sentence(text, words, concepts)


def first_words(folded: str) -> list[str]:
    """The first word of each sentence, without the words that stand before the verb of an order."""
    found = []
    for text in _sentences(folded):
        words = [
            word for word in WORD.findall(text)[:4] if word not in _CONNECTIVES or word in ("always", "never")
        ]
        found += words[:1]
    return found


def shared_features(window: Sentence) -> list[str]:
    """The features of concepts and structure, which every language shares."""
    concepts = window.concepts[:_WORDS_MAX]
    kinds = sorted(set(concepts))
    shared = [f"c:{kind}" for kind in kinds]
    shared += [f"p:{one}&{other}" for at, one in enumerate(kinds) for other in kinds[at + 1 :]]
    ordered = {f"o:{one}>{other}" for one, other in pairwise(concepts)}
    ordered.update(f"t:{a}>{b}>{c}" for a, b, c in zip(concepts, concepts[1:], concepts[2:], strict=False))
    shared += sorted(ordered)
    shared += [f"s:{name}" for name, pattern in _STRUCTURE if pattern.search(window.text)]
    first = _first_in_clauses(window)
    shared += [f"i:{one}" for one in first]
    shared += [f"j:{one}&{other}" for one in first for other in kinds if other != one]
    shared.append(f"n:{min(6, len(window.words) // 6)}")
    return shared


def own_features(window: Sentence) -> list[str]:
    """The features of words, and of letters where words are not separated."""
    words = window.words
    own = {f"w:{word}" for word in words}
    own.update(f"x:{word[:_PREFIX_CHARS]}" for word in words if len(word) > _PREFIX_CHARS)
    own.update(f"b:{one} {other}" for one, other in pairwise(words))
    own.update(f"1:{word}" for word in words[:1])
    if UNSPACED.search(window.text):
        text = window.text
        own.update(f"g:{text[at : at + 2]}" for at in range(len(text) - 1))
        own.update(f"g:{text[at : at + 3]}" for at in range(len(text) - 2))
    return sorted(own)


def _first_in_clauses(window: Sentence) -> list[str]:
    """The concepts of words that begin a clause, where an order has its verb, and of those that are called by name."""
    beginnings = [WORD.search(clause) for clause in _BREAK.split(window.text)[:_WORDS_MAX]]
    first = {found.group() for found in beginnings if found is not None}
    first.update(word for before, word in pairwise(window.words) if before in _CONNECTIVES)
    found = {concept for word in first if (concept := vocabulary().concept(word)) is not None}
    for name in _NAME.findall(window.text)[:_WORDS_MAX]:
        if (concept := vocabulary().concept(name)) in _NAMED:
            found.add(f"{concept}!")
    return sorted(found)


def _weigh(model: Linear, window: Sentence) -> float:
    unknown: set[str] = set()
    shared = model.bias + model.add(shared_features(window), unknown)
    if shared < _HOPELESS:
        return shared
    own = own_features(window)
    return shared + share(len(own)) * model.add(own, unknown)


def share(count: int) -> float:
    """A long window has more words, but they do not say more."""
    return 2 / math.sqrt(count) if count else 0.0
