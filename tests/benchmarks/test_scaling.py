"""The benchmark of scaling: its model finds what made its data, and small runs are measured."""

from __future__ import annotations

import pytest

from benchmarks import scaling

TRUE = {
    "start": 0.1, "user": 3e-8, "worker": 0.02, "byte": 1e-9, "scattered": 5e-9, "node": 0.05,
    "byte_between_nodes": 2e-9,
}  # fmt: skip
SIZES = (10**6, 2 * 10**6, 4 * 10**6)
CLUSTERS = ("contiguous", "scattered")


def made(users: int, workers: int, clusters: str, nodes: int = 1, case: str = "shards") -> scaling.Row:
    """Return a row of a machine with two cores, of which the model is true, and whose clock is disturbed."""
    row = scaling.setting(case, users, workers, nodes, clusters, 2)
    cpu = sum(a * b for a, b in zip(TRUE.values(), scaling.features(row | {"case": "nodes"}), strict=True))
    costs = [scaling.Cost(cpu, busy * cpu / row["at_once"]) for busy in (1.0, 3.0, 2.0)]
    return scaling.with_costs(row, costs)


def test_the_model_finds_what_is_true_and_predicts_it():
    rows = [made(n, s, c, nodes, "nodes") for n in SIZES for s, nodes in scaling.SPREAD for c in CLUSTERS]
    model = scaling.fitted("nodes", rows)
    assert model["coefficients"] == pytest.approx(TRUE, rel=0.01)
    assert len(model["held_out_errors"]) == 12
    assert max(map(abs, model["held_out_errors"])) < 0.01
    assert model["held_out_nodes"] == 4
    assert len(model["errors_at_these_nodes"]) == 6
    assert max(map(abs, model["errors_at_these_nodes"])) < 0.01
    assert model["predicted_for"] == "1e+09 users, 100 nodes, 200 shards"
    alone, users_there = 0.1 + 199 * 0.02 + 99 * 0.05, 1e9 * 3e-8 / 200
    crossed = 1e9 * 5e-9 / 200 + 18e9 * 3e-9 / 200 + 18e9 / 100 / 1.25e9
    assert model["predicted_seconds"]["contiguous"] == pytest.approx(alone + users_there, abs=0.1)
    assert model["predicted_seconds"]["scattered"] == pytest.approx(alone + users_there + crossed, abs=0.1)


def test_nodes_are_compared_with_one_node_of_as_many_shards():
    rows = [made(n, s, c, nodes, "nodes") for n in SIZES for s, nodes in scaling.SPREAD for c in CLUSTERS]
    found = {
        (row["workers"], row["nodes"]): row["cpu_per_user_ratio"]
        for row in scaling.over_nodes("nodes", rows)
        if row["clusters"] == "contiguous"
    }
    alone = 0.1 + 4e6 * 3e-8
    assert found == {
        (2, 2): pytest.approx((alone + 0.02 + 0.05) / (alone + 0.02), abs=1e-3),
        (4, 2): pytest.approx((alone + 0.06 + 0.05) / (alone + 0.06), abs=1e-3),
        (4, 4): pytest.approx((alone + 0.06 + 0.15) / (alone + 0.06), abs=1e-3),
    }


def test_a_model_without_a_term_for_nodes_is_found_out_by_the_most_nodes():
    rows = [made(n, s, c, nodes, "nodes") for n in SIZES for s, nodes in scaling.SPREAD for c in CLUSTERS]
    unaware = [row | {"nodes": 1, "bytes_between_nodes": 0, "true_nodes": row["nodes"]} for row in rows]
    assert min(scaling.held_out("nodes", unaware, lambda row: row["true_nodes"] == 4)[1]) < -0.2


def test_workers_are_compared_with_one_worker():
    rows = [made(n, w, c) for n in SIZES for w in scaling.WORKERS for c in CLUSTERS]
    model = scaling.fitted("shards", rows)
    assert list(model["coefficients"].values()) == pytest.approx(list(TRUE.values())[:5], rel=0.01)
    assert max(map(abs, model["held_out_errors"])) < 0.01
    assert "predicted_seconds" not in model
    strong, weak, four = (row for row in scaling.scaling("shards", rows) if row["clusters"] == "contiguous")
    assert strong["cpu_per_user_ratio"] == pytest.approx((0.12 + 0.12) / (0.1 + 0.12), abs=1e-3)
    assert strong["wall_ratio"] == pytest.approx(strong["cpu_per_user_ratio"] / 2, abs=1e-3)
    assert weak["wall_ratio"] == pytest.approx((0.12 + 0.12) / 2 / (0.1 + 0.06), abs=1e-3)
    assert weak["cpu_per_user_ratio"] == pytest.approx((0.12 + 0.12) / 2 / (0.1 + 0.06), abs=1e-3)
    assert four["cpu_per_user_ratio"] == pytest.approx((0.16 + 0.12) / (0.1 + 0.12), abs=1e-3)


def test_a_model_that_lacks_what_costs_is_found_out_by_the_largest_size():
    rows = [made(n, 1, "contiguous") for n in (10**6, 2 * 10**6, 4 * 10**6)]
    rows[-1]["cpu"] = [2 * each for each in rows[-1]["cpu"]]
    assert scaling.fitted("shards", rows)["held_out_errors"] == [pytest.approx(-0.5, abs=0.01)]


@pytest.mark.slow
def test_threads_are_measured():
    rows = scaling.main(100_000, ("threads",), 1, lambda *_: None)["rows"]
    assert {row["users"] for row in rows if row["case"] == "threads"} == {
        100_000 >> n for n in scaling.HALVINGS
    }
    assert all(row["wall_seconds"] > 0 for row in rows if row["case"] == "threads")
    assert rows[-1]["case"] == "threads, model"
