"""Memplane beside other memories, same machine and same run: `python -m benchmarks.peers [--conversations N] [--json]`.

LoCoMo's turns and questions, one turn at a time as an agent would keep them, and Memplane's own embedder for all. Every
peer is installed by name into an environment of its own and runs in a process of its own, without telemetry; one that
cannot be installed or fails is left out, and the table says why. Vectors are made before the clock starts, so that the
ingest rate is about storing; what making them costs is counted in apart.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import median, percentile
from memplane.models.embedding import Embedder
from memplane.models.local import LocalEmbedder
from memplane.recall.turn_embedding import embedded_text
from memplane_eval.cache import CachedEmbedder
from memplane_eval.files import data_directory, usual_files
from memplane_eval.product import memplane
from memplane_eval.report import mean
from memplane_eval.retrieval import EvalStore, load_locomo, recalls

ENVIRONMENTS = Path(".venv-peers")
CACHE = Path(".eval-cache")
WORKER = Path(__file__).with_name("peer_worker.py")

_K = 100
_INSTALL_S_MAX = 1_200
_RUN_S_MAX = 3_600
_REASON_CHARS_MAX = 160
_COLUMNS = 120

PACKAGES = {
    "chromadb": ["chromadb"],
    "mem0ai": ["mem0ai"],
    "langgraph-checkpoint-sqlite": [
        "langgraph",
        "langgraph-checkpoint-sqlite",
        "sqlite-vec",
        "pysqlite3-binary",
    ],
    "bm25s": ["bm25s"],
}
"""What is installed for each."""
_NO_VECTORS = frozenset({"bm25s"})


@dataclass(frozen=True)
class Standing:
    """How one system did; only `reason` for one that was left out."""

    name: str
    version: str = ""
    turn_at_10: float = 0.0
    session_at_10: float = 0.0
    ingest_rate: float = 0.0
    """Turns a second, vectors at hand."""
    ingest_rate_embedding: float = 0.0
    """Turns a second, vectors to be made."""
    query_ms_p50: float = 0.0
    query_ms_p95: float = 0.0
    reason: str = ""


class Skipped(Exception):
    """A peer cannot be measured here; the message says why."""


def run(stores: Sequence[EvalStore], embedder: Embedder, names: Sequence[str]) -> list[Standing]:
    """Memplane and then each peer."""
    with tempfile.TemporaryDirectory(prefix="memplane-peers-") as folder:
        cached = CachedEmbedder(embedder, CACHE)
        embedding_rate = rate_of(embedder, stores[0])
        standings = [measure_memplane(stores, cached, embedder)]
        request = write_request(stores, cached, Path(folder))
        cached.close()
        for name in names:
            try:
                found = ask(name, install(name), request, Path(folder) / name)
                standings.append(standing(name, found, stores, embedding_rate))
            except Skipped as exc:
                standings.append(Standing(name, reason=str(exc)))
        return standings


# ── Memplane ─────────────────────────────────────────────────────────────────────────────────────────────────────


def measure_memplane(stores: Sequence[EvalStore], cached: Embedder, bare: Embedder) -> Standing:
    """The first conversation without a cache, for what embedding costs; then all, twice, of which the second counts."""
    started = time.perf_counter()
    with memplane(bare)(stores[0]):
        bare_s = time.perf_counter() - started
    found = []
    for measured in (False, True):
        for store in stores:
            started = time.perf_counter()
            with memplane(cached)(store) as ask_:
                ingest_s = time.perf_counter() - started
                ranked, latencies = [], []
                for question in store.questions:
                    answer = ask_(question)
                    ranked.append(list(answer.places))
                    latencies.append(answer.ms)
            if measured:
                found.append({"ingest_s": ingest_s, "ranked": ranked, "latencies_ms": latencies})
    made = standing("memplane", {"version": "", "stores": found}, stores, None)
    return Standing(**{**asdict(made), "ingest_rate_embedding": len(stores[0].turns) / bare_s})


def rate_of(embedder: Embedder, store: EvalStore) -> float:
    texts = _texts(store)
    started = time.perf_counter()
    embedder.embed_texts(texts)
    return len(texts) / (time.perf_counter() - started)


# ── peers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def install(name: str) -> Path:
    """The interpreter of the peer's own environment, made if it is not there."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]]
        _done(command, "cannot be installed", seconds_max=_INSTALL_S_MAX)
        ready.touch()
    return python


