"""Train the model: fine-tune the original, distil it into a shallower one, fine-tune that.

    python -m training.run --original FOLDER --sources FOLDER --pairs FOLDER --texts FILE --out FOLDER [--tiny]
        [--multilingual FOLDER --translations FOLDER]

With `--multilingual`, the encoder for other languages follows. `--score NAME=FILE` prints turn recall at ten after each step.
`--ablation` fine-tunes the original on one source after the other instead, and prints what each adds.
"""

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

from training import distil, multilingual, translate, tune, weights
from training.data import Corpus, alone, long_conversations, paired, read_personas, read_questions
from training.encoder import LONG_PREFIX, MARK, Encoder, Texts, embed
from training.score import turn_recall

_SEED = 1
_ANCHORS = 40_000
_ORDER = ("friendsqa", "qmsum", "friends", "assistant", "personas", "personas by rule")
_SHARES = {
    "friendsqa": 1.0,
    "qmsum": 1.0,
    "friends": 2.0,
    "assistant": 2.0,
    "personas": 0.35,
    "personas by rule": 0.35,
}
"""The personas are many and resemble each other, and the turns that show them are guessed."""
_OPEN = frozenset({"personas", "personas by rule"})
_TOGETHER = {"friends": 16, "assistant": 30, "friendsqa": 12}
"""How many dialogues of a source become one long conversation."""
_ABLATION_STEPS = 170
_ENGLISH = 120_000
"""English texts from which the encoder for other languages learns to read."""
_KEPT = [0, 1, 3, 5]
"""Its layers, of the English model's six."""


