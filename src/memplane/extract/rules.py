"""Extract propositions from one message by rules, deterministic and offline: sentences, clauses, readings."""

import re
from collections.abc import Iterator

import msgspec

from memplane.extract.attributes import read_attribute
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.clauses import Clause, second_verb, split_clauses
from memplane.extract.english import BE, MODALS, PRONOUNS, expand, word_class
from memplane.extract.first_person import belongings, describes_end, propose, read_clause, read_mention
from memplane.extract.instructions import read_instruction
from memplane.extract.parse import ParsedClause, parse
from memplane.extract.proposition import USER, Proposition
from memplane.extract.replies import ABOUT_USER, answers, question_topic, turn_round
from memplane.extract.sentences import Sentence, split_sentences
from memplane.extract.third_person import read_schedule, read_world
from memplane.extract.wording import ClaimDraft, Phrasing, choose, phrasings
from memplane.types import Role

PROPOSITIONS_MAX = 200
"""A longer message is a paste; the rest stays searchable in the ledger."""

VAGUE = frozenset({"is", "does", "plans", "owns", "wants", "believes", "experienced", "likes"})
"""An assistant's or tool's statements with these predicates are small talk."""

_UPDATE_LEAD = re.compile(
    r"(?:(?:no|oh|well|so|sorry|hi|hey|ok|okay|and|but)[ ,.]+)*(?:actually|correction|update|now|no)[ ,:]",
    re.IGNORECASE,
)
_CHARS_READ_MAX = 1_000_000
"""A longer message is a paste. It is searched to its end, but facts are read from its beginning, so that one message
does not hold up the enrichment of others."""
_PERSONAL = re.compile(r"\b(?:I|my|me|we|our|us|mine)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|we|our|ours|us|mine|im|ive|myself)\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:he|she|they)\b", re.IGNORECASE)
_DOUBTFUL = frozenset({"would", "could", "might"})


def extract(text: str, *, role: str, catalog: PredicateCatalog, before: str = "") -> list[Proposition]:
    """The claims of a message, in order. A system message has none.

    `before` is the message it answers; with it, `yes` and `two dogs` are statements too.
    """
    return choose(drafts(text, role=role, catalog=catalog, before=before), text, before)


def drafts(text: str, *, role: str, catalog: PredicateCatalog, before: str = "") -> list[ClaimDraft]:
    """The claims with all their possible wordings."""
    if role == Role.SYSTEM:
        return []
    found: list[ClaimDraft] = []
    antecedent: str | None = None
    if before and role == Role.USER:
        found.extend(_of_answers(text, before, catalog))
        antecedent = question_topic(before) if _OTHERS.search(text) else None
    for sentence in split_sentences(text[:_CHARS_READ_MAX]):
        if found:
            antecedent = _antecedent(found[-1].proposition) or antecedent
        found.extend(_of_sentence(text, sentence, role, catalog, antecedent))
        if len(found) >= PROPOSITIONS_MAX:
            return found[:PROPOSITIONS_MAX]
        antecedent = None
    return found


def _of_answers(text: str, before: str, catalog: PredicateCatalog) -> Iterator[ClaimDraft]:
    for answer in answers(text, before):
        parsed = parse(expand(answer.text))
        if parsed is None:
            continue
        proposition = propose(
            parsed,
            read_clause(parsed, catalog),
            start=answer.start,
            end=answer.end,
            role=USER,
            ordinal=None,
            known=False,
        )
        if proposition:
            proposition = msgspec.structs.replace(proposition, completed=True)
            yield ClaimDraft(
                proposition, f"answer {answer.form}", (Phrasing(answer.text, "", answer.form),), parsed
            )


def _antecedent(last: Proposition) -> str | None:
    """Whom a following `he` or `she` refers to: the user's son, in `I have a son. He is five.`"""
    if last.subject.startswith(f"{USER}'s "):
        return f"my {last.subject[len(USER) + 3 :]}"
    if last.predicate in {"has_family", "has_pet", "has_friend"} and last.topic:
        noun = _RELATIVE.search(last.object_text)
        return f"my {noun.group().lower()}" if noun else None
    return None


_RELATIVE = re.compile(
    r"\b(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|sons?|daughters?|kids?|child(?:ren)?|baby|twins?"
    r"|brothers?|sisters?|siblings?|mother|father|mom|dad|parents|grand\w+|aunt|uncle|cousins?|niece|nephew"
    r"|dogs?|cats?|pupp(?:y|ies)|kittens?|birds?|horses?|fish|rabbits?|pets?|friends?)\b",
    re.IGNORECASE,
)


