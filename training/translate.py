"""Train the encoder for other languages on translations: a text gives the vector of its English version."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.data import read_json, read_text
from training.encoder import MARK, Encoder, Ids, Texts, embed, encoded, half, optimiser_of
from training.texts import LANGUAGES

QUESTION = "question"
_ASKED = 0.3
"""The share of the lexicon that is learned as questions."""


@dataclass(frozen=True)
class Settings:
    steps: int = 2_000
    quantised_steps: int = 400
    batch: int = 768
    rows: int = 160
    """Rows of the contrastive part of a batch."""
    rate: float = 5e-4
    temperature: float = 0.05
    tokens_max: int = 128
    seed: int = 1


@dataclass
class Lesson:
    """Texts to learn, each with the English text whose vector it should have; and rows of a memory and its question."""

    texts: list[str] = field(default_factory=list)
    english: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    rows: list[Mapping[str, Mapping[str, str]]] = field(default_factory=list)

    def add(self, text: str, english: str, weight: float = 1.0) -> None:
        self.texts.append(text)
        self.english.append(english)
        self.weights.append(weight)


def read(
    prepared: Path, written: Path, plain: Sequence[str], questions: Sequence[str], settings: Settings
) -> Lesson:
    """English texts as they are, translated paragraphs, the written rows, and the lexicon."""
    lesson = Lesson()
    for text in plain:
        lesson.add(text, text)
    for text in questions:
        lesson.add(MARK + text, MARK + text)
    for row in read_json(prepared / "translations.json.gz"):
        for language in row.keys() - {"en"}:
            lesson.add(row[language], row["en"])
    for path in sorted(written.glob("languages*.json*")):
        lesson.rows += read_json(path)
    for row in lesson.rows:
        for language in LANGUAGES:
            _add_row(lesson, row[language], row["en"])
    _add_words(lesson, written, random.Random(settings.seed))
    return lesson


def _add_words(lesson: Lesson, folder: Path, chance: random.Random) -> None:
    for path in sorted(folder.glob("lexicon*.tsv*")):
        for line in read_text(path).splitlines():
            english, *others = line.split("\t")
            for word in others:
                mark = MARK if chance.random() < _ASKED else ""
                lesson.add(mark + word, mark + english, 2.0)


def _add_row(lesson: Lesson, said: Mapping[str, str], english: Mapping[str, str]) -> None:
    for name, text in said.items():
        mark = MARK if name == QUESTION else ""
        lesson.add(mark + text, mark + english[name], 4.0)
    lesson.add(MARK + said["other"], MARK + english["other"], 2.0)


def train(
    model: nn.Module,
    english: tuple[Encoder, Tokenizer],
    tokenizer: Tokenizer,
    lesson: Lesson,
    steps: int,
    settings: Settings,
    device: torch.device,
    say: Callable[[str], None] = print,
) -> None:
    """Train in place: near the vector of the translation, and a question nearer to its memory than to others', whatever
    the languages of the two."""
    chance = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    teacher, words = english
    unique = list(dict.fromkeys(lesson.english))
    place = {text: at for at, text in enumerate(unique)}
    targets = embed(teacher, Texts(words, unique, settings.tokens_max), device).to(device)
    wanted = torch.tensor([place[text] for text in lesson.english], device=device)
    texts = Texts(tokenizer, lesson.texts, settings.tokens_max)
    rows = Rows(lesson, tokenizer, settings.tokens_max)
    say(f"{len(texts)} texts, {len(lesson.rows)} rows")
    optimiser = optimiser_of(model, settings.rate, device)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.rate, total_steps=steps, pct_start=0.08
    )
    model.train()
    weights = torch.tensor(lesson.weights)
    for step in range(steps):
        if step % 100 == 0:
            drawn = torch.multinomial(
                weights, settings.batch * min(100, steps - step), replacement=True
            ).tolist()
        chosen = drawn[: settings.batch]
        del drawn[: settings.batch]
        asked, told = rows.draw(chance, min(settings.rows, len(lesson.rows)))
        with half(device):
            vectors = encoded(model, [texts.ids[at] for at in chosen] + asked + told, device)
        given, queries, memories = vectors.split([len(chosen), len(asked), len(told)])
        near = 1 - (given * targets[wanted[torch.tensor(chosen, device=device)]]).sum(dim=-1).mean()
        found = _contrast(queries, memories, settings.temperature)
        optimiser.zero_grad(set_to_none=True)
        (near * 10 + 0.3 * found).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % max(1, steps // 8) == 0:
            say(f"step {step} of {steps}: 1 - cosine {near.item():.4f}, contrast {found.item():.3f}")


def _contrast(queries: Tensor, memories: Tensor, temperature: float) -> Tensor:
    if not len(queries):
        return queries.sum()
    scores = queries @ memories.T / temperature
    return functional.cross_entropy(scores, torch.arange(len(queries), device=queries.device))


class Rows:
    """Questions and memories of the written rows in every language, as token ids."""

    def __init__(self, lesson: Lesson, tokenizer: Tokenizer, tokens_max: int) -> None:
        self.count = len(lesson.rows)
        self.questions = [
            Texts(tokenizer, [MARK + row[language][QUESTION] for row in lesson.rows], tokens_max)
            for language in LANGUAGES
        ]
        self.told = [
            Texts(tokenizer, [row[language][name] for row in lesson.rows], tokens_max)
            for language in LANGUAGES
            for name in ("memory", "turn")
        ]

    def draw(self, chance: random.Random, count: int) -> tuple[list[Ids], list[Ids]]:
        """Some rows, the question and what answers it each in a language of its own."""
        chosen = chance.sample(range(self.count), count)
        return (
            [chance.choice(self.questions).ids[row] for row in chosen],
            [chance.choice(self.told).ids[row] for row in chosen],
        )


def first_places(
    embed_question: Callable[[str, list[str]], Tensor],
    embed_memory: Callable[[str, list[str]], Tensor],
    rows: Sequence[Mapping[str, Mapping[str, str]]],
) -> tuple[dict[str, float], dict[str, float]]:
    """The share of questions whose own memory is the nearest: in one language, and with memories in each other one."""
    languages = [language for language in LANGUAGES if language in rows[0]]
    questions = {name: embed_question(name, [row[name][QUESTION] for row in rows]) for name in languages}
    memories = {name: embed_memory(name, [row[name]["memory"] for row in rows]) for name in languages}

    def share(asked: str, told: str) -> float:
        best = (questions[asked] @ memories[told].T).argmax(dim=1)
        return float((best == torch.arange(len(rows))).float().mean())

    same = {name: share(name, name) for name in languages}
    across = {
        name: sum(share(name, other) for other in languages if other != name) / (len(languages) - 1)
        for name in languages
    }
    return same, across
