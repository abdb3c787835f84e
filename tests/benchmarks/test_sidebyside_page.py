"""The page of what was measured side by side: its figures are those of the JSON beside it."""

from __future__ import annotations

import json
import shutil

import pytest

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
    changed = text.replace('"messages_per_cpu_second": ', '"messages_per_cpu_second": 1')
    changed = changed.replace('"cpu": ', '"cpu": 1').replace(
        '"cpu_per_user_ratio": ', '"cpu_per_user_ratio": 1'
    )
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
