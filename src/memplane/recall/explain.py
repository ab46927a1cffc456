"""Explain a recall: whether it returns an entry or a memory, and why not.

Every explanation is about one recall with the limits an agent gets: what it ranked, what of that it selected, and what of that fit.
"""

from collections.abc import Sequence

from memplane.clock import Instant, to_instant
from memplane.documents.result import SpanHit
from memplane.recall.breadth import breadth_of, floor_of
from memplane.recall.calibration import Signals
from memplane.recall.copies import acknowledges, repeats, same_words
from memplane.recall.matters import read_wish
from memplane.recall.request import RecallRequest
from memplane.recall.result import Recall, RecallHit
from memplane.recall.selection import COVERAGE, MAYBE_BLOCKS, MAYBE_TOKENS, MEMORY_COVERAGE
from memplane.recall.standing import APPLIES_MIN, instructs
from memplane.safety.sanitize import has_expired, sanitized_turn, with_flags
from memplane.storage.filter import Audience
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader
from memplane.types import Memory, Role, State, Tier, Turn

_DOCUMENT_KINDS = frozenset({"span", "document"})
_PROBABILITY_MIN = 0.001
"""Smaller ones are not worth their digits."""
_OUT_OF_SCOPE = "It is limited to {place}, and is returned only there."


def returned_as(result: Recall, hit: RecallHit | SpanHit) -> tuple[str, ...]:
    """Where an agent gets a hit: in the `text`, in the `blocks`, in both, with its `turn`, or nowhere."""
    if isinstance(hit, SpanHit):
        return _places(result, hit.span.id)
    if hit.turn is not None and not hit.selected and not hit.flags:
        return ()  # the id is that of its entry, which may have other turns
    return _places(result, hit.id) or (("turn",) if _turn_returned(hit.memory, result) else ())


def returned_text(result: Recall, hit: RecallHit | SpanHit) -> str:
    """The same for people; empty if it is returned nowhere."""
    return ", ".join("with its turn" if place == "turn" else place for place in returned_as(result, hit))


def _places(result: Recall, id_: str) -> tuple[str, ...]:
    places = (("text", _text_ids(result)), ("blocks", _block_ids(result)))
    return tuple(name for name, ids in places if id_ in ids)


def need_explained(result: Recall) -> str:
    """Whether memory helps with the turn at all, in one sentence."""
    chance = f"(probability {probability_text(result.routing.need)})"
    if result.routing.helps == "likely":
        return f"Memory is likely to help with this turn {chance}."
    if result.routing.helps == "maybe":
        return (
            f"Memory may help with this turn, but probably does not {chance}, so at most {_budget(result)} and {MAYBE_BLOCKS} "
            "blocks are returned."
        )
    from_documents = {line.kind in _DOCUMENT_KINDS for line in result.lines}
    names = {False: "pinned memories and instructions that apply", True: "document passages"}
    but = f" but {' and '.join(names[each] for each in sorted(from_documents))}" if from_documents else ""
    return f"Memory is not likely to help with this turn {chance}, so nothing is returned{but}."


def probability_text(probability: float) -> str:
    """0.97, 0.06, 0.004."""
    if probability < _PROBABILITY_MIN:
        return f"below {_PROBABILITY_MIN}"
    return f"{probability:.{2 if probability >= 10 * _PROBABILITY_MIN else 3}f}"


def why_not(
    reader: Reader,
    expected: str,
    request: RecallRequest,
    result: Recall,
    wider: Recall,
    *,
    now: Instant,
) -> str:
    """One or two sentences about an entry or a memory. `wider` is the same recall with much larger limits; it is used only for
    the rank of something that `result` did not rank."""
    returned = _returned(expected, result)
    if returned is not None:
        return returned + _why_standing(expected, result)
    if reader.ledger.tombstoned([expected]):
        return "It was forgotten; forgotten memories are never returned."
    memory = reader.memories.get(expected)
    if memory is None:
        return _why_not_entry(reader, expected, request, result, wider)
    return (
        _why_not_memory(with_flags(memory), request, now)
        or _as_withdrawn(expected, result, wider)
        or _as_turn(memory, result)
        or _as_copy(expected, [memory.line], "memories", result)
        or _why_not_standing(expected, result, wider) + _rank(expected, "memories", result, wider)
    )


