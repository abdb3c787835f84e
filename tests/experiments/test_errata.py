"""The experiment of errata: a verdict decided by the numbers that tests/errata holds to oracles."""

from __future__ import annotations

import json
from pathlib import Path

from experiments import errata
from experiments._common import main, read_csv
from p2p_sim.errata import ERRATA


def test_the_verdict(tmp_path: Path) -> None:
    assert main(errata.EXPERIMENT, ["--quick", "--out", str(tmp_path)]) == 0
    rows = read_csv(tmp_path / "errata.csv")
    assert [row["id"] for row in rows] == [each.id for each in ERRATA]
    assert {row["shows"] for row in rows} == {"True"}
    (claim,) = json.loads((tmp_path / "errata.json").read_text())["claims"]
    loose, code = (sum(each.relation == how for each in ERRATA) for how in ("loose", "code"))
    assert claim["verdict"] == "not reproduced"
    assert claim["found"].startswith(
        f"of {len(ERRATA)} an exact number contradicts {len(ERRATA) - loose - code} (Clustering 2022 9,"
    )
    assert f"{loose} hold and are loose; of {code} the paper's own code" in claim["found"]
