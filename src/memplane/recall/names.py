"""Names of speakers: how a query may write them, and which other names a space uses for them.

A query that names a speaker is answered with that speaker's turns first, so a name that is not recognised costs much. Case,
accents, first and last names are matched directly. Other names are *learned* from what was said: how others address a speaker
(`Hey Mel!`), how speakers sign (`— Mel`) or introduce themselves (`call me Mel`). A name that nobody uses may be another
spelling of a speaker's name. An operator can add or remove names; that decision wins.

Everything is derived from the turns when a query needs it. Nothing is stored.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from memplane.extract.relevance import STOP_WORDS
from memplane.types import Turn

USES_READ = 24
"""The newest turns that contain a name decide what it means."""
_WORDS_MAX = 4
"""More unknown names in one query are not looked up."""
_SPEAKERS_MAX = 200
"""Beyond this, too many names are alike to guess a spelling."""
_CHARS_MIN = 2
_CHARS_MAX = 24
_STRANGE_MIN = 2
"""How often a name that resembles no speaker's must be used for one."""
_SPELLING_MIN = 3
_TYPO_CHARS = 5
_TYPOS_CHARS = 8
"""Names of at least this length may differ by one letter, and by two."""
_ALIKE_INITIALS = ({"c", "k"}, {"f", "p"}, {"g", "j"}, {"i", "y", "j"}, {"s", "z"}, {"v", "w"})

_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_ENDS = frozenset('.!?:;"“(')
_GREETING = re.compile(
    r"(?:^|[\W_])(?:hey|hi|hiya|hello|dear|thanks|thank you|thx|congrats|congratulations|bye|goodbye|welcome|"
    r"good (?:morning|evening|night)|sorry|hallo|hola|ciao|salut|bonjour|danke|merci|gracias)(?: there)?[,!]?[ \t]+$",
    re.IGNORECASE,
)
_EXCLAIMED = re.compile(
    r"(?:,|^|[.!?…]|\b(?:wow|oh|yeah|yes|no|sure|cool|great|nice|aww?|ok|okay))[ \t]*$", re.IGNORECASE
)
_PAUSE_AFTER = re.compile(r"[ \t]*(?:[,!.?…;:]|[-–—]|$)", re.MULTILINE)  # noqa: RUF001
_SIGNED = re.compile(
    r"(?:[—–]|\n[ \t]*(?:[-~])?|\b(?:best|regards|love|yours|sincerely|cheers|xx|xoxo),?\s)[ \t]*$",  # noqa: RUF001
    re.IGNORECASE,
)
_INTRODUCED = re.compile(r"\b(?:calls? me|my (?:nick)?name is|known as|i go by)\s+$", re.IGNORECASE)
_AM = re.compile(r"\b(?:i am|i[\u2019']?m)\s+$", re.IGNORECASE)
_NOTHING_MORE = re.compile(r"[\W_xX]*$")


class SpeakerName(msgspec.Struct, frozen=True, kw_only=True):
    """A name and the speaker it stands for."""

    name: str
    speaker: str | None
    """None: an operator removed the name; it stands for nobody."""
    source: str
    """`learned` from turns, or `added` or `removed` by an operator."""


