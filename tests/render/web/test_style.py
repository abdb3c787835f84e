"""The page's colours, in light and in dark, and that its files are shipped."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from p2p_sim.render.web.page import SCRIPTS

STYLE = resources.files("p2p_sim.render.web").joinpath("static", "page.css").read_text("utf-8")
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(STYLE)}

TEXT = [(ink, paper) for ink in ("ink", "faint", "link") for paper in ("back", "panel")]
"""What is written in which colour on which paper: at least 4.5, as WCAG 2.2 asks at level AA."""

LINES = [(line, "back") for line in ("kind-0", "kind-1", "kind-2", "kind-3", "chosen", "faint")]
"""What is drawn: at least 3."""


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48  # the grey that just fails


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out(scheme):
    for ink, paper in [*TEXT, ("on-alarm", "alarm")]:
        assert contrast(COLOURS[ink][scheme], COLOURS[paper][scheme]) >= 4.5, (ink, paper)
    for line, paper in LINES:
        assert contrast(COLOURS[line][scheme], COLOURS[paper][scheme]) >= 3, (line, paper)


def test_every_colour_is_one_of_the_named():
    used = set(re.findall(r"var\(--([\w-]+)\)", STYLE))
    other_names = set(re.findall(r"--([\w-]+): var\(--", STYLE))
    assert used == set(COLOURS) | other_names
    assert not re.findall(r": *(?:#[0-9a-f]{3}|rgb|hsl)", PAIR.sub("", STYLE))


def test_the_page_s_files_are_shipped():
    folder = Path(str(resources.files("p2p_sim.render.web"))) / "static"
    assert {path.name for path in folder.iterdir()} == {"page.html", "page.css", *SCRIPTS}
    told = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert told["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"][0] == "p2p_sim"
