"""Whether the memory that helps is in the text, and how much is returned for turns that need none."""

from collections.abc import Mapping, Sequence

import msgspec

from memplane.config import Settings
from memplane.safety.outgoing import BLOCKS_MAX
from memplane.space import Space
from memplane_eval.retrieval import EvalQuestion, EvalStore, EvalTurn, Ranker, best_first
from memplane_eval.returned.cases import CaseInstruction, Cases, CaseSpace, CaseTurn, same_language
from memplane_eval.returned.received import PlainLines, Shown, plane_blocks, recalled
from memplane_eval.returned.samples import TOKENS, Samples
from memplane_eval.returned.workbench import START, Workbench, days_ago

BUDGET = 400
IN_TEXT = "memory in the text"
IN_BUDGET = f"memory in the text, budget {BUDGET}"
IN_BLOCKS = f"memory in {BLOCKS_MAX} blocks"
OR_FACT = "memory, or a fact of it, in the text"
EMPTY = "nothing returned"
NO_MEMORY_NEEDED = "no memory needed"
APPLIES = "applies: in the text"
NOT_APPLIES = "does not apply: not in the text"

_SAID_TOGETHER = 5
"""Turns of a conversation."""


class Setup(msgspec.Struct, frozen=True):
    """How memories get into a space, and what else is in it."""

    name: str
    said: bool = False
    """Retained as the user said them; otherwise stored as they are written down."""
    filled: bool = False


STORED = Setup("stored, small space")
SAID = Setup("said, small space", said=True)
STORED_FILLED = Setup("stored, space of 1,000", filled=True)


def setups(workbench: Workbench) -> list[Setup]:
    return [STORED, SAID, *([STORED_FILLED] if workbench.filler else [])]


def measure_space(
    samples: Samples,
    workbench: Workbench,
    setup: Setup,
    case: CaseSpace,
    cases: Cases,
    rankers: Mapping[str, Ranker],
) -> None:
    """Ask every question of the case, and every turn of its language that needs no memory."""
    with workbench.space(filled=setup.filled) as space:
        entries = add_memories(space, case, said=setup.said)
        for pair in case.pairs:
            _ask_pair(samples, setup, space, case, pair.memory, pair.question, entries[pair.memory])
        for turn in same_language(cases.turns, case.language):
            _ask_needless(samples, setup, space, turn)
    _ask_baselines(samples, setup, case, rankers, workbench.filler if setup.filled else ())


def add_memories(space: Space, case: CaseSpace, *, said: bool) -> list[str]:
    """Store or retain the memories of a case, and return the ids of their entries."""
    if said:
        count = len(case.memories)
        ids = [
            space.retain(
                memory.said, conversation=f"c{place // _SAID_TOGETHER}", at=days_ago(count - place)
            ).id
            for place, memory in enumerate(case.memories)
        ]
    else:
        ids = [space.store(memory.kind, memory.stored).entry_id for memory in case.memories]
    space.enrich()
    return ids


def _names(setup: Setup, case: CaseSpace, metric: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The group and metric of a figure: once for all languages, once for the language of the case."""
    return (setup.name, metric), (f"{setup.name}, by language", f"{case.language}: {metric}")


def _ask_needless(samples: Samples, setup: Setup, space: Space, turn: CaseTurn) -> None:
    """Ask a turn that needs no memory."""
    group = f"{NO_MEMORY_NEEDED}: {setup.name}"
    found = recalled(space, turn.text)
    samples.add(group, EMPTY, float(not found.text))
    samples.add(group, TOKENS, found.tokens)
    samples.add(group, f"{EMPTY}: {turn.type}", float(not found.text))
    samples.add(f"{group}, by language", f"{turn.language}: {EMPTY}", float(not found.text))
    samples.add(f"{group}, by language", f"{turn.language}: {TOKENS}", found.tokens)


def _ask_pair(
    samples: Samples, setup: Setup, space: Space, case: CaseSpace, place: int, question: str, entry_id: str
) -> None:
    memory = case.memories[place]
    wanted = memory.said if setup.said else memory.stored
    found = recalled(space, question)
    shown = Shown(found.text)
    has = shown.has(wanted)
    derived = (hit.memory for hit in found.facts if hit.memory is not None)
    facts = any(fact.entry_id == entry_id and shown.has(fact.line) for fact in derived)
    tight = recalled(space, question, tokens=BUDGET)
    blocks = Shown(plane_blocks(space, question, Settings()))
    figures = {
        IN_TEXT: float(has),
        TOKENS: float(found.tokens),
        IN_BUDGET: float(Shown(tight.text).has(wanted)),
        IN_BLOCKS: float(blocks.has(wanted)),
    }
    for metric, value in figures.items():
        for name in _names(setup, case, metric):
            samples.add(*name, value)
    samples.add(setup.name, OR_FACT, float(has or facts))
    samples.add(setup.name, f"{TOKENS}, budget {BUDGET}", tight.tokens)


def _ask_baselines(
    samples: Samples, setup: Setup, case: CaseSpace, rankers: Mapping[str, Ranker], filler: Sequence[EvalTurn]
) -> None:
    """The same memories as plain lines, filled to the mean of what Memplane returned for this language."""
    memories = [
        EvalTurn(
            id=str(place),
            session=place,
            speaker="user",
            text=memory.said if setup.said else memory.stored,
            at=START,
        )
        for place, memory in enumerate(case.memories)
    ]
    questions = [
        EvalQuestion(text=pair.question, category="", evidence=frozenset([pair.memory]))
        for pair in case.pairs
    ]
    store = EvalStore(name="case", turns=[*memories, *filler], questions=questions)
    lines = PlainLines(store.turns)
    used = samples.mean(*_names(setup, case, TOKENS)[1])
    for system, ranker in rankers.items():
        score = ranker(store)
        for question in questions:
            ranked = best_first(score(question))
            places, tight = lines.filled(ranked, used), lines.filled(ranked, BUDGET)
            figures = {
                IN_TEXT: float(not question.evidence.isdisjoint(places)),
                TOKENS: float(lines.tokens(places)),
                IN_BUDGET: float(not question.evidence.isdisjoint(tight)),
                IN_BLOCKS: float(not question.evidence.isdisjoint(ranked[:BLOCKS_MAX])),
            }
            for metric, value in figures.items():
                for name in _names(setup, case, metric):
                    samples.add(*name, value, system=system)


def measure_instruction(
    samples: Samples, workbench: Workbench, instruction: CaseInstruction, case: CaseSpace | None
) -> None:
    """Store one instruction beside the memories of a case, or (without one) beside turns of other conversations."""
    group = "instructions, space of 1,000" if case is None else "instructions, small space"
    with workbench.space(filled=case is None) as space:
        if case is not None:
            add_memories(space, case, said=False)
        space.store(instruction.kind, instruction.stored)
        space.enrich()
        for applies, turns in ((True, instruction.applies), (False, instruction.other)):
            for turn in turns:
                found = recalled(space, turn)
                has = Shown(found.text).has(instruction.stored)
                name = APPLIES if applies else NOT_APPLIES
                samples.add(group, name, float(has is applies))
                samples.add(group, f"{name}: {instruction.scope}", float(has is applies))
                samples.add(group, TOKENS, found.tokens)


def spaces_for(cases: Cases, instruction: CaseInstruction, number: int) -> CaseSpace | None:
    """The instructions are spread over the spaces of their language; None if there is none."""
    spaces = [space for space in cases.spaces if space.language == instruction.language]
    return spaces[number % len(spaces)] if spaces else None