def ask(name: str, python: Path, request: dict[str, object], folder: Path) -> dict[str, object]:
    folder.mkdir()
    told = json.dumps({**request, "folder": str(folder)})
    out = _done([python, WORKER, name], "failed", stdin=told, seconds_max=_RUN_S_MAX)
    return json.loads(out)


def _done(command: Sequence[object], failure: str, *, seconds_max: int, stdin: str = "") -> str:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise Skipped(f"{failure}: {exc}"[:_REASON_CHARS_MAX]) from exc
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no reason given")
        raise Skipped(f"{failure}: {last.strip()}"[:_REASON_CHARS_MAX])
    return done.stdout


def write_request(stores: Sequence[EvalStore], embedder: Embedder, folder: Path) -> dict[str, object]:
    """The vectors go into a file, the rest into the request itself."""
    texts = list(dict.fromkeys(text for store in stores for text in _texts(store)))
    questions = list(dict.fromkeys(question.text for store in stores for question in store.questions))
    questions = [question for question in questions if question not in set(texts)]
    vectors = np.concatenate(
        [embedder.embed_texts(texts), np.stack([embedder.embed_query(question) for question in questions])]
    )
    path = folder / "vectors.f32"
    path.write_bytes(vectors.astype("<f4").tobytes())
    path.with_suffix(".json").write_text(json.dumps(texts + questions), "utf-8")
    return {
        "vectors": str(path),
        "dimension": int(vectors.shape[1]),
        "k": _K,
        "stores": [
            {"name": store.name, "texts": _texts(store), "questions": [one.text for one in store.questions]}
            for store in stores
        ],
    }


def _texts(store: EvalStore) -> list[str]:
    return [embedded_text(turn.speaker, turn.text) for turn in store.turns]


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────


def standing(
    name: str, found: dict[str, object], stores: Sequence[EvalStore], embedding_rate: float | None
) -> Standing:
    parts = found["stores"]
    assert isinstance(parts, list)
    figures = [
        recalls(store, question, ranked)
        for store, part in zip(stores, parts, strict=True)
        for question, ranked in zip(store.questions, part["ranked"], strict=True)
    ]
    latencies = [ms for part in parts for ms in part["latencies_ms"]]
    ingest_rate = sum(len(store.turns) for store in stores) / sum(part["ingest_s"] for part in parts)
    embeds = embedding_rate is not None and name not in _NO_VECTORS
    return Standing(
        name=name,
        version=str(found["version"]),
        turn_at_10=mean([one["turn@10"] for one in figures]),
        session_at_10=mean([one["session@10"] for one in figures]),
        ingest_rate=ingest_rate,
        ingest_rate_embedding=1 / (1 / ingest_rate + 1 / embedding_rate) if embeds else ingest_rate,
        query_ms_p50=median(latencies),
        query_ms_p95=percentile(latencies, 0.95),
    )


def show(standings: Sequence[Standing], title: str) -> None:
    columns = ("", "version", "turn@10", "session@10", "turns/s", "… embedding", "query p50", "query p95")
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in {"", "version"} else "right")
    for one in standings:
        if one.reason:
            table.add_row(one.name, "skipped")
            continue
        table.add_row(
            one.name,
            one.version,
            f"{one.turn_at_10:.3f}",
            f"{one.session_at_10:.3f}",
            f"{one.ingest_rate:,.0f}",
            f"{one.ingest_rate_embedding:,.0f}",
            f"{one.query_ms_p50:,.2f} ms",
            f"{one.query_ms_p95:,.2f} ms",
        )
    console = Console(width=max(Console().width, _COLUMNS))
    console.print(table)
    for one in standings:
        if one.reason:
            console.print(f"{one.name}: {one.reason}", markup=False, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, help="so many of LoCoMo's, else all")
    parser.add_argument(
        "--only", choices=sorted(PACKAGES), action="append", help="this peer; may be repeated"
    )
    parser.add_argument("--file", type=Path, help="LoCoMo; else the usual file in MEMPLANE_EVAL_DATA")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    path = arguments.file or usual_files("locomo", data_directory(os.environ))[0]
    stores = load_locomo(path)[: arguments.conversations]
    standings = run(stores, LocalEmbedder(), arguments.only or list(PACKAGES))
    if arguments.json:
        json.dump([asdict(one) for one in standings], sys.stdout, indent=2)
        print()
        return
    turns, questions = (sum(len(getattr(store, part)) for store in stores) for part in ("turns", "questions"))
    show(standings, f"{path.name}: {len(stores)} conversations, {turns:,} turns, {questions:,} questions")


if __name__ == "__main__":
    main()
