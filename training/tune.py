"""Contrastive fine-tuning: a question moves towards the turns that answer it and away from the others of its dialogue.

Part of the loss keeps random texts near their original vectors, so that document search does not get worse.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from training.data import Corpus, Question, Turn, alone, as_asked, paired
from training.encoder import Encoder, Ids, Texts, embed, encoded, half, optimiser_of

_NEAREST = 60
_AS_ASKED = 0.65
_PAIRED = 0.5
LABEL_COSINE_MIN = 0.62
"""A turn at least this near to a fact is taken to show it."""


@dataclass(frozen=True)
class Settings:
    epochs: float = 2
    batch: int = 96
    negatives: int = 10
    rate: float = 2.5e-5
    temperature: float = 0.05
    anchor: float = 5.0
    """Weight of staying near the original model."""
    tokens_max: int = 160
    seed: int = 1
    suspicious: float = 0.08
    """A turn that is nearer to the question than its evidence by more than this may well answer it."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """How often a question of a source is used in an epoch; 1 if not given."""
    own_dialogue_only: frozenset[str] = frozenset()
    """Sources whose questions are compared with turns of their own dialogue alone."""


class Pair(NamedTuple):
    """A question by its place, and turns by theirs."""

    question: int
    evidence: list[int]
    negatives: list[int]
    """The nearest turns of the same dialogue that are no evidence."""
    source: str


class Pairs:
    """Questions with their evidence and hard negatives, as token ids."""

    def __init__(
        self,
        corpus: Corpus,
        miner: Encoder,
        tokenizer: Tokenizer,
        prefix: str,
        settings: Settings,
        device: torch.device,
    ) -> None:
        """`miner` decides which wrong turns are near."""
        firsts: list[int] = []
        turns: list[str] = []
        pairs: list[str] = []
        for dialogue in corpus.dialogues:
            firsts.append(len(turns))
            turns += [alone(turn) for turn in dialogue]
            pairs += [paired(dialogue, place) for place in range(len(dialogue))]
        self.with_before = len(turns)
        """Where the turns begin for the second time, each after the one before it."""
        self.turn_ids = Texts(tokenizer, turns + pairs, settings.tokens_max)
        self.ask_with(tokenizer, prefix, corpus, settings.tokens_max)
        said = embed(miner, Texts(tokenizer, turns, settings.tokens_max), device)
        asked = embed(miner, self.query_ids, device)[len(corpus.questions) :]
        shown = Texts(tokenizer, [question.shown for question in corpus.questions], settings.tokens_max)
        labels = embed(miner, shown, device)
        self.all: list[Pair] = []
        for place, question in enumerate(corpus.questions):
            dialogue, first = corpus.dialogues[question.dialogue], firsts[question.dialogue]
            there = said[first : first + len(dialogue)]
            evidence = list(question.evidence) or _label(question, dialogue, there @ labels[place])
            if evidence:
                wrong = _negatives(there @ asked[place], evidence, settings, labelled=bool(question.evidence))
                self.all.append(
                    Pair(
                        place, [first + at for at in evidence], [first + at for at in wrong], question.source
                    )
                )

    def ask_with(self, tokenizer: Tokenizer, prefix: str, corpus: Corpus, tokens_max: int) -> None:
        """Put this mark before the questions: each as it was written, then each as Memplane asks it."""
        written = [prefix + question.text for question in corpus.questions]
        asked = [
            prefix + as_asked(question, corpus.dialogues[question.dialogue]) for question in corpus.questions
        ]
        self.query_ids = Texts(tokenizer, written + asked, tokens_max)

    def query(self, pair: Pair, chance: random.Random) -> Ids:
        """A question as it was written, or more often as Memplane asks it."""
        written = len(self.query_ids) // 2
        return self.query_ids.ids[pair.question + (written if chance.random() < _AS_ASKED else 0)]

    def counts(self) -> Counter[str]:
        return Counter(pair.source for pair in self.all)


def _label(question: Question, dialogue: Sequence[Turn], scores: Tensor) -> list[int]:
    own = [place for place, turn in enumerate(dialogue) if turn.speaker == question.speaker]
    best = max(own, key=lambda place: float(scores[place]), default=None)
    return [] if best is None or float(scores[best]) < LABEL_COSINE_MIN else [best]


def _negatives(scores: Tensor, evidence: Sequence[int], settings: Settings, *, labelled: bool) -> list[int]:
    """The nearest turns that do not answer. If the evidence is guessed, its neighbours may answer too."""
    reach = 0 if labelled else 1
    answering = {at + step for at in evidence for step in range(-reach, reach + 1)}
    limit = max(float(scores[at]) for at in evidence) + settings.suspicious
    nearest = torch.argsort(scores, descending=True)[:_NEAREST].tolist()
    found = [at for at in nearest if at not in answering and float(scores[at]) < limit]
    return found[: 3 * settings.negatives]


def losses(
    encoder: Encoder,
    pairs: Pairs,
    chosen: Sequence[Pair],
    anchors: tuple[Sequence[Ids], Tensor],
    settings: Settings,
    chance: random.Random,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of finding the evidence among the hard negatives and all of the other questions' turns; and how far
    the anchors are from where they should be."""
    texts: list[int] = []
    own: list[int] = []
    for pair in chosen:
        form = pairs.with_before if chance.random() < _PAIRED else 0
        hard = chance.sample(pair.negatives, min(settings.negatives, len(pair.negatives)))
        own.append(len(texts))
        texts += [chance.choice(pair.evidence) + form, *(text + form for text in hard)]
    kept, targets = anchors
    vectors = encoded(
        encoder,
        [pairs.query(pair, chance) for pair in chosen]
        + [pairs.turn_ids.ids[text] for text in texts]
        + list(kept),
        device,
    )
    queries, found, held = vectors.split([len(chosen), len(texts), len(kept)])
    excluded = _excluded(pairs, chosen, texts, own, settings).to(device)
    scores = (queries @ found.T / settings.temperature).masked_fill(excluded, -math.inf)
    moved = 1 - (held * targets.to(device)).sum(dim=-1).mean()
    return functional.cross_entropy(scores, torch.tensor(own, device=device)), moved


