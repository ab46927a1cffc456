"""Logistic regressions and small perceptrons, the same for the same data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memplane.recall.calibration import wording_features

Floats = NDArray[np.float64]

SEED = 7
_HIDDEN = 48
_EPOCHS = 40
_BATCH = 128
_DECAY = 0.03
_SCALE = 8.0
"""A unit vector's numbers are small; the first layer starts better with larger ones."""
WORDING_SIZE = 4_096


def fitted(
    rows: Floats, labels: Floats, weights: Floats, *, l2: float, offset: Floats | float = 0.0
) -> Floats:
    """The weights of a logistic regression, the bias last, by Newton's method. The offset is a part of the logit that is known."""
    x = np.column_stack([rows, np.ones(len(rows))])
    beta = np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], l2)
    penalty[-1] = 1e-6
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ beta + offset, -30, 30)))
        gradient = x.T @ (weights * (p - labels)) + penalty * beta
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.abs(step).max() < 1e-7:
            break
    return beta


def balanced(labels: Floats) -> Floats:
    share = float(labels.mean())
    return np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))


class Adam:
    """The optimiser, for a list of arrays."""

    def __init__(self, arrays: list[NDArray[np.float32]]) -> None:
        self.arrays = arrays
        self._mean = [np.zeros_like(array) for array in arrays]
        self._square = [np.zeros_like(array) for array in arrays]
        self._steps = 0

    def step(self, gradients: Sequence[NDArray[np.float32]], rate: float, decay: Sequence[float]) -> None:
        self._steps += 1
        for at, gradient in enumerate(gradients):
            mean = self._mean[at] = 0.9 * self._mean[at] + 0.1 * gradient
            square = self._square[at] = 0.999 * self._square[at] + 0.001 * gradient**2
            usual = mean / (1 - 0.9**self._steps)
            spread = np.sqrt(square / (1 - 0.999**self._steps)) + 1e-8
            self.arrays[at] -= rate * (usual / spread + decay[at] * self.arrays[at])


def perceptron(rows: Floats, labels: Floats, *, members: int) -> tuple[Floats, Floats]:
    """Hidden units (weights and bias) and output weights: the mean of several networks, which is one larger network."""
    x, weights = (rows * _SCALE).astype(np.float32), balanced(labels)
    hidden, output = [], []
    for member in range(members):
        draw = np.random.default_rng(SEED + member)
        first = draw.normal(0, 2 / np.sqrt(x.shape[1]), (x.shape[1], _HIDDEN)).astype(np.float32)
        second = draw.normal(0, 1 / np.sqrt(_HIDDEN), _HIDDEN).astype(np.float32)
        adam = Adam([first, np.zeros(_HIDDEN, np.float32), second])
        for epoch in range(_EPOCHS):
            order = draw.permutation(len(x))
            for begin in range(0, len(order), _BATCH):
                batch = order[begin : begin + _BATCH]
                before = x[batch] @ adam.arrays[0] + adam.arrays[1]
                kept = (draw.random(before.shape) > 0.3) / np.float32(0.7)
                active = np.maximum(before, 0) * kept
                p = 1 / (1 + np.exp(-(active @ adam.arrays[2])))
                error = (weights[batch] * (p - labels[batch]) / len(batch)).astype(np.float32)
                back = np.outer(error, adam.arrays[2]) * (before > 0) * kept
                gradients = [x[batch].T @ back, back.sum(axis=0), active.T @ error]
                adam.step(gradients, 3e-3 * (1 - epoch / _EPOCHS), [_DECAY, 0.0, _DECAY])
        hidden.append(np.column_stack([adam.arrays[0].T * _SCALE, adam.arrays[1]]))
        output.append(adam.arrays[2] / members)
    return np.concatenate(hidden), np.concatenate(output)


def wording_rows(texts: Sequence[str]) -> NDArray[np.float32]:
    rows = np.zeros((len(texts), WORDING_SIZE), np.float32)
    for row, text in zip(rows, texts, strict=True):
        places, value = wording_features(text, WORDING_SIZE)
        np.add.at(row, places, value)
    return rows


def linear(rows: NDArray[np.float32], labels: Floats, *, epochs: int = 60, l2: float = 1e-4) -> Floats:
    """A logistic regression with thousands of weights and a free bias, which is not returned."""
    weights, draw = balanced(labels), np.random.default_rng(SEED)
    adam = Adam([np.zeros(rows.shape[1], np.float32), np.zeros(1, np.float32)])
    for epoch in range(epochs):
        order = draw.permutation(len(rows))
        for begin in range(0, len(order), 2 * _BATCH):
            batch = order[begin : begin + 2 * _BATCH]
            p = 1 / (1 + np.exp(-(rows[batch] @ adam.arrays[0] + adam.arrays[1])))
            error = (weights[batch] * (p - labels[batch]) / len(batch)).astype(np.float32)
            gradient = rows[batch].T @ error + np.float32(l2) * adam.arrays[0]
            adam.step([gradient, error.sum(keepdims=True)], 0.02 * (1 - epoch / epochs), [0.0, 0.0])
    return adam.arrays[0].astype(np.float64)