def _of_sentence(
    text: str, sentence: Sentence, role: str, catalog: PredicateCatalog, antecedent: str | None
) -> Iterator[ClaimDraft]:
    whole = read_instruction(text, sentence, role) or read_schedule(text, sentence, role)
    if whole is None and sentence.ordinal is not None and not _is_personal(text, sentence):
        whole = read_world(text, sentence, role)
    if whole:
        yield ClaimDraft(whole)
        return
    spoke = False
    if (
        antecedent
        or _touches_user(text, sentence, role)
        or _SETS.match(text, sentence.start, sentence.end)
        or _is_unsaid(text[sentence.start : sentence.end], sentence, role)
    ):
        for draft in _of_clauses(text, sentence, role, catalog, antecedent):
            spoke = True
            yield draft
    if not spoke and not sentence.question:
        world = read_world(text, sentence, role)
        if world:
            yield ClaimDraft(world)


_SETS = re.compile(r"(?:[a-z]{2,12}[,:] )?the [a-z][\w'-]* ", re.IGNORECASE)
"""Attributes may be told without saying whose they are: `the rent is now $1,800`."""


def _of_clauses(
    text: str, sentence: Sentence, role: str, catalog: PredicateCatalog, antecedent: str | None
) -> Iterator[ClaimDraft]:
    updates = _UPDATE_LEAD.match(text, sentence.start, sentence.end) is not None
    owner: str | None = None
    pending = [*split_clauses(text, sentence)][::-1]
    while pending:
        clause = pending.pop()
        if not clause.asserted:
            owner = None
            if role == Role.USER and sentence.question and not clause.hypothetical:
                yield from _of_belongings(text, clause, catalog)
            continue
        said = expand(text[clause.start : clause.end])
        if slot := _of_attribute(said, clause, sentence, role, catalog, updates=updates):
            owner = None
            yield ClaimDraft(slot)
            continue
        turned = None if role == Role.USER else turn_round(said)
        parsed = parse(turned or said, inherited=owner if clause.continues else None, antecedent=antecedent)
        unsaid = parsed is None and not clause.continues and _is_unsaid(said, sentence, role)
        parsed = parse(said, inherited="I") if unsaid else parsed
        second = second_verb(text, clause, parsed) if parsed and sentence.ordinal is None else None
        if second:
            pending += [clause._replace(start=second[1], continues=True), clause._replace(end=second[0])]
            continue
        owner = parsed.owner if parsed else None
        if parsed:
            proposition = _of_clause(parsed, clause, sentence, role, catalog, updates=updates)
            proposition = proposition and msgspec.structs.replace(
                proposition, adds=_ADDS.search(said) is not None
            )
            if proposition and role != Role.USER:
                proposition = _of_others(proposition, parsed, role, about_user=turned is not None)
        else:
            proposition = read_mention(text, clause.start, clause.end, role, sentence.ordinal)
        if proposition:
            antecedent = _antecedent(proposition) or antecedent
            yield _worded(proposition, parsed, unsaid=unsaid)
        if role == Role.USER and sentence.ordinal is None and not (parsed and describes_end(parsed)):
            yield from _of_belongings(text, clause, catalog)


_ADDS = re.compile(
    r"\b(?:also|as well|additionally|in addition|on top of|besides|another|alongside|a (?:second|third|fourth))\b|\btoo\W*\Z",
    re.IGNORECASE,
)


def _of_attribute(
    said: str, clause: Clause, sentence: Sentence, role: str, catalog: PredicateCatalog, *, updates: bool
) -> Proposition | None:
    """The claim that fills a slot. Attributes that the catalog lists are the user's own; others have the attribute as subject."""
    attribute = read_attribute(said) if role == Role.USER and sentence.ordinal is None else None
    if attribute is None:
        return None
    found = catalog.by_noun(attribute.noun)
    name, topic = found if found and catalog[found[0]].one else ("is", "")
    listed = name != "is"
    return Proposition(
        subject=USER if listed else f"{USER}'s {attribute.noun}",
        predicate=name,
        object_text=attribute.value,
        relation_phrase=f"{attribute.owner} {attribute.noun} is" if listed else "is",
        start=clause.start,
        end=clause.end,
        confidence=_ATTRIBUTE_CONFIDENCE,
        update=attribute.changed or updates,
        adds=attribute.adds,
        topic=topic.lower(),
        replaces=attribute.old,
        note=f"{attribute.owner.capitalize()} {attribute.noun} is {attribute.value}",
    )


