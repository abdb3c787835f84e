"""What protocols cost, as an experiment: a quick run; the numbers themselves are held by test_experiments.py."""

from __future__ import annotations

import json
from pathlib import Path

from experiments import costs
from experiments._common import main, read_csv


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
