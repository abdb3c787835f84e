"""Several runs on the same labels whose users draw the same random words, as runs of one seed do.

Such runs do not add up: a user whom one run shows lying at a small probability lies in every run at a larger one, and
two answers that differ say both her label and that she lied.

*Source:* ``docs/laws.md``, "Shared coins".
"""

from __future__ import annotations

import numpy as np

from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile

ONE_RUN = (
    "runs of equal parts are the same protocol with the same parameters, so that they send the same messages"
)
ONE_WORD = "in every run a user lies where the same random word lies below the run's probability of a lie"


def shared_law(profiles: list[PrivacyProfile]) -> tuple[Law, str] | str:
    """Return the law of runs that share their coins, and what it assumes; or why none is known.

    ``profiles``: at least one, each with a law.
    """
    distinct = [profile for i, profile in enumerate(profiles) if profile not in profiles[:i]]
    laws = [profile.law for profile in distinct]
    if len(distinct) == 1 and laws[0] is not None:
        return laws[0], ONE_RUN
    responses = [law for law in laws if isinstance(law, LocalResponse)]
    alike = {(law.labels, profile.source) for law, profile in zip(responses, distinct, strict=False)}
    if len(responses) < len(laws) or len(alike) > 1:
        return (
            "runs that share their coins are known only where they are equal, or where each is one randomized "
            "response of one protocol over the same labels; give the runs different seeds (p2p-sim run without --seed)"
        )
    return one_word(responses), ONE_WORD


def one_word(responses: list[LocalResponse]) -> Law:
    """Return the law of answers of one user to several randomized responses that compare one random word.

    ``responses``: at least one, all over the same labels.  An answer that differs from another gives the label away:
    that is so with probability (largest - smallest probability of a lie), at every epsilon.
    """
    k = responses[0].labels
    rarest = max(responses, key=lambda law: law.epsilon0)
    least, most = (1 - law.keep for law in (rarest, min(responses, key=lambda law: law.epsilon0)))
    lie, truth = least / (k - 1), 1 - most
    apart = most - least
    # label 0 in all runs; label 1 in all; a third one in all; 0 first and a lie then; 1 first and a lie then
    p = [truth, lie, (k - 2) * lie, apart, 0.0]
    q = [lie, truth, (k - 2) * lie, 0.0, apart]
    return Atoms(np.array([p]), np.array([q]))
