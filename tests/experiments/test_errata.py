"""The experiment of errata: a verdict a paper, decided by the numbers that tests/errata holds to oracles."""

from __future__ import annotations

import json
from pathlib import Path

from experiments import errata
from experiments._common import main, read_csv
from p2p_sim.errata import ERRATA


def test_a_verdict_a_paper(tmp_path: Path) -> None:
    assert main(errata.EXPERIMENT, ["--quick", "--out", str(tmp_path)]) == 0
    rows = read_csv(tmp_path / "errata.csv")
    assert [row["id"] for row in rows] == [each.id for each in ERRATA]
    assert {row["shows"] for row in rows} == {"True"}
    claims = json.loads((tmp_path / "errata.json").read_text())["claims"]
    assert [claim["where"] for claim in claims] == list(dict.fromkeys(each.paper for each in ERRATA))
    assert claims[0]["verdict"] == "not reproduced"
    assert claims[0]["found"].startswith("of 13 an exact number contradicts 9")
    assert claims[-1]["verdict"] == "reproduced in shape"
