"""Which wording of a statement people write down, and how likely they write it down at all.

Learned from dialogues in which a person noted, turn by turn, what is worth knowing (docs/internals/extraction.md). The
features below are what the model sees; training and reading share them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from memplane.extract.english import STOP_WORDS, base_form, third_person, word_class
from memplane.extract.parse import ParsedClause
from memplane.extract.proposition import Proposition
from memplane.models.linear import load_linear, probability

# The candidate wordings of a clause: whole, or cut where a phrase ends. From `I am working at a lab with my sister
# these days`, people note `I work at a lab`.

_ENDS = word_class("phrase_ends")
_EMPTY = word_class("intensifiers")
_NO_HABITS = word_class("no_habits")
_TRAILING = word_class("trailing")
_OPEN = word_class("prepositions") | word_class("determiners") | word_class("open_ends")
"""Nothing ends with one of these."""
_PHRASINGS_MAX = 6
_WORDS_MAX = 24
_EDGE = ' ,.;:!?-\u2014\u2026()"*'
_SHORT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "can not": "can't", "could not": "couldn't",
    "will not": "won't", "would not": "wouldn't", "have not": "haven't", "has not": "hasn't", "had not": "hadn't",
    "should not": "shouldn't",
}  # fmt: skip
_FIRST = frozenset({"I", "we"})


class Phrasing(NamedTuple):
    """One way, and where it ended: the word that was left out first, or nothing."""

    text: str
    cut: str
    form: str = ""


def phrasings(parsed: ParsedClause) -> Iterator[Phrasing]:
    """The whole clause first, then the shorter ones, shortest first."""
    subject = f"{parsed.owner[:1].upper()}{parsed.owner[1:]}"
    words = [word for word in parsed.rest.split() if word.strip(_EDGE) not in _EMPTY][:_WORDS_MAX]
    while words and words[-1].strip(_EDGE).lower() in _TRAILING:
        words.pop()
    yield from _ended(f"{subject} {verb_phrase(parsed)}", words, "")
    plain = _simple(parsed)
    if plain:
        yield from _ended(f"{subject} {plain}", words, "simple")


def verb_phrase(parsed: ParsedClause) -> str:
    """The verb and its helpers, in agreement with `I` and with the short negations people write."""
    words = parsed.group.split()
    if parsed.owner in _FIRST:
        if words[0].endswith("ing") and base_form(words[0]) not in {words[0], None}:
            words = ["are" if parsed.owner == "we" else "am", *words]
        elif words[0] == "been":
            words = ["have", *words]
    for at in range(len(words) - 1):
        short = _SHORT.get(f"{words[at]} {words[at + 1]}")
        if short:
            return " ".join([*words[:at], short, *words[at + 2 :]])
    return " ".join(words)


def _simple(parsed: ParsedClause) -> str:
    """`am working` and `have been working` as a habit: `work`; empty where nothing goes on."""
    words = parsed.group.split()
    if parsed.negative or parsed.modal or not words[-1].endswith("ing") or parsed.verb in _NO_HABITS:
        return ""
    if words[:-1] not in (["am"], ["are"], ["is"], ["have", "been"], ["has", "been"]):
        return ""
    return parsed.verb if parsed.owner in _FIRST else third_person(parsed.verb)


def _ended(start: str, words: Sequence[str], form: str) -> Iterator[Phrasing]:
    whole = f"{start} {' '.join(words)}".strip(_EDGE)
    yield Phrasing(whole, "", form)
    count = 0
    for at in range(_key_words(words), len(words)):
        word = words[at].strip(_EDGE).lower()
        if words[at - 1].lower() in _OPEN or (words[at - 2].lower() == "and" and base_form(words[at - 1])):
            continue
        if word in _ENDS or words[at - 1][-1] in ",;":
            yield Phrasing(f"{start} {' '.join(words[:at])}".strip(_EDGE), word or ",", form)
            count += 1
            if count == _PHRASINGS_MAX:
                return


def _key_words(words: Sequence[str]) -> int:
    """The least a note holds: names and numbers are what one would look for later, so none of the first is cut off."""
    return max(
        (at for at in range(1, min(len(words), _NAMES_WITHIN) + 1) if _NAMES(words[at - 1])), default=1
    )


_NAMES_WITHIN = 12
_NAMES = re.compile(r"(?!I\b)[A-Z]|\S*\d").match


_WORDS = re.compile(r"\w+")
_QUESTION_CHARS = 300
_LENGTH_EXACT = 8
_LENGTH_MAX = 20


class ClaimDraft(NamedTuple):
    """A claim and the ways to word it; without any, nothing was learned about its sort."""

    proposition: Proposition
    kind: str = ""
    ways: tuple[Phrasing, ...] = ()
    parsed: ParsedClause | None = None


def choose(drafts: Sequence[ClaimDraft], text: str, before: str) -> list[Proposition]:
    """Each claim in its best wording. What another claim of the message says as well is left out."""
    if not any(draft.ways for draft in drafts):
        return [draft.proposition for draft in drafts]
    model = load_linear("notes")
    question = question_words(before)
    unknown: set[str] = set()
    shared = model.bias + model.add(of_message(text, before), unknown)
    chosen: list[Proposition] = []
    for draft in drafts:
        if not draft.ways:
            chosen.append(draft.proposition)
            continue
        base = shared + model.add(of_draft(draft), unknown)
        scores = [model.add(note_features(draft, way, question), unknown) for way in draft.ways]
        best = max(scores)
        note = "" if draft.proposition.replaces else draft.ways[scores.index(best)].text
        noted = round(probability(base + best), 4)
        chosen.append(msgspec.structs.replace(draft.proposition, note=note, noted=noted))
    return _once(chosen)


def _once(chosen: Sequence[Proposition]) -> list[Proposition]:
    """Without what only repeats another one in other words: `I have a dog`, told of `my dog`, beside `I have a dog named
    Rex`. Of two, the one people would rather write down stays."""
    kept: list[Counter[str]] = []
    dropped: set[int] = set()
    if len(chosen) < 2 or not any(map(_may_repeat, chosen)):  # noqa: PLR2004
        return [*chosen]
    order = sorted(range(len(chosen)), key=lambda at: (-(chosen[at].noted or 1.0), at))
    for at in order:
        proposition = chosen[at]
        words = Counter(_WORDS.findall(proposition.note.lower()))
        if not words:
            continue
        if _may_repeat(proposition) and any(_alike(words, other) for other in kept):
            dropped.add(at)
        else:
            kept.append(words)
    return [proposition for at, proposition in enumerate(chosen) if at not in dropped]


def _may_repeat(proposition: Proposition) -> bool:
    return proposition.completed or proposition.predicate in _OFTEN_REPEATED


_OFTEN_REPEATED = frozenset({"has_family", "has_pet", "owns"})
_ALIKE = 0.6


def _alike(one: Counter[str], other: Counter[str]) -> bool:
    return 2 * (one & other).total() >= _ALIKE * (one.total() + other.total())


def of_draft(draft: ClaimDraft) -> Iterator[str]:
    """What the claim says about itself, however it is worded."""
    proposition, parsed = draft.proposition, draft.parsed
    kind = draft.kind
    yield f"predicate {proposition.predicate} {proposition.topic}"
    yield f"predicate {proposition.predicate} {kind}"
    if parsed is None:
        return
    verb = parsed.verb
    owner = parsed.owner.rpartition(" ")[2].lower()
    yield f"verb {verb}"
    yield f"verb {verb} {parsed.tense} {parsed.modal}"
    yield f"tense {parsed.tense} {parsed.modal}"
    yield f"negative {parsed.negative}"
    yield f"owner {owner}"
    yield f"owner {owner} {verb}"
    yield f"update {parsed.update}"
    yield f"when {bool(parsed.when)}"


def note_features(draft: ClaimDraft, way: Phrasing, question: Sequence[str]) -> Iterator[str]:
    verb = draft.parsed.verb if draft.parsed else ""
    return of_phrasing(way, draft.kind, verb, question, len(draft.ways[0].text.split()))


def of_message(text: str, before: str) -> list[str]:
    """What the message as a whole says about each of its statements."""
    question = question_words(before)
    return [
        f"length {_bin(len(text.split()))}",
        f"asked {'_'.join(question[:2])}",
        f"asked {'_'.join(question[:3])}",
        f"was asked {bool(question)}",
        f"ends asking {text.rstrip().endswith('?')}",
    ]


def question_words(before: str) -> list[str]:
    """The words of the question the message before ended with."""
    end = before.rstrip()
    if not end.endswith("?"):
        return []
    last = re.split(r"[.!?]\s", end[-_QUESTION_CHARS:])[-1]
    return _WORDS.findall(last.lower())


def of_phrasing(
    phrasing: Phrasing, kind: str, verb: str, question: Sequence[str], whole: int
) -> Iterator[str]:
    """What a wording says about itself: its words, how it ends, how much of the clause it leaves out."""
    words = _WORDS.findall(phrasing.text.lower())
    if not words:
        return
    count, cut = _bin(len(words)), phrasing.cut
    last = _shape(words[-1])
    yield f"kind {kind} {phrasing.form}"
    yield f"count {count}"
    yield f"kind {kind} count {count}"
    yield f"cut {cut}"
    yield f"kind {kind} {bool(cut)}"
    yield f"verb {verb} count {count}"
    yield f"verb {verb} cut {cut}"
    yield f"last {last} cut {cut}"
    yield f"last word {words[-1]}"
    yield f"start {' '.join(words[:3])}"
    yield f"left {_bin(whole - len(words))}"
    yield f"echo {len(set(words).intersection(question) - STOP_WORDS)}"
    yield from words
    yield f"^ {words[0]}"
    for left, right in pairwise(words):
        yield f"{left} {right}"
    yield f"{words[-1]} $"


def _bin(count: int) -> int:
    if count <= _LENGTH_EXACT:
        return count
    return min(_LENGTH_EXACT + (count - _LENGTH_EXACT) // 3, _LENGTH_MAX)


def _shape(word: str) -> str:
    if word in STOP_WORDS:
        return "stop"
    if word.endswith(("ing", "ed", "ly")):
        return word[-2:]
    if base_form(word):
        return "verb"
    return "s" if word.endswith("s") else "number" if word.isdigit() else "word"
