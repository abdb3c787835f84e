"""What protocols cost, as an experiment: a quick run, and the numbers of the expected table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import costs
from experiments._common import main, read_csv
from p2p_sim.crypto.rates import Rates

EXPECTED = read_csv(Path(costs.__file__).parent / "expected" / "costs.csv")


def test_a_quick_run(tmp_path: Path) -> None:
    assert main(costs.EXPERIMENT, ["--quick", "--out", str(tmp_path)]) == 0
    rows = read_csv(tmp_path / "costs.csv")
    assert {row["protocol"] for row in rows} == {setting.name for setting in costs.settings()}
    (claim,) = json.loads((tmp_path / "costs.json").read_text())["claims"]
    assert claim["verdict"] == "reproduced in shape"  # a user receives a request and a label
    # every user seals a contribution to each of the 99 others of her cluster, of 72 bytes, and sends two labels
    assert (
        "101.0 messages sent, 100.0 received and 7,162 bytes a user, open=99000 seal=99000" in claim["found"]
    )


def test_a_permutation_as_cheap_as_resampling_would_not_be_what_the_paper_says() -> None:
    row = {"role": "user", "cluster_size": costs.CLUSTER, "parties": 10, "sent": 20, "bytes_up": 400}

    def verdict(times: int, received: int) -> str:
        here = row | {"protocol": "peer-to-peer", "operations": "", "received": received}
        there = row | {"protocol": "peer permutation", "operations": "seal=1", "received": 990}
        return costs._claim([here, there | {"bytes_up": 400 * times}]).verdict

    assert verdict(1, 10) == verdict(20, 30) == "not reproduced"
    assert [verdict(20, 10), verdict(20, 20)] == ["reproduced", "reproduced in shape"]


@pytest.mark.slow
def test_costs_are_those_of_the_table() -> None:
    """Messages, bytes and operations; seconds depend on the machine."""
    rates = Rates(*[1e-6] * 8)
    found = [row for setting in costs.settings() for row in costs.rows(setting, costs.USERS, rates)]

    def fixed(row: dict[str, Any]) -> dict[str, str]:
        return {name: str(value) for name, value in row.items() if name not in costs.SECONDS}

    assert list(found[0]) == list(EXPECTED[0])
    assert [fixed(row) for row in found] == [fixed(row) for row in EXPECTED]


def test_costs_of_a_permutation_grow_as_the_docs_say() -> None:
    """s - 1 sealed contributions a user, of 72 bytes; label and report, of 17, but not the label to herself."""
    users = [row for row in EXPECTED if row["protocol"] == "peer permutation" and row["role"] == "user"]
    assert len(users) == 5
    for row in users:
        others = costs.USERS * (int(row["cluster_size"]) - 1)
        assert row["operations"] == f"open={others} seal={others}"
        labels = int(row["received"]) - others
        assert int(row["bytes_down"]) == 72 * others + 17 * labels
        assert int(row["bytes_up"]) == 72 * others + 17 * (labels + costs.USERS)
        assert int(row["sent"]) == int(row["received"]) + costs.USERS