def _as_withdrawn(expected: str, result: Recall, wider: Recall) -> str | None:
    """For an instruction that no longer holds or only ends another one, and for the entry it was read from."""
    found = [
        (hit, memory)
        for hit in (*result.hits, *result.facts, *wider.hits)
        if (memory := hit.memory) is not None and expected in {hit.id, memory.entry_id} and instructs(memory)
    ]
    for hit, _ in found:
        if hit.replaced and hit.replaced_by is not None:
            newer = f"{hit.replaced_by!r} ({hit.replaced_by_id})"
            return f"A newer instruction about the same matter replaced it: {newer}."
    if any(not hit.selected and read_wish(memory.text).ending is not None for hit, memory in found):
        return "It withdraws an earlier instruction, and asks for nothing itself."
    return None


def _why_standing(expected: str, result: Recall) -> str:
    """Why an instruction is returned; empty for other memories."""
    signals = _standing_signals(expected, result)
    every, applies = signals.get("every", 0.0), signals.get("applies", 0.0)
    if max(every, applies) < APPLIES_MIN:
        return ""
    if every >= applies:
        return f" It is an instruction for every answer (probability {probability_text(every)})."
    return f" It is an instruction that applies to this turn (probability {probability_text(applies)})."


def _why_not_standing(expected: str, result: Recall, wider: Recall) -> str:
    """Why an instruction is not returned as one; empty for other memories."""
    signals = _standing_signals(expected, result) or _standing_signals(expected, wider)
    if not signals:
        return ""
    every, applies = signals["every"], signals["applies"]
    if max(every, applies) >= APPLIES_MIN:
        return "It is an instruction that applies to this turn, but others that are more likely to apply left no room. "
    return (
        f"It is an instruction that does not apply to this turn (probability {probability_text(applies)}), nor to every answer "
        f"({probability_text(every)}); from {APPLIES_MIN} on it would. "
    )


def _standing_signals(expected: str, result: Recall) -> Signals:
    """The signals of an instruction; empty for everything else."""
    found = (hit.signals for hit in (*result.hits, *result.facts) if hit.id == expected)
    return next((signals for signals in found if "every" in signals), {})


def _text_ids(result: Recall) -> frozenset[str]:
    return frozenset(id_ for line in result.lines for id_ in line.ids)


def _block_ids(result: Recall) -> frozenset[str]:
    return frozenset(block.id for block in result.blocks)


def _returned(expected: str, result: Recall) -> str | None:
    in_text, in_blocks = expected in _text_ids(result), expected in _block_ids(result)
    passage = any(block.id == expected and block.source == "document" for block in result.blocks)
    if in_text and not in_blocks:
        return f"It is returned in the text; it is not among the {len(result.blocks)} blocks."
    if in_blocks and not in_text and not passage:
        return f"It is returned as a block; it does not fit the text of at most {_budget(result)}."
    if in_blocks:
        return "It is returned."
    if any(turn.entry_id == expected for turn in result.conversation_history):
        return "It is returned as part of the current conversation."
    return None


def _place_of(within: str | None) -> str:
    reach, _, name = (within or "").partition(":")
    return f"{reach} {name!r}"


def _why_not_entry(
    reader: Reader, expected: str, request: RecallRequest, result: Recall, wider: Recall
) -> str:
    entry = reader.ledger.get(expected)
    if entry is None:
        return "Nothing with this id was ever stored in this space."
    turns = reader.turns.between(turn_number(entry.seq, 0), turn_number(entry.seq + 1, 0) - 1)
    if not turns:
        return "Nothing of it can be recalled: it is empty after secrets and injected memory are removed."
    reason = _never_returned(turns, request.audience) or _later(to_instant(turns[0].at), request)
    if reason is not None:
        return reason
    return (
        _as_acknowledgement(turns)
        or _as_withdrawn(expected, result, wider)
        or _as_question(turns, result)
        or _as_copy(expected, [turn.text for turn in turns], "turns", result)
        or _as_fact(expected, result)
        or _rank(expected, "turns", result, wider)
    )