def _excluded(
    pairs: Pairs, chosen: Sequence[Pair], texts: Sequence[int], own: Sequence[int], settings: Settings
) -> Tensor:
    """Which texts must not count as wrong answers: other evidence of the same question, and other people's turns for a question without
    a name."""
    excluded = torch.zeros(len(chosen), len(texts), dtype=torch.bool)
    columns: dict[int, list[int]] = defaultdict(list)
    for column, text in enumerate(texts):
        columns[text].append(column)
    for row, pair in enumerate(chosen):
        if pair.source in settings.own_dialogue_only:
            excluded[row] = True
            excluded[row, own[row] : own[row + 1] if row + 1 < len(own) else len(texts)] = False
        for text in pair.evidence:
            excluded[row, columns[text] + columns[text + pairs.with_before]] = True
        excluded[row, own[row]] = False
    return excluded


def tune(
    encoder: Encoder,
    pairs: Pairs,
    anchors: Texts,
    anchored: Tensor,
    settings: Settings,
    device: torch.device,
    say: Callable[[str], None] = print,
) -> None:
    """Fine-tune in place. `anchored` holds the vectors that the texts of `anchors` should keep."""
    chance = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    used = sum(settings.shares.get(pair.source, 1.0) for pair in pairs.all)
    steps = max(1, round(settings.epochs * used / settings.batch))
    optimiser = optimiser_of(encoder, settings.rate, device)
    warm = min(60, steps // 5 + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    encoder.train()
    order: list[Pair] = []
    for step in range(steps):
        if len(order) < settings.batch:
            order += _epoch(pairs, settings.shares, chance)
        chosen, order = order[: settings.batch], order[settings.batch :]
        kept = [chance.randrange(len(anchors)) for _ in range(settings.batch)]
        with half(device):
            held = ([anchors.ids[place] for place in kept], anchored[kept])
            loss, stay = losses(encoder, pairs, chosen, held, settings, chance, device)
        optimiser.zero_grad(set_to_none=True)
        (loss + settings.anchor * stay).backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % max(1, steps // 8) == 0:
            say(f"step {step} of {steps}: loss {loss.item():.3f}, moved {stay.item():.4f}")


def _epoch(pairs: Pairs, shares: Mapping[str, float], chance: random.Random) -> list[Pair]:
    """Each question as often as its source's share says, in random order."""
    order: list[Pair] = []
    for pair in pairs.all:
        share = shares.get(pair.source, 1.0)
        order += [pair] * (int(share) + (chance.random() < share % 1))
    chance.shuffle(order)
    return order
