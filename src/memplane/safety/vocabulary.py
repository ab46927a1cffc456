"""The words by which text addresses an agent, as concepts, in many languages: `injection_words.toml`."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from string import ascii_lowercase
from typing import NamedTuple

from memplane.safety.fold import fold

HEAD_CHARS = 4
"""Stems are looked up by their first characters."""
_TYPO_CHARS_MIN = 6
_KEY_CONCEPTS = ("drop", "rules", "prior", "secret", "authority")
_TYPO_WORDS = frozenset(
    [
        "ignore",
        "disregard",
        "forget",
        "override",
        "overriding",
        "bypass",
        "instruction",
        "instructions",
        "directive",
        "directives",
        "guidelines",
        "restrictions",
        "previous",
        "earlier",
        "password",
        "passwords",
        "credentials",
        "system",
        "administrator",
        "developer",
    ]
)
"""Key words that are also recognised with one edit. Few, because all their variants are listed."""
_EVERYWHERE = ("you", "self", "not", "order")
"""Concepts of words that almost every text has."""
_NO_TYPOS = frozenset(
    ["precious", "police", "adjective", "restrictive", "instructor", "executive", "injunction", "elective"]
)
"""Words of their own, one edit from a listed one."""

WORD = re.compile(r"[^\W_]+")
UNSPACED = re.compile("[\u0590-\u1cff\u1ea0-\u1eff\u3040-\ud7ff]")
"""Letters of scripts whose words are found anywhere in the text."""


class Found(NamedTuple):
    """A concept and where it occurs."""

    at: int
    concept: str


class Vocabulary:
    """Maps words to concepts. Looking up a word takes constant time, whatever the number of words."""

    def __init__(self, lists: dict[str, dict[str, str]]) -> None:
        self._exact: dict[str, str] = {}
        self._stems: dict[str, list[tuple[str, str]]] = {}
        unspaced: dict[str, str] = {}
        english: dict[str, str] = {}
        for concept, languages in lists.items():
            for language, text in languages.items():
                for entry in text.split():
                    if language == "unspaced":
                        unspaced.setdefault(fold(entry.replace("_", " ")), concept)
                        continue
                    self._add(fold(entry), concept)
                    if language == "en" and concept in _KEY_CONCEPTS:
                        english.setdefault(entry.rstrip("*"), concept)
        self._unspaced = {word: concept for word, concept in unspaced.items() if not _is_short(word)}
        self._anywhere = re.compile("|".join(map(_literal, sorted(self._unspaced, key=len, reverse=True))))
        long = [word for word in english if len(word) >= _TYPO_CHARS_MIN]
        self.typos: dict[str, str] = {}
        """Key words by what is one edit away from them."""
        for word in sorted(_TYPO_WORDS):
            for near in _one_edit(word):
                if self.concept(near) is None and near not in _NO_TYPOS:
                    self.typos[near] = word
        self._stem_keys = frozenset(self._stems)
        self._telling = frozenset(
            [word for word, concept in self._exact.items() if concept not in _EVERYWHERE]
        )
        self.joined = re.compile(
            "|".join(
                sorted(
                    (re.escape(word) for word in english if len(word) >= HEAD_CHARS), key=len, reverse=True
                )
            )
        )
        """English key words where nothing separates them."""
        self.keys = frozenset(long)

    def _add(self, entry: str, concept: str) -> None:
        stem = entry.rstrip("*")
        if entry == stem or len(stem) < HEAD_CHARS:
            self._exact.setdefault(stem, concept)
        else:
            self._stems.setdefault(stem[:HEAD_CHARS], []).append((stem, concept))

    def concept(self, word: str) -> str | None:
        found = self._exact.get(word)
        if found is None:
            for stem, concept in self._stems.get(word[:HEAD_CHARS], ()):
                if word.startswith(stem):
                    return concept
        return found

    def known(self, words: Iterable[str]) -> list[str]:
        """The concepts of these words, and of what is within one edit of a key word."""
        typos = self.typos
        found = (self.concept(typos.get(word, word)) for word in words)
        return [concept for concept in found if concept is not None]

    def distinct(self, words: set[str], heads: set[str]) -> set[str]:
        """As `known`, each concept once, without those that every text has. `heads` are the beginnings of the words. Fast: most
        words are dismissed together."""
        exact = self._exact
        found = {exact[word] for word in words & self._telling}
        if there := heads & self._stem_keys:
            found.update(filter(None, [self.concept(word) for word in words if word[:HEAD_CHARS] in there]))
        if typed := words & self.typos.keys():
            found.update(self.known(typed))
        return found

    def anywhere(self, folded: str) -> Iterator[Found]:
        """The concepts of a text whose words are not separated, in their order."""
        for match in self._anywhere.finditer(folded):
            yield Found(match.start(), self._unspaced[match.group()])


def _is_short(word: str) -> bool:
    return word.isascii() and " " not in word


def _literal(word: str) -> str:
    return rf"\b{re.escape(word)}\b" if word.isascii() else re.escape(word)


def _one_edit(word: str) -> Iterator[str]:
    """The word with one letter left out, replaced, added, or exchanged with the next."""
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in ascii_lowercase)
        yield from (before + letter + after for letter in ascii_lowercase)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


@cache
def vocabulary() -> Vocabulary:
    file = resources.files("memplane.safety").joinpath("injection_words.toml")
    return Vocabulary(tomllib.loads(file.read_text("utf-8")))
