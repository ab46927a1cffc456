"""How well the offline extractor does on labelled dialogues, dated statements and numbered facts.

Every scorer takes the data as loaded and returns figures only; none of them prints or keeps what it read.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.claims import render
from memplane.extract.gate import UTILITY_MIN, is_useful, utility_of_message
from memplane.extract.proposition import Proposition
from memplane.extract.rules import extract

MATCH_MIN = 0.5
_TOKENS = re.compile(r"\w+")
_SENTENCES = re.compile(r"(?<=[.!?])\s+")


class PrecisionRecall(msgspec.Struct, frozen=True):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


class ExtractionScores(msgspec.Struct, frozen=True, kw_only=True):
    """Figures for dialogues in which people wrote down, per turn, what they learned."""

    gate: PrecisionRecall
    """Messages that pass, against turns of which something was written down."""
    stored: PrecisionRecall
    """Messages of which at least one proposition is kept, against the same."""
    facts: PrecisionRecall
    """Against each sentence that was written down."""
    notes: PrecisionRecall
    """Against each turn's note as a whole, all extracted sentences joined."""
    quotes_exact: float
    messages: int


def score_dialogues(
    dialogues: Sequence[Sequence[Mapping[str, Any]]], catalog: PredicateCatalog
) -> ExtractionScores:
    gate, stored, facts, notes = _Tally(), _Tally(), _Tally(), _Tally()
    quotes = exact = messages = 0
    for turn in (turn for dialogue in dialogues for turn in dialogue):
        text, gold = turn["text"], [fact for fact in turn["facts"] if fact.strip()]
        found = extract(text, role="user", catalog=catalog)
        quotes += len(found)
        exact += sum(_is_exact(text, proposition) for proposition in found)
        kept = [render(proposition) for proposition in found if is_useful(proposition, catalog)]
        passed = utility_of_message(text, found, catalog) >= UTILITY_MIN
        gate.add(hits=int(passed and bool(gold)), found=int(passed), wanted=int(bool(gold)))
        stored.add(hits=int(bool(kept and gold)), found=int(bool(kept)), wanted=int(bool(gold)))
        sentences = gold_sentences(gold)
        facts.add(hits=matches(kept, sentences), found=len(kept), wanted=len(sentences))
        whole = [" ".join(kept)] if kept else []
        notes.add(
            hits=matches(whole, [" ".join(gold)] if gold else []), found=len(whole), wanted=int(bool(gold))
        )
        messages += 1
    return ExtractionScores(
        gate=gate.score(),
        stored=stored.score(),
        facts=facts.score(),
        notes=notes.score(),
        quotes_exact=exact / quotes if quotes else 1.0,
        messages=messages,
    )


def gold_sentences(facts: Sequence[str]) -> list[str]:
    """What was written down of one turn, sentence by sentence: a note often holds several facts."""
    return [sentence for fact in facts for sentence in _SENTENCES.split(fact.strip()) if sentence]


def matches(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many pairs can be made, best first, each sentence once, of those alike enough."""
    pairs = sorted(
        ((token_f1(one, other), i, j) for i, one in enumerate(found) for j, other in enumerate(wanted)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    used_found: set[int] = set()
    used_wanted: set[int] = set()
    for score, i, j in pairs:
        if score >= MATCH_MIN and i not in used_found and j not in used_wanted:
            used_found.add(i)
            used_wanted.add(j)
    return len(used_found)


def token_f1(one: str, other: str) -> float:
    left, right = Counter(_TOKENS.findall(one.lower())), Counter(_TOKENS.findall(other.lower()))
    shared = sum((left & right).values())
    return 2 * shared / (left.total() + right.total()) if shared else 0.0


class _Tally:
    def __init__(self) -> None:
        self._hits = self._found = self._wanted = 0

    def add(self, *, hits: int, found: int, wanted: int) -> None:
        self._hits += hits
        self._found += found
        self._wanted += wanted

    def score(self) -> PrecisionRecall:
        return PrecisionRecall(self._hits / max(self._found, 1), self._hits / max(self._wanted, 1))


def _is_exact(text: str, proposition: Proposition) -> bool:
    quote = text[proposition.start : proposition.end]
    return bool(quote) and 0 <= proposition.start < proposition.end <= len(text) and quote == quote.strip()
