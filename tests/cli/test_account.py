"""Account, calibrate, and the table of a run: figures, text, JSON, plots, refusals."""

from __future__ import annotations

import json
import math

import pytest

from p2p_sim import privacy
from p2p_sim.privacy import accountant
from p2p_sim.report import figure_text, privacy_table
from p2p_sim.report.privacy_table import AccountRequest
from protocols import PeerToPeer, RandomizedResponse
from tests.cli.conftest import below
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.slow

ACCOUNT = ("account", "peer-to-peer")
SMALL = (*ACCOUNT, "--alpha", "0.1", "--theta", "0.5", "--cluster-size", "50")
CALIBRATE = ("calibrate", "peer-to-peer", "--cluster-size", "50", "--epsilon", "1")


def rows(told):
    return {row["view"]: row for row in told["views"]}


def test_figures_are_those_of_the_accountant(cli):
    told = cli(*SMALL, "--delta", "1e-5", "--json").json
    found = rows(told)
    assert list(found) == [
        "learner", "user: one curious peer", "learner+1*user", "learner+3*user", "user: one deviating peer", "wire",
        "learner+wire",
    ]  # fmt: skip
    for row in found.values():
        p = privacy.profile(PeerToPeer(0.1, 0.5), row["name"], cluster_size=50, users=row["users"])
        assert [row["exact"][k] for k in ("lower", "epsilon", "upper")] == list(p.epsilon_bracket(1e-5))
        assert (row["exact"]["basis"], row["exact"]["source"]) == (p.basis, p.source)
        assert all(theorem["basis"] for theorem in row["theorems"])
    assert told["local_epsilon"] == pytest.approx(math.log(9))
    third, ninth = found["learner"]["theorems"]
    assert (third["name"], third["holds"], third["epsilon"]) == ("Theorem 3", False, "inf")
    assert "needs <= 1/2" in third["why"]
    assert (ninth["name"], ninth["holds"]) == ("Lemma 9", False)


def test_table_and_footnotes(cli):
    done = cli(*SMALL)
    assert (done.status, done.err) == (0, "")
    assert "peer-to-peer: alpha = 0.1, theta = 0.5" in done.out
    assert "at δ = 1e-06, plain channels; clusters of 50" in done.out
    assert "Theorem 3 does not apply [2]; Lemma 9 does not apply [3]" in done.out
    assert "[2] Theorem 3: alpha = 4 sqrt(2) ln s" in done.out
    assert "2.197 (local ln((1-alpha)/alpha))" in done.out


def test_one_cluster_has_no_smallest_and_largest(cli):
    words = ("account", "encrypted-shuffle", "--epsilon", "1", "--view", "learner", "--over", "everybody")
    text = cli(*words, "--users", "50").out
    assert "plain channels; 50 users\n" in text
    assert "smallest" not in text


def test_theorems_apply_to_large_clusters():
    third, ninth = accountant.of(PeerToPeer(0.45), "learner", [20_000, 30_000], 1e-6, True)
    assert third["holds"] is ninth["holds"] is True
    assert 1 < third["epsilon"] < 2


def test_infinity_and_pure_epsilon(cli):
    done = cli(*ACCOUNT, "--alpha", "0", "--cluster-size", "5", "--json")
    assert rows(done.json)["learner"]["exact"]["epsilon"] == "inf"
    assert done.json["local_epsilon"] == "inf"
    assert "   inf   " in cli(*ACCOUNT, "--alpha", "0", "--cluster-size", "5").out
    pure = rows(cli(*ACCOUNT, "--alpha", "0.1", "--cluster-size", "5", "--delta", "0", "--json").json)
    assert pure["user: one curious peer"]["exact"]["epsilon"] == pytest.approx(math.log(9))


def test_encrypted_channels_blind_the_wire(cli):
    told = rows(cli(*SMALL, "--channels", "encrypted", "--json").json)
    assert told["wire"]["exact"]["epsilon"] == 0
    assert told["wire"]["theorems"][0]["name"] == "nothing to read"
    assert told["learner+wire"]["exact"]["epsilon"] > 2


