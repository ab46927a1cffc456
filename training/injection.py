"""Learns to tell orders to an agent from other text, for `memplane.safety.addressed`.

    python -m training.injection [--data FOLDER] [--write]

Attacks and benign texts are in `training/injection_texts/`; more benign text comes from the conversations of this folder and from
`docs/`. With --data, one half (by hash) of the injection sets in FOLDER is added. Prints figures for texts that were held out,
and, with --write, stores the model under src/memplane/safety/learned/. Only sums over hashed features are stored. Needs numpy.
"""

import argparse
import gzip
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.learn_extraction import Matrix, Rows, learn

from memplane.models.linear import write_linear
from memplane.safety.addressed import Sentence, own_features, share, shared_features, windows
from memplane.safety.fold import fold
from memplane.safety.vocabulary import UNSPACED

ROOT = Path(__file__).parents[1]
TEXTS = Path(__file__).parent / "injection_texts"
LEARNED = ROOT / "src" / "memplane" / "safety" / "learned" / "injection.txt"
FOLDS = 5
PENALTY = 1.0
ROUNDS = 3
ATTACK_IMPORTANCE = 3.0
BENIGN_IMPORTANCE = 2.0
"""Of benign texts with trigger words; other benign text counts once."""
FALSE_SHARE_MAX = 0.008
"""Of benign texts with trigger words that were held out, how many may be flagged. Sets the threshold."""
VARIANTS = 24
"""Texts from each template."""
VARIANT_IMPORTANCE = 0.3
_SLOT = re.compile(r"\{(\w+)\}")
_LANGUAGE = re.compile(r"# ([a-z]{2})")

CARRIERS = (
    "Hi Ann,\n\nthanks for your mail. {benign}\n\n{text}\n\nBest regards\nTom",
    "From: tom@example.org\nSubject: Tuesday\n\n{benign} {text}",
    "<html><body><h1>Welcome</h1><p>{benign}</p><p>{text}</p></body></html>",
    "<p>{benign}</p>\n<!-- {text} -->",
    '<div>{benign} <span style="display:none">{text}</span></div>',
    "def total(items):\n    # {text}\n    return sum(items)",
    "/* {text} */\nexport const x = 1;",
    '{{"status": "ok", "rows": 3, "note": "{text}"}}',
    "Result of search: 3 hits.\n1. {benign}\n2. {text}",
    "# Handbook\n\n{benign}\n\n## Notes\n\n{text}\n\nSee also the annex.",
    "IMPORTANT: {text}",
    "{benign} {text}",
)
"""E-mails, web pages, code comments, tool results, documents and chat."""


class Text(NamedTuple):
    """A text to learn from. `group` keeps what is alike in one fold; `importance` is 0 for what is only measured."""

    text: str
    attack: bool
    group: str
    source: str
    importance: float = 1.0
    core: str = ""
    """The attack without its carrier."""


def number(text: str, modulus: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) % modulus


def written(name: str) -> Iterator[tuple[str, str]]:
    """Language and text of each line."""
    language = ""
    for line in (TEXTS / name).read_text("utf-8").splitlines():
        if found := _LANGUAGE.fullmatch(line):
            language = found.group(1)
        elif line:
            yield language, line


def own_texts() -> Iterator[Text]:
    benign = list(written("benign.txt"))
    by_language: dict[str, list[str]] = {}
    for language, text in benign:
        by_language.setdefault(language, []).append(text)

    def carried(language: str, text: str, times: int) -> Iterator[str]:
        near = by_language.get(language) or by_language["en"]
        for turn in range(times):
            place = number(f"{turn}{text}", len(CARRIERS) * 1_000)
            yield CARRIERS[place % len(CARRIERS)].format(text=text, benign=near[place % len(near)])

    for language, text in written("attacks.txt"):
        yield Text(
            text,
            attack=True,
            group=text,
            source=f"attack {language}",
            importance=ATTACK_IMPORTANCE,
            core=text,
        )
        for whole in carried(language, text, 2):
            yield Text(
                whole,
                attack=True,
                group=text,
                source=f"attack {language}",
                importance=ATTACK_IMPORTANCE / 3,
                core=text,
            )
    for language, text in benign:
        yield Text(text, attack=False, group=text, source=f"benign {language}", importance=BENIGN_IMPORTANCE)
        for whole in carried(language, text, 2):
            yield Text(
                whole, attack=False, group=text, source=f"benign {language}", importance=BENIGN_IMPORTANCE / 2
            )


def variants() -> Iterator[Text]:
    """Texts made by rule from templates; the choice of values depends on the template alone."""
    read = tomllib.loads((TEXTS / "variants.toml").read_text("utf-8"))
    slots: dict[str, list[str]] = read["slots"]
    for name, attack in (("attacks", True), ("benign", False)):
        for template in read[name]["templates"]:
            for turn in range(VARIANTS):
                text = _SLOT.sub(lambda found, at=f"{turn} {template}": _value(slots, found, at), template)
                text = text[0].upper() + text[1:]
                yield Text(
                    text, attack, template, f"variants {name}", VARIANT_IMPORTANCE, text if attack else ""
                )


def _value(slots: dict[str, list[str]], found: re.Match[str], seed: str) -> str:
    values = slots[found.group(1)]
    value = values[number(f"{found.start()} {seed}", len(values))]
    return (
        value
        if found.start() == 0 or found.string[found.start() - 2] in ".:>"
        else value[0].lower() + value[1:]
    )


