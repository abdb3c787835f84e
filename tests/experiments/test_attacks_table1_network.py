"""Networks of Table 1: a quick run, claims that can fail, and images as they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments import attacks_table1_network as script
from experiments._common import read_csv
from tests.experiments import quick

pytestmark = pytest.mark.slow


def test_a_quick_run_decides_every_claim(tmp_path: Any) -> None:
    told = quick.claims(quick.results([script], tmp_path), script)
    assert len(told) == 5 + 2 + 1
    assert told[-1]["where"].endswith("PATE-FM")
    rows = {
        (row["method"], row["epsilon"]): row for row in read_csv(tmp_path / f"{script.EXPERIMENT.name}.csv")
    }
    assert len(rows) == 1 + 8 + 1 + 2
    assert float(rows[script.TRUE, "inf"]["test"]) > float(rows[script.LP, "0.1"]["test"]) + 0.2


def row(data: str, method: str, epsilon: float, test: float, printed: float | None) -> dict[str, Any]:
    return {
        "data": data, "method": method, "epsilon": epsilon, "test": test, "attack": test, "printed_test": printed,
        "test_se": 0.001, "attack_se": 0.001,
        "step_seconds": 0.1,
    }  # fmt: skip


def test_verdicts_follow_from_the_rows() -> None:
    def verdicts(high: float, low: float, true: float, prior: float = 0.9) -> list[str]:
        rows = [row("mnist", script.TRUE, np.inf, 0.95, None)]
        rows += [row("mnist", name, 1.0, high, 0.93) for name in script.PROTOCOLS]
        rows += [row("mnist", name, 0.1, low, 0.21) for name in script.PROTOCOLS]
        rows += [row("mnist", name, e, prior, 0.91) for name in script.PRIORS for e in script.EPSILONS]
        rows += [row("cifar10", script.TRUE_STUDENT, np.inf, true, None)]
        rows += [row("cifar10", script.PATE, 1.0, high, 0.924), row("cifar10", script.PATE, 0.1, low, 0.186)]
        return [claim.verdict for claim in script.claims(rows)]

    shape, wrong, unknown = "reproduced in shape", "not reproduced", "not comparable"
    # identical, little and much, priors at 0.1, priors above LP-1ST at 1, as printed, PATE-FM on CIFAR-10
    assert verdicts(0.93, 0.21, 0.93) == ["reproduced", shape, "reproduced", wrong, shape, shape]
    assert verdicts(0.93, 0.21, 0.93, prior=0.91)[4] == "reproduced"
    assert verdicts(0.88, 0.21, 0.93)[3] == shape
    assert verdicts(0.5, 0.4, 0.3) == ["reproduced", wrong, "reproduced", shape, shape, unknown]
    assert verdicts(0.93, 0.1, 0.93)[1::4] == [wrong, unknown]  # a guess: nothing is learnt, not little
    assert verdicts(0.93, 0.21, 0.93, prior=0.5)[2] == shape
    assert verdicts(0.93, 0.21, 0.93, prior=0.2)[2::2] == [wrong, wrong]


def test_smaller_images_are_means_of_four_pixels_plane_by_plane() -> None:
    images = np.arange(2 * 4 * 4 * 3).reshape(2, 4, 4, 3)
    found = script.smaller(images.reshape(2, -1), 4, 3).reshape(2, 3, 2, 2)
    assert found[1, 2, 0, 1] == images[1, 0:2, 2:4, 2].mean()
    assert found[0, 0, 1, 0] == images[0, 2:4, 0:2, 0].mean()
