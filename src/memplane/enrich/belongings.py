"""What `my …` says in passing: who walks `my dog` has a dog."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.enrich.catalog import Catalog
from memplane.enrich.english import STOP_WORDS, stem
from memplane.enrich.parse import Parsed
from memplane.enrich.wordlists import word_class

_WORDS = re.compile(r"\b(?:my|our) +((?:[\w-]+ *){1,4})", re.IGNORECASE)
_NAME = re.compile(r"(?:,? named |,? called |,? )(?P<name>[A-Z][a-z]+)\b")
_NAMED_ALREADY = re.compile(r"['\u2019]s name\b")
_THINGS = word_class("belongings")
_EVERYBODY = word_class("relatives_of_everybody")
_PLACES = {"family": "has_family", "pet": "has_pet", "vehicle": "owns"}
_OPENING = word_class("belonging_openings")
_FORMER = word_class("former")
_ENDS = word_class("ending") | word_class("parting")


class Belonging(NamedTuple):
    """What someone has, filed under a predicate, and where it stands in the text."""

    predicate: str
    noun: str
    phrase: str
    """With its article: `a dog named Rex`."""
    topic: str
    start: int
    end: int


def is_over(parsed: Parsed) -> bool:
    """Whether a clause tells of an end, so that what is mine in it may be mine no more: `I sold my car`."""
    return parsed.verb in _ENDS or (parsed.verb == "give" and "up" in parsed.rest)


def belongings(text: str, start: int, end: int, catalog: Catalog) -> Iterator[Belonging]:
    for found in _WORDS.finditer(text, start, end):
        kept: list[str] = []
        at = found.start(1)
        for word in found.group(1).split():
            at = text.index(word, at) + len(word)
            noun = stem(word)
            topic = catalog.class_of(word)
            if topic in _PLACES or noun in _THINGS:
                if noun in _EVERYBODY or at > end or _NAMED_ALREADY.match(text, at, end):
                    break
                kept.append(word.lower() if word.islower() or word.isupper() else word)
                phrase = _with_article(kept)
                name = _NAME.match(text, at, end) if topic in {"family", "pet"} else None
                if name:
                    phrase, at = f"{phrase} named {name['name']}", name.end()
                yield Belonging(_PLACES.get(topic, "owns"), noun, phrase, topic, found.start(), at)
                break
            if word.lower() in _FORMER:
                break
            if word.lower() in _OPENING:
                continue
            if word.lower() in STOP_WORDS or not word.isalpha() or word.lower().endswith("s"):
                break
            kept.append(word)


def _with_article(words: list[str]) -> str:
    phrase = " ".join(words)
    last = words[-1].lower()
    if (last.endswith("s") and not last.endswith("ss")) or last in {
        "children",
        "grandchildren",
        "fish",
        "sheep",
    }:
        return phrase
    return f"{'an' if phrase[0].lower() in 'aeiou' else 'a'} {phrase}"
