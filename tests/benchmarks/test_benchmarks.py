"""Every benchmark also runs tiny, so that none rots."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import (
    backlog,
    chunking,
    console,
    documents,
    engine,
    metering,
    peers,
    proxy,
    quality,
    recall,
    scale,
    server,
    sync,
)
from eval_samples import CASES, LOCOMO, write_samples
from memplane.models.local import LocalEmbedder
from memplane_eval.files import usual_files
from memplane_eval.retrieval import _locomo_store

ROOT = Path(__file__).parents[2]


def test_the_engine_benchmark_runs_tiny(tmp_path):
    """
    Each part gives its figures; what they are is not a test's business.
    """
    figures = engine.run(engine.TINY, tmp_path)

    asked = {figure.name for figure in figures if figure.asked}
    assert len(figures) >= 15
    assert all(figure.value > 0 for figure in figures)
    assert {"one writer / bare", "16 writers / bare", "batch import, durable"} <= asked


def test_the_engine_benchmark_prints_json():
    """
    `python -m benchmarks.engine --quick --only briefs --json` prints one JSON document.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", "--quick", "--only", "briefs", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [figure["asked"] for figure in json.loads(done.stdout)] == ["<= 5"]


def test_the_recall_benchmark_runs_tiny(tmp_path):
    """
    Each part gives its figures, the embedding of the question apart from the rest.
    """
    figures = recall.run(recall.TINY, tmp_path)

    names = {figure.name for figure in figures}
    assert all(figure.value > 0 for figure in figures)
    assert {"recall p95 at 40 memories", "… the rest p95 at 40 memories", "enrichment"} <= names


def test_the_backlog_benchmark_runs_tiny(tmp_path):
    """
    No answer is empty, without a worker and with one.
    """
    figures = {figure.name: figure for figure in backlog.run(backlog.TINY, tmp_path)}

    assert figures["answers that are not empty / all, budget 20 ms, no worker"].value == 1.0
    assert figures["answers of POST /recall that are not empty / all, worker busy"].value == 1.0
    assert figures["turns of the proxy with memory / all, worker busy"].value == 1.0


def test_the_scale_benchmark_runs_tiny(tmp_path):
    """
    On a PostgreSQL of its own: many spaces, one that has an index of its vectors, both engines, and another process.
    """
    figures = scale.run(scale.TINY, tmp_path, model=False)

    names = {figure.name for figure in figures}
    assert all(figure.value > 0 for figure in figures)
    assert {
        "recall p95 over 3 spaces of 20, given its vector",
        "recall p95 in the same 3 of 3 spaces again, given its vector",
        "… recall / bare query p50 in one space of 80, given its vector",
        "retain, 1 processes",
        "bytes a vector in its space's index",
    } <= names


def test_the_documents_benchmark_runs_tiny(tmp_path):
    """
    Uploads a second, and the latency of a recall at a number of spans.
    """
    figures = documents.run(documents.TINY, tmp_path)

    names = {figure.name for figure in figures}
    assert all(figure.value > 0 for figure in figures)
    assert {"documents of 2 KB", "recall p95 at 30 spans", "… of it documents p95 at 30 spans"} <= names


def test_the_cutters_are_compared_tiny(tmp_path):
    """
    Each cutter leaves nothing of a text out, and has its figures.
    """
    text = "\n\n".join(f"Paragraph {number} has a sentence. " * (number % 9 + 1) for number in range(30))
    for cutter in chunking.CUTTERS.values():
        assert "".join(text[start:end] for start, end in cutter(text)) == text

    write_samples(tmp_path)
    (path,) = usual_files("multihop", tmp_path)
    figures = chunking.run(path, tokens_max=100, limit=None, cutters=chunking.CUTTERS)
    assert len(figures) == 5 * len(chunking.CUTTERS)
    assert all(0 <= figure.value <= 1 for figure in figures if figure.name.startswith("…"))


def test_the_server_benchmark_runs_tiny(tmp_path):
    """
    Rates and percentiles of three calls, and what the server adds to each, beside what was asked.
    """
    figures = server.run(server.TINY, tmp_path)

    asked = [figure.name for figure in figures if figure.asked]
    assert all(figure.value > 0 for figure in figures)
    assert asked == [f"{call} p50, what the server adds" for call in ("recall", "store", "retain")]
    assert len(figures) == 9 + 3 * 2 * 4


