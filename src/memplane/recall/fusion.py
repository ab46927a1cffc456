"""Which turns answer a question: several weak opinions about every turn, added up.

Each channel gives every turn a number. Numbers of different kinds are made comparable per question (mean 0,
deviation 1), weighted and summed, so the score of a turn is the sum of contributions that can be shown. The weights
were fitted on two data sets and checked on conversations and questions they were not fitted on:
docs/internals/recall.md has the figures and what was tried besides.

Everything here is arithmetic over arrays. Who embeds, who holds the index and who chooses the turns is the caller's
business; a turn is known by its place, turns of a session stand together and in order.
"""

import math
import re
from collections.abc import Sequence
from datetime import datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.providers.embedding import Vectors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WINDOW_TURNS = 2
"""A passage is a turn with at most so many before and after it …"""
WINDOW_WORDS = 120
"""… as far as they hold no more words than this on either side: short turns lean on each other, long ones do not."""

_BM25_K1 = 1.2
_BM25_B = 0.75
_SESSION_PASSAGE_SHARE = 0.25
_PAIR_CHARS_MAX = 300
_PAIR_SHARE = 0.7
_DEVIATION_MIN = 1e-9
_DAYS_AFTER = 7
"""What happened on a day is talked about within a week."""

_ROLES = frozenset({"user", "assistant", "system", "tool"})
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full-width, Arabic."""
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_OF_ASSISTANT = re.compile(
    r"\b(?:you|your|yours)\b"
    r"|\b(?:our|previous|last|earlier) (?:\w+ )?(?:chat|conversation|discussion|session)\b"
    r"|\bremind me\b|\bwe (?:discussed|talked|spoke|covered|went over)\b",
    re.IGNORECASE,
)


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel's number is multiplied with. Zero takes a channel out."""

    meaning: float = 0.68
    """The turn's vector, made of itself and of the turn with the one before it."""
    words: float = 0.07
    """BM25 of the turn."""
    passage: float = 0.25
    """BM25 of the turn with those around it."""
    session: float = 0.32
    """How good the best turn of its session is."""
    speaker: float = 1.35
    """Said by the one the question names, or by another."""
    user: float = 2.0
    """Said by the user, where the question is not about what the assistant said. Fitted freely it is 4.6, which would
    silence assistants for good; 2 is a choice that costs a point on LongMemEval."""
    asks: float = -0.43
    """A turn that ends with a question tells little."""
    date: float = 2.0
    """Said in the month, or in the week after the day, that the question names. Held at 2 likewise (fitted: 3.3)."""


WEIGHTS = Weights()


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    """What fusion knows about turns before anyone asks; `describe` makes it."""

    sessions: Ints
    """Which session a turn belongs to: 0, 1, 2, …, never falling."""
    starts: Ints
    """The place of each session's first turn."""
    window_from: Ints
    window_to: Ints
    """A turn's passage: from the first place up to, not including, the second."""
    slack: Floats
    passage_slack: Floats
    """What BM25 makes of the length of a turn, and of its passage."""
    speakers: tuple[str, ...]
    """Names; roles are none."""
    spoken_by: Ints
    """The place of a turn's speaker among them, or -1."""
    user: Floats
    """1 for a turn of the user's, else 0."""
    asks: Floats
    """1 for a turn that ends with a question, else 0."""
    dates: Ints
    """Year, month, day in three rows."""


