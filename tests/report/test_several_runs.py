"""Several runs on one page: side by side, told apart, and held against each other only where that says something."""

from __future__ import annotations

import copy
import functools
import re
from xml.etree import ElementTree

import pytest

from p2p_sim.report import cautions, figure_text, figures, plots, report_content, report_page, tradeoff
from p2p_sim.report.curves import COLOURS
from tests.report.conftest import RUNS, SVG, manifest, page, read, tables
from tests.report.conftest import words as text_of


def documents(runs, *names):
    return report_content.documents([str(runs / name) for name in names])


def many(runs, number):
    """A sweep of runs that are all alike but for alpha and epsilon."""
    (one,) = documents(runs, "peers")["runs"]
    made = []
    for i in range(number):
        run = copy.deepcopy(one) | {"run": f"run {i}"}
        run["parameters"]["alpha"] = 0.01 * (i + 1)
        for row in run["privacy"]["views"]:
            if row["exact"]:
                row["exact"] |= dict.fromkeys(("epsilon", "lower", "upper"), 3.0 / (i + 1))
        made.append(run)
    return made


def told_page(runs):
    return report_page.page({"runs": runs, "cautions": cautions.cautions(runs)}, "html")


def page_undrawn(runs):
    """The page with empty pictures, for what stands in words and tables: to draw it takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots.Plot, "svg", lambda plot: f'<svg id="picture-{plot.name}"/>')
        patch.setattr(plots, "settle", lambda figure: None)
        patch.setattr(figures, "make_room", lambda figure, axes, labels: None)
        return told_page(runs)


@functools.cache
def page_of_many(runs, number):
    """The page of a sweep, which takes seconds to draw: the same for every test that looks at it."""
    return told_page(many(runs, number))


@pytest.mark.slow
def test_runs_side_by_side(runs):
    paths = [runs / name for name in RUNS]
    root = read(page("html", *paths))
    head, *rows = tables(root)[0]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(head)}
    assert columns[""] == ["1", "2", "3", "4"]
    assert columns["run"] == list(RUNS)
    assert columns["messages"] == [
        f"{sum(c['messages'] for c in manifest(path)['costs']):,}" for path in paths
    ]
    walked = next(v for v in manifest(runs / "walk")["notes"]["privacy"]["views"] if v["name"] == "learner")
    assert columns["ε: learner"][2:] == [
        "not computed", f"{figure_text.epsilon(walked['exact'])} ({walked['exact']['basis']})"
    ]  # fmt: skip
    assert columns["ε: wire"][2] == "∞ (upper)"
    assert columns["protocol"] == [words[0] for words in RUNS.values()]
    assert "alpha" not in columns
    notes = manifest(paths[0])["notes"]["accuracy"]
    for name, key in (("test accuracy", "private"), ("corrected for lies", "corrected")):
        assert columns[name] == [f"{100 * notes[f'accuracy_{key}']:.2f} %", "", "", ""]
    assert len(list(root.iter("code"))) == len(RUNS)
    assert all(manifest(path)["digest"] in text_of(root) for path in paths)
    assert "drop=0.1" in text_of(next(s for s in root.iter("section") if s.get("id") == "faults"))
    assert ["walk", "1 to 60", "hop", "3,600", "3,600", "234,000"] in tables(root, "what-travelled")[1]


@pytest.mark.slow
def test_runs_of_one_protocol_are_told_apart_by_what_differs(runs):
    head, *rows = tables(read(page_of_many(runs, 3)))[0]
    assert head[:4] == ["", "run", "alpha", "ε: learner"]
    assert not {"messages", "test accuracy"} & set(head)
    count = sum(c["messages"] for c in manifest(runs / "peers")["costs"])
    assert f", messages {count:,}, bytes a user " in page_of_many(runs, 3)
    assert [row[2] for row in rows] == ["0.01", "0.02", "0.03"]
    head, *_ = tables(read(page_undrawn([many(runs, 1)[0] | {"run": name} for name in ("one", "two")])))[0]
    assert head[:3] == ["", "run", "ε: learner"]


@pytest.mark.slow
def test_every_view_of_every_run_has_a_line(runs):
    told = documents(runs, *RUNS)["runs"]
    lines = [
        row for table in tables(read(page("html", *(runs / n for n in RUNS))), "privacy") for row in table[1:]
    ]
    assert sorted(row[:2] for row in lines) == sorted(
        [run["run"], row["view"]] for run in told for row in run["privacy"]["views"]
    )


@pytest.mark.slow
def test_what_is_the_same_is_told_once(runs):
    root = read(page_undrawn(many(runs, 12)))
    same, other = tables(root, "setting")
    assert ["protocol", "peer-to-peer"] in same
    assert other[0] == ["run", "alpha"]
    assert [row[0] for row in other[1:]] == [f"run {i}" for i in range(12)]
    assert tables(root, "versions")[0][0] == ["", "in all runs"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 5, 12])
def test_the_picture_of_a_comparison_numbers_every_run(runs, number):
    root = read(page_of_many(runs, number))
    picture = next(svg for svg in root.iter(f"{SVG}svg") if svg.get("id") == "picture-tradeoff")
    if number == 2:  # that of the page is what other tests look at by itself
        drawn = ElementTree.tostring(compared(many(runs, number)))
        assert ElementTree.tostring(picture).strip() == drawn.strip()
    shown = [name for text in picture.iter(f"{SVG}text") for name in re.split(", ", "".join(text.itertext()))]
    assert all(shown.count(str(i + 1)) >= 1 for i in range(number))
    privacy = next(svg for svg in root.iter(f"{SVG}svg") if svg.get("id") == "picture-privacy")
    assert all(f"run {i}" in text_of(privacy) for i in range(number))


def compared(runs):
    """The picture of a comparison alone, which the page holds as it is: a page takes twice as long to draw."""
    return ElementTree.fromstring(tradeoff.tradeoff(runs).svg())


def panels(picture):
    """For each panel of the comparison, ids of its axes: heights of its marks from 0, its lower edge, to 1."""
    out = {}
    for axes in picture.iter(f"{SVG}g"):
        if re.search(r"axes_\d+$", axes.get("id", "")):
            frame = re.findall(r"[-.0-9]+ ([-.0-9]+)", next(axes.iter(f"{SVG}path")).get("d"))
            low, high = max(map(float, frame)), min(map(float, frame))
            lines = [part for part in axes if "line2d" in part.get("id", "")]
            marks = [float(use.get("y")) for line in lines for use in line.iter(f"{SVG}use")]
            drawn = sum(next(line.iter(f"{SVG}use"), None) is None for line in lines)
            out[axes.get("id")] = ([(low - y) / (low - high) for y in marks], drawn)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("most", [1.5, 1000])
def test_every_run_has_a_mark_inside_every_panel(runs, most):
    told = many(runs, 3)
    told[2]["messages"] = [row | {"bytes": most * row["bytes"]} for row in told[2]["messages"]]
    for row in (row for run in told for row in run["privacy"]["views"] if row["name"] in tradeoff.VIEWS):
        assert row["exact"]
    every, views = list(panels(compared(told)).values()), len(tradeoff.shown(told))
    assert len(every) == 2 * views
    for number, (marks, drawn) in enumerate(every):
        trained = number < views  # these panels come first
        assert len(marks) == (6 if trained else 3), "a model that is corrected, and one that is not"
        assert all(0 < height < 1 for height in marks)
        assert drawn == (2 if trained else 1), "what true labels give has a line too"


@pytest.mark.slow
def test_both_models_and_the_true_labels_stand_where_their_accuracies_are(runs):
    told = many(runs, 2)
    for run, (corrected, plain) in zip(told, ((0.9, 0.6), (0.8, None)), strict=True):
        run["accuracy"] |= {"accuracy_true": 0.95, "accuracy_corrected": corrected}
        run["accuracy"]["accuracy_private"] = corrected if plain is None else plain
    told[1]["accuracy"]["accuracy_corrected"] = None  # of what is made as the truth is, there is none
    for run in told:
        run["messages"] = told[0]["messages"]  # costs the same, which is not drawn
    text = told_page(told)
    for marks, drawn in panels(compared(told)).values():
        plain, corrected, alone = marks
        share = (corrected - plain) / (0.9 - 0.6)
        assert alone == pytest.approx(plain + share * (0.8 - 0.6), abs=1e-5)
        assert drawn == 2
    assert "on what was released" in text
    assert "the same, corrected for lies" in text
    turned = figures.utility(told[::-1]).svg()
    assert "the same, corrected for lies" in turned, "of the second run alone"
    for run in told:
        run["accuracy"]["accuracy_corrected"] = None
    picture = compared(told)
    assert "corrected for lies" not in text_of(picture)
    assert all(len(marks) == 2 for marks, _ in panels(picture).values())


@pytest.mark.slow
def test_runs_that_differ_by_their_seeds_are_one_point(runs):
    told = many(runs, 4)
    for i, run in enumerate(told):
        run["seed"] = i
        if i != 2:
            run["parameters"] = told[0]["parameters"]
    picture = compared(told)
    for marks, _ in panels(picture).values():
        assert len(marks) in (4, 2), "two settings: with corrected models, or without"
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    assert "1-2, 4" in texts
    assert "3" in texts
    rows = {run["run"]: tradeoff.row_of(run, "learner") for run in told}
    assert tradeoff._settings(told, rows) == [[1, 2, 4], [3]]
    assert [tradeoff._numbered(numbers) for numbers in ([1], [1, 2, 3, 5], [2, 4])] == ["1", "1-3, 5", "2, 4"]


@pytest.mark.slow
def test_runs_on_other_data_are_not_joined(runs):
    told = many(runs, 3)
    told[2]["data"]["name"] = "others"
    assert [drawn for _, drawn in panels(compared(told)).values()] == [2] * 3  # the true labels, and two runs
    told[1]["data"]["name"] = "more"
    assert [drawn for _, drawn in panels(compared(told)).values()] == [1] * 3


def test_runs_with_nothing_in_common_are_not_held_against_each_other(runs):
    told = many(runs, 2)
    for row in told[1]["privacy"]["views"]:
        row |= {"exact": None, "refused": "nothing is proven of it"}
    text = page_undrawn(told)
    assert "picture-tradeoff" not in text
    assert "picture-privacy" in text
    assert figures.drawn(told) == figures.views(told[:1], 1)
    assert tradeoff.shown(told) == []


def test_a_run_of_which_everything_is_refused_lacks_all_views(runs):
    (one,) = many(runs, 1)
    for row in one["privacy"]["views"]:
        row |= {"exact": None, "theorems": [], "refused": "no law of it is known"}
    assert ["views without a figure", "all (refused)"] in tables(read(page_undrawn([one])))[0]


DIFFERENCES = {
    "data": (lambda run: run["data"].update(name="others"), "The data differ"),
    "users": (lambda run: run.update(users=7), "The numbers of users differ"),
    "delta": (lambda run: run["privacy"].update(delta=1e-9), "δ differs"),
    "channels": (lambda run: run["privacy"].update(channels="encrypted"), "The channels differ"),
    "faults": (lambda run: run.update(faults=["drop=0.5"]), "Faults differ"),
    "code": (lambda run: run["versions"].update(code="0123"), "Code or versions"),
}


@pytest.mark.parametrize(("change", "said"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_what_hinders_a_comparison_is_named(runs, change, said):
    told = many(runs, 3)
    assert cautions.cautions(told) == []
    change(told[1])
    (sentence,) = cautions.cautions(told)
    assert sentence.startswith(said)
    assert "run 0, run 2" in sentence
    assert "run 1" in sentence


@pytest.mark.slow
def test_all_that_hinders_a_comparison_is_on_the_page(runs):
    told = many(runs, 3)
    for change, _ in DIFFERENCES.values():
        change(told[1])
    sentences, text = cautions.cautions(told), text_of(read(page_undrawn(told)))
    assert len(sentences) == len(DIFFERENCES)
    for (_, said), sentence in zip(DIFFERENCES.values(), sentences, strict=True):
        assert sentence.startswith(said)
        assert sentence in text


@pytest.mark.slow
def test_one_diagram_a_protocol(runs):
    text = page_of_many(runs, 3)
    assert text.count("who sent what to whom, round by round.</figcaption>") == 1
    assert "run 0: who sent what to whom" in text


@pytest.mark.slow
def test_the_title_names_few_runs_and_counts_many(runs):
    assert "<h1>peer-to-peer: run 0, run 1, run 2 – p2p-sim</h1>" in page_of_many(runs, 3)
    assert "<h1>peer-to-peer: 4 runs – p2p-sim</h1>" in page_undrawn(many(runs, 4))


@pytest.mark.slow
def test_protocols_are_told_apart_by_dashes_in_lines_and_in_their_key(runs):
    one = many(runs, 3)
    told = [
        *one,
        *(run | {"run": f"other {run['run']}", "protocol": "another"} for run in copy.deepcopy(one)),
    ]
    picture = compared(told)
    (key,) = [part for part in picture.iter(f"{SVG}g") if "legend" in part.get("id", "")]
    within = {id(line) for line in key.iter(f"{SVG}path")}
    styles = {True: set(), False: set()}
    for line in picture.iter(f"{SVG}path"):
        style = line.get("style", "")
        if any(colour.lower() in style for colour in COLOURS[:2]) and "fill: none" in style:
            styles[id(line) in within].add("stroke-dasharray" in style)
    assert styles == {True: {True, False}, False: {True, False}}