def _never_returned(turns: Sequence[Turn], audience: Audience) -> str | None:
    if not any(audience.hears(turn.within) for turn in turns):
        return _OUT_OF_SCOPE.format(place=_place_of(turns[0].within))
    if all(turn.role == Role.SYSTEM for turn in turns):
        return "It is a system turn; those are never returned."
    suspect = next((turn for turn in map(sanitized_turn, turns) if turn.quarantined), None)
    return None if suspect is None else _flagged(suspect.flags)


def _flagged(flags: tuple[str, ...] | None) -> str:
    return (
        f"It is flagged: {', '.join(flags or ())}. Until it is released, it is returned only after everything else, with a "
        "warning, and only if it contains words of the query."
    )


def _later(at: Instant, request: RecallRequest) -> str | None:
    as_of = request.as_of_instant
    return None if as_of is None or at <= as_of else "It is newer than the time of the answer (as_of)."


def _as_question(turns: Sequence[Turn], result: Recall) -> str | None:
    if all(repeats(turn.text, result.query) for turn in turns):
        return "It equals the question, which is never returned as its own answer."
    return None


def _as_acknowledgement(turns: Sequence[Turn]) -> str | None:
    if all(acknowledges(turn.text) for turn in turns):
        return "It only acknowledges another turn, so it is never returned."
    return None


def _as_copy(expected: str, texts: Sequence[str], among: str, result: Recall) -> str | None:
    """Of equal texts one is returned, of turns the newest."""
    words = {same_words(text) for text in texts}
    shown = _text_ids(result) | _block_ids(result)
    for hit in result.hits:
        if hit.id == expected or hit.id not in shown or not hit.selected:
            continue
        if hit.turn is not None and among == "turns" and same_words(hit.turn.text) in words:
            return f"The same was said again later; the newest copy, {hit.id}, is returned."
        if same_words(hit.statement) in words:
            return f"{hit.id} says the same and is returned."
    return None


def _as_turn(memory: Memory, result: Recall) -> str | None:
    turn = _turn_returned(memory, result)
    if turn is None:
        return None
    if turn == memory.entry_id:
        return f"The turn it was read from, {turn}, is returned instead."
    return f"The turn it was read from was said again later; the newest copy, {turn}, is returned instead."


def _turn_returned(memory: Memory | None, result: Recall) -> str | None:
    """The id of the returned turn that a fact was read from, or of the copy that is returned for it."""
    source = _source_of(memory)
    if memory is None or source is None:
        return None
    if _places(result, source):
        return source
    found = _turn_of(memory, result.hits)
    words = None if found is None else same_words(found[1].statement)
    copies = (
        hit.id for hit in result.hits if hit.turn and hit.selected and same_words(hit.statement) == words
    )
    return next((id_ for id_ in copies if _places(result, id_)), None)


def _as_fact(expected: str, result: Recall) -> str | None:
    shown = _text_ids(result) | _block_ids(result)
    for hit in result.hits:
        if _source_of(hit.memory) == expected and hit.id in shown:
            return f"The memory derived from it, {hit.id}, is returned instead."
    return None


def _source_of(memory: Memory | None) -> str | None:
    return memory.entry_id if memory is not None and memory.derived else None


def _why_not_memory(memory: Memory, request: RecallRequest, now: Instant) -> str | None:
    if not request.audience.hears(memory.within):
        return _OUT_OF_SCOPE.format(place=_place_of(memory.within))
    if _superseded(memory, request):
        return (
            f"It was superseded by {memory.superseded_by}; use include_superseded, or an earlier as_of date."
        )
    if has_expired(memory, now):
        return f"It expired on {memory.expires_at:%Y-%m-%d}."
    if memory.quarantined:
        return _flagged(memory.flags)
    if memory.tier is Tier.COLD and memory.leaning < 0 and not request.include_superseded:
        return (
            f"It faded: feedback marked it as not used {memory.passed_over:,} times and as used {memory.chosen:,} times. "
            "Use include_superseded, or mark it as used again."
        )
    return _later(to_instant(memory.updated_at), request)


