"""The best guess from public data alone, by an attacker's estimate of P(y | x): what her attack must beat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.advantage import Baseline, decide
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.leakage.attackers import released_model
from p2p_sim.leakage.eta import Eta

Ints = npt.NDArray[np.int64]

RULED_OUT = 1e-7
"""How often the best guess is among those that are ruled out."""

EXTRAPOLATED = 1 / (2**0.5 - 1)
"""If a loss falls as c / sqrt(n), what is left at n is so many times what was gained from n/2 to n: 2.41."""


def without_messages(
    belief: Eta,
    people: Population,
    gains: Floats,
    victims: Ints,
    *,
    features: bool = True,
    seed: int = 0,
    groups: Ints | None = None,
    beside: Sequence[Floats] = (),
) -> Baseline:
    """Return the best guess without messages of the ``victims`` (rows), and what it may fall short of the very best.

    Where P(y | x) is known, that of Bayes, and its expectation is exact.  Otherwise one of several: Bayes by the
    estimate, always the same label, the shares of the user's cluster, and with ``features`` what a logistic regression
    says that was trained on the true labels of the other half of the users, as the simple prediction attack trains one
    on released labels.  Each half of the victims is guessed by what does best on the true labels of the other half: the
    best on the same users would be better on them than it is, and messages would seem to add less.  ``beside``: other
    estimates of P(y | x), each as ``belief.rows``, whose guesses are among them.  ``rivals``: the
    guesses of which one may be the best, for intervals that hold whichever it is.

    So it is the best guess that this attacker's estimate of P(y | x) and such simple models allow.  Where all of them
    are wrong alike, a better P(y | x) has a higher baseline, and part of what then looks like the advantage of messages
    is of features: labels by the sign of a product of three features are such a case.

    ``regret``: how much a better estimate might add to the best guess without messages: what the estimate gained over
    the one from half of the users, times 2.41, less what the best guess already has on top.  It is no bound.

    *Source:* Attacks 2023, section 5.2 (the best of several models stands for L-EAU); Devroye, Gyorfi, Lugosi 1996,
    Theorem 2.2: a guess by an estimate loses at most twice its mean error, which falls as 1 / sqrt(n) for a model of
    finitely many parameters that is true.
    *Assumes:* that rate; that of nearest neighbours is slower the more features there are.
    """
    rows, truth = belief.rows[victims], np.asarray(people.y, np.int64)[victims]
    bayes = decide(rows, gains)
    if belief.exact:
        return Baseline(bayes, float((rows @ gains.T).max(axis=1).mean()))
    own = [] if (bayes == bayes[0]).all() else [bayes]  # always the same label: it is among the guesses below
    further = [decide(rows[victims], gains) for rows in beside]
    others = _others(people, gains, victims, features, seed, groups)
    guesses = [*further, *others, *own] if further else [*own, *others]
    worth = [float(gains[guess, truth].mean()) for guess in guesses]
    picked, rivals = _picked(guesses, gains, truth, seed), _rivals(guesses, worth, float(gains.max()))
    if belief.from_half is None:
        return Baseline(picked, rivals=rivals)
    coarse = float(gains[decide(belief.from_half[victims], gains), truth].mean())
    fine = float(gains[bayes, truth].mean())
    left = max(0.0, fine - coarse) * EXTRAPOLATED
    return Baseline(picked, regret=max(0.0, fine + left - max(worth)), rivals=rivals)


def _picked(guesses: list[Ints], gains: Floats, truth: Ints, seed: int) -> Ints:
    """Return for each half of the users the guess that does best on the other half; ties go to the first."""
    picked = guesses[0].copy()
    first, second = priors.halves(len(truth), seed)
    for mine, other in ((first, second), (second, first)):
        if len(other):
            best = max(guesses, key=lambda guess: float(gains[guess[other], truth[other]].mean()))
            picked[mine] = best[mine]
    return picked


def _rivals(guesses: list[Ints], worth: list[float], largest: float) -> tuple[Ints, ...]:
    """Return the guesses that may be the best: all but those that are surely worse on these users.

    *Source:* docs/label-inference.md, "The baseline"; Hoeffding 1963, of the difference of any two.
    *Assumes:* users who are independent given features: no message is in these guesses.
    """
    count = len(guesses)
    strays = largest * math.sqrt(2 * math.log(count**2 / RULED_OUT) / len(guesses[0]))
    best = max(worth)
    return tuple(guess for guess, each in zip(guesses, worth, strict=True) if each >= best - 2 * strays)


def _others(
    people: Population, gains: Floats, victims: Ints, features: bool, seed: int, groups: Ints | None
) -> list[Ints]:
    labels = len(gains)
    guesses = [np.broadcast_to(np.int64(label), len(victims)) for label in range(labels)]
    if people.clusters is not None and len(people.sizes) > 1:
        shares = priors.from_cluster_shares(people.y, labels, people.clusters.codes, seed, groups)
        guesses.append(decide(shares.rows, gains)[victims])
    if features and people.x is not None and people.users >= 4:
        chances = np.empty((people.users, labels))
        first, second = priors.halves(people.users, seed)
        for train, test in ((first, second), (second, first)):
            chances[test] = released_model(people.x[train], people.y[train], people.x[test], labels)
        guesses.append(decide(chances, gains)[victims])
    return guesses
