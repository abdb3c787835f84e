"""The figures of one run: they say what its tables say, by marks and hatches and not by colour alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from scipy import stats

from p2p_sim import cli
from p2p_sim.report import audit_table, figure_text, plots, report_content
from p2p_sim.report import figures as figures_module
from tests.report.conftest import SVG, manifest, page, read, tables
from tests.report.conftest import words as text_of
from tests.run_json_files import document_in


def figures(root):
    return {svg.get("id", "").removeprefix("picture-"): svg for svg in root.iter(f"{SVG}svg")}


@pytest.mark.slow
def test_pictures_say_what_the_tables_say(runs):
    found = {name: text_of(svg) for name, svg in figures(read(page("html", runs / "peers"))).items()}
    for view in manifest(runs / "peers")["notes"]["privacy"]["views"]:
        if view["exact"]:
            assert figures_module.viewer_name(view["view"]) in found["privacy"]
            assert figure_text.epsilon(view["exact"]) in found["privacy"]
            assert figures_module.mark(view["exact"]["basis"])[2] in found["privacy"]
    accuracy = manifest(runs / "peers")["notes"]["accuracy"]
    for key in ("accuracy_private", "accuracy_corrected", "accuracy_true", "baseline"):
        assert f"{100 * accuracy[key]:.2f}" in found["utility"]
    assert all(kind in found["traffic"] for kind in ("ask", "label", "report", "23 kB"))
    assert "1,438 messages, 23 kB" in found[""]
    infinite = text_of(figures(read(page("html", runs / "open")))["privacy"])
    assert "∞" in infinite
    assert "upper: at most" in infinite


def test_whoever_does_not_see_a_picture_is_told_what_it_shows(runs):
    for path in (runs / "peers", runs / "walk"):
        for name, svg in figures(read(page("html", path))).items():
            if name:
                assert svg.get("role") == "img"
                assert len(svg.get("aria-label", "")) > 20, name
    told = figures(read(page("html", runs / "peers")))["privacy"].get("aria-label")
    for view in manifest(runs / "peers")["notes"]["privacy"]["views"]:
        if view["exact"]:
            assert f"{view['view']} {figure_text.epsilon(view['exact'])} {view['exact']['basis']}" in told


def test_a_run_without_figures_has_no_picture_of_them(runs, tmp_path):
    shutil.copytree(runs / "walk", tmp_path / "walk")
    told = manifest(tmp_path / "walk")
    for view in told["notes"]["privacy"]["views"]:
        view |= {"exact": None, "theorems": [], "refused": "nothing is proven of it"}
    (tmp_path / "walk" / "run.json").write_text(json.dumps(told))
    root = read(page("html", tmp_path / "walk"))
    assert "privacy" not in figures(root)
    assert "views without a figure" in text_of(root)
    assert "(refused)" in text_of(root)


def test_bases_differ_in_their_marks_and_areas_in_their_hatches():
    bases = [figures_module.mark(basis) for basis in ("exact", "upper", "lower", "measured")]
    assert len({shape for shape, _, _ in bases}) == len({colour for _, colour, _ in bases}) == 4
    areas = [(style["color"], style["hatch"]) for style in map(plots.filling, range(49))]
    assert len(set(areas)) == 49
    assert all(len({hatch for _, hatch in areas[i : i + 7]}) == 7 for i in range(0, 49, 7))


def test_a_promise_beyond_the_figures_is_drawn_where_it_is(runs, tmp_path):
    shutil.copytree(runs / "peers", tmp_path / "peers")
    told = manifest(tmp_path / "peers")
    for view in told["notes"]["privacy"]["views"]:
        for theorem in view["theorems"]:
            theorem["epsilon"] = 40.0
    (tmp_path / "peers" / "run.json").write_text(json.dumps(told))
    ticks = re.findall(r">(\d+)</text>", page("html", tmp_path / "peers"))
    assert "40" in ticks


@pytest.mark.parametrize(("right", "rows"), [(0, 12), (12, 12), (256, 359), (1, 2)])
def test_intervals_are_clopper_and_pearsons(right, rows):
    told = report_content.intervals(
        {"accuracy_private": right / rows, "accuracy_true": None, "test_rows": rows}
    )
    known = stats.binomtest(right, rows).proportion_ci(report_content.CONFIDENCE, "exact")
    assert told == {"accuracy_private": pytest.approx([known.low, known.high], rel=1e-9)}


def test_no_model_has_no_interval():
    assert report_content.intervals(None) == {}


@pytest.mark.slow
def test_measured_exact_and_promised_stand_side_by_side(audited):
    root = read(page("html", audited))
    head, *rows = tables(root, "privacy")[0]
    assert head[1:] == ["ε", "basis", "source", "promised by theorems", "measured"]
    (told,) = report_content.documents([str(audited)])["runs"]
    known = {row["view"]: row for row in told["attacks"]}
    assert {row[0] for row in rows if row[5]} == set(known)
    for row in rows:
        if row[5]:
            figure = figure_text.typeset(audit_table.bound(known[row[0]]))
            assert row[5] == f"{figure}, {audit_table.confidence(known[row[0]])}"
    assert "measured: at least" in text_of(figures(root)["privacy"])


def test_what_was_measured_elsewhere_is_not_drawn(audited, tmp_path):
    shutil.copytree(audited, tmp_path / "peers")
    told = document_in(tmp_path / "peers", "audit.json")
    told["audits"][0] |= {"at": 1e-12}  # a smaller delta than that of the account: no bound there
    told["audits"][1] |= {"channels": "encrypted"}
    (tmp_path / "peers" / "audit.json").write_text(json.dumps(told))
    root = read(page("html", tmp_path / "peers"))
    assert "measured: at least" not in text_of(figures(root)["privacy"])
    assert [row[0] for row in tables(root, "privacy")[0][1:] if row[5]] == [told["audits"][0]["view"]]


def test_a_figure_is_a_file_of_its_own(runs):
    text = page("html", runs / "peers")
    for name in ("privacy", "utility", "traffic"):
        (alone,) = re.findall(rf'<svg id="picture-{name}".*?</svg>', text, flags=re.DOTALL)
        root = ElementTree.fromstring(alone)
        assert root.tag == f"{SVG}svg"
        ids = {element.get("id") for element in root.iter()}
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', alone)) <= ids


@pytest.mark.slow
def test_other_processes_draw_the_same(runs, tmp_path):
    """One whose hashes are made of a given seed, and this one, whose hashes are made of another."""
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    told = ["report", str(runs / "peers"), str(runs / "walk"), "--out"]
    process = os.environ | {"PYTHONHASHSEED": "7" if os.environ.get("PYTHONHASHSEED") != "7" else "8"}
    words = [sys.executable, "-m", "p2p_sim.cli", *told, str(there)]
    subprocess.run(words, env=process, check=True, capture_output=True)
    assert cli.main([*told, str(here)]) == 0
    assert here.read_bytes() == there.read_bytes()


def test_names_that_are_cut_keep_their_ends():
    one, other = (plots.short(f"/home/somebody/long/folder/{name}/peers") for name in ("first", "other"))
    assert (len(one), one[:9], one[-12:]) == (28, "/home/som", "/first/peers")
    assert one != other
    assert (plots.short("x" * 28), plots.short("a\nb")) == ("x" * 28, "a b")