def fold(text: str) -> str:
    """The text without case and accents, with a character for each of its characters."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    base = "".join(
        part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part)
    )
    return next((folded for folded in (base.lower(), character.lower()) if len(folded) == 1), character)


def written_forms(speakers: Sequence[str]) -> dict[str, frozenset[str]]:
    """How a query may write speakers, folded: the whole name, or its first or last word. A first name of two speakers
    stands for both, unless it is the whole name of one."""
    forms: dict[str, set[str]] = {}
    for speaker in speakers:
        words = fold(speaker).split()
        for word in words[:1] + (words[-1:] if len(words) > 1 and len(words[-1]) >= _SPELLING_MIN else []):
            forms.setdefault(word, set()).add(speaker)
    whole = {fold(speaker.strip()): frozenset({speaker}) for speaker in speakers if speaker.strip()}
    return {form: frozenset(named) for form, named in forms.items()} | whole


def known_forms(speakers: Sequence[str], aliases: Mapping[str, str | None]) -> dict[str, frozenset[str]]:
    """`written_forms` with other names, which an operator added or removed (None). A name that is a speaker's own stays
    theirs."""
    forms = written_forms(speakers)
    labels = {fold(speaker): speaker for speaker in speakers}
    for name, speaker in aliases.items():
        label = None if speaker is None else labels.get(fold(speaker))
        own = frozenset({labels[name]}) if name in labels else frozenset[str]()
        if label is not None:
            forms[name] = own | {label}
        elif speaker is None and not own:
            forms.pop(name, None)
    return forms


def replace_names(
    question: str, forms: Mapping[str, frozenset[str]], chars_max: int
) -> tuple[str, frozenset[str]]:
    """Replace every name in the question by `I`, and return the speakers. Longer names go first: Ann Lee is not Ann. A name
    that is also a common word, such as Will, must be capitalised."""
    text = question if question.isascii() else unicodedata.normalize("NFC", question)
    folded, named = fold(text), set[str]()
    beginning = folded[:chars_max]
    for form in sorted(forms, key=len, reverse=True):
        if form not in beginning:
            continue
        pieces, end = [], 0
        for found in re.finditer(rf"\b{re.escape(form)}(?:['\u2019]s)?\b", folded):
            if form in STOP_WORDS and not text[found.start()].isupper():
                continue
            pieces += [text[end : found.start()], "I"]
            end = found.end()
        if pieces:
            text = "".join([*pieces, text[end:]])
            folded = fold(text)
            named |= forms[form]
    return text, frozenset(named)


def unknown_names(question: str, speakers: Sequence[str]) -> list[str]:
    """The words of a question, without the names it is known to contain, that may be names: those that resemble a
    speaker's, and capitalised ones inside a sentence."""
    found: dict[str, str] = {}
    for word in _WORD.finditer(question):
        text, folded = word.group(), fold(word.group())
        if not _CHARS_MIN <= len(text) <= _CHARS_MAX or folded in STOP_WORDS:
            continue
        capital = text[0].isupper() and not _starts_sentence(question, word.start())
        if capital or resembling(folded, speakers):
            found.setdefault(folded, text)
    return list(found)[:_WORDS_MAX]


def _starts_sentence(text: str, start: int) -> bool:
    """Backwards over the blanks before it only: a search from the beginning for every word would be quadratic."""
    while start and text[start - 1].isspace():
        start -= 1
        if text[start] == "\n":
            return True
    return start == 0 or text[start - 1] in _SENTENCE_ENDS


def learned_speaker(name: str, uses: Iterable[Turn], speakers: Sequence[str]) -> str | None:
    """The speaker that this folded name stands for, given the turns that contain it.

    A name that resembles a speaker's is enough if that speaker is addressed by it, or if nobody uses it at all: then it is
    a short form or another spelling. If it is used otherwise, it is somebody else's. Any other name must be used several
    times, by or for the same speaker. A word that is mostly written in lower case is not a name.
    """
    alike = resembling(name, speakers)
    votes: Counter[str] = Counter()
    other = lower = 0
    for turn in uses:
        for speaker, sure, capital in _meant(turn, name, speakers, alike):
            if speaker is not None and (sure or (capital and speaker in alike)):
                votes[speaker] += 1
            else:
                other += 1
                lower += not capital
    if lower > votes.total():  # a common word
        return None
    if votes:
        (best, count), *more = votes.most_common(2)
        if more and more[0][1] == count:
            return None
        return best if best in alike or (count >= _STRANGE_MIN and count > other) else None
    return alike[0] if not other and len(alike) == 1 and len(name) >= _SPELLING_MIN else None


def addressed_names(turn: Turn) -> list[str]:
    """The names by which a turn addresses somebody or names its speaker."""
    words = (word for word in _WORD.finditer(turn.text) if word.group()[0].isupper())
    return [word.group() for word in words if _use(turn.text, word.start(), word.end())]