def test_the_metering_benchmark_runs_tiny(tmp_path):
    """
    What counting costs stands beside what was asked.
    """
    figures = metering.run(metering.TINY, tmp_path)

    assert all(figure.value > 0 for figure in figures)
    assert [figure.name for figure in figures if figure.asked] == ["counting a request"]


def test_the_proxy_benchmark_runs_tiny(tmp_path):
    """
    What the proxy adds with memory off, on, and with a recall that hangs, beside what was asked; and many streams.
    """
    figures = proxy.run(proxy.TINY, tmp_path)

    asked = [figure.name for figure in figures if figure.asked]
    assert len(asked) == 4
    assert {"memory off, added p50", "memory on at 40 memories, added p50"} < set(asked)
    assert any("streams at once" in figure.name for figure in figures)


def test_the_sync_benchmark_runs_tiny(tmp_path):
    """
    Requests and bytes of pushes and pulls, one request where nothing has changed, and what merging costs.
    """
    figures = sync.run(sync.TINY, tmp_path)

    assert all(figure.value > 0 for figure in figures)
    assert [(figure.value, figure.met) for figure in figures if figure.asked] == [(1, True), (1, True)]
    assert any(figure.name == "cold start to the first recall" for figure in figures)


def test_the_console_benchmark_runs_tiny(tmp_path):
    """
    Every page answers, and each but those that go through everything stands beside what was asked.
    """
    figures = console.run(console.TINY, tmp_path)

    assert all(figure.value > 0 for figure in figures)
    assert len([figure for figure in figures if figure.asked == "<= 100"]) == len(figures) - 3
    assert len(figures) > 40


def test_common_words_are_measured_tiny(tmp_path):
    """
    What `--large` does with a million rows, with forty.
    """
    assert [figure.value > 0 for figure in recall.common_words(40, 3, tmp_path)] == [True, True]


def test_quality_shows_what_was_asked_and_skips_what_is_absent(tmp_path):
    """
    Beside every measured figure that was asked for stands the floor; absent data gives its reason.
    """
    folder = write_samples(tmp_path / "samples")
    (folder / "locomo-dev.json.gz").unlink()
    found = list(
        quality.reports(
            ["locomo", "longmemeval", "temporal"], folder, limit=1, multihop=1, cache=tmp_path / "cache"
        )
    )

    asked = quality.figures(found[1:])
    assert "skipped" in found[0]
    assert [figure.asked for figure in asked] == [">= 0.8", ">= 0.7", ">= 0.85", ">= 0.8"]


def test_quality_measures_what_is_returned(tmp_path, monkeypatch):
    """
    On the cases and the data sets that are there; tokens have a ceiling instead of a floor.
    """
    folder = write_samples(tmp_path / "samples")
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "few.json").write_text(json.dumps(CASES))
    monkeypatch.setattr(quality, "bundled", lambda half: tmp_path / half)
    found = [
        report
        for report in quality.reports(["returned"], folder, limit=1, multihop=1, cache=tmp_path / "cache")
        if not isinstance(report, str)
    ]
    asked = quality.figures(found)

    assert [report.file for report in found] == [
        "calibration",
        "locomo-dev.json.gz",
        "longmemeval-oracle-dev.json",
    ]
    assert [figure.asked for figure in asked if figure.asked.startswith("<=")] == ["<= 0", "<= 80"]
    assert [figure.asked for figure in asked if figure.name.startswith("locomo")] == [
        ">= 0.89",
        ">= 0.86",
        ">= 0.82",
    ]


def test_a_peer_that_is_not_installed_is_skipped_with_a_reason(tmp_path):
    """
    The worker runs under an interpreter without the peer; what it says last is the reason.
    """
    store = _locomo_store(LOCOMO[0])
    request = peers.write_request([store], recall.MadeUp(LocalEmbedder()), tmp_path)

    with pytest.raises(peers.Skipped, match="No module named 'bm25s'"):
        peers.ask("bm25s", Path(sys.executable), request, tmp_path / "bm25s")


def test_a_peer_is_measured_by_its_answer():
    """
    Quality, rates and latencies come from what the worker wrote.
    """
    store = _locomo_store(LOCOMO[0])
    answer = {"version": "1", "stores": [{"ingest_s": 2.0, "ranked": [[0], [1]], "latencies_ms": [1.0, 3.0]}]}

    one = peers.standing("chromadb", answer, [store], embedding_rate=2.0)
    assert (one.turn_at_10, one.ingest_rate, one.ingest_rate_embedding) == (0.5, 2.0, 1.0)
    assert (one.query_ms_p50, one.query_ms_p95) == (3.0, 3.0)
