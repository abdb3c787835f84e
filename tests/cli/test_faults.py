"""``--fault``: what a run, an account, a calibration and an audit say of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import privacy
from protocols import EncryptedShuffle

pytestmark = pytest.mark.slow

SMALL = ("run", "peer-to-peer", "--users", "600", "--cluster-size", "30", "--seed", "0")


def test_a_run_tells_what_went_wrong(cli, tmp_path):
    done = cli(*SMALL, "--fault", "drop=0.1", "--fault", "loss=0.2", "--fault", "lie=flip:0.1", "--json")
    told = json.loads(done.out)
    run = p2p_sim.load(Path(told["directory"]))
    assert told["faults"] == ["drop=0.1", "loss=0.2", "lie=flip:0.1"]
    assert told["faulty_users"] == {"dropped": len(run.faulty["dropped"]), "lied": len(run.faulty["lied"])}
    lost = next(r for r in told["faults_seen"] if (r["fault"], r["kind"]) == ("lost", "ask"))
    assert lost["messages"] == run.faults_seen["lost", "ask", 1] > 0
    assert told["privacy"]["faults"] == told["faults"]
    assert all(not row["theorems"] for row in told["privacy"]["views"])
    text = cli(
        *SMALL, "--fault", "drop=0.1", "--fault", "loss=0.2", "--fault", "lie=flip:0.1", "--verbose"
    ).out
    assert (
        f"Faults      drop=0.1, loss=0.2, lie=flip:0.1; {told['faulty_users']['dropped']} users dropped"
        in text
    )
    assert "undelivered" in text
    assert "; faults: drop=0.1, loss=0.2, lie=flip:0.1\n" in text


def test_messages_that_nobody_received_are_said_to_be_in_no_list(cli):
    words = (
        *SMALL,
        "--trace",
        "full",
        "--fault",
        "drop=0.1",
        "--fault",
        "loss=0.2",
        "--fault",
        "duplicate=0.1",
    )
    assert cli(*words, "--out", "wrong").status == 0
    seen = p2p_sim.load(Path("wrong")).faults_seen

    def note(*kinds):
        both = [sum(n for (what, *of), n in seen.items() if what == name and of in map(list, kinds))
                for name in ("lost", "undelivered")]  # fmt: skip
        told = f"{both[0]:,} lost, {both[1]:,} undelivered".replace(", 0 undelivered", "")
        return f"not listed, for nobody received them: {told}, of all users' messages"

    every = note(("ask", 1), ("label", 2), ("report", 3))
    assert cli("trace", "show", "wrong", "--user", "3", "--json").json["notes"] == [every]
    assert cli("trace", "show", "wrong", "--round", "2", "--json").json["notes"] == [note(("label", 2))]
    assert cli("trace", "show", "wrong", "--kind", "ask", "--json").json["notes"] == [note(("ask", 1))]
    assert cli("replay", "wrong", "--user", "3", "--json").json["notes"] == [every]
    assert f"note: {every}\n" in cli("replay", "wrong", "--user", "3").out
    assert f"{every}\n" in cli("replay", "wrong", "--user", "3", "--format", "csv").err
    assert cli(*SMALL, "--trace", "full", "--out", "right").status == 0
    assert cli("replay", "right", "--user", "3", "--json").json["notes"] == []


def test_without_faults_nothing_is_said_of_them(cli):
    assert "aults" not in cli(*SMALL).out
    told = json.loads(cli(*SMALL, "--json").out)
    assert (told["faults"], told["faults_seen"], told["faulty_users"]) == ([], [], {})


def test_bags_that_are_refused_are_told_with_the_numbers(cli):
    sums = (
        "run",
        "secure-aggregation",
        "--users",
        "200",
        "--cluster-size",
        "10",
        "--bag-size",
        "10",
        "--seed",
        "0",
    )
    told = json.loads(cli(*sums, "--fault", "drop=0.1", "--json").out)
    out = p2p_sim.load(Path(told["directory"])).output("learner")
    fewest = out["size"][out["refused"]].argmin()
    numbers = f"(in one {out['size'][out['refused']][fewest]} of {out['joined'][out['refused']][fewest]})"
    refused = f"{out['refused'].sum()} of 20 bags were refused: 8 users must stay, in "
    assert told["released"]["refused"].startswith(refused)
    assert numbers in told["released"]["refused"]
    assert f"note: {refused}" in cli(*sums, "--fault", "drop=0.1").out
    assert "refused:" not in cli(*sums).out


def test_attacks_on_sealed_reports_are_told_and_the_run_goes_on(cli):
    chain = (
        "run",
        "encrypted-shuffle",
        "--users",
        "300",
        "--cluster-size",
        "30",
        "--crypto",
        "real",
        "--seed",
        "0",
    )
    attacks = [word for name in ("tamper", "misdirect", "replay") for word in ("--fault", f"{name}=0.1")]
    told = json.loads(cli(*chain, *attacks, "--json").out)
    seen = {(row["fault"], row["kind"]): row["messages"] for row in told["faults_seen"]}
    assert {name for name, _ in seen} == {"tampered", "misdirected", "replayed"}
    lost = sum(number for (name, _), number in seen.items() if name != "replayed")
    assert told["released"]["labels"] == 300 - lost < 300
    assert told["crypto"] == "real"
    modelled = json.loads(
        cli(*["modelled" if word == "real" else word for word in chain], *attacks, "--json").out
    )
    assert (modelled["digest"], modelled["faults_seen"]) == (told["digest"], told["faults_seen"])
    text = cli(*chain, *attacks, "--verbose").out
    assert "backend local; sealed for real, under keys that follow from the seed\n" in text
    assert "replayed" in text
    assert "sealed for real" not in cli(*chain[:-1], "modelled").out


def test_an_audit_seals_for_real_where_it_is_told_to(cli):
    ask = ("audit", "encrypted-shuffle", "--cluster-size", "3", "--trials", "200", "--json")
    modelled, real = (json.loads(cli(*ask, "--crypto", how).out) for how in ("modelled", "real"))
    assert "--crypto real" in real["command"]
    assert "--crypto" not in modelled["command"]
    assert (modelled["crypto"], real["crypto"]) == ("modelled", "real")
    assert modelled["views"][0]["lower"] == real["views"][0]["lower"]
    done = cli(*ask, "--crypto", "none")
    assert (done.status, "crypto = 'none': must be one of modelled, real" in done.err) == (2, True)


def test_account_and_audit_take_them(cli):
    ask = ("account", "peer-to-peer", "--cluster-size", "20", "--view", "learner", "--json")
    plain, wrong = (json.loads(cli(*ask, *more).out)["views"][0] for more in ((), ("--fault", "loss=0.1")))
    assert (plain["exact"]["basis"], wrong["exact"]["basis"]) == ("exact", "upper")
    assert wrong["exact"]["epsilon"] > plain["exact"]["epsilon"]
    audit = ("audit", "randomized-response", "--trials", "1000", "--fault", "loss=0.5", "--json")
    told = json.loads(cli(*audit).out)
    assert told["faults"] == ["loss=0.5"]
    assert "--fault loss=0.5" in told["command"]


def test_calibrate_takes_them(cli):
    ask = ("calibrate", "encrypted-shuffle", "--vary", "epsilon", "--cluster-size", "30", "--epsilon", "0.3")
    plain, wrong = (json.loads(cli(*ask, *more, "--json").out) for more in ((), ("--fault", "drop=0.2")))
    assert wrong["value"] < plain["value"]
    assert (plain["faults"], wrong["faults"]) == ([], ["drop=0.2"])
    assert {view["basis"] for view in wrong["views"].values()} == {"upper"}
    again = privacy.profile(EncryptedShuffle(wrong["value"]), cluster_size=30, faults=["drop=0.2"])
    assert again.epsilon(1e-6) <= 0.3
    assert (
        privacy.profile(EncryptedShuffle(plain["value"]), cluster_size=30, faults=["drop=0.2"]).epsilon(1e-6)
        > 0.3
    )
    assert "; faults: drop=0.2\n" in cli(*ask, "--fault", "drop=0.2").out


@pytest.mark.parametrize("verb", ["run", "account", "audit", "calibrate"])
def test_bad_faults_are_named(cli, verb):
    size = ("--users", "20") if verb == "run" else ("--cluster-size", "20")
    size += ("--epsilon", "1") if verb == "calibrate" else ()
    for fault, words in (("drop=2", "drop = 2.0: must be a number in [0, 1]"), ("x=1", "fault 'x=1'")):
        done = cli(verb, "peer-to-peer", *size, "--fault", fault)
        assert done.status == 2
        assert words in done.err
