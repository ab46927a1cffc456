"""Which standing instructions apply to a turn: all turns, this one, or not.

"Be brief" concerns every answer, whatever the turn is about; "never push to main" concerns some. The first is decided by what the
instruction is about, from its words and its vector. The second is decided by how near it is to the turn, compared with how near
instructions usually are to this turn and this instruction usually is to turns: without that, an instruction in common words
would be near to everything.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources

import msgspec
import numpy as np

from memplane.extract.proposition import USER
from memplane.extract.relevance import Question
from memplane.models.embedding import Vector
from memplane.models.vectors import unpacked
from memplane.recall.calibration import Calibration, InstructionVectors, Signals, calibration_of, probability
from memplane.recall.fact_ranking import RankedFact
from memplane.recall.query import CHARS_READ_MAX
from memplane.recall.query_context import PreparedQuery
from memplane.storage.store import Reader
from memplane.types import Kind, Memory

APPLIES_MIN = 0.5
"""The fit moves both probabilities so that at most a few per cent of unrelated turns reach this."""
WORD_SIGNALS = ("answering", "naming", "manner", "always", "condition", "domain")
_SHORT_CHARS_MAX = 4
"""Entries of the word lists up to this length match whole words. Shorter shared words say little: `for`, `que`."""
_WHOLE = r"(?:s|es)?\b"
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff]+")


@cache
def _words() -> Mapping[str, re.Pattern[str]]:
    file = resources.files("memplane.recall").joinpath("instruction_words.toml")
    lists: dict[str, str] = tomllib.loads(file.read_text("utf-8"))
    return {name: re.compile("|".join(map(_pattern, text.split()))) for name, text in lists.items()}


def word_list(name: str) -> re.Pattern[str]:
    """A list of instruction_words.toml."""
    return _words()[name]


def _pattern(entry: str) -> str:
    text = re.escape(entry.replace("_", " "))
    if _UNSPACED.match(entry):
        return text
    return rf"\b{text}{_WHOLE if len(entry) <= _SHORT_CHARS_MAX else ''}"


@lru_cache(maxsize=1_024)
def word_signals(instruction: str) -> Signals:
    """What an instruction is about, by its words: 1 for each list that has one of them."""
    text = instruction.casefold()
    return {name: float(_words()[name].search(text) is not None) for name in WORD_SIGNALS}


def asks_for_instructions(prepared: PreparedQuery) -> float:
    """1 for `what rules did I give you?`, and for an empty query, which asks for everything that is useful without one."""
    asked = _words()["asking"].search(prepared.text[:CHARS_READ_MAX].casefold())
    return float(asked is not None or not prepared.question.words)


def shared_words(instruction: str, turn: Question) -> float:
    """How many words the instruction and the turn share, without those that most instructions contain."""
    stems = {stem for word, stem in turn.stems.items() if _is_specific(word)}
    return float(len(stems & set(Question(instruction).stems.values()))) if stems else 0.0


def _is_specific(word: str) -> bool:
    """Whether sharing this word says that an instruction and a turn are about the same thing."""
    if _UNSPACED.search(word):
        return _IDEOGRAPHS.fullmatch(word) is not None
    usual = _words()
    return len(word) >= _SHORT_CHARS_MAX and not (
        usual["answering"].match(word) or usual["always"].match(word)
    )


def vector_signals(instruction: Vector, turn: Vector, usual: InstructionVectors) -> Signals:
    """What an instruction is about by its vector, and how near it is to the turn, both as they are and as is usual."""
    return {
        "general": usual.general(instruction),
        "nearness": float(np.dot(instruction, turn)),
        "nearness_to_turns": usual.turn(instruction),
        "nearness_of_turn": usual.instruction(turn),
        "foreign": probability(usual.foreign(turn)),
    }


def with_standing_signals(
    reader: Reader,
    prepared: PreparedQuery,
    known: Sequence[RankedFact],
    calibration: Calibration,
) -> list[RankedFact]:
    """Instructions with the probabilities `every` (it concerns every answer) and `applies` (it concerns this turn), and whether
    instructions are asked for."""
    rules = [fact.memory.id for fact in known if instructs(fact.memory)]
    if not rules:
        return list(known)
    packed = {} if prepared.model is None else reader.vectors.memories_of(prepared.model, rules)
    asked = asks_for_instructions(prepared)
    return [
        _with_signals(fact, prepared, packed.get(fact.memory.id), calibration, asked)
        if instructs(fact.memory)
        else fact
        for fact in known
    ]


def instructs(memory: Memory) -> bool:
    """Only what was stored, or what the user said to the agent: `never give up`, said between two people, is not an instruction."""
    return memory.kind is Kind.INSTRUCTION and not (memory.derived and memory.subject != USER)


def _with_signals(
    fact: RankedFact,
    prepared: PreparedQuery,
    packed: bytes | None,
    calibration: Calibration,
    asked: float,
) -> RankedFact:
    signals = {
        **fact.signals,
        **word_signals(fact.memory.text),
        "shared": shared_words(fact.memory.text, prepared.question),
        "asked": asked,
    }
    if packed is not None and prepared.query is not None and calibration.instructions is not None:
        signals |= vector_signals(unpacked([packed])[0], prepared.query, calibration.instructions)
    elif calibration.instructions is not None:
        calibration = calibration_of(None)  # its vector is not computed yet
    signals["every"] = calibration.every(signals)
    signals["applies"] = calibration.standing(signals)
    return msgspec.structs.replace(fact, signals=signals)


def applicability(signals: Signals) -> float:
    """How likely an instruction applies to the turn; from `APPLIES_MIN` on it is returned."""
    return max(signals.get("every", 0.0), signals.get("applies", 0.0))
