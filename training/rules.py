"""Questions made by rule from short first-person statements ("My favorite food is ramen")."""

import random
import re
from typing import NamedTuple

_FIRST_PERSON = ("I", "am", "my", "me", "do", "have", "'ve been")


class _Rule(NamedTuple):
    statement: re.Pattern[str]
    questions: tuple[str, ...]
    """`{who}`, `{whose}`, `{does}`, `{is}`, `{has}` become first or third person; `{0}` is what the pattern found."""


def _rule(statement: str, *questions: str) -> _Rule:
    return _Rule(re.compile(rf"^{statement}\b", re.IGNORECASE), questions)


_I = r"(?:and )?i(?: also| just| really| usually| currently| recently| often| sometimes)?"
_RULES = (
    _rule(
        r"my (?:favou?rite|fave) ([\w ]{3,25}?) (?:is|are|was)",
        "What is {whose} favorite {0}?",
        "Which {0} {does} {who} like best?",
        "what {0} would you suggest to {whom}?",
    ),
    _rule(
        rf"(?:{_I} (?:work|am employed|worked) (?:as|at|for|in|with)|i am an? (?:\w+ )?(?:nurse|teacher|doctor|engineer|lawyer|chef|cook|writer|artist|driver|student|manager|accountant|programmer|waitress|waiter|mechanic|farmer|designer|librarian|musician|actor|scientist|salesman))",
        "What {does} {who} do for a living?",
        "What is {whose} job?",
        "Where {does} {who} work?",
        "what kind of career {does} {who} have?",
    ),
    _rule(
        rf"{_I} (?:live|lived|stay|reside|grew up|was born|am from|come from|moved)",
        "Where {does} {who} live?",
        "Where {is} {who} from?",
        "Which place {does} {who} call home?",
        "what city or country {does} {who} come from?",
    ),
    _rule(
        rf"(?:{_I} (?:have|own|adopted|rescued|got|love) (?:\w+ ){{0,3}}(?:dog|cat|pet|puppy|kitten|horse|bird|fish|rabbit|turtle|lizard|parrot|hamster|animal)s?|my (?:dog|cat|pet|puppy)s?)",
        "What pets {does} {who} have?",
        "{Does} {who} have any animals at home?",
        "What animal {does} {who} live with?",
    ),
    _rule(
        rf"(?:{_I} have (?:\w+ ){{0,2}}(?:child|children|kid|kids|son|sons|daughter|daughters|brother|brothers|sister|sisters|sibling|siblings|twins|grandchildren)|my (?:son|daughter|kid|kids|children|wife|husband|parents|mother|father|mom|dad|brother|sister|family))",
        "Who is in {whose} family?",
        "What {does} {who} say about {whose} relatives?",
        "{Does} {who} have siblings or children?",
        "Tell me about {whose} family.",
    ),
    _rule(
        rf"{_I} (?:am|was|got) (?:married|single|divorced|engaged|a widow|in a relationship|dating)",
        "What is {whose} relationship status?",
        "{Is} {who} married?",
    ),
    _rule(
        rf"{_I} (?:play|played) (?:the )?(guitar|piano|drums|violin|bass|flute|cello|trumpet|saxophone|ukulele)",
        "Which instrument {does} {who} play?",
        "{Is} {who} musical?",
    ),
    _rule(
        rf"{_I} (?:play|played|coach|watch) ",
        "Which sport or game {does} {who} play?",
        "What {does} {who} do in {whose} free time?",
    ),
    _rule(
        rf"{_I} (?:drive|drove|ride|own|bought) (?:an? |my )?(?:\w+ ){{0,3}}(?:car|truck|bike|motorcycle|van|suv|honda|toyota|ford|jeep|bmw|prius|mustang|bus)",
        "What vehicle {does} {who} drive?",
        "How {does} {who} get around?",
    ),
    _rule(
        rf"(?:{_I} (?:am|have been|became|went) (?:an? )?(?:vegan|vegetarian|pescatarian|gluten|lactose|allergic)|{_I} (?:do not|don't|cannot|can't|never) eat)",
        "What can {who} not eat?",
        "What should I keep in mind when cooking for {whom}?",
        "Which diet {does} {who} follow?",
    ),
    _rule(
        rf"{_I} (?:study|studied|am studying|go to|went to|attend|attended|graduated|am (?:in|at) (?:college|school|university))",
        "What {does} {who} study?",
        "Which school {does} {who} go to?",
        "What is {whose} education?",
    ),
    _rule(
        rf"{_I} (?:want|wish|hope|plan|would like|dream|am planning|am saving|am trying)",
        "What {is} {who} planning?",
        "What are {whose} goals?",
        "What {does} {who} hope to do one day?",
    ),
    _rule(
        rf"{_I} (?:am|have been|was) (?:afraid|scared|terrified)|{_I} (?:fear|have a fear)",
        "What {is} {who} afraid of?",
        "Which things frighten {whom}?",
    ),
    _rule(
        rf"{_I} (?:hate|dislike|do not like|don't like|can't stand|cannot stand|am not a fan)",
        "What {does} {who} dislike?",
        "What should be avoided with {whom}?",
    ),
    _rule(
        rf"{_I} (?:drink|eat|cook|bake|love to eat|like to eat|love eating|enjoy eating)",
        "What {does} {who} like to eat or drink?",
        "What should I cook for {whom}?",
    ),
    _rule(
        rf"{_I} (?:speak|learn|am learning|know how to speak)",
        "Which languages {does} {who} speak?",
    ),
    _rule(
        rf"{_I} (?:collect|have a collection)",
        "What {does} {who} collect?",
    ),
    _rule(
        rf"{_I} (?:listen|love listening|like listening|enjoy listening)",
        "What music {does} {who} listen to?",
    ),
    _rule(
        rf"{_I} (?:read|love to read|like to read|enjoy reading|love reading)",
        "What {does} {who} like to read?",
    ),
    _rule(
        rf"{_I} (?:love|like|enjoy|adore|prefer|am a (?:huge |big )?fan|am into|am obsessed)",
        "What {does} {who} enjoy?",
        "What are {whose} interests?",
        "What would make a good gift for {whom}?",
        "What {does} {who} do for fun?",
    ),
    _rule(
        rf"{_I} (?:am|'m|turned) (?:\w+ )?(?:\d+|years|tall|short|blonde|old)|i have (?:\w+ )?(?:hair|eyes)",
        "How old {is} {who}?",
        "What {does} {who} look like?",
    ),
    _rule(
        rf"{_I} (?:went|travel|traveled|travelled|visited|have been to|have visited)",
        "Where has {who_has} travelled?",
        "Which places has {who_has} visited?",
    ),
    _rule(
        rf"{_I} (?:used to|quit|stopped|retired|lost|got (?:fired|laid off))",
        "What has changed in {whose} life?",
        "What did {who} use to do?",
    ),
)


def questions_about(statement: str, name: str, chance: random.Random) -> list[str]:
    """Up to two questions that the statement answers, in the first or the third person."""
    for rule in _RULES:
        found = rule.statement.match(statement)
        if found is not None:
            asked = chance.sample(rule.questions, min(2, len(rule.questions)))
            return [_worded(question, found, name, first=chance.random() < 0.5) for question in asked]
    return []


def _worded(question: str, found: re.Match[str], name: str, *, first: bool) -> str:
    words = {
        "who": "I" if first else name,
        "whom": "me" if first else name,
        "whose": "my" if first else f"{name}'s",
        "does": "do" if first else "does",
        "Does": "Do" if first else "Does",
        "is": "am" if first else "is",
        "Is": "Am" if first else "Is",
        "who_has": "I" if first else name,
    }
    if first:
        question = question.replace("has {who_has}", "have {who_has}")
    return question.format(*(group or "" for group in found.groups()), **words)