def conversations() -> Iterator[Text]:
    for path in sorted((ROOT / "training" / "pairs").glob("*.json.gz")):
        read = json.loads(gzip.decompress(path.read_bytes()))
        for dialogue in read["dialogues"]:
            for turn in dialogue:
                yield Text(turn["text"], attack=False, group=dialogue[0]["text"], source="conversation")
    for path in sorted((ROOT / "training" / "translations").glob("*.json.gz")):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            for language, said in row.items():
                for text in said.values() if isinstance(said, dict) else [said]:
                    if isinstance(text, str):
                        yield Text(
                            text, attack=False, group=str(row.get("en")), source=f"translation {language}"
                        )


def documents() -> Iterator[Text]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if path.name != "trust.md":  # it quotes attacks
            for paragraph in path.read_text("utf-8").split("\n\n"):
                yield Text(paragraph, attack=False, group=path.name, source="docs")


def other_sets(folder: Path) -> Iterator[Text]:
    """One half of the sets of others; the other half is for measuring."""
    rows = json.loads(gzip.decompress((folder / "injection-piguard-dev.json.gz").read_bytes()))
    for row in rows:
        if half(row["prompt"]) == 0 and not row["source"].startswith("BIPIA_text"):
            attack = bool(row["label"])
            importance = ATTACK_IMPORTANCE if attack else BENIGN_IMPORTANCE
            yield Text(row["prompt"], attack, row["prompt"], "piguard", importance)


def half(text: str) -> int:
    return number(text, 2)


class Learner:
    """Windows of all texts as rows. In an attack with a carrier, only the window that says it is one; which one that is, is
    found by the model of the round before."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self.texts = texts
        rows = Rows()
        text_of: list[int] = []
        inside: list[bool] = []
        for place, text in enumerate(texts):
            folded = fold(text.text)
            unspaced = UNSPACED.search(folded) is not None
            core = _letters(fold(text.core))
            for window in windows(folded, unspaced=unspaced):
                rows.add(groups(window))
                text_of.append(place)
                said = _letters(window.text)
                inside.append(not core or said in core or core in said)
        self.matrix: Matrix = rows.matrix()
        self.text_of = np.array(text_of)
        self.inside = np.array(inside)
        self.attack = np.array([text.attack for text in texts])
        self.importance = np.array([text.importance for text in texts])
        self.fold = np.array([number(text.group, FOLDS) for text in texts])

    def learn(self, left_out: Callable[[Text], bool] | None = None) -> tuple[Any, float]:
        out = np.array([left_out is not None and left_out(text) for text in self.texts])
        kept = ~out[self.text_of]
        attack = self.attack[self.text_of]
        chosen = ~attack | self.inside
        weights, bias = np.zeros(self.matrix.size), 0.0
        for turn in range(ROUNDS):
            rows = kept & chosen
            weights, bias = learn(
                self.matrix.select(rows),
                attack[rows].astype(float),
                penalty=PENALTY,
                importance=self.importance[self.text_of][rows],
            )
            if turn + 1 < ROUNDS:
                chosen = ~attack | (self.inside & self._best(self.matrix.scores(weights, bias)))
        return weights, bias

    def _best(self, scores: Any) -> Any:
        """Whether a window has the highest score of its text, or nearly."""
        return scores >= self.highest(scores)[self.text_of] - 0.5

    def highest(self, scores: Any) -> Any:
        best = np.full(len(self.texts), -99.0)
        np.maximum.at(best, self.text_of, scores)
        return best

    def held_out(self) -> Any:
        """The score of each text by a model that saw nothing of its group."""
        scores = np.full(len(self.texts), -99.0)
        for fold_number in range(FOLDS):
            weights, bias = self.learn(lambda text, at=fold_number: number(text.group, FOLDS) == at)
            these = self.fold == fold_number
            scores[these] = self.highest(self.matrix.scores(weights, bias))[these]
        return scores


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def groups(window: Sentence) -> list[tuple[float, Sequence[str]]]:
    own = own_features(window)
    return [(1.0, shared_features(window)), (share(len(own)), own)]


def threshold(learner: Learner, scores: Any) -> float:
    hard = np.array([text.importance == BENIGN_IMPORTANCE and not text.attack for text in learner.texts])
    benign = np.sort(scores[hard])[::-1]
    return float(benign[int(len(benign) * FALSE_SHARE_MAX)]) + 1e-3


def show(learner: Learner, scores: Any, limit: float) -> None:
    sources = [text.source for text in learner.texts]
    for source in sorted(set(sources)):
        these = np.array([name == source for name in sources])
        print(f"  {source:18} {int(these.sum()):6}  flagged {float((scores[these] >= limit).mean()):.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    texts = [*own_texts(), *variants(), *conversations(), *documents()]
    texts += other_sets(given.data) if given.data else ()
    learner = Learner(texts)
    scores = learner.held_out()
    limit = threshold(learner, scores)
    print(f"held out, threshold {limit:.2f}")
    show(learner, scores, limit)
    if given.write:
        weights, bias = learner.learn()
        text = write_linear(dict(zip(learner.matrix.hashes, weights, strict=True)), bias - limit)
        LEARNED.write_text(text, "ascii")
        print(f"{LEARNED.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
