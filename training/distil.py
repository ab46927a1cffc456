"""Distillation: a shallower encoder learns the vectors of a deeper one, and its one-token mark for questions."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training.encoder import Texts, half, optimiser_of
from training.weights import Weights, with_layers


@dataclass(frozen=True)
class Settings:
    layers: tuple[int, ...] = (0, 2, 4, 7, 9, 11)
    inner: int = 1152
    """Width of the feed-forward part: the strongest of the teacher's 1536."""
    epochs: float = 5
    batch: int = 1024
    rate: float = 5e-4
    seed: int = 1


def untrained_student(teacher: Weights, settings: Settings) -> Weights:
    """Some of the teacher's layers, with the strongest neurons of their feed-forward parts."""
    weights = with_layers(teacher, list(settings.layers))
    for layer in range(len(settings.layers)):
        up, down = (f"encoder.layer.{layer}.{part}.dense" for part in ("intermediate", "output"))
        strength = torch.from_numpy(weights[f"{up}.weight"]).norm(dim=1) * torch.from_numpy(
            weights[f"{down}.weight"]
        ).norm(dim=0)
        kept = torch.sort(torch.topk(strength, min(settings.inner, len(strength))).indices).values.numpy()
        weights[f"{up}.weight"], weights[f"{up}.bias"] = (
            weights[f"{up}.weight"][kept],
            weights[f"{up}.bias"][kept],
        )
        weights[f"{down}.weight"] = weights[f"{down}.weight"][:, kept]
    return weights


def distil(
    student: nn.Module,
    texts: Texts,
    targets: Tensor,
    settings: Settings,
    device: torch.device,
    say: Callable[[str], None] = print,
) -> None:
    """Train in place: one minus the cosine to the target of each text. Batches hold texts of similar length."""
    chance = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    steps = max(1, round(settings.epochs * len(texts) / settings.batch))
    optimiser = optimiser_of(student, settings.rate, device)
    warm = min(200, steps // 5 + 1)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimiser,
        [
            torch.optim.lr_scheduler.LinearLR(optimiser, 0.01, 1.0, warm),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps - warm), settings.rate / 100),
        ],
        [warm],
    )
    student.train()
    batches: list[list[int]] = []
    for step in range(steps):
        if not batches:
            batches = _batches(texts, settings.batch, chance)
        chosen = batches.pop()
        with half(device):
            vectors = student(*texts.batch(chosen, device))
        loss = 1 - (vectors * targets[torch.tensor(chosen)].to(device).float()).sum(dim=-1).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % max(1, steps // 10) == 0:
            say(f"step {step} of {steps}: 1 - cosine {loss.item():.4f}")


def _batches(texts: Texts, size: int, chance: random.Random) -> list[list[int]]:
    """All texts once: shuffled, then sorted by length within large groups, so that little is spent on padding."""
    order = list(range(len(texts)))
    chance.shuffle(order)
    batches: list[list[int]] = []
    group = size * 32
    for start in range(0, len(order), group):
        part = sorted(order[start : start + group], key=lambda place: len(texts.ids[place]))
        batches += [part[at : at + size] for at in range(0, len(part), size)]
    chance.shuffle(batches)
    return batches
