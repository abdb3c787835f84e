"""Tests a law on all that a view saw: beside the audit's statistic, the rest must tell nothing more of the label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_STAKES = (0.05, 0.1, 0.2, 0.4, 0.8, 0.95)
_FAR = 20.0  # nats; ratios may be infinite


def line(scores: Array, ratios: Array) -> tuple[float, float, float]:
    """Return slope, start and spread of scores around a straight line in the ratios, of worlds learned from."""
    x = np.clip(ratios, -_FAR, _FAR)
    slope = float(((x - x.mean()) * (scores - scores.mean())).mean() / max(float(x.var()), 1e-12))
    start = float(scores.mean() - slope * x.mean())
    return slope, start, max(float((scores - slope * x - start).std()), 1e-9)


def p_value(
    scores: tuple[Array, Array],
    ratios: tuple[Array, Array],
    above: Array,
    below: Array,
    around: tuple[float, float, float] = (1.0, 0.0, 1.0),
) -> float:
    """Return a p-value of the law, from scores of the whole view of worlds with the first and the second label.

    ``ratios``: the exact log ratios of the same worlds, second label over first.  ``above``, ``below``: thresholds of
    the scores, and ``around``, a line, chosen on other worlds: what is looked at is whether a score is beyond a
    threshold, and how far it is from the line.  Valid at any number of worlds: under the law, it is at most
    x with a probability of at most x.

    *Source:* if ``ratios`` are those of the whole view V, E[f(V) s(-r) | second] = E[f(V) s(r) | first] for every f,
    with s the logistic function; bets on the difference have mean 1 under the law (Waudby-Smith and Ramdas 2024,
    *Estimating means of bounded random variables by betting*), and so has the mean of many such bets; Markov.
    *Assumes:* worlds are independent.
    """
    from scipy.special import expit, logsumexp

    count = min(len(scores[0]), len(scores[1]))
    first, second = (each[:count] for each in scores)
    weight = expit(ratios[0][:count]), expit(-ratios[1][:count])
    events: list[Any] = [(first >= t, second >= t) for t in above] + [
        (first <= t, second <= t) for t in below
    ]
    slope, start, spread = around
    far = (
        score - slope * np.clip(ratio[:count], -_FAR, _FAR) - start
        for score, ratio in zip((first, second), ratios, strict=True)
    )
    events.append(tuple(np.clip(each / (4 * spread), -0.5, 0.5) for each in far))
    stakes = np.array([*_STAKES, *(-stake for stake in _STAKES)])
    logs = []
    for in_first, in_second in events:
        gains = in_second * weight[1] - in_first * weight[0]
        logs += [float(np.log1p(stake * gains).sum()) for stake in stakes]
    return float(np.exp(min(0.0, np.log(len(logs)) - logsumexp(logs))))
