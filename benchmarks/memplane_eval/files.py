"""Where the labelled data lies. It is the user's own download; nothing of it comes with Memplane."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memplane.errors import InvalidRequest

DIRECTORY_VARIABLE = "MEMPLANE_EVAL_DATA"

_GZIP = b"\x1f\x8b"


class DatasetSource(msgspec.Struct, frozen=True):
    """The names under which a file is looked for, without `.json` or `.json.gz`, and where people get it."""

    names: tuple[str, ...]
    origin: str


SOURCES: Mapping[str, Sequence[DatasetSource]] = {
    "locomo": (
        DatasetSource(
            ("locomo-dev", "locomo", "locomo10"), "github.com/snap-research/locomo, data/locomo10.json"
        ),
    ),
    "longmemeval": (
        DatasetSource(
            ("longmemeval-oracle-dev", "longmemeval_oracle"),
            "github.com/xiaowu0162/LongMemEval, longmemeval_oracle.json",
        ),
    ),
    "msc": (
        DatasetSource(
            ("msc-facts-dev", "msc-facts"),
            "ParlAI's Multi-Session Chat: a list of dialogues of {speaker, text, facts}",
        ),
    ),
    "conflicts": (
        DatasetSource(
            ("conflict-scenarios-dev", "conflict-scenarios"),
            "a list of {propositions: [{text, asserted_at}], questions: [{q, expected_current_contains, …}]}",
        ),
        DatasetSource(
            ("fact-consolidation-dev", "fact-consolidation"),
            "MemoryAgentBench's FactConsolidation: a list of {context, questions, answers, metadata}",
        ),
    ),
    "temporal": (
        DatasetSource(
            ("temporal-ctparse-dev", "temporal-ctparse"),
            "github.com/comtravo/ctparse: a list of {text, ref_time, gold_parse}",
        ),
        DatasetSource(
            ("temporal-duckling-dev", "temporal-duckling"),
            "github.com/facebook/duckling: {reference, positive, negative}",
        ),
    ),
    "multihop": (
        DatasetSource(
            ("multihop-rag-dev", "multihop-rag", "MultiHopRAG"),
            "github.com/yixuantt/MultiHop-RAG, MultiHopRAG.json with corpus.json beside it",
        ),
    ),
}


class DataMissing(InvalidRequest):
    """The data set to measure with is not there."""

    code = "not_found"


def data_directory(environment: Mapping[str, str]) -> Path:
    """Where data sets are looked for; the working directory, unless the environment says otherwise."""
    return Path(environment.get(DIRECTORY_VARIABLE) or ".").expanduser()


def usual_files(subject: str, folder: Path) -> list[Path]:
    """The files of a subject that are in the folder, one a source; at least one, or an error that says what to do."""
    sources = SOURCES[subject]
    found = [path for source in sources if (path := _existing(source, folder)) is not None]
    if not found:
        wanted = " or ".join(f"{source.names[0]}.json.gz" for source in sources)
        origins = "; or ".join(source.origin for source in sources)
        raise DataMissing(
            f"no {wanted} in {folder.resolve()}. Name a file: `memplane eval {subject} FILE`; or put it there; or set "
            f"{DIRECTORY_VARIABLE} to the folder that holds it. It comes from {origins}"
        )
    return found


def read_json(path: Path) -> Any:
    """A JSON document, gzipped or not."""
    try:
        raw = path.read_bytes()
        return json.loads(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
    except FileNotFoundError:
        raise DataMissing(f"{path} is not there") from None
    except (OSError, EOFError, ValueError) as exc:
        raise InvalidRequest(f"{path} cannot be read as a data set: {exc}") from exc


def _existing(source: DatasetSource, folder: Path) -> Path | None:
    paths = (folder / f"{name}{ending}" for name in source.names for ending in (".json.gz", ".json"))
    return next((path for path in paths if path.is_file()), None)
