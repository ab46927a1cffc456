"""Replies that depend on the previous message, and statements of an assistant about the user: `you live in Rome`
becomes `I live in Rome`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.extract.english import DETERMINERS, STOP_WORDS, base_form, expand
from memplane.extract.sentences import split_sentences

# Answers that make sense only after the question: `Do you have pets?`, `Two dogs`; and agreement. The missing words
# come from the message before, so a memory of the statement depends on both messages.

_WORDS_MAX = 10
_ANSWER_CHARS_MAX = 200
_YES = re.compile(
    r"(?:(?:oh|well|hi|hey|haha|lol|wow)[ ,!]+)*(?:yes|yeah|yep|yup|yea|ya|of course|definitely|absolutely|sure do"
    r"|i (?:sure )?(?:do|am|have|did|was|can|would|will)(?=[ ,.!]*(?:$|[.,!]|and\b|too\b)))\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:(?:oh|well|haha|lol|hmm)[ ,!]+)*(?:no|nope|nah|not (?:yet|really|at all)|never"
    r"|i (?:do not|am not|have not|did not|can not)(?=[ ,.!]*(?:$|[.,!])))\b(?! (?:problem|worries|way|doubt|idea))",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"(?:^|.*?[,.!] |.*\b(?:so|and|but|well|cool|nice|great) )"
    r"(?P<helper>do|did|are|were|have|can) (?:you|u) (?:(?:ever|also|still|currently|usually|happen to|guys) )*(?P<rest>[a-z].*)"
)
_TAIL = re.compile(
    r"[,.!?;(].*| or .*| (?:too|as well|yourself|at all|by chance|then|though|right now|ever)$"
)
_UNCLEAR = re.compile(
    r"\b(?:it|that|this|one|ones|them|those|these|there|him|her|he|she|they|think|mean|know|mind|not)\b"
)
_STATEMENT_START = {"do": "I", "did": "I", "are": "I am", "were": "I was", "have": "I have", "can": "I can"}
_DENIED = {
    "do": "I don't", "did": "I didn't", "are": "I am not", "were": "I was not", "have": "I have never", "can": "I can't",
}  # fmt: skip
_TURNED = {"you": "me", "your": "my", "yours": "mine", "yourself": "myself"}
_LIKING = r"like|love|enjoy|play|have|read|watch|listen to|eat|drink|drive|want|study|teach|collect|prefer|cook|speak"
_FRAMES = tuple(
    (re.compile(pattern), frame)
    for pattern, frame in (
        (r"do (?:you|u) do for (?:a )?(?:living|work)|your (?:job|profession|occupation)\b", "I am {}"),
        (r"\bhow old (?:are|r) (?:you|u)\b", "I am {} years old"),
        (r"\bwhere\b.*\b(?:live|living|located)\b", "I live in {}"),
        (r"\bwhere\b.*\bfrom\b", "I am from {}"),
        (r"\bwhat is your name\b", "My name is {}"),
        (r"\b(?:is|are) your (fav(?:ou?rite|e) [a-z]+(?: [a-z]+)?)", "My {1} is {}"),
        (r"\bhow many ([a-z]+(?: [a-z]+)?) do (?:you|u) have\b", "I have {} {1}"),
        (rf"\b(?:what|which)\b.* do (?:you|u) (?:usually |mostly |most )?({_LIKING})\b", "I {1} {}"),
    )
)  # fmt: skip
_LEAD = re.compile(
    r"(?:(?:oh|well|um|hmm|mostly|probably|just|maybe|so|haha|actually|currently|about|only)[ ,]+)+",
    re.IGNORECASE,
)
_NO_PHRASE = re.compile(
    r"(?:i|my|we|our|yes|yeah|no|not|that|it|its|you|your|what|how|thanks|thank|hi|hello|hey|wow|nice|cool|oh|there|they"
    r"|he|she|is|are|do|any|same|me|sure|sorry|lol|good|great|ok|okay|this|if|when|because|depends|all|everything|anything)\b",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?;]|,? (?:and|how about|what about|but|because) .*|, .*")
_PHRASE_WORDS_MAX = 7
_SAME = re.compile(
    r"(?:(?:oh|wow|cool|nice|yes|yeah|haha|lol|awesome|great)[ ,.!]+)*"
    r"(?:me too|same here|so do i|i do too|so am i|i am too|me as well|i also do|me neither|neither do i|same)\b(?=[ ,.!]*(?:$|[.,!]))",
    re.IGNORECASE,
)
_YOURS = re.compile(r"\byour ((?:[a-z]+ ){0,2}[a-z]+)\b")


class CompletedStatement(NamedTuple):
    """A complete statement, how it was completed, and the words of this message it is based on."""

    text: str
    form: str
    start: int
    end: int


def answers(text: str, before: str) -> Iterator[CompletedStatement]:
    """What the beginning of `text` means as an answer to `before`; nothing without a clear question."""
    first = next(split_sentences(text), None)
    if first is None or first.question or first.end - first.start > _ANSWER_CHARS_MAX:
        return
    said = expand(text[first.start : first.end])
    if _SAME.match(said):
        for statement in _statements(before):
            yield CompletedStatement(statement, "same", first.start, _end(text, first.start, first.end))
        return
    question = _last_question(before)
    if not question:
        return
    asked = _QUESTION.match(question)
    if asked and not re.match(
        r"(?:.* )?(?:what|where|how|who|which|when|why)\b", question[: asked.start("helper")]
    ):
        answer = _yes_or_no(said, asked["helper"], asked["rest"])
        if answer:
            yield CompletedStatement(*answer, first.start, _end(text, first.start, first.end))
        return
    phrase = _END.sub("", _LEAD.sub("", said, count=1), count=1).strip(" .!,")
    if not phrase or len(phrase.split()) > _PHRASE_WORDS_MAX or _NO_PHRASE.match(phrase):
        return
    for pattern, frame in _FRAMES:
        found = pattern.search(question)
        if found:
            yield CompletedStatement(
                _framed(frame, found, phrase), "phrase", first.start, _end(text, first.start, first.end)
            )
            return


def question_topic(before: str) -> str | None:
    """Whom or what of the speaker the previous message was about at its end: `my dog` for `How is your dog?`"""
    named = _YOURS.findall(expand(before[-_BEFORE_CHARS:]).lower())
    if not named:
        return None
    words: list[str] = []
    for word in named[-1].split():
        if word in STOP_WORDS or (words and base_form(word)):
            break
        words.append(word)
    return f"my {' '.join(words)}" if words else None


_BEFORE_CHARS = 160


def _last_question(before: str) -> str:
    last = before.rfind("?")
    if last < 0:
        return ""
    begin = max(before.rfind(mark, 0, last) for mark in ".!?\n") + 1
    return expand(before[max(begin, last - _QUESTION_CHARS) : last]).strip(" ?.!").lower()


_QUESTION_CHARS = 300


def _yes_or_no(said: str, helper: str, rest: str) -> tuple[str, str] | None:
    rest = _TAIL.sub("", rest).strip()
    if not rest or _UNCLEAR.search(rest) or len(rest.split()) > _WORDS_MAX:
        return None
    if _YES.match(said):
        start, form = _STATEMENT_START[helper], f"yes {helper}"
        rest = re.sub(r"\bany ", "", rest)
    elif _NO.match(said):
        start, form = _DENIED[helper], f"no {helper}"
    else:
        return None
    return f"{start} {' '.join(_TURNED.get(word, word) for word in rest.split())}", form


def _framed(frame: str, found: re.Match[str], phrase: str) -> str:
    if "live" in frame or "from" in frame:
        phrase = re.sub(r"^(?:in|from|near) ", "", phrase, flags=re.IGNORECASE)
    if "years old" in frame:
        phrase = re.sub(r" years?(?: old)?$", "", phrase, flags=re.IGNORECASE)
    if phrase.partition(" ")[0].lower() in DETERMINERS:
        phrase = f"{phrase[:1].lower()}{phrase[1:]}"
    return frame.replace("{1}", found.group(1) if found.groups() else "").replace("{}", phrase)


def _statements(before: str) -> Iterator[str]:
    """The last thing the other speaker said about themselves."""
    last = ""
    for sentence in split_sentences(before[-500:]):
        said = expand(before[-500:][sentence.start : sentence.end])
        if not sentence.question and re.match(
            r"(?:I (?:am|do|have|like|love|enjoy|hate|play|live|work|want|prefer)|My) ", said
        ):
            last = said
    if last and len(last.split()) <= _WORDS_MAX and not _UNCLEAR.search(last.lower()):
        yield last.rstrip(" .!")


def _end(text: str, start: int, end: int) -> int:
    """Without trailing punctuation, as clauses are quoted."""
    while end > start + 1 and text[end - 1] in " .!,;:\u2026":
        end -= 1
    return end


ABOUT_USER = re.compile(r"\b(?:you|your|user)\b", re.IGNORECASE)
_START = re.compile(
    r"(?:(?:so|ok|okay|yes|and|but|well|got it|noted|great|understood|actually)\b[ ,.:!-]*)*"
    r"(?:i (?:know|see|understand|remember|think|believe|noticed|recall|note)(?: that)? )?(?:you mentioned (?:that )?)?"
    r"(?P<who>your|you|(?:the )?user's|(?:the )?user)\b(?P<verb> \w+)?",
    re.IGNORECASE,
)
_AGREES = {"are": "am", "were": "was", "is": "am", "has": "have", "does": "do", "have": "have", "was": "was"}


def turn_round(clause: str) -> str | None:
    """The clause as the user would have said it; None if it is not about the user."""
    found = _START.match(clause)
    if found is None:
        return None
    rest = clause[found.end() :]
    verb = (found["verb"] or "").strip()
    who = found["who"].lower()
    if who == "your" or who.endswith("'s"):
        return f"my {verb}{rest}"
    plain = _AGREES.get(verb.lower()) or (base_form(verb) if verb.endswith("s") else None) or verb
    return f"I {plain}{rest}"
