"""Label-private methods on images: quick runs, the model held to scikit-learn's, and claims that can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from experiments import _needs, _patch_features, attacks_table1_fixmatch
from experiments import attacks_table1 as script
from experiments._common import Options

pytestmark = pytest.mark.slow

WRONG = "not reproduced"


def quick(of: Any, out: Path) -> Any:
    if missing := _needs.missing(of.EXPERIMENT.needs):
        pytest.skip(missing)
    return of.run(Options(True, None, None, out))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quick(script, tmp_path_factory.mktemp("table"))


def test_a_quick_run_decides_every_claim(found: Any) -> None:
    assert len(found.claims) == 4
    assert all(claim.verdict and "stand for" in claim.why for claim in found.claims)
    rows = {(row["method"], row["epsilon"]): row for row in found.tables[""]}
    assert len(rows) == 1 + len(script.METHODS) * len(script.EPSILONS)
    for row in rows.values():
        assert row["epsilon_spent"] <= row["epsilon"] * (1 + 1e-9)
    assert rows[script.TRUE, float("inf")]["test"] > 0.85
    assert rows[script.LP, 1.0]["test"] > 0.5 > 0.25 > rows[script.LP, 0.1]["test"]


def test_claims_can_fail(found: Any) -> None:
    rows = found.tables[""]
    told = script.claims([row | {"attack": row["test"] + 0.1} for row in rows])
    assert told[0].verdict == WRONG
    told = script.claims([row | {"test": 0.5} for row in rows])
    assert [told[1].verdict, told[2].verdict] == [WRONG, WRONG]
    told = script.claims([row | {"test": row["printed_test"] or 0.99} for row in rows])
    assert [told[1].verdict, told[2].verdict, told[3].verdict] == [
        "reproduced in shape",
        "reproduced",
        "reproduced",
    ]


def test_least_squares_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "PENALTIES", (30.0,))
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 12)).astype(np.float32) * 3 + 1
    y = (x[:, 0] + rng.normal(size=500) > 1).astype(np.int64) + 2 * (x[:, 1] > 2)
    guess = script.LeastSquares(x).fitted(script._one_hot(y))
    rows = (x - x.mean(axis=0)) / x.std(axis=0)
    model = Ridge(30.0).fit(rows, np.eye(10)[y])
    assert (guess(x) == model.predict(rows).argmax(axis=1)).mean() > 0.995


def test_patch_features_do_not_move_with_brightness() -> None:
    rng = np.random.default_rng(4)
    images = rng.integers(0, 200, size=(200, 100)).astype(np.float32)
    filters = _patch_features.learnt(images, 10, 1, 8, 0)
    one, two = (filters.features(images[:5] + more, 10, 2) for more in (0, 50))
    assert one.shape == (5, 4 * 8)
    np.testing.assert_allclose(one, two, atol=1e-3)
    assert not np.allclose(one, filters.features(images[5:10], 10, 2), atol=1e-3)


def test_the_student_of_fixmatch(tmp_path: Path) -> None:
    of = attacks_table1_fixmatch
    rows = quick(of, tmp_path).tables[""]
    assert [row["epsilon"] for row in rows] == [float("inf"), 1.0, 0.1]
    assert rows[1]["epsilon_spent"] == pytest.approx(1.0)
    good = [row | {"test": test, "attack": test} for row, test in zip(rows, (0.95, 0.9, 0.2), strict=True)]
    assert [claim.verdict for claim in of.claims(good)] == ["reproduced in shape", "reproduced"]
    assert of.claims([row | {"test": 0.4} for row in rows])[0].verdict == WRONG