class AskedDate(msgspec.Struct, frozen=True):
    """A month that a question names, perhaps with its year and a day."""

    month: int
    year: int | None = None
    day: int | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says about the turns that answer it."""

    text: str
    """What to embed: the names of speakers are taken out, because with them every turn that greets the person named
    is nearer than the ones that answer."""
    speakers: frozenset[str]
    """Those it names; their names are no words to look for either."""
    of_assistant: bool
    dates: tuple[AskedDate, ...]


class Fused(msgspec.Struct, frozen=True, kw_only=True):
    """One score a turn, the largest the best, and what each channel added to it.

    Scores order the turns of one question. They do not compare across questions and are no probability.
    """

    scores: Floats
    channels: dict[str, Floats]
    """What every channel says; one that has nothing to say about this question is not here."""
    weights: Weights

    def contributions(self, place: int) -> dict[str, float]:
        """What the score of one turn is the sum of, the most telling first."""
        parts = {
            name: getattr(self.weights, name) * float(channel[place])
            for name, channel in self.channels.items()
        }
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))


# ── before anyone asks ───────────────────────────────────────────────────────────────────────────────────────────


def embedded_text(speaker: str, text: str) -> str:
    """What to embed for a turn: who has a name says it first."""
    return text if not speaker or speaker in _ROLES else f"{speaker}: {text}"


def pair_text(before: str | None, speaker: str, text: str) -> str:
    """What to embed for a turn with the one before it, of which the end is nearest to what follows.

    An assistant's turn stands alone: it repeats what it answers, and a second long text would cost as much again.
    """
    if before is None or speaker in _ROLES - {"user"}:
        return text
    return f"{before[-_PAIR_CHARS_MAX:]} {text}"


def turn_vectors(own: Vectors, pair: Vectors) -> Vectors:
    """The vectors to store. A sum of vectors has the sum of their dot products, so one is as good as two, in half the
    room and half the time."""
    return ((own + _PAIR_SHARE * pair) / (1 + _PAIR_SHARE)).astype(np.float32)


def describe(
    *,
    sessions: Sequence[int],
    speakers: Sequence[str],
    texts: Sequence[str],
    dates: Sequence[datetime],
    lengths: Sequence[int] | Floats,
) -> Turns:
    """One entry a turn in each; sessions are any numbers as long as equal ones stand together."""
    given = np.asarray(sessions, np.int64)
    begins = np.flatnonzero(np.diff(given, prepend=given[:1] - 1)) if len(given) else np.empty(0, np.int64)
    ordered = np.zeros(len(given), np.int64)
    ordered[begins] = 1
    ordered = np.cumsum(ordered) - 1
    names = tuple(sorted({speaker for speaker in speakers if speaker and speaker not in _ROLES}))
    places = {name: place for place, name in enumerate(names)}
    words = np.asarray(lengths, np.float64)
    before = np.concatenate([[0.0], np.cumsum(words)])
    window_from, window_to = _windows(begins[ordered], np.append(begins, len(given))[ordered + 1], words)
    return Turns(
        sessions=ordered,
        starts=begins.astype(np.int64),
        window_from=window_from,
        window_to=window_to,
        slack=_slack(words),
        passage_slack=_slack(before[window_to] - before[window_from]),
        speakers=names,
        spoken_by=np.array([places.get(speaker, -1) for speaker in speakers], np.int64),
        user=np.array([speaker == "user" for speaker in speakers], np.float64),
        asks=np.array([text.rstrip().endswith(_QUESTION_MARKS) for text in texts], np.float64),
        dates=np.array([(at.year, at.month, at.day) for at in dates], np.int64).reshape(-1, 3).T,
    )


def _windows(first: Ints, last: Ints, words: Floats) -> tuple[Ints, Ints]:
    """Grow every window turn by turn while the session and the budget of words allow it."""
    here = np.arange(len(words), dtype=np.int64)
    before = np.concatenate([[0.0], np.cumsum(words)])
    low, high = here.copy(), here + 1
    for _ in range(WINDOW_TURNS):
        lower = np.maximum(low - 1, 0)
        fits = (low > first) & (before[here] - before[lower] <= WINDOW_WORDS)
        low = np.where(fits, lower, low)
        higher = np.minimum(high + 1, len(words))
        fits = (high < last) & (before[higher] - before[here + 1] <= WINDOW_WORDS)
        high = np.where(fits, higher, high)
    return low, high


# ── the question ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_question(question: str, speakers: Sequence[str]) -> Asked:
    """What a question says about who, whom and when. `speakers` are the names in the store."""
    named: set[str] = set()
    text = question
    for speaker in speakers:
        known_as = {speaker, speaker.split()[0]} if speaker.split() else set()
        for name in sorted(known_as, key=len, reverse=True):
            text, found = re.subn(rf"\b{re.escape(name)}(?:['’]s)?\b", "I", text, flags=re.IGNORECASE)  # noqa: RUF001
            if found:
                named.add(speaker)
    return Asked(
        text=text,
        speakers=frozenset(named),
        of_assistant=_OF_ASSISTANT.search(question) is not None,
        dates=_asked_dates(question),
    )


def _asked_dates(question: str) -> tuple[AskedDate, ...]:
    months = [_MONTHS.index(name) + 1 for name in dict.fromkeys(_MONTH.findall(question))]
    year = next((int(year) for year in _YEAR.findall(question)), None)
    day = next((int(day) for day in _DAY.findall(question) if 1 <= int(day) <= 31), None)  # noqa: PLR2004
    return tuple(AskedDate(month, year, day) for month in months)


# ── the channels ─────────────────────────────────────────────────────────────────────────────────────────────────


def word_scores(found: Sequence[tuple[Ints, Floats]], turns: Turns) -> tuple[Floats, Floats]:
    """BM25 of every turn, and of every turn's passage.

    For each word of the question: the places of the turns that hold it, and how often they do.
    """
    total = len(turns.sessions)
    words, passage = np.zeros(total), np.zeros(total)
    for places, counts in found:
        rarity = math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5)) * (_BM25_K1 + 1)
        words[places] += rarity * counts / (counts + turns.slack[places])
        held = np.zeros(total + 1)
        held[places + 1] = counts
        held.cumsum(out=held)
        around = held[turns.window_to] - held[turns.window_from]
        passage += rarity * around / (around + turns.passage_slack)
    return words, passage


def _slack(lengths: Floats) -> Floats:
    usual = float(lengths.mean()) if len(lengths) else 0.0
    return _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths / max(usual, 1.0))


def standard(values: Floats | NDArray[np.float32]) -> Floats:
    """Mean 0 and deviation 1. What is missing (NaN) has no opinion, and neither has a channel that says one thing."""
    numbers = np.asarray(values, np.float64)
    known = None if np.isfinite(numbers.sum()) else np.isfinite(numbers)
    sample = numbers if known is None else numbers[known]
    deviation = float(sample.std()) if len(sample) else 0.0
    if deviation < _DEVIATION_MIN:
        return np.zeros(len(numbers))
    scaled: Floats = (numbers - sample.mean()) / deviation
    return scaled if known is None else np.where(known, scaled, 0.0)


def best_of_session(values: Floats, turns: Turns) -> Floats:
    """For every turn, the best value in its session."""
    if not len(values):
        return values
    best: Floats = np.maximum.reduceat(values, turns.starts)[turns.sessions]
    return best


def speaker_match(asked: Asked, turns: Turns) -> Floats:
    """1 for the one speaker a question names, -1 for other named speakers, 0 where it names none or several."""
    if len(asked.speakers) != 1:
        return np.zeros(len(turns.sessions))
    (name,) = asked.speakers
    wanted = turns.speakers.index(name) if name in turns.speakers else -1
    return np.where(turns.spoken_by < 0, 0.0, np.where(turns.spoken_by == wanted, 1.0, -1.0))


def date_match(asked: Asked, turns: Turns) -> Floats:
    """1 in a month that the question names, 2 in the days after a day that it names, else 0."""
    match = np.zeros(len(turns.sessions))
    years, months, days = turns.dates
    for date in asked.dates:
        in_month = months == date.month
        if date.year is not None:
            in_month &= years == date.year
        match = np.maximum(match, in_month)
        if date.day is not None:
            match = np.maximum(
                match, 2.0 * (in_month & (days >= date.day) & (days <= date.day + _DAYS_AFTER))
            )
    return match


# ── the sum ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fuse(
    turns: Turns,
    asked: Asked,
    *,
    meaning: Floats | NDArray[np.float32] | None,
    words: Floats,
    passage: Floats,
    weights: Weights = WEIGHTS,
) -> Fused:
    """Add the channels up.

    `meaning` is the dot product of every turn's vector with the question's; None without an embedder, NaN for a turn
    whose vector is still to come.
    """
    channels = {"words": standard(words), "passage": standard(passage), "asks": turns.asks}
    promising = _SESSION_PASSAGE_SHARE * channels["passage"]
    if meaning is not None:
        channels["meaning"] = standard(meaning)
        promising += channels["meaning"]
    channels["session"] = standard(best_of_session(promising, turns))
    if not asked.of_assistant:
        channels["user"] = turns.user
    if len(asked.speakers) == 1:
        channels["speaker"] = speaker_match(asked, turns)
    if asked.dates:
        channels["date"] = date_match(asked, turns)
    scores = np.zeros(len(turns.sessions))
    for name, channel in channels.items():
        scores += getattr(weights, name) * channel
    return Fused(scores=scores, channels=channels, weights=weights)


def ranked(fused: Fused, limit: int) -> list[int]:
    """The places of the best turns, best first; of two equals the later one."""
    total = len(fused.scores)
    if limit < total:
        chosen = np.argpartition(-fused.scores, limit)[: limit + 1]
        edge = np.sort(fused.scores[chosen])[0]
        chosen = np.flatnonzero(fused.scores >= edge)
    else:
        chosen = np.arange(total)
    order = np.lexsort((-chosen, -fused.scores[chosen]))
    return [int(place) for place in chosen[order][:limit]]
