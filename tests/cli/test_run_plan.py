"""``p2p-sim run --plan``, and runs that cannot fit."""

from __future__ import annotations

import shutil
from collections import namedtuple

import pytest


def test_a_plan_starts_nothing(cli, tmp_path):
    done = cli("run", "peer-to-peer", "--users", "2000", "--trace", "full", "--plan", "--json")
    assert (done.status, done.err) == (0, "")
    assert done.json["users"] == 2000
    assert done.json["messages"] == 6000
    assert done.json["fits"]
    assert set(done.json["disk"]) == {"trace", "outputs", "population"}
    assert list(tmp_path.iterdir()) == []
    text = cli("run", "peer-to-peer", "--users", "2000", "--no-population", "--plan").out
    assert text.startswith("Plan for 2,000 users, backend local\n  Messages")
    assert "population" not in text


def test_a_plan_of_data_with_a_graph(cli):
    words = ("run", "peer-to-peer", "--over", "neighbours", "--graph", "regular:4", "--plan", "--json")
    done = cli(*words, "--data", "digits", "--clusters", "8")
    assert (done.status, done.json["users"]) == (0, 1438)
    assert cli(*words, "--users", "1e6").json["users"] == 1_000_000


def test_what_cannot_fit_is_refused_before_it_starts(cli, tmp_path):
    words = ("run", "peer-to-peer", "--users", "2e9", "--features", "9")
    asked = cli(*words, "--plan")
    assert asked.status == 2
    assert "Memory, this machine" in asked.out
    plain = cli(*words)
    assert (plain.status, plain.out) == (2, "")
    for done in (asked, plain):
        assert "error: this run cannot fit: this machine needs " in done.err
        assert "(2,000,000,000 users, 6,000,000,000 messages" in done.err
    more = cli(*words[:3], "3e9", "--plan")  # no number of machines runs these
    assert "users = 3000000000: must be an integer from 1 to 2,147,483,647" in more.err
    assert list(tmp_path.iterdir()) == []


def test_a_trace_that_fills_the_disk_is_refused_before_it_starts(cli, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 2_000_000))
    words = ("run", "peer-to-peer", "--users", "20000", "--no-population", "--theta", "1e-3")
    assert cli(*words).status == 0
    done = cli(*words, "--trace", "full")
    assert done.status == 0, done.err
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 20_000))
    done = cli(*words, "--trace", "full")
    assert (done.status, "of disk and has 20 kB free" in done.err, "trace " in done.err) == (2, True, True)


def test_a_plan_of_shards(cli):
    done = cli(
        "run", "peer-to-peer", "--users", "1e6", "--backend", "shards", "--shards", "3", "--plan", "--json"
    )
    assert (done.json["shards"], done.json["machines"][0]["shards"]) == (3, 3)
    assert done.json["exchanged"] > 0
    assert done.json["network"] == 0


def test_more_shards_than_memory_has_room_for_are_refused_also_without_a_plan(cli, tmp_path):
    """Each is a process of its own, however few its users are; and there are no more of them than users."""
    words = ("run", "peer-to-peer", "--users", "20000", "--backend", "shards", "--shards", "50000")
    for done in (cli(*words, "--plan"), cli(*words)):
        assert (done.status, "error: this run cannot fit: this machine needs " in done.err) == (2, True)
        assert done.err.startswith("--shards 50000: 20,000, one for each user\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("peer-permutation", "--users", "1e5"),
        ("secure-aggregation", "--users", "1e6", "--bag-size", "64"),
        ("peer-to-peer", "--users", "2000", "--backend", "actors"),
    ],
)
def test_a_plan_refuses_what_a_run_refuses(cli, words):
    """Too many for the protocol, or for the backend, which pilots of few users do not meet."""
    plan = cli("run", *words, "--plan")
    assert (plan.status, plan.out) == (2, "")
    run = cli("run", *words)
    why = plan.err[plan.err.index("error: ") + len("error: ") :]
    assert run.status == 2
    assert run.err.endswith(why)  # a run says which step refuses


def test_the_address_of_a_job_of_ray(cli, monkeypatch):
    """Ray sets RAY_ADDRESS in its jobs; a run that does not use it says so."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    words = ("run", "peer-to-peer", "--users", "300", "--backend", "shards")
    audit = ("audit", "peer-to-peer", "--cluster-size", "3", "--trials", "300", "--backend", "shards")
    for refused in (cli(*words), cli(*words, "--plan"), cli(*audit)):
        assert refused.status == 2
        named = ("RAY_ADDRESS = '127.0.0.1:1': ", "address = '127.0.0.1:1': ")
        # nothing answers, or this process has joined another
        assert any(each in refused.err for each in named)
    given = cli(*words, "--address", "127.0.0.1:2")
    assert "address = '127.0.0.1:2': " in given.err
    local = cli("run", "peer-to-peer", "--users", "300")
    assert (local.status, local.err.splitlines()[0][:40]) == (0, "RAY_ADDRESS is set, but backend local ru")
    assert "--backend shards" in local.err
    monkeypatch.delenv("RAY_ADDRESS")
    assert "RAY_ADDRESS" not in cli("run", "peer-to-peer", "--users", "300").err
