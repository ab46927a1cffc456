"""The English the rules need: contractions, base forms of verbs, closed word classes."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

# Closed word classes, from words.toml.


def word_class(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files(__package__) / "words.toml").read_text("utf-8"))


_EXPANDED = """
i'm=I am|im=I am|i've=I have|ive=I have|i'd=I would|i'll=I will|you're=you are|we're=we are|they're=they are
he's=he is|she's=she is|it's=it is|that's=that is|there's=there is|what's=what is|who's=who is|where's=where is
how's=how is|here's=here is|let's=let us|we've=we have|they've=they have|you've=you have|we'd=we would
they'd=they would|he'd=he would|she'd=she would|you'd=you would|we'll=we will|they'll=they will|you'll=you will
he'll=he will|she'll=she will|it'll=it will|don't=do not|dont=do not|doesn't=does not|doesnt=does not
didn't=did not|didnt=did not|can't=can not|cant=can not|cannot=can not|couldn't=could not|won't=will not
wouldn't=would not|shouldn't=should not|isn't=is not|isnt=is not|aren't=are not|wasn't=was not|weren't=were not
haven't=have not|havent=have not|hasn't=has not|hadn't=had not|ain't=am not|wanna=want to|gonna=going to
gotta=have to|i=I
"""
_CONTRACTIONS = dict(pair.split("=") for line in _EXPANDED.split("\n") if line for pair in line.split("|"))
BE = word_class("be")
MODALS = word_class("modals")
_HAVE_DO = word_class("have_do")
NEGATIONS = word_class("negations")
FILLERS = word_class("fillers")
EMPTY_FILLERS = FILLERS - word_class("telling_fillers")
"""Words a person leaves out when writing something down."""
DETERMINERS = word_class("determiners")
PRONOUNS = word_class("pronouns")
STOP_WORDS = (
    word_class("stop_words")
    | BE | MODALS | NEGATIONS | FILLERS | DETERMINERS | PRONOUNS
)  # fmt: skip


def expand(text: str) -> str:
    """`I'm` becomes `I am`, curly apostrophes straight ones, whitespace one space."""
    words = text.replace("\u2019", "'").split()
    for at, word in enumerate(words):
        core = word if word[-1].isalnum() else word.rstrip(',.!?;:)"')
        longer = _CONTRACTIONS.get(core.lower())
        if longer:
            words[at] = longer + word[len(core) :]
    return " ".join(words)


def base_form(word: str) -> str | None:
    """The base form of a known verb, in any of its forms."""
    return _FORMS.get(word.lower())


def third_person(base: str) -> str:
    """`works` for `work`, `has` for `have`."""
    return {"have": "has", "be": "is"}.get(base) or list(_verb_forms(base))[1]


def is_past(word: str) -> bool:
    return word.lower() in _PAST


def is_finite(word: str) -> bool:
    """Whether a word can only be the verb of the noun phrase before it."""
    if word in BE or word in MODALS or word in _HAVE_DO:
        return True
    base = base_form(word)
    return base is not None and (
        is_past(word) or (word != base and word.endswith("s")) or base in {"love", "live"}
    )


def stem(word: str) -> str:
    """A stem good enough to compare nouns and verbs: `baking`, `bakes` and `bake` are equal, and so are `dogs` and
    `dog`."""
    word = word.lower()
    base = _FORMS.get(word)
    if base:
        return base
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:  # noqa: PLR2004
        return word[:-1]
    return word


def content_stems(text: str) -> frozenset[str]:
    """The significant words, to compare two statements."""
    return frozenset(content_words(text))


def content_words(text: str) -> list[str]:
    """The same in order."""
    return [stem(word) for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS]


_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def _verb_forms(base: str) -> Iterator[str]:
    """The regular forms of a verb: third person, past, -ing."""
    yield base
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        yield base + "es"
    elif base.endswith("y") and base[-2] not in "aeiou":
        yield base[:-1] + "ies"
    else:
        yield base + "s"
    if base.endswith("e") and not base.endswith(("ee", "ye")):
        yield from (base + "d", base[:-1] + "ing")
    elif base.endswith("y") and base[-2] not in "aeiou":
        yield from (base[:-1] + "ied", base + "ing")
    elif re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", base):
        yield from (base + base[-1] + "ed", base + base[-1] + "ing")
    else:
        yield from (base + "ed", base + "ing")


def _load() -> tuple[dict[str, str], set[str]]:
    forms: dict[str, str] = {}
    past: set[str] = set()
    for line in (files(__package__) / "verbs.txt").read_text("utf-8").splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        regular = words[1:] if words[0] == ":" else words[:1]
        for base in regular:
            spelled = list(_verb_forms(base))
            for form in spelled:
                forms.setdefault(form, base)
            past.add(spelled[2])
        if words[0] != ":":
            forms.update(dict.fromkeys(words, words[0]))
            past.update(word for word in words[1:] if not word.endswith(("ing", "s")) or word == "was")
    for word in ("am", "is", "are", "be", "has", "does", "goes"):
        past.discard(word)
    return forms, past


_FORMS, _PAST = _load()
