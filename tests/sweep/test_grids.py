"""Which runs a sweep has, and what it refuses before any is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.sweep import grids
from protocols import PeerToPeer, RandomizedResponse

RR = {"protocol": "randomized-response", "users": 100}


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def checked(given: Any) -> grids.Grids:
    found = grids.read(given)
    grids.check(found, silent)
    return found


def test_a_grid_is_the_product_of_its_lists_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'users = 100\nseed = [3, 1]\n[[grid]]\nprotocol = "peer-to-peer"\nalpha = [0.1, 0.2]\ntheta = 0.5\n'
        '[[grid]]\nprotocol = ["randomized-response", "prior-response"]\nepsilon = 1\ncluster-size = 50\n'
    )
    found = grids.read(file)
    runs = list(found.runs())
    assert found.count == len(runs) == 8
    told = [(run["protocol"], run["parameters"].get("alpha"), run["settings"]["seed"]) for run in runs]
    assert told[:4] == [("peer-to-peer", alpha, seed) for seed in (3, 1) for alpha in (0.1, 0.2)]
    assert [each[0] for each in told[4:]] == ["randomized-response", "prior-response"] * 2
    assert runs[0]["parameters"]["theta"] == 0.5
    assert runs[4]["parameters"]["epsilon"] == 1.0
    assert (runs[0]["settings"].get("cluster_size"), runs[4]["settings"]["cluster_size"]) == (None, 50)


def test_from_python_a_protocol_is_an_object_and_a_list_an_array() -> None:
    objects = [PeerToPeer(alpha=0.1), RandomizedResponse(2.0)]
    found = grids.read({"protocol": objects, "users": np.int64(100), "seed": range(2)})
    runs = list(found.runs())
    assert [(run["protocol"], run["settings"]["seed"]) for run in runs] == [
        ("peer-to-peer", 0), ("peer-to-peer", 1), ("randomized-response", 0), ("randomized-response", 1)
    ]  # fmt: skip
    assert (
        runs[0]["parameters"]
        == next(grids.read({"protocol": "peer-to-peer", "users": 100}).runs())["parameters"]
    )


def test_lists_of_lists_are_tried_in_turn_where_a_value_is_a_list() -> None:
    found = grids.read(
        {**RR, "faults": [[], ["drop=0.1"], ["drop=0.1", "loss=0.1"]], "views": ["learner", "user"]}
    )
    assert [run["settings"]["faults"] for run in found.runs()] == [[], ["drop=0.1"], ["drop=0.1", "loss=0.1"]]
    assert {tuple(run["settings"]["views"]) for run in found.runs()} == {("learner", "user")}


def test_a_promise_decides_one_parameter_of_each_protocol() -> None:
    promise = {"epsilon": [0.5, 1], "delta": 1e-5, "view": "learner"}
    found = grids.read(
        {"protocol": ["peer-to-peer", "randomized-response"], "users": 100, "promise": promise}
    )
    runs = list(found.runs())
    assert [(run["promise"]["vary"], run["promise"]["epsilon"]) for run in runs] == [
        ("alpha", 0.5), ("alpha", 1.0), ("epsilon", 0.5), ("epsilon", 1.0)
    ]  # fmt: skip
    assert all(run["promise"]["vary"] not in run["parameters"] for run in runs)


def test_a_million_runs_are_counted_at_once() -> None:
    assert grids.read({**RR, "seed": range(1_000_000)}).count == 1_000_000


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({**RR, "sed": 1}, "unknown key 'sed'; did you mean 'seed'"),
    "unknown parameter": ({**RR, "epsilom": 1.0}, "unknown key 'epsilom'; did you mean 'epsilon'"),
    "unknown key of a promise": ({**RR, "promise": {"epsilon": 1, "dleta": 1e-5}}, "'dleta'; did you mean 'delta'"),
    "unknown and missing key of a promise": (
        {**RR, "promise": {"epsilno": 1}}, "promise: unknown key 'epsilno'; did you mean 'epsilon'"
    ),
    "unknown grid": ({**RR, "gird": [{"seed": [0, 1]}]}, "unknown key 'gird'; did you mean 'grid'.*known are .*grid"),
    "unknown grid with the protocol": (
        {"users": 9, "gird": [{"protocol": "randomized-response"}]}, "unknown key 'gird'; did you mean 'grid'"
    ),
    "unknown and missing protocol": (
        {"users": 9, "protocl": "randomized-response"}, "unknown key 'protocl'; did you mean 'protocol'"
    ),
    "grid in a grid": ({**RR, "grid": [{"grid": [{"seed": 1}]}]}, "unknown key 'grid'; known are"),
    "unknown protocol": ({**RR, "protocol": "peer-to-pere"}, "did you mean 'peer-to-peer'"),
    "own protocol that is not there": ({**RR, "protocol": "nowhere:Mine"}, "nowhere"),
    "no protocol": ({"users": 10}, "protocol is missing"),
    "a class": ({**RR, "protocol": PeerToPeer}, "give a name"),
    "empty list": ({**RR, "epsilon": []}, r"epsilon = \[\]: there is nothing to run"),
    "no grids": ({**RR, "grid": []}, r"grid = \[\]: there is nothing to run"),
    "grid that is a number": ({**RR, "grid": 3}, r"\[\[grid\]\]"),
    "text for a number": ({**RR, "epsilon": ["small"]}, "epsilon = 'small': must be a number"),
    "true for a number": ({**RR, "seed": True}, "seed = True: must be a whole number"),
    "number for text": ({**RR, "graph": 3}, "graph = 3: must be text"),
    "seed out of range": ({**RR, "seed": -1}, "seed = -1"),
    "parameter out of range": ({**RR, "epsilon": -1}, "randomized-response with epsilon = -1.0: epsilon"),
    "twice": ({**RR, "seed": [1, 1]}, "seed has 1 twice"),
    "twice in two grids": ({**RR, "grid": [{"seed": [0, 1]}, {"seed": 1}]}, "runs 1 and 2 are the same"),
    "no users": ({"protocol": "randomized-response"}, "there are no users"),
    "data and users": ({**RR, "data": "digits"}, "data and users are both given"),
    "clusters without data": ({**RR, "clusters": 3}, "clusters needs data"),
    "unknown view": ({**RR, "views": ["moon"]}, "moon"),
    "unknown fault": ({**RR, "faults": "flood=1"}, "flood"),
    "unknown model": ({"protocol": "randomized-response", "data": "digits", "model": "oracle"}, "oracle"),
    "graph that is not used": ({**RR, "graph": "regular:4"}, "uses no graph"),
    "promise without epsilon": ({**RR, "promise": {"delta": 1e-5}}, "epsilon is missing"),
    "promise out of range": ({**RR, "promise": {"epsilon": [1, -1]}}, "epsilon = -1.0: must be a number, at"),
    "share out of range": ({**RR, "share": [0.5, 2]}, r"share = 2.0: must be a number in \[0, 1\]"),
    "shares of more than all": ({**RR, "shares": [0.5, 0.6]}, "sum to 1.1, must sum to 1"),
    "features out of range": ({**RR, "features": -1}, "features = -1: must be an integer from 0 to 10,000"),
    "test rows out of range": (
        {"protocol": "randomized-response", "data": "digits", "test": 1}, r"test = 1.0: must be a number in \(0, 1\)"
    ),
    "more users than any run": ({**RR, "users": 1 << 31}, "users = 2147483648: must be an integer from 1 to"),
    "promise of what is fixed": ({**RR, "epsilon": 1.0, "promise": {"epsilon": 1}}, "leave it out"),
    "promise of no parameter": ({**RR, "promise": {"epsilon": 1, "vary": "x"}}, "say which parameter"),
    "parameter of one protocol alone": (
        {"protocol": ["randomized-response", "peer-to-peer"], "users": 9, "alpha": 0.1},
        r"randomized-response has epsilon.*give each protocol a \[\[grid\]\]",
    ),
    "epsilon beyond all floats": ({**RR, "epsilon": 10**400}, "epsilon = 1000.*must be below 1.8e308"),
    "delta beyond all floats": ({**RR, "delta": 10**400}, "delta = 1000.*must be below 1.8e308"),
    "more runs than memory holds": (
        {**RR, "epsilon": [i / 1000 for i in range(1, 1002)], "seed": range(1000)},
        "1,001,000 runs: a sweep has at most 1,000,000",
    ),
    "more values than memory holds": ({**RR, "seed": range(10**30)}, "has more values than a sweep has runs"),
    "parameter of an object": ({**RR, "protocol": [PeerToPeer(0.1)], "alpha": 0.2}, "unknown key 'alpha'"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_plan_is_refused_before_any_run(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        checked(given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = ", "is no TOML"), (None, "there is no such file"), ("a = 'ä'", "no UTF-8"),
        (f"seed = {'[' * 5000}1{']' * 5000}", "lists in lists too deep"), (f"seed = {'9' * 5000}", "is no TOML.*limit"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named(text: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=said):
        grids.read(file)


def test_a_file_may_begin_with_the_mark_of_an_editor(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('protocol = "randomized-response"\nusers = 100\n', encoding="utf-8-sig")
    assert grids.read(file).count == 1


def test_what_changed_is_named() -> None:
    first = grids.read({**RR, "epsilon": [0.5, 1.0]})
    other = grids.read({**RR, "epsilon": [0.5, 2.0], "seed": [0, 1]})
    assert first.changes(first.grids) == []
    said = other.changes(first.grids)
    assert said == ["epsilon = [0.5, 1.0] then, [0.5, 2.0] now", "seed = [0] then, [0, 1] now"]
