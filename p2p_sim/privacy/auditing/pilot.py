"""Where no law tells which labels of the others are worst: a look at a few, before anything is counted."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from p2p_sim import backends
from p2p_sim.privacy.auditing.evidence import Tell, by_learning
from p2p_sim.privacy.auditing.measure import measured
from p2p_sim.privacy.auditing.worlds import Situation

_SHARE, _LEAST = 10, 400
_CONFIDENCE = 0.5  # the pilot promises nothing, it only compares


def worst_of_few(
    situation: Situation,
    honest: int,
    point: tuple[str, float],
    trials: int,
    seed: int,
    settings: backends.Settings,
    tell: Tell,
) -> tuple[int, str]:
    """Return the composition that shows most, of all zeros, half ones and all ones, and a sentence about it.

    Its worlds, a tenth of ``trials`` for each, have draws of their own and are not counted.  ``honest``: others.
    """
    few = sorted({0, honest // 2, honest})
    if len(few) == 1:
        return few[0], ""
    worlds = max(2, min(trials, max(_LEAST, trials // _SHARE)))

    def shown(ones: int) -> float:
        name = hashlib.sha256(f"pilot/{seed}/{ones}".encode()).digest()
        evidence = by_learning(
            replace(situation, composition=ones), worlds, int.from_bytes(name[:8], "little"), settings, tell
        )
        return measured(*point, evidence, _CONFIDENCE, None).lower

    found = {ones: shown(ones) for ones in few}
    worst = max(few, key=lambda ones: found[ones])
    told = ", ".join(map(str, few))
    return worst, f"; composition {worst} showed most, of {told}, in {worlds:,} other worlds a label"
