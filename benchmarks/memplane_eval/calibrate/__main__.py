"""The command that fits a calibration and writes its file."""

import argparse
from contextlib import ExitStack
from pathlib import Path

import msgspec

from memplane.models.embedding import Embedder
from memplane.models.local import LocalEmbedder, local_model
from memplane.recall.calibration import Calibration, Wording
from memplane_eval import calibrate
from memplane_eval.cache import CachedEmbedder
from memplane_eval.calibrate.calibration import calibrated
from memplane_eval.calibrate.samples import OF_ONE_MODEL
from memplane_eval.retrieval import load_locomo, load_longmemeval
from memplane_eval.returned.cases import bundled, load_cases


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m memplane_eval.calibrate", description=calibrate.__doc__)
    parser.add_argument(
        "folder", type=Path, help="the folder to write the file to; recall looks in the folder of the model"
    )
    parser.add_argument(
        "--model",
        help="arctic-embed-s or the folder of your own model; without it, the default",
    )
    parser.add_argument("--cases", type=Path, default=bundled("calibration"), help="a folder of case files")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--longmemeval", type=Path)
    parser.add_argument("--cache", type=Path, help="keep embeddings in this directory")
    parser.add_argument("--words-only", action="store_true", help="for recall without an embedding model")
    parser.add_argument("--any-model", action="store_true", help="use no signal of one model alone")
    given = parser.parse_args()
    stores = [] if given.locomo is None else load_locomo(given.locomo)
    stores += [] if given.longmemeval is None else load_longmemeval(given.longmemeval)
    if not stores:  # the cases are small spaces, where every turn is ranked
        parser.error("long conversations are needed: pass --locomo, --longmemeval or both")
    with ExitStack() as opened:
        embedder: Embedder | None = None if given.words_only else LocalEmbedder(local_model(given.model))
        if embedder is not None and given.cache is not None:
            embedder = opened.enter_context(CachedEmbedder(embedder, given.cache))
        name = "words-only" if embedder is None else "any-model" if given.any_model else embedder.model_id
        without = OF_ONE_MODEL if embedder is None or given.any_model else frozenset[str]()
        found, wording = calibrated(load_cases(given.cases), stores, embedder, without)
    _write(given.folder / f"{name}.json", found)
    if given.model is None:  # the wording ships, the same for all models
        _write(given.folder / "wording.json", wording)


def _write(path: Path, content: Calibration | Wording) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


if __name__ == "__main__":
    main()
