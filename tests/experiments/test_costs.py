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
    assert claim["verdict"] == "reproduced"
    # every user seals a contribution to each of the 99 others of her cluster, of 72 bytes, and sends two labels
    assert "101.0 messages and 7,162 bytes a user, open=99000 seal=99000" in claim["found"]


def test_a_permutation_as_cheap_as_resampling_would_not_be_what_the_paper_says() -> None:
    row = {"role": "user", "cluster_size": costs.CLUSTER, "parties": 10, "sent": 20, "bytes_up": 400}
    rows = [
        row | {"protocol": "peer-to-peer", "operations": ""},
        row | {"protocol": "peer permutation", "operations": "seal=1"},
    ]
    assert costs._claim(rows).verdict == "not reproduced"