def test_randomized_response(cli):
    told = cli("account", "randomized-response", "--epsilon", "1.5", "--json").json
    found = rows(told)
    assert [round(found[v]["exact"]["epsilon"], 3) for v in found][1] == 0
    assert found["learner"]["exact"]["lower"] <= 1.5 <= found["learner"]["exact"]["upper"] + 1e-4
    assert found["learner"]["theorems"][0]["name"] == "Corollary 1"


def test_a_cluster_of_two_has_no_room_for_three_colluders(cli):
    done = cli(*ACCOUNT, "--cluster-size", "2")
    assert done.status == 0
    assert "the largest cluster has 2 users: at most 1 beside the victim" in done.out
    assert cli(*ACCOUNT, "--cluster-size", "1").status == 0


def test_clusters_of_synthetic_users(cli):
    told = cli(*ACCOUNT, "--users", "20", "--cluster-size", "12", "--json").json
    clusters = told["clusters"]
    sizes = [clusters[name] for name in ("smallest", "median", "largest")]
    assert clusters["count"] == 2
    for row in told["views"]:
        by = [row["by_cluster"][name]["epsilon"] for name in ("smallest", "median", "largest")]
        assert row["exact"]["epsilon"] == pytest.approx(max(by), rel=1e-6)
    expected = privacy.profile(PeerToPeer(0.1), cluster_size=sizes[0]).epsilon(1e-6)
    assert rows(told)["learner"]["by_cluster"]["smallest"]["epsilon"] == pytest.approx(expected)
    assert "worst cluster's ε" in cli(*ACCOUNT, "--users", "20", "--cluster-size", "12").out


def test_clusters_of_data_of_one_s_own(cli, tmp_path):
    lines = [f"{i},{i % 2},{0 if i < 10 else 1}" for i in range(40)]
    (tmp_path / "a.csv").write_text("a,y,c\n" + "\n".join(lines) + "\n")
    told = cli(*ACCOUNT, "--data", "a.csv", "--cluster-column", "c", "--json").json
    run = cli("run", "peer-to-peer", "--data", "a.csv", "--cluster-column", "c", "--json", "--seed", "0").json
    assert told["clusters"] == run["privacy"]["clusters"]
    assert told["clusters"]["count"] == 2


def test_many_sizes_are_a_lower_estimate(cli, tmp_path):
    lines = [f"{i},{i % 2},{c}" for c in range(1, 15) for i in range(c)]
    (tmp_path / "a.csv").write_text("a,y,c\n" + "\n".join(lines) + "\n")
    words = ("--data", "a.csv", "--cluster-column", "c", "--test", "0.01")
    text = cli(*ACCOUNT, *words).out
    assert "pinned: at least 2.197 in the worst case looked at, at most 2.197 by theorem" in text
    assert "\nupper:" not in text
    found = rows(cli(*ACCOUNT, *words, "--json").json)
    assert found["learner"]["exact"]["basis"] == "exact"
    assert found["learner+1*user"]["exact"]["basis"] == "lower"
    assert "were looked at" in found["learner+1*user"]["exact"]["assumes"][-1]


def row(lower, *theorems):
    return {
        "exact": {"basis": "lower", "lower": lower, "epsilon": lower, "upper": 9.0},
        "theorems": [
            {"name": f"T{i}", "holds": True, "basis": basis, "epsilon": epsilon}
            for i, (basis, epsilon) in enumerate(theorems)
        ],
    }


def test_a_lower_end_is_pinned_by_a_theorem_that_is_as_low():
    """Not by one that is claimed, or higher in the digits that are shown."""
    found = privacy_table.pinned(row(3.7355, ("claimed", 3.7355), ("exact", 3.7356)))
    assert found == "pinned: at least 3.736 in the worst case looked at, at most 3.736 by theorem (T1)"
    for other in (
        row(3.7355),
        row(3.7355, ("claimed", 3.7355)),
        row(3.7355, ("exact", 3.75)),
    ):
        assert privacy_table.pinned(other) == ""
    assert privacy_table.pinned(row(math.inf)).startswith("infinite already in the worst case")
    exact = row(1.0, ("exact", 1.0))
    exact["exact"]["basis"] = "exact"
    assert privacy_table.pinned(exact) == ""


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("b.PNG", b"\x89PNG")])
def test_plot(name, start, cli, tmp_path):
    done = cli(*ACCOUNT, "--cluster-size", "4", "--plot", name)
    assert done.status == 0, done
    assert (tmp_path / name).read_bytes().startswith(start)
    assert set(below(tmp_path)) == {name}


