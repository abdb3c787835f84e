"""The benchmark of weighted losses runs at a small size and says what it measured against which target."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import losses, measure
from p2p_sim import InputError
from p2p_sim.learning.data.datasets import Dataset

pytestmark = pytest.mark.slow


def made_up(*_: object, **__: object) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(500, 20)).astype(np.float64)
    names, classes = tuple(map(str, range(20))), tuple(map(str, range(10)))
    return Dataset(
        "made up",
        x,
        (np.arange(500) % 10).astype(np.uint8),
        None,
        names,
        "y",
        classes,
        "1",
        "this test",
        None,
    )


def test_rows_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses.datasets, "load", made_up)
    monkeypatch.setattr(losses, "LARGE", 5_000)
    told: list[tuple[str, int, int]] = []
    result = losses.main(400, losses.CASES, 2, lambda *step: told.append(step))
    mnist, memory = result["rows"]
    assert (mnist["case"], mnist["rows"], mnist["features"]) == ("mnist", 400, 20)
    assert min(mnist["ratio_cpu"], mnist["ratio_cpu_losses"]) > 0
    assert mnist["steps"][0] == mnist["steps"][1]  # the same problem, the same way
    assert mnist["reached"] == (mnist["ratio_cpu"] >= 0.5)
    assert told == [("mnist", 1, 2), ("mnist", 2, 2)]
    assert (memory["rows"], memory["features"]) == (5_000, 50)
    assert 50e6 < memory["bytes"] < memory["target"]["bytes"]
    assert memory["reached"]
    assert "python" in result["machine"]


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(InputError, match="no case 'adult'; there are mnist, memory"):
        losses.main(10, ("adult",), 1, lambda *_: None)


def test_memory_is_that_of_a_fresh_process() -> None:
    """Ten times the rows take more, by what the rows themselves are at least."""
    small, large = (
        measure.in_fresh_process("benchmarks.losses", "beside", rows) for rows in (2_000, 100_000)
    )
    assert large - small > 98_000 * 50 * 8 / 2
