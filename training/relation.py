"""Train a cross-encoder that tells whether a newer statement ends an older one.

    python -m training.relation --original FOLDER --pairs training/relations --score CASES.json --out FOLDER [--tiny]

Both statements are read together, so it sees what two vectors apart do not: `my password manager is LastPass` and `I keep all my
logins in 1Password` are about the same matter. `--score` names cases of `memplane eval changes`; those given with `--cases` are trained on.
Prints which share of the changes is found if 1 to 5 % of the other pairs are taken for one.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training import weights
from training.encoder import Encoder, half, optimiser_of

CHANGES = frozenset({"update", "deny"})
LAYERS = [0, 2, 4, 7, 9, 11]
_TOKENS_MAX = 96
_WARM_UP = 0.1


class Pair(NamedTuple):
    """Two statements of one person, the older first."""

    old: str
    new: str
    changes: bool
    kind: str


@dataclass(frozen=True)
class Settings:
    epochs: int = 4
    batch: int = 32
    rate: float = 8e-5
    dropout: float = 0.1
    others: int = 2
    """Pairs of unrelated cases added for each case."""
    seed: int = 1


def written_pairs(folder: Path) -> list[Pair]:
    found = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        found += [Pair(row["old"], row["new"], row["label"] in CHANGES, row["label"]) for row in rows]
    return found


def pairs_of_cases(cases: Sequence[dict[str, Any]], settings: Settings) -> list[Pair]:
    """All pairs of each case's statements, and some of different cases."""
    chance = random.Random(settings.seed)
    said = [[statement["text"] for statement in case["statements"]] for case in cases]
    found = []
    for case, texts in zip(cases, said, strict=True):
        for newer in range(1, len(texts)):
            for older in range(newer):
                ends = case["kind"] in CHANGES and _holds(texts[newer], case["current"])
                gone = _holds(texts[older], case["outdated"]) and not _holds(texts[older], case["current"])
                found.append(Pair(texts[older], texts[newer], ends and gone, case["kind"]))
        others = [chance.choice(said) for _ in range(settings.others)]
        found += [
            Pair(chance.choice(other), texts[-1], changes=False, kind="other")
            for other in others
            if other is not texts
        ]
    return found


def _holds(text: str, parts: Iterable[str]) -> bool:
    return any(part.lower() in text.lower() for part in parts)


class CrossEncoder(nn.Module):
    """Two texts to one number: how probably the second ends the first."""

    def __init__(self, original: weights.Weights, kept: list[int], dropout: float) -> None:
        super().__init__()
        self.encoder = Encoder(weights.with_layers(original, kept))
        width = original[weights.WORDS].shape[1]
        self.sides = nn.Parameter(torch.randn(2, width) * 0.02)
        self.head = nn.Linear(width, 1)
        self.dropout = dropout
        self.encoder.words.weight.requires_grad_(requires_grad=False)

    def forward(self, ids: Tensor, mask: Tensor, sides: Tensor) -> Tensor:
        words = self.encoder.words(ids) + self.sides[sides]
        vector = self.encoder.read(words, mask)
        return self.head(functional.dropout(vector, self.dropout, self.training)).squeeze(-1) * 10


class Encoded:
    """Pairs as token ids, and which side a token belongs to."""

    def __init__(self, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(_TOKENS_MAX)
        found = tokenizer.encode_batch([(pair.old, pair.new) for pair in pairs])
        self.ids = [encoding.ids for encoding in found]
        self.sides = [encoding.type_ids for encoding in found]

    def batch(self, places: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        longest = max(len(self.ids[place]) for place in places)
        ids, sides = (torch.zeros(len(places), longest, dtype=torch.long) for _ in range(2))
        mask = torch.zeros(len(places), longest, dtype=torch.bool)
        for row, place in enumerate(places):
            length = len(self.ids[place])
            ids[row, :length] = torch.tensor(self.ids[place])
            sides[row, :length] = torch.tensor(self.sides[place])
            mask[row, :length] = True
        return ids.to(device), mask.to(device), sides.to(device)


def train(
    model: CrossEncoder, tokenizer: Tokenizer, pairs: Sequence[Pair], settings: Settings, device: torch.device
) -> None:
    torch.manual_seed(settings.seed)
    chance = random.Random(settings.seed)
    texts = Encoded(tokenizer, pairs)
    changes = torch.tensor([float(pair.changes) for pair in pairs], device=device)
    optimiser = optimiser_of(model, settings.rate, device)
    steps = settings.epochs * -(-len(pairs) // settings.batch)
    step = 0
    for _ in range(settings.epochs):
        order = list(range(len(pairs)))
        chance.shuffle(order)
        model.train()
        for start in range(0, len(order), settings.batch):
            places = order[start : start + settings.batch]
            step += 1
            for group in optimiser.param_groups:
                group["lr"] = settings.rate * min(1.0, step / (_WARM_UP * steps)) * (1 - (step - 1) / steps)
            with half(device):
                scores = model(*texts.batch(places, device))
            loss = functional.binary_cross_entropy_with_logits(scores.float(), changes[places])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()


def scores_of(
    model: CrossEncoder, tokenizer: Tokenizer, pairs: Sequence[Pair], device: torch.device
) -> Tensor:
    texts = Encoded(tokenizer, pairs)
    model.eval()
    with torch.no_grad(), half(device):
        parts = [
            model(*texts.batch(range(start, min(start + 128, len(pairs))), device)).float().cpu()
            for start in range(0, len(pairs), 128)
        ]
    return torch.cat(parts)


def report(scores: Tensor, pairs: Sequence[Pair]) -> None:
    """The share of updates and denials found, at several shares of false alarms among the other pairs of the cases."""
    alarms = torch.tensor([not pair.changes and pair.kind != "other" for pair in pairs])
    for share in (0.01, 0.02, 0.03, 0.05):
        least = torch.quantile(scores[alarms], 1 - share)
        found = {
            kind: scores[torch.tensor([pair.changes and pair.kind == kind for pair in pairs])] > least
            for kind in sorted(CHANGES)
        }
        print(
            f"false alarms {share}: "
            + ", ".join(f"{kind} {hits.float().mean():.3f}" for kind, hits in found.items())
        )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("original", "pairs", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--score", type=Path, action="append", default=[])
    parser.add_argument("--tiny", action="store_true", help="a small random model, on a CPU in seconds")
    arguments = parser.parse_args(given)
    settings = Settings(epochs=1, batch=4) if arguments.tiny else Settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = Tokenizer.from_file(str(arguments.original / "tokenizer.json"))
    original = (
        weights.random_weights(tokenizer.get_vocab_size())
        if arguments.tiny
        else weights.from_onnx(arguments.original / "model.onnx")
    )
    model = CrossEncoder(original, [0, 1] if arguments.tiny else LAYERS, settings.dropout).to(device)
    pairs = written_pairs(arguments.pairs)
    for path in arguments.cases:
        pairs += pairs_of_cases(json.loads(path.read_text("utf-8")), settings)
    train(model, tokenizer, pairs, settings, device)
    for path in arguments.score:
        scored = pairs_of_cases(json.loads(path.read_text("utf-8")), settings)
        print(path.name)
        report(scores_of(model, tokenizer, scored, device), scored)
    extra = {"sides": model.sides, "head.weight": model.head.weight, "head.bias": model.head.bias}
    weights.save(
        {**model.encoder.weights(), **{name: value.detach().cpu().numpy() for name, value in extra.items()}},
        arguments.out,
    )


if __name__ == "__main__":
    main()