class Run:
    """One training: its data, its device and its log."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.tiny: bool = arguments.tiny
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer = Tokenizer.from_file(str(arguments.original / "tokenizer.json"))
        self.original = (
            weights.random_weights(self.tokenizer.get_vocab_size())
            if self.tiny
            else weights.from_onnx(arguments.original / "model.onnx")
        )
        self.started = time.monotonic()
        self.scored = {
            name: _scored(Path(file)) for name, _, file in (entry.partition("=") for entry in arguments.score)
        }
        self.corpus = read(arguments.sources, arguments.pairs)
        self.texts = _texts(arguments.texts)
        self.anchors = Texts(self.tokenizer, self._anchors(), tune.Settings.tokens_max)
        self.out: Path = arguments.out
        self.multilingual: Path | None = arguments.multilingual
        self.translations: Path = arguments.translations
        self.language_files: list[Path] = arguments.score_languages
        self.log: list[str] = []

    def _anchors(self) -> list[str]:
        """Texts that should stay where the original model puts them: half documents, half turns."""
        chance = random.Random(_SEED)
        turns = [alone(turn) for dialogue in self.corpus.dialogues for turn in dialogue]
        half = _ANCHORS // 2
        return chance.sample(self.texts, min(half, len(self.texts))) + chance.sample(
            turns, min(half, len(turns))
        )

    def say(self, text: str) -> None:
        line = f"[{time.monotonic() - self.started:6.1f} s] {text}"
        self.log.append(line)
        print(line, flush=True)

    def score(self, label: str, encoder: Encoder, mark: str) -> None:
        for name, corpus in self.scored.items():
            own, combined = turn_recall(encoder, self.tokenizer, corpus, mark, self.device)
            self.say(f"{label}: {name} turn@10 {own:.3f}, as Memplane asks and stores {combined:.3f}")

    def encoder(self, found: weights.Weights) -> Encoder:
        return Encoder(found).to(self.device)

    def pairs(self, prefix: str) -> tune.Pairs:
        return tune.Pairs(
            self.corpus, self.encoder(self.original), self.tokenizer, prefix, self.settings(), self.device
        )

    def tuned(self, pairs: tune.Pairs, settings: tune.Settings) -> Encoder:
        """The original model after fine-tuning on these questions."""
        encoder = self.encoder(self.original)
        tune.tune(
            encoder,
            pairs,
            self.anchors,
            embed(encoder, self.anchors, self.device),
            settings,
            self.device,
            self.say,
        )
        return encoder

    def settings(self) -> tune.Settings:
        shared = tune.Settings(shares=_SHARES, own_dialogue_only=_OPEN)
        return replace(shared, epochs=1, batch=4, negatives=2) if self.tiny else shared

    def ablation(self) -> None:
        """What each source adds to those before it, for as many steps each time."""
        self.score("original", self.encoder(self.original), LONG_PREFIX)
        pairs = self.pairs(LONG_PREFIX)
        counts = pairs.counts()
        order = [name for name in _ORDER if name in counts]
        for last in range(1, len(order) + 1):
            shares = {name: _SHARES[name] if name in order[:last] else 0.0 for name in counts}
            used = sum(shares[name] * count for name, count in counts.items())
            settings = replace(self.settings(), shares=shares, epochs=_ABLATION_STEPS * 96 / max(1.0, used))
            self.score(f"+ {order[last - 1]}", self.tuned(pairs, settings), LONG_PREFIX)

    def train(self) -> None:
        pairs = self.pairs(LONG_PREFIX)
        self.say(f"questions: {dict(pairs.counts())}")
        teacher = self.tuned(pairs, self.settings())
        self.score("teacher", teacher, LONG_PREFIX)
        student = self.student(teacher)
        self.score("student", student, MARK)
        weights.save(student.weights(), self.out / "english")
        anchored = embed(teacher, self.anchors, self.device)
        settings = replace(self.settings(), seed=_SEED + 1)
        pairs.ask_with(self.tokenizer, MARK, self.corpus, settings.tokens_max)
        tune.tune(student, pairs, self.anchors, anchored, settings, self.device, self.say)
        self.score("student, tuned", student, MARK)
        weights.save(student.weights(), self.out / "english")
        if self.multilingual is not None:
            self.languages(student, self.multilingual)
        (self.out / "log.txt").write_text("\n".join(self.log) + "\n", "utf-8")

    def languages(self, student: Encoder, folder: Path) -> None:
        """Train the encoder for other languages after the English one."""
        settings = (
            replace(translate.Settings(), steps=4, quantised_steps=2, batch=8, rows=2)
            if self.tiny
            else translate.Settings()
        )
        plain, questions = self.lesson()
        chance = random.Random(_SEED)
        lesson = translate.read(
            folder, self.translations, chance.sample(plain, min(_ENGLISH, len(plain))), questions, settings
        )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        english = (student, self.tokenizer)
        model = multilingual.untrained(
            folder, student.weights(), self.tokenizer, [0, 1] if self.tiny else _KEPT
        ).to(self.device)
        translate.train(model, english, tokenizer, lesson, settings.steps, settings, self.device, self.say)
        self.score_languages("multilingual", english, (model, tokenizer))
        shipped = multilingual.Quantised(model.words(), model.reader).to(self.device)
        self.say(
            f"words in four bits: cosine {multilingual.mean_cosine(model.words().detach(), shipped.table):.4f}"
        )
        self.save_multilingual(shipped)
        slower = replace(settings, rate=settings.rate / 3, seed=_SEED + 1)
        translate.train(
            shipped, english, tokenizer, lesson, settings.quantised_steps, slower, self.device, self.say
        )
        self.score_languages("multilingual, four bits", english, (shipped, tokenizer))
        self.save_multilingual(shipped)

    def save_multilingual(self, model: multilingual.Quantised) -> None:
        layers = {name: array for name, array in model.reader.weights().items() if name != weights.WORDS}
        weights.save({**layers, "codes": model.codes, "scales": model.scales}, self.out / "multilingual")

    def score_languages(
        self, label: str, english: tuple[nn.Module, Tokenizer], other: tuple[nn.Module, Tokenizer]
    ) -> None:
        for path in self.language_files:

            def vectors(language: str, texts: list[str]) -> torch.Tensor:
                model, tokenizer = english if language == "en" else other
                return embed(model, Texts(tokenizer, texts, 128), self.device)

            same, across = translate.first_places(
                lambda language, texts: vectors(language, [MARK + text for text in texts]),
                vectors,
                json.loads(path.read_text("utf-8")),
            )
            for kind, found in (("one language", same), ("across", across)):
                shares = " ".join(f"{language} {share:.2f}" for language, share in found.items())
                self.say(
                    f"{label}: {path.stem} {kind}: {shares}; mean {sum(found.values()) / len(found):.3f}"
                )

    def student(self, teacher: Encoder) -> Encoder:
        settings = (
            distil.Settings(layers=(0, 1), inner=96, epochs=1, batch=8) if self.tiny else distil.Settings()
        )
        plain, questions = self.lesson()
        asked = [*plain[:: max(1, len(plain) // 60_000)], *questions]
        tokens_max = 256
        targets = torch.cat(
            [
                embed(teacher, Texts(self.tokenizer, plain, tokens_max), self.device),
                embed(
                    teacher,
                    Texts(self.tokenizer, [LONG_PREFIX + text for text in asked], tokens_max),
                    self.device,
                ),
            ]
        )
        lesson = Texts(self.tokenizer, [*plain, *(MARK + text for text in asked)], tokens_max)
        self.say(f"{len(plain)} texts and {len(asked)} questions to distil from")
        student = self.encoder(distil.untrained_student(teacher.weights(), settings))
        distil.distil(student, lesson, targets, settings, self.device, self.say)
        return student

    def lesson(self) -> tuple[list[str], list[str]]:
        """Texts as they are stored, and questions."""
        corpus = self.corpus
        plain = dict.fromkeys(self.texts)
        for dialogue in corpus.dialogues:
            plain |= dict.fromkeys(alone(turn) for turn in dialogue)
            plain |= dict.fromkeys(paired(dialogue, place) for place in range(len(dialogue)))
        return list(plain), list(dict.fromkeys(question.text for question in corpus.questions))


def read(folder: Path, pairs: Path) -> Corpus:
    """All dialogues and questions; a question's source is the name of its file, up to a number."""
    chance = random.Random(_SEED)
    corpus = Corpus()
    for path in sorted([*folder.glob("*.json.gz"), *pairs.glob("*.json*")]):
        name = re.split(r"[-.]", path.name)[0]
        found = Corpus()
        read_questions(found, name, path)
        corpus.add(long_conversations(found, _TOGETHER[name], chance) if name in _TOGETHER else found)
    for path in sorted(folder.glob("*persona*.csv.gz")):
        read_personas(corpus, "personas", path, chance)
    return corpus


def _texts(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found: list[str] = json.load(file)
        return found


def _scored(path: Path) -> Corpus:
    corpus = Corpus()
    read_questions(corpus, path.name, path)
    return corpus


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("original", "sources", "pairs", "texts", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument(
        "--multilingual", type=Path, help="what `training.multilingual` prepared, and translations"
    )
    parser.add_argument("--translations", type=Path, help="the written rows and words in twelve languages")
    parser.add_argument("--score-languages", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--score", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--tiny", action="store_true", help="a small random model, on a CPU in seconds")
    parser.add_argument("--ablation", action="store_true")
    arguments = parser.parse_args(given)
    run = Run(arguments)
    if arguments.ablation:
        run.ablation()
    else:
        run.train()


if __name__ == "__main__":
    main()
