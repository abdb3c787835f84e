"""The page of what was measured side by side: its figures are those of the JSON beside it."""

from __future__ import annotations

import json
import re
import shutil
import sys
import types

import pytest

from benchmarks.command_line import command_line
from benchmarks.sidebyside import page
from benchmarks.sidebyside.systems import SYSTEMS


def test_the_page_has_the_figures_of_the_json():
    assert page.filled(page.PAGE.read_text(), page.FIGURES) == page.PAGE.read_text()


def test_every_system_was_measured():
    rows = json.loads((page.FIGURES / "side-by-side.json").read_text())["rows"]
    assert {row["system"] for row in rows} == {system.name for system in SYSTEMS}


def test_all_ways_of_ours_gave_the_same_bits():
    rows = json.loads((page.FIGURES / "side-by-side.json").read_text())["rows"]
    ours = [row for row in rows if row["system"].startswith("p2p-sim") and "failed" not in row]
    bits = {row["users"]: set() for row in ours}
    for row in ours:
        assert row["identical"]
        bits[row["users"]].add(row["digest"])
    assert {len(each) for each in bits.values()} == {1}


@pytest.mark.parametrize("name", ["side-by-side", "scaling", "command"])
def test_other_figures_make_another_page(name, tmp_path):
    for file in page.FIGURES.glob("*.json"):
        shutil.copy(file, tmp_path)
    text = (tmp_path / f"{name}.json").read_text()
    changed = re.sub(r'("(messages_per_cpu_second|cpu|cpu_per_user_ratio)": )(\d)', r"\g<1>1\3", text)
    assert changed != text
    (tmp_path / f"{name}.json").write_text(changed)
    assert page.filled(page.PAGE.read_text(), tmp_path) != page.PAGE.read_text()


def test_a_page_without_a_mark_is_refused():
    with pytest.raises(ValueError, match="has 0 parts '<!-- model -->'"):
        page.filled(page.PAGE.read_text().replace("<!-- model -->", ""), page.FIGURES)


def test_an_aim_that_is_missed_is_said():
    row = {"users": 10**6, "messages_per_cpu_second": 15_500_000}
    assert "10.0 times PeerSim's 1.55 million. The aim is 20 times: **not reached**" in page.over_peersim(
        "x", 20, [row]
    )
    assert "The aim is 8 times: reached" in page.over_peersim("x", 8, [row])


def test_the_model_s_side_and_the_start_are_said():
    row = {
        "case": "shards, model", "coefficients": {"start": 0.04}, "held_out_users": 10,
        "held_out_errors": [-0.1, -0.2],
        "predicted_for": "1e+09 users, 100 nodes, 200 shards",
        "predicted_seconds": {"contiguous": 2.6, "scattered": 3.0},
    }  # fmt: skip
    text = page.model({"rows": [row]})
    assert "by 15 %, and too low every time" in text
    assert "`--plan` would count 87 s" in text  # 7 s for Ray and 0.4 s for each of 200
    assert "every time" not in page.model({"rows": [row | {"held_out_errors": [-0.1, 0.2]}]})


def test_what_a_node_costs_and_how_far_off_it_is_without_most_nodes_are_said():
    row = {
        "case": "nodes, model", "coefficients": {"node": 0.0077, "byte_between_nodes": 9e-9}, "held_out_users": 10,
        "held_out_errors": [-0.1, 0.2], "held_out_nodes": 4, "errors_at_these_nodes": [0.3, 0.5],
    }  # fmt: skip
    text = page.model({"rows": [row]})
    assert "7.7 ms a further node, 9 ns more a byte between nodes" in text
    assert (
        "fitted without 4 nodes**: at these, it is off by 30 to 50 %, in the mean by 40 %, and too high"
        in text
    )


def test_every_case_of_commands_is_shown():
    result = json.loads((page.FIGURES / "command.json").read_text())
    text = page.commands(result)
    for shown in (
        "`import p2p_sim`",
        "| `p2p-sim` |",
        "--help",
        "| 1,000 |",
        "Two threads took",
        "Growth: 100,000 users",
    ):
        assert shown in text
    with pytest.raises(KeyError, match="unheard"):
        page.commands({**result, "rows": [{"case": "unheard"}]})


def test_both_targets_of_threads_are_held():
    row = {
        "users": 10, "wall_of_one": 0.84, "cpu_of_one": 1.0, "digest_equal": True, "target": {"cpu_of_one": 1.1}
    }  # fmt: skip
    assert (
        "by the clock (at most 0.58: **not reached**), and 1.00 of its CPU (at most 1.1: reached)"
        in page.two_threads(row)
    )
    assert "(at most 0.58: reached)" in page.two_threads(row | {"wall_of_one": 0.5})


def test_commands_are_shown_as_they_were_given():
    old = {"rows": [{"users": 16, "cpu": [1.0, 2.0, 3.0]}, {"case": "model"}]}
    new = {"rows": [], "command": "python -m benchmarks.command --users 7 --cases run --repeat 2"}
    text = page.again(old, new)
    assert "python -m benchmarks.scaling --users 16 --repeat 3 > docs/figures/scaling.json" in text
    assert f"{new['command']} > docs/figures/command.json" in text


def test_a_benchmark_writes_its_command(monkeypatch, capfd):
    module = types.ModuleType("benchmarks.tried", "Tries.")
    module.CASES, module.__spec__ = ("one",), types.SimpleNamespace(name="benchmarks.tried")
    module.main = lambda size, cases, repeat, _: {"machine": {}, "rows": [{"case": cases[0], "size": size}]}
    monkeypatch.setattr(sys, "argv", ["tried", "--users", "1e3", "--repeat", "2"])
    command_line(module, 5)
    told = json.loads(capfd.readouterr().out)
    assert told["command"] == "python -m benchmarks.tried --users 1000 --cases one --repeat 2"
