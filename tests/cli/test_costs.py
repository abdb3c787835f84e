"""What ``run`` says of costs and simulated time."""

from __future__ import annotations

import dataclasses

import pytest

import p2p_sim
from p2p_sim.crypto.rates import Rates

USERS = ("peer-to-peer", "--users", "600", "--cluster-size", "100")


def test_figures_are_those_of_the_library(cli, tmp_path):
    told = cli(
        "run",
        *USERS,
        "--channel",
        "10-50ms,5-20Mbit",
        "--server-channel",
        "3ms,100Mbit",
        "--json",
        "--seed",
        "0",
    ).json
    costs = told["costs"]
    bill = p2p_sim.load(tmp_path / told["directory"]).costs("10-50ms,5-20Mbit", servers="3ms,100Mbit")
    assert (costs["channel"], costs["server_channel"]) == ("10-50ms,5-20Mbit", "3ms,100Mbit")
    assert costs["simulated_seconds"] == bill.seconds
    assert [role["role"] for role in costs["roles"]] == ["user", "learner"]
    for role in costs["roles"]:
        own = bill.roles[role["role"]]
        assert {name: role[name] for name in vars(own)} == dataclasses.asdict(own)
        assert role["compute_seconds_each"] * role["parties"] == pytest.approx(own.compute_seconds)
    assert sum(leg["seconds"] for leg in costs["path"]) == pytest.approx(bill.seconds)
    assert [leg["sender"] for leg in costs["path"]] == ["user", "user", "user", "learner"]
    travelled = sum(kind["travelled"] for kind in told["messages"])
    assert costs["roles"][0]["messages_up"] == travelled
    assert costs["seconds_an_operation"] is None


def test_text(cli):
    out = cli("run", *USERS, "--seed", "0", "--verbose").out
    assert "Costs     parties    sent   received" in out
    assert "Simulated   0.06" in out
    assert "s; users at 20ms,10Mbit, servers at 1ms,1Gbit" in out
    assert "slowest sender" in out
    assert "shorter rounds" not in out


def test_many_rounds_are_not_all_shown(cli):
    out = cli("run", *USERS, "--retries", "9", "--fault", "loss=0.5", "--seed", "0", "--verbose").out
    shown = out[out.index("Round ") :].split("\n\n")[0].splitlines()
    assert len(shown) == 1 + 12 + 1
    assert shown[-1].startswith("and 10 shorter rounds, ")
    assert [int(line.split()[0]) for line in shown[1:13]] == sorted(
        int(line.split()[0]) for line in shown[1:13]
    )


@pytest.mark.parametrize("option", ["--channel", "--server-channel"])
def test_a_channel_that_cannot_be_read_is_named_before_any_work(cli, tmp_path, option):
    done = cli("run", *USERS, option, "20ms,10MB", "--seed", "0")
    assert (done.status, done.out) == (2, "")
    assert "channel = '20ms,10MB': bandwidth '10MB' is not read" in done.err
    assert not list(tmp_path.iterdir())


def test_operations_are_listed_with_their_rates(cli, monkeypatch):
    monkeypatch.setattr("p2p_sim.crypto.rates.measure", lambda: Rates(*range(1, 9)))
    from p2p_sim.run import Run

    plain = Run.costs

    def with_work(run, *words, **more):
        run.work = {("user", 1, "seal"): 600, ("learner", 4, "open"): 600}
        return plain(run, *words, **more)

    monkeypatch.setattr(Run, "costs", with_work)
    done = cli("run", *USERS, "--seed", "0", "--verbose")
    table = done.out[done.out.index("Operations") :].split("\n\n")[0].splitlines()
    assert [line.split() for line in table] == [
        ["Operations", "times"],
        ["user", "seal", "600"],
        ["learner", "open", "600"],
    ]
    told = cli("run", *USERS, "--json", "--seed", "0").json["costs"]
    assert told["seconds_an_operation"]["seal"] == 2
    assert told["path"][0]["computing"] >= 2
