"""Label inference on Gaussian mixtures: a quick run, held to closed forms; and claims that can fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from experiments import attacks_figure1 as script
from tests.experiments import quick

pytestmark = pytest.mark.slow

WRONG = "not reproduced"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quick.outcome(script, tmp_path_factory.mktemp("out"))


def test_a_quick_run_decides_every_claim(found: Any) -> None:
    assert not [claim.says for claim in found.claims if claim.verdict == WRONG]
    open_ones = [claim.says for claim in found.claims if claim.verdict == "not comparable"]
    assert ["consistently high" in says or "moderately low" in says for says in open_ones] == [True, True]
    assert len(script.distinct(found.tables[""])) == 2 * 4 * len(script.QUICK.epsilons)
    assert all(claim.why and claim.found for claim in found.claims)
    assert len(found.tables[""]) == 2 * 2 * 3 * len(script.QUICK.epsilons)


def test_bounds_and_the_best_attack_are_what_closed_forms_say(found: Any) -> None:
    drawn = script.mixture(2, 1.0, script.QUICK, seed=0)
    likely = drawn.p.max(axis=2)
    for row in found.tables[""]:
        assert row["bound"] == pytest.approx(math.tanh(row["epsilon"] / 2))
        assert row["best_attack"] >= row["eau"] - 6 * row["eau_se"] - 0.01
        if (row["m"], row["sigma"]) == (2, 1.0):
            truth = 1 / (1 + math.exp(-row["epsilon"]))
            assert row["best_attack"] == pytest.approx(np.maximum(likely, truth).mean())
            assert row["l_eau"] == pytest.approx(likely.mean())


def test_labels_are_drawn_by_the_law_of_the_mixture() -> None:
    drawn = script.mixture(2, 1.0, script.Size(4, 400), seed=3)
    ones, p = drawn.y.mean(axis=1), drawn.p[:, :, 1]
    error = np.sqrt(p * (1 - p) / 400) + 1e-3
    assert (np.abs(ones - p) < 6.5 * error).all()
    assert not (np.abs(ones - p[:, ::-1]) < 6.5 * error).all()


def claimed(rows: Any, known: Any, about: str) -> str:
    return next(claim.verdict for claim in script.claims(rows, known) if about in claim.says)


def test_claims_can_fail(found: Any) -> None:
    rows, known = found.tables[""], found.tables["baseline"]
    above = [row | {"advantage_surely_above": row["bound"] + 0.01} for row in rows]
    assert claimed(above, known, "dominates") == WRONG
    off = [row | {"l_eau": row["l_eau"] + 4 * row["l_eau_se"]} for row in known]
    assert claimed(rows, off, "L-EAU can be computed") == WRONG
    assert claimed([row | {"eau": 0.9} for row in rows], known, "close to 100 %") == WRONG
    few = [row | {"eau": 0.9, "l_eau": 0.8} if row["m"] == 2 else row for row in rows]
    assert claimed(few, known, "consistently high") == "reproduced"
    assert claimed([row | {"eau": 0.9} for row in rows], known, "consistently high") == WRONG
    moderate = [
        row | ({"epsilon": 1.0, "advantage": -0.1, "advantage_se": 0.01} if row["epsilon"] < 1 else {})
        for row in rows
    ]
    assert claimed(moderate, known, "moderately low") == "reproduced"
    assert claimed([row | {"advantage": 0.1} for row in moderate], known, "moderately low") == WRONG
    assert claimed([row | {"eau": 0.9} for row in rows], known, "drops very quickly") == WRONG
    assert claimed([row | {"advantage": 0.1} for row in rows], known, "not very large") == WRONG
    assert claimed([row | {"advantage": 0.1} for row in rows], known, "bound fall") == WRONG
    assert claimed([row | {"bound": 1.0} for row in rows], known, "bound fall") == WRONG
    alike = [row | {"l_eau": 0.5, "exact": 0.5} for row in known]
    assert claimed(rows, alike, "larger for m = 2") == WRONG