_ATTRIBUTE_CONFIDENCE = 0.8


def _worded(proposition: Proposition, parsed: ParsedClause | None, *, unsaid: bool) -> ClaimDraft:
    """With its wordings; claims of others are rendered from the triple alone."""
    if not proposition.trusted:
        return ClaimDraft(proposition)
    if parsed is None:
        return ClaimDraft(proposition, "mention", (Phrasing(proposition.object_text, ""),))
    return ClaimDraft(proposition, "unsaid" if unsaid else "clause", tuple(phrasings(parsed)), parsed)


def _is_unsaid(said: str, sentence: Sentence, role: str) -> bool:
    """Whether `I` is omitted: `Just got a puppy`, `Love jazz`. Imperatives look the same, so only for verbs that are
    never one."""
    if role != Role.USER or sentence.ordinal is not None:
        return False
    found = _SUBJECTLESS.match(said)
    return found is not None and not _is_subject(said[found.end() :])


def _is_subject(rest: str) -> bool:
    """Whether what looked like the verb is the subject of another: `Love and acceptance can be found`, `Taking time is good`."""
    words = [word.strip(",.!").lower() for word in rest.split()]
    return any(
        (word in BE or word in MODALS) and (at == 0 or words[at - 1] not in PRONOUNS)
        for at, word in enumerate(words[:_SUBJECT_WORDS_MAX])
    )


_SUBJECT_WORDS_MAX = 8


_SUBJECTLESS = re.compile(
    r"(?:(?:well|oh|yes|yeah|yep|no|nope|also|just|still|currently|recently|never|really|so|and|but|been|nice|cool|great)[ ,.!]+)*"
    rf"(?:{'|'.join(sorted(word_class('subjectless')))}) (?!you\b|it\b|and\b|fun\b|a (?:good|great|nice)\b|that\b|to hear)",
    re.IGNORECASE,
)


def _of_belongings(text: str, clause: Clause, catalog: PredicateCatalog) -> Iterator[ClaimDraft]:
    for belonging in belongings(text, clause.start, clause.end, catalog):
        proposition = Proposition(
            subject=USER,
            predicate=belonging.predicate,
            object_text=belonging.phrase,
            relation_phrase="have",
            start=belonging.start,
            end=belonging.end,
            confidence=_BELONGING_CONFIDENCE,
        )
        yield ClaimDraft(
            proposition, f"belonging {belonging.noun}", (Phrasing(f"I have {belonging.phrase}", ""),)
        )


_BELONGING_CONFIDENCE = 0.6


def _touches_user(text: str, sentence: Sentence, role: str) -> bool:
    """Whether anything in the sentence can be about the speaker or, in messages of others, about the user."""
    if _FIRST_PERSON.search(text, sentence.start, sentence.end):
        return True
    return role != Role.USER and ABOUT_USER.search(text, sentence.start, sentence.end) is not None


def _of_others(
    proposition: Proposition, parsed: ParsedClause, role: str, *, about_user: bool
) -> Proposition | None:
    """An assistant's `I` is the assistant, not the user; and its advice and remarks are not facts."""
    if parsed.modal or proposition.predicate in VAGUE:
        return None
    if about_user:
        return proposition
    return msgspec.structs.replace(proposition, subject=f"{role}{proposition.subject[len(USER) :]}")


def _is_personal(text: str, sentence: Sentence) -> bool:
    """Whether the speaker occurs in a numbered sentence; capitalised `Our` and `Me` may belong to a title."""
    if text.startswith(("My ", "We "), sentence.start):
        return True
    return _PERSONAL.search(text, sentence.start, sentence.end) is not None


def _of_clause(
    parsed: ParsedClause,
    clause: Clause,
    sentence: Sentence,
    role: str,
    catalog: PredicateCatalog,
    *,
    updates: bool,
) -> Proposition | None:
    if clause.hypothetical and parsed.modal in _DOUBTFUL:
        return None
    reading = read_clause(parsed, catalog)
    return propose(
        parsed._replace(update=parsed.update or updates),
        reading,
        start=clause.start,
        end=clause.end,
        role=role,
        ordinal=sentence.ordinal,
        known=reading.predicate not in {"is", "does"},
    )
