"""A conditional GAN for public examples, whose rows become the table of a generator of features (extra ``torch``).

The protocol draws from the table, never from the network: so its draws have the same bits everywhere, and its law is
finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import own_words, stream
from p2p_sim.learning.training import keyed_noise
from p2p_sim.learning.training.feature_generators import FeatureTable, Floats, by_label, table_of
from p2p_sim.learning.training.pytorch import pytorch

ROLE = "conditional GAN"
"""Under this name weights, batches and noise are drawn; it cannot be the name of a protocol's role."""

NOISE = 16
"""Numbers from which a row is made."""

SLOPE = 0.2
"""Of the rectifiers below 0."""

MOMENTA = (0.5, 0.9)
FINE = float(1 << 16)
"""Rows are kept as multiples of one over this, as features travel."""


def conditional_gan(
    x: Any,
    y: Any,
    *,
    rows: int = 200,
    hidden: int = 128,
    steps: int = 2000,
    batch: int = 64,
    learning_rate: float = 1e-3,
    labels: int | None = None,
    threads: int = 1,
    seed: int = 0,
) -> FeatureTable:
    """Train a conditional GAN on public examples; return a table of ``rows`` generated rows for each label.

    ``x`` (n, d), ``y`` (n,): public examples, labels 0 to k - 1; ``labels``: k, None: the largest label plus one.
    ``rows``: of each label, at least 1.  ``hidden``: units of the two dense layers of either network.  ``steps``: of
    both, each on ``batch`` examples whose labels are uniform.  ``learning_rate``: above 0.  ``threads``: of PyTorch.
    ``seed``: below 2^64, of weights, batches and noise; equal arguments give an equal table on one machine and one
    version of PyTorch, others may round otherwise: so keep the table.  Generated features stay within those of the
    examples.  Raises InputError for others, for a label without examples, and MissingPackageError without PyTorch.

    *Source:* Mirza and Osindero 2014, with the loss of Goodfellow et al. 2014 that does not saturate.
    *Assumes:* the examples are public: nothing is hidden of them.
    """
    for name, value in (("rows", rows), ("hidden", hidden), ("steps", steps), ("batch", batch)):
        check_whole(name, value)
    check_range("learning_rate", learning_rate, 0, 1, open_low=True)
    check_whole("threads", threads, 1, 1024)
    check_seed(seed)
    classes = by_label(x, y, labels)
    low, high = (end(np.concatenate(classes), axis=0) for end in (np.min, np.max))
    middle, reach = (low + high) / 2, (high - low) / 2
    scaled = [((own - middle) / np.where(reach > 0, reach, 1)).astype(np.float32) for own in classes]
    with pytorch("a conditional GAN needs PyTorch", threads) as torch, torch.enable_grad():
        maker = _trained(torch, scaled, hidden, steps, batch, learning_rate, seed)
        with torch.no_grad():
            made = [
                _made(torch, maker, np.full(rows, label), len(classes), seed, f"row of {label}", 0).numpy()
                for label in range(len(classes))
            ]
    return table_of([_counted(each * reach + middle) for each in made])


def _trained(
    torch: Any, scaled: Sequence[npt.NDArray[np.float32]], hidden: int, steps: int, batch: int, rate: float, seed: int
) -> list[Any]:  # fmt: skip
    """Return the weights of the network that makes rows, after training against one that tells them from examples."""
    k, width = len(scaled), scaled[0].shape[1]
    maker = _first(torch, (NOISE + k, hidden, hidden, width), seed, "maker")
    judge = _first(torch, (width + k, hidden, hidden, 1), seed, "judge")
    descents = [torch.optim.Adam(each, lr=rate, betas=MOMENTA) for each in (maker, judge)]
    every = torch.from_numpy(np.concatenate(scaled))
    starts, sizes = np.cumsum([0, *map(len, scaled)])[:-1], np.array([len(each) for each in scaled])
    soft = torch.nn.functional.softplus
    for step in range(steps):
        words = own_words(seed, stream(ROLE, "batch", step), 0, 2 * batch)
        label = _below(words[:batch], np.full(batch, k))
        real = every[starts[label] + _below(words[batch:], sizes[label])]
        kind = _one_hot(torch, label, k)
        made = _made(torch, maker, label, k, seed, "noise", step)
        judged = [_run(torch, judge, torch.cat([each, kind], dim=1)) for each in (real, made.detach())]
        _step(descents[1], soft(-judged[0]).mean() + soft(judged[1]).mean(), rate, step / steps)
        _step(
            descents[0], soft(-_run(torch, judge, torch.cat([made, kind], dim=1))).mean(), rate, step / steps
        )
    return maker


def _step(descent: Any, loss: Any, rate: float, done: float) -> None:
    """Lower a loss by a step, of a size that falls to 0 in the second half."""
    descent.param_groups[0]["lr"] = rate * min(1.0, 2 * (1 - done))
    descent.zero_grad()
    loss.backward()
    descent.step()


def _made(
    torch: Any, maker: list[Any], label: npt.NDArray[Any], k: int, seed: int, name: str, step: int
) -> Any:
    """Return a row for each label, every feature between -1 and 1."""
    noise = keyed_noise.gaussian(seed, stream(ROLE, name, step), (len(label), NOISE)).astype(np.float32)
    given = torch.cat([torch.from_numpy(noise), _one_hot(torch, label, k)], dim=1)
    return torch.tanh(_run(torch, maker, given))


def _run(torch: Any, weights: Sequence[Any], rows: Any) -> Any:
    """Return what three dense layers make of rows."""
    for number in (0, 2):
        rows = torch.nn.functional.leaky_relu(rows @ weights[number] + weights[number + 1], SLOPE)
    return rows @ weights[4] + weights[5]


def _first(torch: Any, sizes: Sequence[int], seed: int, name: str) -> list[Any]:
    """Return the weights of three layers before training, Gaussian: He et al. 2015."""
    found = []
    for number, (wide, narrow) in enumerate(pairwise(sizes)):
        start = keyed_noise.gaussian(seed, stream(ROLE, name, number), (wide, narrow)) * math.sqrt(2 / wide)
        found += [torch.from_numpy(start.astype(np.float32)), torch.zeros(narrow)]
    return [each.requires_grad_() for each in found]


def _one_hot(torch: Any, label: npt.NDArray[Any], k: int) -> Any:
    return torch.from_numpy(np.eye(k, dtype=np.float32)[label])


def _below(words: npt.NDArray[np.uint64], limit: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return integers below limits of less than 2^31, from random words."""
    high = (words >> np.uint64(32)) * limit.astype(np.uint64)
    return (high >> np.uint64(32)).astype(np.int64)


def _counted(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return how often each row came, the rows as they travel, and no noise."""
    few, count = np.unique(np.rint(rows * FINE) / FINE, axis=0, return_counts=True)
    return count.astype(np.float64), few, np.zeros(few.shape)
