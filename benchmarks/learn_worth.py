"""Learns which facts a person would keep, from judged ones.

    python -m benchmarks.learn_worth SOURCES [--write]

SOURCES is the folder with friendsqa.json.gz and the persona files (training/README.md); the written conversations are in training/pairs.
training/labels/facts.tsv has the judgements: a digest of message and fact, and `k` (keep), `w` (not worth it) or `b` (broken). Prints
figures for facts that were held out (five folds).
"""

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
from training.data import ROLES, Corpus, read_personas, read_questions

from benchmarks.learn_extraction import LEARNED, Rows, learn
from memplane.extract.catalog import load_catalog
from memplane.extract.claims import render
from memplane.extract.proposition import Proposition
from memplane.extract.rules import extract
from memplane.extract.standalone import stands_alone
from memplane.extract.worth import features
from memplane.models.linear import write_linear

LABELS = Path(__file__).parents[1] / "training" / "labels" / "facts.tsv"
PAIRS = Path(__file__).parents[1] / "training" / "pairs"
FOLDS = 5
PENALTY = 6.0


def digest(text: str, note: str) -> str:
    return sha256(f"{text}\n{note}".encode()).hexdigest()[:16]


def messages(sources: Path) -> Iterator[str]:
    """What people say in the conversations that were judged."""
    corpus = Corpus()
    for path in [*sorted(PAIRS.glob("*.json.gz")), sources / "friendsqa.json.gz"]:
        read_questions(corpus, path.stem, path)
    read_personas(corpus, "personas", sources / "synthetic-persona-chat-valid.csv.gz", Random(5))
    for dialogue in corpus.dialogues:
        yield from (turn.text for turn in dialogue if turn.speaker == "user" or turn.speaker not in ROLES)


def judged(sources: Path) -> Iterator[tuple[Proposition, str, str, str]]:
    """Every judged fact once: claim, wording, message, judgement."""
    labels = dict(line.split("\t") for line in LABELS.read_text("ascii").splitlines())
    catalog = load_catalog()
    for text in messages(sources):
        for claim in extract(text, role="user", catalog=catalog):
            note = render(claim)
            label = labels.pop(digest(text[:500], note), None)
            if label is not None:
                yield claim, note, text, label


def main() -> None:
    rows, labels, folds = Rows(), [], []
    for claim, note, text, label in judged(Path(sys.argv[1])):
        if stands_alone(note):
            rows.add([(1.0, list(features(claim, note, text)))])
            labels.append(float(label.startswith("k")))
            folds.append(int(digest(text, ""), 16) % FOLDS)
    matrix, keep, fold = rows.matrix(), np.array(labels), np.array(folds)
    chance = np.zeros(len(keep))
    for number in range(FOLDS):
        rest = fold != number
        weights, bias = learn(matrix.select(rest), keep[rest], penalty=PENALTY)
        chance[~rest] = 1 / (1 + np.exp(-matrix.select(~rest).scores(weights, bias)))
    print(f"{len(keep)} facts, {keep.mean():.3f} of them kept")
    for least in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        found = chance >= least
        print(f"  {least}: precision {keep[found].mean():.3f}, recall {keep[found].sum() / keep.sum():.3f}")
    if "--write" in sys.argv:
        weights, bias = learn(matrix, keep, penalty=PENALTY)
        text = write_linear(dict(zip(matrix.hashes, weights, strict=True)), bias)
        (LEARNED / "worth.txt").write_text(text, "ascii")
        print(f"worth: {len(text)} bytes")


if __name__ == "__main__":
    main()
