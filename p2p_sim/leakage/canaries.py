"""The canary attack: whose label was flipped, as the confidences of a released model tell.

The protocol runs again with users of whom some, the canaries, flip their label or not by a coin.  The attacker knows
who they are, their labels before the coin, and the model that is trained on what was released: she guesses which coins
fell on "flip".  Whatever labels and features are, half of these guesses are right without the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.random_words import order, stream, words
from p2p_sim.leakage import intervals
from p2p_sim.leakage.advantage import CANARIES, SURE
from p2p_sim.leakage.attackers import returned_by_learner, says
from p2p_sim.leakage.label_inference import AttackRow, Floats, Interval, Least
from p2p_sim.privacy.setting import LEARNER
from p2p_sim.run import Run
from p2p_sim.run import run as start

SHARE = 0.05
"""Of the users, who are canaries, unless another is given."""

SOURCE = "Esmaeili et al. 2021, section 5 (black-box attack on canaries); Clopper and Pearson 1934"


def canary_attack(
    run: Run,
    protocol: Protocol,
    people: Population,
    view: str,
    eta: Floats,
    confidence: float,
    seed: int,
    share: float = SHARE,
) -> AttackRow:
    """Return the row of the attack: the share of coins that it guesses right, against 1/2, which is exact.

    ``share`` in (0, 1] of the users are canaries; a flipped label is uniform among the others.  Canaries are ranked by
    how much more likely the model finds the label before the coin than the flipped one, less the same of ``eta``
    (users, k); the lower half are guessed to be flipped.  ``seed``: of canaries, coins and the run.  Raises InputError
    where the view has no learner, where users have no features, and for fewer than 2 canaries.

    *Source:* Esmaeili et al. 2021, section 5 (black-box attack on canaries); Clopper and Pearson 1934.
    *Assumes:* Clopper-Pearson takes the guesses as independent; they share one model and the median.
    """  # fmt: skip
    if LEARNER not in run.view(view, protocol=protocol).coalition.servers:
        raise InputError(f"canary attack: needs what the learner returned; view {view!r} has no learner")
    if people.x is None:
        raise InputError("canary attack: needs features, and these users have none")
    count = round(share * people.users)
    if not 0 < share <= 1 or count < 2:
        raise InputError(
            f"share = {share!r} of {people.users:,} users: needs 2 canaries at least, and a share of at most 1"
        )
    who = np.sort(order(words(seed, stream("attack", "canary", 0), 0, people.users))[:count])
    flipped = (words(seed, stream("attack", "coin", 0), 0, count) >> np.uint64(63)).astype(np.bool_)
    truth = np.asarray(people.y, np.int64)[who]
    others = words(seed, stream("attack", "other", 0), 0, count) % np.uint64(eta.shape[1] - 1)
    other = (truth + 1 + others.astype(np.int64)) % eta.shape[1]
    y = people.y.copy()
    y[who] = np.where(flipped, other, truth).astype(y.dtype)
    again = start(
        protocol, replace(people, y=y), seed=int(words(seed, stream("attack", "run", 0), 0, 1)[0]), digest=False,
        faults=run.faults, crypto=run.crypto, progress=False,
    )  # fmt: skip
    model = says(
        protocol, replace(people, y=np.zeros_like(y), secret={}), returned_by_learner(again), eta.shape[1]
    )
    guess = _lower_half(_odds(model[who], truth, other) - _odds(eta[who], truth, other))
    hits = int((guess == flipped).sum())
    right, sure = (intervals.of_share(hits, count, c) for c in (confidence, SURE))
    gained, ratio = Interval(*(end - 0.5 for end in right)), Interval(*(end / 0.5 for end in right))
    least = Least(sure.lower, sure.lower - 0.5)
    return AttackRow(CANARIES, right, intervals.exactly(0.5), gained, ratio, "measured", SOURCE, least=least)


def _odds(chances: Floats, truth: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Floats:
    at = np.arange(len(truth))
    likely, flipped = (np.log(np.maximum(chances[at, label], 1e-12)) for label in (truth, other))
    return np.asarray(likely - flipped, np.float64)


def _lower_half(scores: Floats) -> npt.NDArray[np.bool_]:
    lower = np.zeros(len(scores), np.bool_)
    lower[np.argsort(scores, kind="stable")[: len(scores) // 2]] = True
    return lower