def _superseded(memory: Memory, request: RecallRequest) -> bool:
    if memory.state is not State.SUPERSEDED or request.include_superseded:
        return False
    as_of, since = request.as_of_instant, memory.superseded_at
    return as_of is None or since is None or to_instant(since) <= as_of


def _rank(expected: str, among: str, result: Recall, wider: Recall) -> str:
    """For what was ranked too low, or not at all."""
    found = _find(expected, result.hits)
    if found is None:
        return _unranked(expected, among, result, wider)
    place = "It ranks"
    memory = found[1].memory
    source = None if memory is None or found[1].selected else _turn_of(memory, result.hits)
    if source is not None:
        found, place = source, f"It is one item with the turn it was read from, {source[1].id}, which ranks"
    rank, hit = found
    place += f" {rank:,} with probability {probability_text(hit.probability)}"
    if result.routing.helps == "unlikely" or (result.routing.helps == "maybe" and hit.selected):
        return f"{need_explained(result)} {place}. {_channels(hit)}"
    return f"{place}; {_left_out(hit, result)}. {_channels(hit)}"


def _left_out(hit: RecallHit, result: Recall) -> str:
    if not hit.selected:
        best = max(other.probability for other in result.hits)
        floor = floor_of(breadth_of(result.query), best, turn=hit.turn is not None)
        if hit.probability < floor:
            return f"for this question, items below {probability_text(floor)} are left out"
        selected = sum(other.selected for other in result.hits)
        held = f"{100 * COVERAGE:.0f} % of the probability"
        also = (
            ""
            if hit.turn is not None
            else f", or the selected memories {100 * MEMORY_COVERAGE:.0f} % of that of all memories"
        )
        return f"the {selected:,} selected items hold {held}{also}"
    if not result.lines:
        return f"it does not fit the budget of {_budget(result)}"
    return f"the {len(result.lines):,} items before it filled the budget of {_budget(result)}"


def _turn_of(memory: Memory, hits: Sequence[RecallHit]) -> tuple[int, RecallHit] | None:
    """The turn that a fact was read from, if it was ranked: the two are one item, and the turn decides."""
    place = (memory.seq, memory.ordinal) if memory.derived else None
    for rank, hit in enumerate(hits, start=1):
        if hit.turn is not None and (hit.turn.seq, hit.turn.ordinal) == place:
            return rank, hit
    return None


def _find(expected: str, hits: Sequence[RecallHit]) -> tuple[int, RecallHit] | None:
    """With its rank; of an entry with several turns the best."""
    return next(((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.id == expected), None)


def _unranked(expected: str, among: str, result: Recall, wider: Recall) -> str:
    turns = among == "turns"
    found = _find(expected, [hit for hit in wider.hits if (hit.turn is not None) == turns])
    need = "" if result.routing.helps == "likely" else f"{need_explained(result)} "
    if found is None:
        has_vectors = "vector" in result.routing.channels
        meaning = "is not similar in meaning" if has_vectors else "meanings are not compared"
        return f"{need}It was not found: it shares no word with the query, and {meaning}."
    rank, hit = found
    ranked = sum((hit.turn is not None) == turns for hit in result.hits)
    return f"{need}It ranks {rank:,} among {among}; only the best {ranked:,} are considered. {_channels(hit)}"


def _budget(result: Recall) -> str:
    most = result.tokens_max if result.routing.helps == "likely" else min(result.tokens_max, MAYBE_TOKENS)
    return f"{most:,} tokens"


def _channels(hit: RecallHit) -> str:
    parts = (
        f"{name} {value:+.2f}" + (f" (rank {hit.ranks[name]:,})" if name in hit.ranks else "")
        for name, value in hit.channels.items()
    )
    return f"Its score is {hit.score:.2f}: {', '.join(parts)}."