def test_calibrate(cli):
    told = cli(*CALIBRATE, "--theta", "0.5", "--json").json
    assert told["fixed"] == {"theta": 0.5, "retries": 0, "over": "cluster", "labels": 2}
    assert 0 < told["value"] < 0.5
    assert told["achieved"]["upper"] <= 1 + 1e-9
    assert told["achieved"]["basis"] == "exact"
    assert told["slack"] == pytest.approx(1 - told["achieved"]["upper"])
    assert told["views"]["user"]["epsilon"] > 1
    assert {"user", "user (deviating)", "learner+user", "learner+3*user", "wire", "learner+wire"} == set(
        told["views"]
    )
    deviating = privacy.profile(PeerToPeer(told["value"], 0.5), "user", cluster_size=50, users="deviating")
    assert told["views"]["user (deviating)"]["epsilon"] == deviating.epsilon(1e-6)
    assert "user: one deviating peer" in cli(*CALIBRATE).out
    sealed = (
        "calibrate",
        "encrypted-shuffle",
        "--vary",
        "epsilon",
        "--epsilon",
        "0.5",
        "--cluster-size",
        "50",
    )
    found = cli(*sealed, "--shufflers", "2", "--json").json["views"]
    assert found["shuffler+shuffler2+learner"]["epsilon"] > found["learner+3*user"]["epsilon"] > 0.5
    assert "shuffler3" not in found
    text = cli("calibrate", "randomized-response", "--vary", "epsilon", "--epsilon", "1").out
    assert "epsilon = 1.00000" in text
    assert "keeps learner at ε <= 1, δ = 1e-06" in text
    assert "below the target" in text


def test_a_run_keeps_its_table(cli, tmp_path):
    told = cli("run", "peer-to-peer", "--users", "60", "--cluster-size", "30", "--json", "--seed", "0").json
    assert told["privacy"]["delta"] == 1e-6
    kept = json.loads((tmp_path / told["directory"] / "run.json").read_text())
    assert kept["notes"]["privacy"] == told["privacy"]
    assert rows(told["privacy"])["learner"]["exact"]["basis"] == "exact"
    assert told["seconds"]["privacy"] < 5
    large = cli(
        "run", "randomized-response", "--users", "2000", "--epsilon", "inf", "--json", "--seed", "0"
    ).json["privacy"]
    assert large["delta"] == 1e-6
    assert rows(large)["learner"]["exact"]["epsilon"] == "inf"


def test_both_ends_where_digits_differ():
    def text(low, high, basis="exact"):
        found = {"lower": low, "epsilon": (low + high) / 2, "upper": high, "basis": basis}
        return figure_text.bracket_text(found)

    assert text(1.0, 1.0) == "1"
    assert text(0.19060, 0.19133) == "0.1906 to 0.1914"
    assert text(math.inf, math.inf) == "inf"
    assert text(0, 0) == "0"
    assert text(0.5, math.inf) == "0.5 to inf"
    assert text(0.99994, 0.99996) == "0.9999 to 1"
    one = [text(1.23444, 1.23444, basis) for basis in ("lower", "exact", "upper")]
    other = [text(0.0056786, 0.0056786, basis) for basis in ("lower", "exact", "upper")]
    assert one == ["1.234", "1.234", "1.235"]
    assert other == ["0.005678", "0.005679", "0.005679"]
    assert text(9.9999, 9.9999, "upper") == "10"