def _meant(
    turn: Turn, name: str, speakers: Sequence[str], alike: Sequence[str]
) -> Iterable[tuple[str | None, bool, bool]]:
    """For each use of the name in a turn: whom it means, whether the wording alone shows that it is a name, and whether it is
    capitalised."""
    others = [speaker for speaker in speakers if speaker != turn.speaker]
    alike_others = [speaker for speaker in alike if speaker != turn.speaker]
    addressed = others[0] if len(others) == 1 else alike_others[0] if len(alike_others) == 1 else None
    for found in re.finditer(rf"\b{re.escape(name)}\b", fold(turn.text)):
        use = _use(turn.text, found.start(), found.end())
        capital = turn.text[found.start()].isupper()
        if use is None or not (alike or capital):
            yield None, False, capital
        elif use.own:
            yield turn.speaker if turn.speaker in speakers else None, use.sure, capital
        else:
            yield addressed, use.sure, capital


class _Use(msgspec.Struct, frozen=True):
    """A name where it stands for a person of the conversation."""

    own: bool
    """The speaker's own name, or that of somebody addressed."""
    sure: bool
    """Only names are used like this; `, Rome!` may be a place."""


def _use(text: str, start: int, end: int) -> _Use | None:
    if _INTRODUCED.search(text, max(0, start - 40), start):
        return _Use(own=True, sure=True)
    if _SIGNED.search(text, max(0, start - 20), start) and _NOTHING_MORE.match(text, end):
        return _Use(own=True, sure=True)
    if _GREETING.search(text, max(0, start - 30), start):
        return _Use(own=False, sure=True)
    if _AM.search(text, max(0, start - 10), start):
        return _Use(own=True, sure=False)
    if _EXCLAIMED.search(text, max(0, start - 10), start) and _PAUSE_AFTER.match(text, end):
        return _Use(own=False, sure=False)
    return None


# Resemblance of names: short forms and spellings.


def resembling(name: str, speakers: Sequence[str]) -> list[str]:
    """The speakers whose first or whole name this folded name resembles."""
    if len(speakers) > _SPEAKERS_MAX:
        return []
    return [
        speaker for speaker in speakers if (first := fold(speaker).split()[:1]) and _resembles(name, first[0])
    ]


def _resembles(name: str, known: str) -> bool:
    if min(len(name), len(known)) < _CHARS_MIN or not known.isalpha():
        return False
    if known.startswith(name) or _is_diminutive(name, known):
        return True
    longest, shortest = max(len(name), len(known)), min(len(name), len(known))
    allowed = 2 if longest >= _TYPOS_CHARS and name[:_SPELLING_MIN] == known[:_SPELLING_MIN] else 1
    if longest - shortest > allowed or shortest < _SPELLING_MIN or not _initials_alike(name, known):
        return False
    if shortest < _TYPO_CHARS:  # Jon and John, or Jhon and John, but not Tim and Tom
        return (longest > shortest or sorted(name) == sorted(known)) and _distance(name, known, 1) <= 1
    return _distance(name, known, allowed) <= allowed


def _initials_alike(name: str, known: str) -> bool:
    one, two = name[0], known[0]
    return one == two or (len(known) > _TYPO_CHARS and any({one, two} <= alike for alike in _ALIKE_INITIALS))


def _is_diminutive(name: str, known: str) -> bool:
    """`Timmy` for Tim, `Katie` for Katherine."""
    for ending in ("ie", "ey", "y", "i"):
        stem = name.removesuffix(ending)
        if stem != name and len(stem) >= _SPELLING_MIN:
            single = stem[:-1] if stem[-1] == stem[-2] else stem
            return known.startswith((stem, single)) and len(single) >= _SPELLING_MIN
    return False


def _distance(one: str, two: str, limit: int) -> int:
    """How many letters must be inserted, removed, replaced or swapped with the next."""
    before_last: list[int] = []
    last = list(range(len(two) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(two, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before_last, last = last, row
    return last[-1]
