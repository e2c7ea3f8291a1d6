"""DP-SGD on NumPy, trained on scikit-learn's handwritten digits: the single runs that Figure 7 searches over.

The paper tunes the learning rate of a convolutional network on MNIST. This is the same experiment at a size that a
laptop repeats in two minutes: softmax regression on the 8 x 8 digits, everything but the learning rate fixed. Each run
is differentially private in the number of training images: Poisson sampling, every example's gradient clipped to norm
``CLIP``, Gaussian noise of standard deviation ``NOISE_MULTIPLIER * CLIP`` on the sum, division by the *expected* batch
size (a public number). The score is the accuracy on held-out images, which the guarantee need not cover.

``python tests/paper/digits.py`` trains ``RUNS`` models per learning rate and writes ``scores.csv`` beside itself. The
seed of a run is written next to its accuracy: ``train(rate, seed)`` gives the same accuracy again.
"""

from __future__ import annotations

import argparse
import csv
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEED = 2110_03620
RUNS = 72
LEARNING_RATES = np.round(np.logspace(-1.0, np.log10(4.0), 17), 6)
"""Log-spaced over a factor of 40, as in the paper (0.025 to 1 there: another model, another best rate)."""

TRAIN_EXAMPLES = 1297
BATCH = 64
NOISE_MULTIPLIER = 2.0
STEPS = 405
"""20 epochs: ceil(20 * 1297 / 64) is 406; 405 keeps the expected number of passes below 20."""
CLIP = 1.0
SCORES = Path(__file__).with_name("scores.csv")


@lru_cache(maxsize=1)
def images() -> tuple[Array, Array, Array, Array]:
    """Training features, training labels (one-hot), held-out features, held-out labels (digits).

    Pixels are divided by their public maximum (16) and a constant feature carries the bias. The order is shuffled
    once with a fixed seed, because the file lists writers one after the other.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng(SEED).permutation(len(bunch.target))
    features = np.hstack([bunch.data[order] / 16.0, np.ones((len(order), 1))])
    labels = bunch.target[order]
    train, held_out = slice(None, TRAIN_EXAMPLES), slice(TRAIN_EXAMPLES, None)
    return features[train], np.eye(10)[labels[train]], features[held_out], labels[held_out]


def train(learning_rate: float, seed: int, noise_multiplier: float = NOISE_MULTIPLIER, steps: int = STEPS) -> float:
    """Train one model with DP-SGD and return its accuracy on the held-out digits.

    The gradient of one example of softmax regression is the outer product of its residual and its features, so its
    norm is the product of theirs, and clipping costs nothing.
    """
    features, labels, test_features, test_labels = images()
    norms = np.linalg.norm(features, axis=1)
    rng = np.random.default_rng(seed)
    weights = np.zeros((features.shape[1], labels.shape[1]))
    probability = BATCH / TRAIN_EXAMPLES
    for _ in range(steps):
        chosen = np.flatnonzero(rng.random(TRAIN_EXAMPLES) < probability)
        x = features[chosen]
        logits = x @ weights
        logits -= logits.max(axis=1, keepdims=True)
        softmax = np.exp(logits)
        softmax /= softmax.sum(axis=1, keepdims=True)
        residual = softmax - labels[chosen]
        gradient_norm = np.linalg.norm(residual, axis=1) * norms[chosen]
        shrink = np.minimum(1.0, CLIP / np.maximum(gradient_norm, 1e-12))
        total = x.T @ (residual * shrink[:, None])
        total += rng.normal(scale=noise_multiplier * CLIP, size=total.shape)
        weights -= learning_rate / BATCH * total
    predicted = np.argmax(test_features @ weights, axis=1)
    return float(np.mean(predicted == test_labels))


def run_seed(rate_index: int, run: int) -> int:
    """The seed of one run: all runs of the table differ, and adding runs changes none of those before."""
    return SEED + 1000 * rate_index + run


def read_scores(path: Path = SCORES) -> tuple[Array, Array]:
    """Learning rates and accuracies of the recorded runs, one entry a run."""
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return np.array([float(row["learning_rate"]) for row in rows]), np.array([float(row["accuracy"]) for row in rows])


def main() -> None:
    """Train every model again and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=SCORES)
    parser.add_argument("--runs", type=int, default=RUNS, help="private runs per learning rate")
    arguments = parser.parse_args()
    with arguments.out.open("w", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["learning_rate", "seed", "accuracy"])
        for index, rate in enumerate(LEARNING_RATES):
            for run in range(arguments.runs):
                seed = run_seed(index, run)
                writer.writerow([repr(float(rate)), seed, f"{train(float(rate), seed):.6g}"])


if __name__ == "__main__":
    main()
