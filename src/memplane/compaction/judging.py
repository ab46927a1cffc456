"""What of a raw day is worth keeping once the day itself is not. Pure and offline: it judges what enrichment derived, and
of turns that nothing was derived from it looks for decisions only.

* what a user says about how to be served (preferences, instructions, corrections) is a learning;
* facts, episodes, decisions and what was said again and again become lines of the week's digest;
* greetings, thanks, questions, status and the rest are discarded, each with a reason.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from memplane.clock import to_instant
from memplane.extract.sentences import split_sentences
from memplane.ledger.payloads import PromotePayload
from memplane.safety.sanitize import one_line
from memplane.storage.compaction import Layer
from memplane.types import Kind, Memory, Role, State, Turn, Visibility

DECISION, PATTERN = "decision", "pattern"
"""Kinds of digest lines besides those of memories."""

_OFTEN = 3
"""So often in a day is a pattern."""
_PATTERN_WORDS_MIN = 3
_PATTERN_CHARS_MAX = 200
_SHORT_WORDS = 8


class RawEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of a raw day, with derived memories that are not judged yet."""

    id: str
    turns: tuple[Turn, ...] = ()
    memories: tuple[Memory, ...] = ()
    """Its own, and what it would have derived on its own if nothing had been said before."""
    episodes: tuple[tuple[Memory, tuple[str, ...]], ...] = ()
    """Each with the entries it quotes."""
    document: str | None = None
    """The document it is about."""


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate for promotion and the entries it represents."""

    layer: Layer
    promoted: PromotePayload
    entry: str
    item: str
    reason: str


class Discard(msgspec.Struct, frozen=True, gc=False):
    """Something that goes with its day."""

    entry: str
    item: str
    reason: str


def judge(day: str, entries: Sequence[RawEntry]) -> tuple[list[Promotion], list[Discard]]:
    """Every item of every entry is in exactly one of the two. The same entries give the same, on every machine."""
    kept: list[Promotion] = []
    discarded: list[Discard] = []
    for entry in entries:
        kept += (_of_memory(day, entry, memory) for memory in entry.memories)
        kept += (_of_episode(day, entry, episode, sources) for episode, sources in entry.episodes)
        telling = {memory.ordinal for memory in entry.memories}
        for turn in entry.turns:
            if turn.ordinal in telling:
                continue
            decision = _of_decision(day, entry, turn)
            if decision is None:
                discarded.append(Discard(entry.id, turn_item(turn), reason_against(turn)))
            else:
                kept.append(decision)
        if not (entry.turns or entry.memories or entry.episodes):
            discarded.append(Discard(entry.id, "turn-0", "nothing in it can be shown"))
    return kept + list(_patterns(day, entries)), discarded


def turn_item(turn: Turn) -> str:
    return f"turn-{turn.ordinal}"


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────


def _of_memory(day: str, entry: RawEntry, memory: Memory) -> Promotion:
    over = memory.state is State.SUPERSEDED
    text = _complete(entry, memory)
    if memory.behavioral and memory.role == Role.USER and not over:
        layer, reason = Layer.LEARN, "says how the user wants to be served"
    elif over:
        layer, text, reason = Layer.DIGEST, f"Formerly: {text}", "was so, and was replaced since"
    else:
        layer, reason = Layer.DIGEST, "a fact about people or projects"
    promoted = PromotePayload(
        day=day,
        kind=memory.kind,
        text=text,
        at=to_instant(memory.created_at),
        sources=(entry.id,),
        quote=memory.quote or "",
        conversation=memory.conversation,
        project=memory.project,
        scope=scope_of(memory.within),
        document=entry.document,
        speaker=_named_speaker(entry, memory) if layer is Layer.LEARN else None,
    )
    return Promotion(layer=layer, promoted=promoted, entry=entry.id, item=memory.id, reason=reason)


def _complete(entry: RawEntry, memory: Memory) -> str:
    """The memory's text; or the sentence it was read from, if that has a number, a name, a negation or an alternative which the text
    leaves out. The turn is about to be deleted, so nothing else would keep it."""
    turn = next((turn for turn in entry.turns if turn.ordinal == (memory.ordinal or 0)), None)
    if turn is None or not memory.derived or memory.start is None:
        return memory.text
    sentences = (it for it in split_sentences(turn.text) if it.start <= memory.start < it.end)
    sentence = next(sentences, None)
    if sentence is None:
        return memory.text
    beside = [
        other
        for other in entry.memories
        if other.ordinal == memory.ordinal and sentence.start <= (other.start or 0) < sentence.end
    ]
    said = one_line(turn.text[sentence.start : sentence.end])
    told = frozenset[str]().union(*(essentials(other.text) for other in beside))
    if essentials(said) <= told or max(beside, key=_length).id != memory.id:
        return memory.text
    return f"{_speaker(turn)}: {said}"


def _length(memory: Memory) -> int:
    return (memory.end or 0) - (memory.start or 0)


_ESSENTIAL = re.compile(
    r"(?P<number>\d[\d.,:/-]*)|(?<=\w )(?P<name>(?!I\b)[A-Z][\w'-]+)"
    r"|\b(?P<turns>not|never|no|none|nobody|nothing|without|cannot|instead|rather|than|except|unless|but|or|only|until)\b|(?P<denies>n['\u2019]t)\b",
)


def essentials(text: str) -> frozenset[str]:
    """Numbers, names, negations and alternatives: what a shorter text must not lose."""
    return frozenset(
        "not" if found["denies"] else found.group().rstrip(".,:-/").lower()
        for found in _ESSENTIAL.finditer(text)
    )


def _named_speaker(entry: RawEntry, memory: Memory) -> str | None:
    """The named speaker, if any; not necessarily the owner."""
    return next((turn.speaker for turn in entry.turns if turn.ordinal == (memory.ordinal or 0)), None)


def _of_episode(day: str, entry: RawEntry, episode: Memory, sources: tuple[str, ...]) -> Promotion:
    promoted = PromotePayload(
        day=day,
        kind=Kind.EPISODE,
        text=episode.text,
        at=to_instant(episode.created_at),
        sources=sources or (entry.id,),
        quote=episode.quote or "",
        conversation=episode.conversation,
        project=episode.project,
        scope=scope_of(episode.within),
        document=entry.document,
    )
    reason = "what a sitting was about"
    return Promotion(layer=Layer.DIGEST, promoted=promoted, entry=entry.id, item=episode.id, reason=reason)


_DECISION = re.compile(
    r"""\b(?:we|i|they|the\ team|\w+\ and\ i)\ (?:have\ |finally\ |all\ |just\ ){0,2}
        (?:decided|agreed|settled\ on|chose|committed|are\ going\ with|will\ go\ with|went\ with|signed\ off)\b
      | \b(?:let's|let\ us)\ (?:go\ with|use|stick\ with|switch\ to|drop)\b
      | \b(?:the\ decision\ is|it\ is\ decided|decision:|agreed:|the\ plan\ is\ to|from\ now\ on)""",
    re.IGNORECASE | re.VERBOSE,
)


def _of_decision(day: str, entry: RawEntry, turn: Turn) -> Promotion | None:
    """The first sentence of a turn that says what was decided."""
    if turn.role not in (Role.USER, Role.ASSISTANT):
        return None
    for sentence in split_sentences(turn.text):
        said = turn.text[sentence.start : sentence.end]
        if sentence.question or _DECISION.search(said.replace("\u2019", "'")) is None:
            continue
        promoted = _of_turn(day, entry, turn, DECISION, f"{_speaker(turn)}: {one_line(said)}", said)
        return Promotion(
            layer=Layer.DIGEST,
            promoted=promoted,
            entry=entry.id,
            item=turn_item(turn),
            reason="says what was decided",
        )
    return None


def _patterns(day: str, entries: Sequence[RawEntry]) -> Iterator[Promotion]:
    """What a user said again and again."""
    said: defaultdict[tuple[str, str | None], list[tuple[RawEntry, Turn]]] = defaultdict(list)
    for entry in entries:
        for turn in entry.turns:
            words = _WORDS.findall(turn.text.lower())
            if turn.role == Role.USER and len(words) >= _PATTERN_WORDS_MIN and not is_idle(turn.text):
                said[" ".join(words), turn.within].append((entry, turn))
    for (said_words, _), places in said.items():
        if len(places) < _OFTEN or len(said_words) > _PATTERN_CHARS_MAX:
            continue
        entry, turn = places[0]
        text = f"{_speaker(turn)}, {len(places)} times: {one_line(turn.text)}"
        sources = tuple(dict.fromkeys(entry.id for entry, _ in places))
        promoted = msgspec.structs.replace(
            _of_turn(day, entry, turn, PATTERN, text, turn.text), sources=sources
        )
        yield Promotion(
            layer=Layer.DIGEST,
            promoted=promoted,
            entry=entry.id,
            item=f"pattern-{turn.ordinal}",
            reason=f"said {len(places)} times that day",
        )


_WORDS = re.compile(r"\w+")


def _of_turn(day: str, entry: RawEntry, turn: Turn, kind: str, text: str, quote: str) -> PromotePayload:
    return PromotePayload(
        day=day,
        kind=kind,
        text=text,
        at=to_instant(turn.at),
        sources=(entry.id,),
        quote=quote,
        conversation=turn.conversation,
        project=turn.project,
        scope=scope_of(turn.within),
        document=entry.document,
    )


def _speaker(turn: Turn) -> str:
    return turn.speaker or turn.role


def scope_of(within: str | None) -> Visibility:
    return Visibility.GLOBAL if within is None else Visibility(within.partition(":")[0])


# ── what is discarded ────────────────────────────────────────────────────────────────────────────────────────────

_IDLE = (
    (
        "a greeting",
        re.compile(
            r"(?:hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|night|day)|morning|welcome(?: back)?|bye|goodbye"
            r"|see you|cheers|take care|have a (?:good|nice|great))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "thanks",
        re.compile(
            r"(?:thanks|thank you|thx|ty|much appreciated|you're welcome|no problem|np|my pleasure)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "an acknowledgement",
        re.compile(
            r"(?:ok(?:ay)?|k|yes|yeah|yep|no|nope|sure|right|great|cool|nice|perfect|got it|understood|sounds good|will do"
            r"|noted|agreed|exactly|of course|done|fine|lol|haha+|wow|oh|hmm+)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "a status ping",
        re.compile(
            r"(?:ping|pong|status|still (?:there|working|running)|any (?:news|update)|checking in|heartbeat|all green"
            r"|(?:the )?(?:build|tests?|deploy(?:ment)?|job|backup|pipeline|sync)\b.{0,40}\b"
            r"(?:passed|passes|failed|fails|ok|green|red|done|finished|running|started|succeeded))\b",
            re.IGNORECASE,
        ),
    ),
)


def is_idle(text: str) -> bool:
    """Whether it is small talk or a ping, and nothing else."""
    return _idle_reason(text) is not None


def _idle_reason(text: str) -> str | None:
    said = text.strip()
    if len(said.split()) > _SHORT_WORDS:
        return None
    return next((reason for reason, pattern in _IDLE if pattern.match(said)), None)


def reason_against(turn: Turn) -> str:
    """Why a turn that nothing was derived from is not kept."""
    idle = _idle_reason(turn.text)
    if idle is not None:
        return idle
    if turn.role != Role.USER:
        return f"said by the {turn.role}, and nothing in it was worth keeping"
    if turn.text.rstrip().endswith("?"):
        return "a question"
    return "nothing in it was worth keeping"
