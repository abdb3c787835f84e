"""The benchmark of scaling: its model finds what made its data, and small runs are measured."""

from __future__ import annotations

import pytest

from benchmarks import scaling


def made(users: int, workers: int, clusters: str) -> scaling.Row:
    """Return a row of a machine with two cores, of which the model is true."""
    told = scaling.row("shards", users, workers, clusters, [scaling.Cost(0.0, 0.0)], 2)
    given = scaling.features("shards", users, workers, told["at_once"], told["crossing"])
    return told | {"wall_seconds": sum(a * b for a, b in zip((0.1, 0.02, 3e-8, 2e-8), given, strict=True))}


def test_the_model_finds_what_is_true_and_predicts_it():
    users = (10**6, 2 * 10**6, 4 * 10**6)
    rows = [made(n, w, c) for n in users for w in scaling.WORKERS for c in ("contiguous", "scattered")]
    model = scaling.fitted("shards", rows)
    assert list(model["coefficients"].values()) == pytest.approx([0.1, 0.02, 3e-8, 2e-8], rel=0.01)
    assert max(map(abs, model["held_out_errors"])) < 0.01
    assert model["predicted_for"] == "1e+09 users, 100 nodes, 200 shards"
    assert model["predicted_seconds"]["contiguous"] == pytest.approx(0.1 + 200 * 0.02 + 5e6 * 3e-8, abs=0.1)
    strong, weak, four = (
        row["wall_ratio"] for row in scaling.scaling("shards", rows) if row["clusters"] == "contiguous"
    )
    assert strong == pytest.approx((0.14 + 0.06) / (0.12 + 0.12), abs=1e-3)
    assert weak == pytest.approx((0.14 + 0.06) / (0.12 + 0.06), abs=1e-3)
    assert four == pytest.approx((0.18 + 0.06) / (0.12 + 0.12), abs=1e-3)


@pytest.mark.slow
def test_threads_are_measured():
    told = scaling.main(100_000, ("threads",), 1, lambda *_: None)["rows"]
    assert {row["users"] for row in told if row["case"] == "threads"} == {
        100_000 >> n for n in scaling.HALVINGS
    }
    assert all(row["wall_seconds"] > 0 for row in told if row["case"] == "threads")
    assert told[-1]["case"] == "threads, model"