CASES = {
    "nothing": (ACCOUNT, ["--cluster-size N"]),
    "unknown protocol": (("account", "telepathy"), ["'telepathy'", "peer-to-peer"]),
    "unknown option": ((*SMALL, "--beta", "1"), ["'--beta'", "p2p-sim account --help"]),
    "theta 0": ((*ACCOUNT, "--theta", "0", "--cluster-size", "9"), ["theta = 0.0", "(0, 1]"]),
    "alpha above": ((*ACCOUNT, "--alpha", "0.6", "--cluster-size", "9"), ["alpha = 0.6", "[0, 0.5]"]),
    "alpha nan": ((*ACCOUNT, "--alpha", "nan", "--cluster-size", "9"), ["'nan': must be a number"]),
    "cluster 0": ((*ACCOUNT, "--cluster-size", "0"), ["cluster_size = 0"]),
    "cluster too large": ((*ACCOUNT, "--cluster-size", "1e11"), ["cluster_size = 100000000000"]),
    "delta 1": ((*SMALL, "--delta", "1"), ["delta = 1.0", "[0, 1)"]),
    "delta nan": ((*SMALL, "--delta", "nan"), ["'nan' must be a number"]),
    "delta negative": ((*SMALL, "--delta", "-1"), ["delta = -1.0"]),
    "delta text": ((*SMALL, "--delta", "small"), ["'small' must be a number"]),
    "channels": ((*SMALL, "--channels", "tin"), ["'tin'", "plain or encrypted"]),
    "plot": ((*SMALL, "--plot", "a.pdf"), ["'a.pdf'", ".svg or .png", ".csv or .parquet"]),
    "plot folder": ((*SMALL, "--plot", "no/a.svg"), ["'no/a.svg'", "exists"]),
    "data and size": ((*SMALL, "--data", "digits"), ["--data has clusters of its own"]),
    "label without data": ((*SMALL, "--label", "y"), ["--label needs --data"]),
    "no users": ((*SMALL, "--users", "0"), ["users = 0"]),
    "no target": (("calibrate", "peer-to-peer", "--cluster-size", "9"), ["--epsilon is missing"]),
    "unknown view": ((*CALIBRATE, "--view", "moon"), ["'moon'"]),
    "unknown vary": ((*CALIBRATE, "--vary", "beta"), ["'beta'", "alpha"]),
    "vary fixed": ((*CALIBRATE, "--alpha", "0.1"), ["alpha = 0.1"]),
    "target nan": ((*CALIBRATE[:-1], "nan"), ["'nan' must be a number"]),
    "target delta": ((*CALIBRATE, "--delta", "1"), ["delta = 1.0"]),
    "too many colluders": ((*CALIBRATE, "--view", "learner+50*user"), ["50*user"]),
    "impossible": (
        (*CALIBRATE[:-1], "0.1", "--vary", "theta", "--alpha", "0.001", "--view", "wire", "--delta", "1e-9"),
        ["no theta keeps", "the best that can be reached"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refuses(case, cli, tmp_path):
    words, parts = CASES[case]
    refused(cli(*words), *parts)
    assert below(tmp_path) == {}


@pytest.mark.parametrize("vary", ["alpha", "labels", "cluster-size"])
def test_calibrating_another_parameter_of_randomized_response_is_refused(cli, vary):
    done = cli("calibrate", "randomized-response", "--vary", vary, "--epsilon", "1")
    assert done.status == 2
    assert "solve with --vary epsilon" in done.err


def test_progress_names_the_view_and_how_many_there_are():
    told: list[tuple[str, int, int]] = []
    asked = AccountRequest(RandomizedResponse(1.0), 1e-6)
    privacy_table.table_of(asked, accountant.of, 1.0, lambda *state: told.append(state))
    assert told[1] == ("accounting for user: one curious peer, view", 2, 3)


def test_labels_that_change_together(cli):
    told = cli("account", "randomized-response", "--epsilon", "1", "--group", "2", "--json").json
    same = privacy.profile(RandomizedResponse(1.0), group=2).epsilon(1e-6)
    assert (told["group"], told["local_epsilon"]) == (2, 2.0)
    assert rows(told)["learner"]["exact"]["epsilon"] == same
    assert rows(told)["learner"]["theorems"] == []
    told = cli("account", "randomized-response", "--epsilon", "1", "--group", "2").out
    assert "Privacy of up to 2 labels together" in told


def test_what_follows_from_another_parameter_is_no_default(cli, tmp_path):
    (tmp_path / "sample.csv").write_text("label,cluster\n0,a\n0,a\n0,a\n1,a\n")
    words = ("account", "cluster-response", "--epsilon", 1, "--cluster-size", 50)
    told = cli(*words, "--phi-sample", "sample.csv").out
    assert "phi = 0.75, noise_share" in told
    assert "phi is that of a public sample" in told
    assert "phi = 0.02 (default)" in cli(*words).out
    assert "phi_sample = none (default)" in cli(*words).out
    done = cli(*words, "--phi-sample", "other.csv")
    assert (done.status, "phi_sample = 'other.csv': cannot be read" in done.err) == (2, True)
