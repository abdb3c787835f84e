"""No two texts of a figure cover each other, and none leaves it, however close points and however long names."""

from __future__ import annotations

import copy

import pytest
from matplotlib.text import Text

from p2p_sim.report import plots, report_content, report_page

LONG = "some.module.of.mine:AClassOfAProtocolWithAVeryLongName"


@pytest.fixture(scope="module")
def one(runs):
    return report_content.documents([str(runs / "peers")])["runs"][0]


def changed(run, name, *, epsilon=None, seed=None, alpha=None, protocol=None):
    """A run with another name, and perhaps with other figures."""
    made = copy.deepcopy(run) | {"run": name}
    made |= {} if seed is None else {"seed": seed}
    made |= {} if protocol is None else {"protocol": protocol}
    if alpha is not None:
        made["parameters"]["alpha"] = alpha
    for row in made["privacy"]["views"] if epsilon is not None else ():
        if row["exact"]:
            row["exact"] |= dict.fromkeys(("epsilon", "lower", "upper"), epsilon)
    return made


SETS = {
    "one run": lambda run: [run],
    "five runs of one setting": lambda run: [
        changed(run, f"run {i}", seed=i, epsilon=2.1972 + 1e-9 * i) for i in range(5)
    ],
    "six settings close together": lambda run: [
        changed(run, f"run {i}", alpha=0.1 + 0.001 * i, epsilon=2 + 0.01 * i**2) for i in range(6)
    ],
    "forty settings": lambda run: [
        changed(run, f"run {i}", alpha=0.01 * (i + 1), epsilon=3 / (i + 1)) for i in range(40)
    ],
    "long names": lambda run: [
        changed(run, f"a-folder-with-a-very-long-name-number-{i}", epsilon=1 + i, protocol=f"{LONG}{i}")
        for i in range(5)
    ],
}


def texts(figure):
    """Return what a figure writes, with the box of each text in pixels."""
    figure.draw_without_rendering()
    ticks = [
        (tick, axis)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    ]
    beyond = {
        id(label)
        for tick, axis in ticks
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    found, waiting = [], [figure]
    while waiting:
        artist = waiting.pop()
        if not artist.get_visible() or id(artist) in beyond:
            continue
        if isinstance(artist, Text) and artist.get_text().strip():
            found.append(
                (artist.get_text(), Text.get_window_extent(artist))
            )  # of an annotation: without its line
        waiting += artist.get_children()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("made", SETS.values(), ids=SETS.keys())
def test_texts_of_figures_stand_apart(one, made):
    runs = made(one)
    for run in runs:
        if "long" in run["run"]:
            for row in run["privacy"]["views"]:
                row["view"] += " of a role that has a long name"
    drawn = report_page.laid_out({"runs": runs, "cautions": []}).drawings()
    plotted = [each for each in drawn if isinstance(each, plots.Plot)]
    assert {"privacy", "utility", "traffic"} <= {plot.name for plot in plotted}
    for plot in plotted:
        found = texts(plot.figure)
        assert len(found) > 10
        for i, (text, box) in enumerate(found):
            assert plot.figure.bbox.padded(1).containsx(box.x0), (plot.name, text)
            assert plot.figure.bbox.padded(1).containsx(box.x1), (plot.name, text)
            for other, its_box in found[:i]:
                assert not box.overlaps(its_box), (plot.name, text, other)


def test_titles_and_ticks_that_are_too_wide_give_way():
    with plots.style():
        figure, grid = plots.panels(1, 3, 2.5)
        for axes in grid.flat:
            axes.set_title("a title that is much wider than its panel, of a view with a long name")
            axes.set_xlim(1.000001, 1.000009)
        plots.settle(figure)
    found = texts(figure)
    assert not [1 for i, (_, box) in enumerate(found) for _, other in found[:i] if box.overlaps(other)]
    assert all("wider" in axes.get_title() for axes in grid.flat)
