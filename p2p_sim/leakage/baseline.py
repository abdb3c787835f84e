"""The best guess from public data alone, by an attacker's estimate of P(y | x): what her attack must beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.advantage import Baseline, decide
from p2p_sim.leakage.attackers import released_model
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.label_inference import Floats

Ints = npt.NDArray[np.int64]

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
) -> Baseline:
    """Return the best guess without messages of the ``victims`` (rows), and what it may fall short of the very best.

    Where P(y | x) is known, that of Bayes, and its expectation is exact.  Otherwise of several guesses the one that
    does best on these users' true labels: Bayes by the estimate, always the same label, the shares of the user's
    cluster, and with ``features`` what a logistic regression says that was trained on the true labels of the other half
    of the users, as the simple prediction attack trains one on released labels.

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
    guesses = [bayes, *_others(people, gains, victims, features, seed, groups)]
    worth = [float(gains[guess, truth].mean()) for guess in guesses]
    best = int(np.argmax(worth))
    if belief.from_half is None:
        return Baseline(guesses[best])
    coarse = float(gains[decide(belief.from_half[victims], gains), truth].mean())
    left = max(0.0, worth[0] - coarse) * EXTRAPOLATED
    return Baseline(guesses[best], regret=max(0.0, worth[0] + left - worth[best]))


def _others(
    people: Population, gains: Floats, victims: Ints, features: bool, seed: int, groups: Ints | None
) -> list[Ints]:
    labels = len(gains)
    # of all users, hers too: where labels are as frequent, the label that others have more often is hers less often
    constant = int((gains @ priors.shares_of(people.y[victims], labels)).argmax())
    guesses = [np.full(len(victims), constant)]
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
