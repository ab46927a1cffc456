"""Case files: short memories with one indirect question each, turns that need no memory, and standing instructions.

{"spaces": [{"language": "en", "memories": [{"kind": "fact", "stored": "…", "said": "…"}],
             "pairs": [{"memory": 0, "question": "…"}]}],
 "turns": [{"language": "en", "type": "greeting", "text": "…"}],
 "instructions": [{"language": "en", "scope": "every answer", "kind": "instruction", "stored": "…", "said": "…",
                   "applies": ["…"], "not": ["…"]}]}
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from memplane.errors import InvalidRequest
from memplane_eval.files import DataMissing, read_json

_Each = TypeVar("_Each", "CaseTurn", "CaseInstruction")


class CaseMemory(msgspec.Struct, frozen=True):
    """One memory, as it is written down and as the user says it."""

    kind: str
    stored: str
    said: str


class CasePair(msgspec.Struct, frozen=True):
    """A later turn, and the place of the memory that helps with it."""

    memory: int
    question: str


class CaseSpace(msgspec.Struct, frozen=True):
    """What one person's agent knows."""

    language: str
    memories: tuple[CaseMemory, ...]
    pairs: tuple[CasePair, ...]


class CaseTurn(msgspec.Struct, frozen=True):
    """A turn of the user."""

    language: str
    text: str
    type: str = ""


class CaseInstruction(msgspec.Struct, frozen=True):
    """A standing instruction or preference, with turns to which it applies and turns to which it does not."""

    language: str
    scope: str
    kind: str
    stored: str
    applies: tuple[str, ...]
    said: str = ""
    other: tuple[str, ...] = msgspec.field(name="not", default=())


class Cases(msgspec.Struct, frozen=True):
    """All cases of one or more files."""

    spaces: tuple[CaseSpace, ...] = ()
    turns: tuple[CaseTurn, ...] = ()
    instructions: tuple[CaseInstruction, ...] = ()
    needs: tuple[CaseTurn, ...] = ()
    """Turns for which memory about the user helps, …"""
    needs_not: tuple[CaseTurn, ...] = ()
    """… and turns for which it does not; only calibration uses these."""


def bundled(half: str) -> Path:
    """The folder with the cases of a half."""
    return Path(__file__).parent.parent / "cases" / half


def is_cases(document: object) -> bool:
    return isinstance(document, dict) and bool(document.keys() & {"spaces", "turns", "instructions", "needs"})


def load_cases(path: Path, limit: int | None = None) -> Cases:
    """The cases of a file, or of all case files in a folder. A limit keeps the first so many pairs of each space, and turns
    and instructions of each language."""
    documents = {each: read_json(each) for each in (sorted(path.glob("*.json")) if path.is_dir() else [path])}
    parts = [_converted(each, document) for each, document in documents.items() if is_cases(document)]
    if not parts:
        raise DataMissing(f"no case files in {path}")
    spaces = (space for part in parts for space in part.spaces)
    return Cases(
        spaces=tuple(msgspec.structs.replace(space, pairs=space.pairs[:limit]) for space in spaces),
        needs=tuple(_first((turn for part in parts for turn in part.needs), limit)),
        needs_not=tuple(_first((turn for part in parts for turn in part.needs_not), limit)),
        turns=tuple(_first((turn for part in parts for turn in part.turns), limit)),
        instructions=tuple(_first((each for part in parts for each in part.instructions), limit)),
    )


def same_language(cases: Sequence[_Each], language: str) -> list[_Each]:
    return [case for case in cases if case.language == language]


def _converted(path: Path, document: object) -> Cases:
    try:
        cases = msgspec.convert(document, Cases)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"{path} is not a case file: {exc}") from exc
    for space in cases.spaces:
        if any(not 0 <= pair.memory < len(space.memories) for pair in space.pairs):
            raise InvalidRequest(f"{path} is not a case file: a pair names a memory that is not in its space")
    return cases


def _first(cases: Iterable[_Each], limit: int | None) -> Iterator[_Each]:
    counts: Counter[str] = Counter()
    for case in cases:
        counts[case.language] += 1
        if limit is None or counts[case.language] <= limit:
            yield case
