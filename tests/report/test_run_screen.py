"""A run on one screen: no wide line for any protocol, and what its figures of guesses mean."""

from __future__ import annotations

import itertools
import math

import pytest

import p2p_sim
from p2p_sim.report import figure_text, privacy_table, run_screen, run_summary, terminal
from tests.contract.cases import PROTOCOLS, people_of


def document(protocol, **more):
    run = p2p_sim.run(protocol, people_of(protocol, "scattered", 60), seed=1, costs=True)
    run.notes |= {"data": {"name": "synthetic", "source": "drawn by seed"}, "costs": None} | more
    run.notes["costs"] = run_summary.costs_document(run.costs("20ms,10Mbit", protocol=protocol))
    run.notes["privacy"] = privacy_table.privacy_of(protocol, run.population)
    return run_summary.document(
        run, protocol.command_name(), (), "runs/one", {"bytes": 1 << 28, "covers": "all"}
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_line_is_wide_and_every_view_has_one(name):
    protocol = PROTOCOLS[name]
    told = document(protocol)
    text = run_screen.as_text(told)
    assert max(map(len, text.splitlines())) <= terminal.WIDTH
    if "refused for every view" not in text:
        for row in told["privacy"]["views"]:
            assert any(line.startswith(f"{row['view']} ") for line in text.splitlines()), row["view"]
    for role in told["costs"]["roles"]:
        assert f"\n{role['role']} " in text


def row(exact=None, theorems=(), refused=""):
    return {
        "view": "learner",
        "exact": exact,
        "theorems": list(theorems),
        "refused": refused,
        "by_cluster": None,
    }


def figure(epsilon, basis, upper=None):
    return {
        "epsilon": epsilon,
        "lower": epsilon,
        "upper": upper or epsilon,
        "basis": basis,
        "source": "",
        "assumes": [],
    }


def theorem(epsilon, basis, holds=True):
    return {"name": "T", "holds": holds, "epsilon": epsilon, "basis": basis, "source": "", "why": ""}


@pytest.mark.parametrize(
    ("given", "cells"),
    [
        (row(figure(math.log(9), "exact")), ["2.197", "exact", "90"]),
        (row(figure(0.0, "exact")), ["0", "exact", "50"]),
        (row(figure("inf", "exact")), ["inf", "exact", "100"]),
        (row(figure(math.log(3), "upper", math.log(9))), ["1.098 to 2.198", "upper", "90"]),
        (row(figure(math.log(3), "lower")), ["1.098", "lower", "-"]),  # a lower bound limits no attacker
        (row(figure("inf", "lower")), ["inf", "lower", "100"]),
        (row(figure(math.log(3), "lower"), [theorem(math.log(9), "upper")]), ["1.098", "lower", "90"]),
        (row(None, [theorem(math.log(9), "exact")], "not computed here: ask"), ["2.198", "upper", "90"]),
        (row(None, [theorem(1.0, "claimed")], "not computed here: ask"), ["-", "-", "-"]),
        (row(None, [theorem(1.0, "exact", holds=False)], "nobody knows"), ["refused", "-", "-"]),
    ],
)  # fmt: skip
def test_a_view_has_its_figure_or_the_least_that_is_proven_or_the_reason(given, cells):
    shown = {"views": [given, row(figure(7.0, "exact"))], "delta": 1e-6}
    line = run_screen._privacy(shown)[0].splitlines()[1]
    assert [cell.strip() for cell in line.split("   ") if cell.strip()] == ["learner", *cells]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, math.log(9), 5.0])
def test_nobody_guesses_more_labels_right_than_is_said(epsilon):
    """Randomized response reaches it: of all ways to guess from its two answers, one is as good."""
    lie = 1 / (1 + math.exp(epsilon))
    said = {0: (1 - lie, lie), 1: (lie, 1 - lie)}  # the probabilities of both answers, by label
    ways = itertools.product((0, 1), repeat=2)  # what is guessed of each answer
    best = 100 * max(sum(said[way[answer]][answer] / 2 for answer in (0, 1)) for way in ways)
    told = float(figure_text.right_of_100(epsilon))
    assert best - 1e-9 <= told < best + 0.1


def test_why_a_view_has_no_figure_is_told_once_a_reason():
    without = [
        row(None, refused="nobody knows"),
        row(None, refused="nobody knows"),
        row(None, refused="it takes long"),
    ]
    views = [each | {"view": name} for each, name in zip(without, ("a", "b", "c"), strict=True)]
    told = run_screen._privacy({"views": [*views, row(figure(1.0, "exact"))], "delta": 1e-6})
    assert told[-2:] == ["a; b: nobody knows", "c: it takes long"]


def test_a_file_whose_name_is_its_path_is_named_once():
    told = document(PROTOCOLS[next(iter(PROTOCOLS))], data={"name": "own.csv", "source": "own.csv"})
    assert "own.csv, own.csv" not in run_screen.as_text(told)
