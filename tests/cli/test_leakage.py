"""``p2p-sim leakage``: the table, its plot, a flip for a promise, and what it refuses."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest

from p2p_sim.leakage import estimated_loss, instance_loss, nearest_neighbours
from p2p_sim.learning.data import datasets

DATA = ("leakage", "--data", "breast-cancer")


@pytest.fixture
def clinic(tmp_path):
    """Write two towns of 600 people each, of which one in five and two in five are ill."""
    rows = [
        f"{town},{'ill' if i % 5 < ill else 'well'}"
        for town, ill in (("Rome", 1), ("Oslo", 2))
        for i in range(600)
    ]
    path = tmp_path / "clinic.csv"
    path.write_text("\n".join(["town,health", *rows]) + "\n")
    return str(path)


def test_the_document_holds_what_the_package_computes(cli):
    told = cli(*DATA, "--flip", "0.02", "--tau", "4,6", "--k", "60", "--confidence", "0.9", "--json").json
    data = datasets.load("breast-cancer")
    found = estimated_loss.of_rows(nearest_neighbours.scaled(data.x), data.y, 60, confidence=0.9)
    assert [row["tau"] for row in told["above"]] == [4, 6]
    for row in told["above"]:
        assert [row["lower"], row["estimate"], row["upper"]] == list(found.above(row["tau"], 0.02))
        assert row["thresholds"] == list(instance_loss.thresholds(row["tau"], found.prior.value, 0.02))
    assert told["nu_max"] == {"lower": found.nu_max(0.02).lower, "estimate": "inf", "upper": "inf"}
    assert (told["people"], told["k"], told["one_label_around"]) == (569, 60, found.alike)
    assert "does not change among a person's 60 nearest neighbours" in told["conditional_on"]
    curve = told["curve"]
    assert (curve[0]["lower"] > 0.9) is (curve[0]["estimate"] == 1)
    assert all(one["estimate"] >= other["estimate"] for one, other in pairwise(curve))


def test_the_text_says_it_in_plain_words(cli, clinic):
    told = cli(
        "leakage", "--data", clinic, "--label", "health", "--positive", "ill", "--flip", "0.1", "--tau", "1.5"
    )
    assert told.status == 0
    assert "clinic.csv: 1,200 people, 30 % with health = ill" in told.out
    assert "ε = 2.197 nats if features said nothing" in told.out
    assert "lose more than 1.5 nats" in told.out
    assert "All of it is conditional: " in told.out
    smooth = ("--smoothness", "0.5,0.2")
    wider = cli(
        "leakage", "--data", clinic, "--label", "health", "--positive", "ill", "--flip", "0.1", *smooth
    )
    assert "differs by at most 0.2 times the share of people in between to the power 0.5" in wider.out


def test_a_flip_is_found_for_a_promise_and_keeps_it(cli, clinic):
    asked = ("leakage", "--data", clinic, "--label", "health", "--positive", "ill", "--k", "300", "--json")
    told = cli(*asked, "--at-most", "5", "--above", "2").json
    flip = told["tuning"]["flip"]
    assert told["flip"] == flip > told["tuning"]["estimate"]
    kept = cli(*asked, "--flip", flip, "--tau", "2").json["above"][0]
    assert kept["upper"] <= 0.05
    missed = cli(*asked, "--flip", flip * 0.99, "--tau", "2").json["above"][0]
    assert missed["upper"] > 0.05


def test_what_is_printed_is_rounded_to_the_safe_side(cli, clinic):
    asked = (
        "leakage",
        "--data",
        clinic,
        "--label",
        "health",
        "--positive",
        "ill",
        "--k",
        "300",
        "--tau",
        "2",
    )
    promise = ("--at-most", "5", "--above", "2")
    found = cli(*asked, *promise, "--json").json
    said = re.search(r"With a flip of ([0-9.]+) or more", cli(*asked, *promise).out)
    assert said is not None
    assert found["tuning"]["flip"] <= float(said[1]) < found["tuning"]["flip"] * 1.001
    (row,) = cli(*asked, "--flip", "0.11", "--json").json["above"]
    told = re.search(r"at least ([0-9.e-]+), at most ([0-9.e-]+)\) lose", cli(*asked, "--flip", "0.11").out)
    assert told is not None
    assert float(told[1]) <= 100 * row["lower"]
    assert 100 * row["upper"] <= float(told[2]) < 100 * row["upper"] * 1.001


def test_a_promise_that_no_flip_keeps_is_refused_as_by_calibrate(cli, tmp_path):
    done = cli(*DATA, "--at-most", "5", "--above", "6", "--out", "a.svg")
    assert (done.status, done.out, list(tmp_path.iterdir())) == (2, "", [])
    assert (
        "--at-most 5 --above 6: no flip is sure to keep this promise. For more than 5 % of people" in done.err
    )
    assert "By the estimated losses alone, " in done.err


def test_no_tau_is_shown_twice(cli, tmp_path):
    (tmp_path / "two.csv").write_text("a,y\n1,0\n2,1\n")
    taus = [
        row["tau"] for row in cli("leakage", "--data", "two.csv", "--flip", "0.1", "--json").json["above"]
    ]
    assert len(taus) == len(set(taus)) > 0


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_plot_is_a_whole_file(cli, tmp_path, kind):
    done = cli(*DATA, "--flip", "0.02", "--k", "60", "--out", f"loss.{kind}")
    assert done.status == 0
    content = (tmp_path / f"loss.{kind}").read_bytes()
    if kind == "png":
        assert content.startswith(b"\x89PNG")
        assert content.endswith(b"IEND\xaeB`\x82")
    else:
        assert content.startswith(b"<svg")
        assert content.rstrip().endswith(b"</svg>")
        assert "people who lose more than τ".encode() in content


def test_test_rows_are_left_out(cli, monkeypatch):
    whole = datasets.load("breast-cancer")
    test = np.arange(len(whole.y)) % 3 == 0
    object.__setattr__(whole, "test", test)
    monkeypatch.setattr(datasets, "load", lambda *_, **__: whole)
    told = cli(*DATA, "--flip", "0.02", "--json").json
    assert told["people"] == int((~test).sum())
    assert told["notes"] == ["190 rows of the set's own test part are left out."]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--flip", "0.5"), "flip = 0.5: needs a number above 0 and below 1/2"),
        (("--flip", "0.6"), "flip = 0.6: needs a number above 0 and below 1/2"),
        (("--flip", "0"), "flip = 0: needs"),
        (("--flip", "-1"), "flip = -1"),
        (("--flip", "x"), "'x'"),
        ((), "--flip is missing"),
        (("--at-most", "5"), "--at-most needs --above"),
        (("--above", "5"), "--above needs --at-most"),
        (("--at-most", "100", "--above", "5"), "--at-most 100: must be a percentage above 0 and below 100"),
        (("--flip", "0.1", "--k", "569"), "k = 569: must be a whole number from 1 to 568"),
        (("--flip", "0.1", "--tau", "3,x"), "--tau 3,x"),
        (("--flip", "0.1", "--tau", "nan"), "--tau nan"),
        (("--flip", "0.1", "--smoothness", "1"), "--smoothness 1: give two numbers"),
        (("--flip", "0.1", "--smoothness", "2,1"), "smoothness exponent = 2"),
        (("--flip", "0.1", "--smoothness", "1,-1"), "smoothness constant = -1"),
        (("--flip", "0.1", "--confidence", "1"), "confidence = 1"),
        (("--flip", "0.1", "--out", "a.pdf"), "--out 'a.pdf': the name must end in .svg or .png"),
        (("--flip", "0.1", "--out", "no/a.svg"), "give a file in a folder that exists"),
        (("--flip", "0.1", "--label", "nobody"), "nobody"),
        (("--flip", "0.1", "--flip", "0.2"), "--flip is given twice"),
    ],
)
def test_bad_input_is_named(cli, words, says):
    done = cli(*DATA, *words)
    assert (done.status, says in done.err) == (2, True), done.err


def test_data_is_needed(cli):
    done = cli("leakage", "--flip", "0.1")
    assert (done.status, "--data is missing" in done.err) == (2, True)


def test_the_band_of_theorem_1_is_printed_as_a_claim(cli):
    """By hand: sup and inf of eta within the radius of their estimates, at the estimated prior."""
    few = cli(*DATA, "--flip", "0.02", "--k", "30")
    assert "as claimed by Pitfalls of label differential privacy, 2021, Theorem 1: nothing (" in few.out
    told = cli(*DATA, "--flip", "0.02", "--k", "250", "--json").json
    band, radius = told["nu_max_by_theorem1"], told["theorem1"]
    assert band["basis"] == "claimed"
    prior, least, most = (told[name]["estimate"] for name in ("prior", "eta_smallest", "eta_largest"))
    odds = [math.log(p / (1 - p)) for p in (least + radius, most - radius, prior)]
    lowest = max(odds[1] - odds[2], odds[2] - odds[0])
    assert band["lower"] == pytest.approx(told["epsilon"] + max(0.0, lowest))
    assert band["upper"] == "inf" or band["upper"] > told["nu_max"]["estimate"]
    printed = cli(*DATA, "--flip", "0.02", "--k", "250").out
    assert re.search(
        r"as claimed by Pitfalls .*, Theorem 1: at least [0-9.]+ nats, (no upper limit|at most)", printed
    )


def test_renyi_divergences_of_features_are_marked_as_lower(cli):
    done = cli(*DATA, "--flip", "0.02", "--renyi", "1.5,2")
    assert "it may be larger by any amount" in done.out
    told = cli(*DATA, "--flip", "0.02", "--renyi", "1.5,2", "--json").json["renyi"]
    assert [row["order"] for row in told] == [1.5, 2.0]
    for row in told:
        assert (row["label"]["basis"], row["features"]["basis"], row["together"]["basis"]) == (
            "exact",
            "lower",
            "lower",
        )
        power = 0.98 ** row["order"] * 0.02 ** (1 - row["order"]) + 0.02 ** row["order"] * 0.98 ** (
            1 - row["order"]
        )
        assert row["label"]["value"] == pytest.approx(math.log(power) / (row["order"] - 1))
        together = row["label"]["value"] + row["features"]["at_least"]
        assert row["together"]["at_least"] == pytest.approx(together)
    assert cli(*DATA, "--flip", "0.02", "--json").json["renyi"] == []
    assert "order = 1" in cli(*DATA, "--flip", "0.02", "--renyi", "1").err
