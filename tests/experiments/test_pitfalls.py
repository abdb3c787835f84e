"""Losses of people, Pitfalls 2021 and Release 2023: numbers by independent arithmetic, verdicts, the originals."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from experiments import _neighbours, _printed, pitfalls_figure1, pitfalls_table2, release_figure2
from experiments._common import Options, read_csv
from experiments._rows import CasesFailedError
from p2p_sim.core.errors import InputError
from tests.experiments import quick

SCRIPTS = (pitfalls_figure1, pitfalls_table2, release_figure2)


def nu_bar(eta: float, p: float, flip: float) -> float:
    """The expected loss, summed over label and report; written apart from the product's closed form."""
    total = 0.0
    for label in (0, 1):
        of_label, prior = (eta, p) if label else (1 - eta, 1 - p)
        for reported in (0, 1):
            noise = 1 - flip if label == reported else flip
            loss = (
                math.log(noise / (1 - noise))
                + math.log(of_label / (1 - of_label))
                - math.log(prior / (1 - prior))
            )
            total += of_label * noise * loss
    return total


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return quick.results(SCRIPTS, tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_claim_has_a_verdict_and_a_reason(told, script):
    claims = quick.claims(told, script)
    assert len(claims) >= 7
    assert any("stand-in" in claim["why"] for claim in claims)


def verdicts(told: dict[str, Any], name: str) -> dict[str, str]:
    return {f"{claim['says']} ({claim['where']})": claim["verdict"] for claim in told[name]["claims"]}


def test_errata_show_and_corrected_bounds_hold(told):
    figure1, table2, release = (verdicts(told, script.EXPERIMENT.name) for script in SCRIPTS)
    assert [v for says, v in figure1.items() if "people beyond" in says or "1 - δ" in says] == [
        "not reproduced"
    ] * 2
    assert [v for says, v in figure1.items() if "from below either" in says] == ["reproduced"]
    assert [v for says, v in figure1.items() if "lower and an upper" in says] == ["reproduced"]
    assert [v for says, v in table2.items() if "27.63" in says or "5.28" in says] == ["not reproduced"] * 2
    assert [v for says, v in table2.items() if says.startswith("losses ")] == [
        *["reproduced"] * 2,
        *["not comparable"] * 2,
    ]  # where a ratio is printed as infinite nothing is computed
    assert [v for says, v in release.items() if "5.19" in says or "Ĵ" in says] == ["not reproduced"] * 3
    assert [v for says, v in release.items() if "7.6" in says or "bound" in says] == ["reproduced"] * 3


def test_thresholds_by_the_sum_over_labels_and_reports(told):
    rows = read_csv(told["out"] / "pitfalls_figure1_thresholds.csv")
    row = next(r for r in rows if (r["data"], r["flip"], r["tau"]) == ("kag14", "0.01", "6.0"))
    low = brentq(lambda eta: nu_bar(eta, 0.256, 0.01) - 6, 1e-9, 0.3)
    high = brentq(lambda eta: nu_bar(eta, 0.256, 0.01) - 6, 0.5, 1 - 1e-9)
    assert (float(row["low"]), float(row["high"])) == pytest.approx((low, high))
    assert (round(low, 4), round(high, 4)) == (0.0593, 0.8029)
    printed = _printed.lemma1(6.0, 0.256, 0.01)
    assert round(printed.low, 4) == 0.0931
    assert round(nu_bar(printed.low, 0.256, 0.01), 2) == 5.49
    assert round(nu_bar(_printed.lemma1(10.5, 0.5, 0.01).low, 0.5, 0.01), 2) == 12.93


def test_the_printed_upper_bound_undercounts():
    eta = np.repeat([0.1, 0.9], 500_000)
    at = pitfalls_figure1.instance_loss.thresholds(6.2, 0.5, 0.01)
    assert nu_bar(0.1, 0.5, 0.01) > 6.2
    assert round(_printed.theorem2(eta, at, 10_000, 0.01), 4) == 0.0051


def test_table_2_from_its_columns(told):
    rows = read_csv(told["out"] / "pitfalls_table2_columns.csv")
    found = {(r["data"], r["flip"]): r for r in rows}
    wanted = {
        ("kag14", "0.01"): 8.86,
        ("kag14", "0.001"): 11.17,
        ("kdd12", "0.01"): 29.15,
        ("kdd12", "0.001"): 31.46,
    }
    assert {key: round(float(found[key]["by_columns"]), 2) for key in wanted} == wanted
    level = math.log(0.256 / 0.744)
    for flip, least, most in (("0.01", 8.84, 9.55), ("0.001", 11.15, 11.87)):
        noise = math.log((1 - float(flip)) / float(flip))
        ends = [noise + math.log(top / (1 - top)) - level for top in (0.96, 0.98)]
        row = found["kag14", flip]
        assert [float(row["lower_by_intervals"]), float(row["upper_by_intervals"])] == pytest.approx(ends)
        assert [round(end, 2) for end in ends] == [least, most]


def test_known_losses_lie_between_their_bounds(told):
    for row in read_csv(told["out"] / "release_figure2_known.csv"):
        share = np.mean(
            [nu_bar(0.05 + 0.9 * x, 0.5, 0.005) > float(row["tau"]) for x in np.linspace(0, 1, 2001)]
        )
        assert float(row["true_J"]) == pytest.approx(share, abs=0.002)
        assert float(row["lower"]) <= float(row["true_J"]) <= float(row["upper"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_seeds_are_refused_where_nothing_is_drawn_anew(script):
    assert "has no number of seeds to choose" in script.EXPERIMENT.refused(seeds=3)


def test_stand_ins_are_never_what_fails_to_reproduce():
    row = {
        "data": "adult", "about": "a stand-in for kag14", "n": 9, "k": 3, "flip": 0.01, "tau": 6.0, "lambda": 0.01,
        "epsilon": 4.6, "J": 0.5, "lower": 0.4, "upper": 0.6, "nu_max": 5.0, "m": 0.1, "M": 0.9, "alike": 0,
    }  # fmt: skip
    original = row | {"about": "the original, 9 of 9 rows", "data": "kag14"}
    for script in SCRIPTS:
        assert [claim.verdict for claim in script._of_data([row])] == ["not comparable"]
        assert [claim.verdict for claim in script._of_data([original])] == ["not reproduced"]


def test_epsilon_of_randomized_response():
    assert release_figure2.epsilon(0.01) == pytest.approx(math.log(199))
    assert release_figure2.epsilon(0.001) == pytest.approx(math.log(1999))


def test_the_papers_own_files_take_the_place_of_stand_ins(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    lines = []
    for _ in range(400):
        on = sorted(set(rng.integers(1, 54_686_453, 11).tolist()))
        lines.append(f"{rng.integers(0, 2)} " + " ".join(f"{index}:1" for index in on))
    folder = tmp_path / "originals"
    folder.mkdir()
    (folder / "kdd12.svm.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "SUSY").write_text("".join(f"{i % 2} 1:{i % 2}.5 18:1\n" for i in range(60)))
    found = _neighbours.people(Options(True, None, tmp_path), folder)
    assert [each.data for each in found] == ["kdd12", "SUSY"]
    assert found[0].about == "the original, 400 of 400 rows"
    assert (found[0].found.n, found[0].found.k) == (400, 200)
    assert set(found[1].found.shares.tolist()) == {
        1 / 30,
        29 / 30,
    }  # a feature tells all: 29 others are alike
    outcome = pitfalls_table2.run(Options(True, None, tmp_path), folder)
    assert any("here SUSY" in claim.says for claim in outcome.claims)
    words = ["pitfalls_table2", "--quick", "--originals", str(folder), "--out", str(tmp_path / "found")]
    monkeypatch.setattr("sys.argv", words)
    assert (
        _neighbours.main(pitfalls_table2.EXPERIMENT, pitfalls_table2.run) == 0
    )  # earlier values are of stand-ins
    with pytest.raises(InputError, match="none of its files begins with kag14"):
        _neighbours.people(Options(True, None, tmp_path), Path(__file__).parent)
    with pytest.raises(InputError, match="--originals '/nope': is no folder; give one that holds kag14"):
        _neighbours.people(Options(True, None, tmp_path), Path("/nope"))


@pytest.fixture
def susy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one original; no data set that could stand in."""
    monkeypatch.setenv("P2P_SIM_DATA", str(tmp_path / "nothing"))
    (folder := tmp_path / "originals").mkdir()
    (folder / "SUSY").write_text("".join(f"{i % 2} 1:{i % 2}.5 18:1\n" for i in range(60)))
    return folder


def with_originals(monkeypatch: pytest.MonkeyPatch, folder: Path, out: Path, *more: str) -> dict[str, Any]:
    """What a quick run of pitfalls_table2 says."""
    words = ["pitfalls_table2", "--quick", "--originals", str(folder), "--out", str(out), *more]
    monkeypatch.setattr("sys.argv", words)
    assert _neighbours.main(pitfalls_table2.EXPERIMENT, pitfalls_table2.run) == 0
    return dict(json.loads((out / "pitfalls_table2.json").read_text()))


def test_originals_need_no_stand_in(susy, tmp_path, monkeypatch):
    told = with_originals(monkeypatch, susy, tmp_path / "found")
    assert told["skipped"] == ""
    assert any("here SUSY" in claim["says"] for claim in told["claims"])


def test_an_original_of_other_labels_and_the_same_size_is_read_again(susy, tmp_path):
    options = Options(True, None, tmp_path)
    before = _neighbours.people(options, susy)[0].prior
    (susy / "SUSY").write_text("".join(f"{int(i % 3 == 0)} 1:{i % 2}.5 18:1\n" for i in range(60)))
    assert before == 0.5
    assert _neighbours.people(options, susy)[0].prior == pytest.approx(1 / 3)


def test_fresh_drops_the_shares_that_are_kept_for_several_experiments(susy, tmp_path, monkeypatch, capsys):
    out = tmp_path / "found"
    with_originals(monkeypatch, susy, out)
    with_originals(monkeypatch, susy, out)
    assert "1 of 1 data sets were there already" in capsys.readouterr().err
    with_originals(monkeypatch, susy, out, "--fresh")
    err = capsys.readouterr().err
    assert "were there already" not in err
    assert "nearest neighbours of 60 people" in err


def _folder(place: Path) -> None:
    place.mkdir()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (_folder, "SUSY' is no regular file"),
        (os.mkfifo, "SUSY' is no regular file"),  # nobody waits for it
        (lambda place: place.write_text("1 3:1\n"), "SUSY has a single row: give at least two"),
        (lambda place: place.write_text("1 3:1\n0 3:nan\n"), "SUSY has values that are no finite numbers"),
    ],
)
def test_an_original_that_cannot_be_used_is_named(
    made: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    (folder := tmp_path / "originals").mkdir()
    made(folder / "SUSY")
    with pytest.raises((InputError, CasesFailedError)) as refused:
        _neighbours.people(Options(True, None, tmp_path), folder)
    assert said in str(refused.value)
