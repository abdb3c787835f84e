"""Runs to report on, made on the command line, and pages as a browser would read them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from p2p_sim import cli as program
from p2p_sim.report import report_content, report_page
from tests.render.web.conftest import chromium
from tests.run_json_files import document_in

__all__ = ["chromium"]

SVG = "{http://www.w3.org/2000/svg}"

SEED = 9_182_736_450_000_000_000
"""Large enough to be withheld."""

RUNS = {
    "peers": ("peer-to-peer", "--data", "digits", "--alpha", "0.1", "--clusters", "5", "--seed", str(SEED)),
    "shuffle": (
        "encrypted-shuffle",
        "--users",
        "300",
        "--cluster-size",
        "20",
        "--epsilon",
        "2",
        "--seed",
        str(SEED + 1),
    ),
    "open": (
        "peer-to-peer",
        "--users",
        "60",
        "--cluster-size",
        "10",
        "--alpha",
        "0",
        "--fault",
        "drop=0.1",
        "--seed",
        "0",
    ),
    "walk": (
        "network-shuffle",
        "--users",
        "60",
        "--epsilon",
        "1",
        "--graph",
        "regular:4",
        "--steps",
        "60",
        "--seed",
        "0",
    ),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few runs."""
    folder = tmp_path_factory.mktemp("runs")
    for name, words in RUNS.items():
        assert program.main(["run", *words, "--out", str(folder / name)]) == 0
    return folder


@pytest.fixture(scope="session")
def audited(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run of peers with an audit of its learner and of its wire."""
    place = tmp_path_factory.mktemp("audited") / "peers"
    shutil.copytree(runs / "peers", place)
    views = ["--view", "learner", "--view", "wire", "--claim", "3"]
    how = ["--trials", "500", "--delta", "0.05", "--seed", "1"]  # the exact statistic measures most in both
    assert program.main(["audit", "--run", str(place), *views, *how]) == 0
    return place


PAGES: dict[Any, str] = {}


def page(form: str, *paths: Path, **how: bool) -> str:
    """The page of some runs; it takes seconds to draw, so each is made once for all tests of the same files."""
    key = form, paths, tuple(how.items()), tuple(map(content, paths))
    if key not in PAGES:
        PAGES[key] = report_page.page(report_content.documents([str(path) for path in paths], **how), form)
    return PAGES[key]


def content(path: Path) -> tuple[tuple[str, str], ...]:
    """The files below a folder, and what they hold."""
    files = sorted(one for one in path.rglob("*") if one.is_file())
    return tuple((str(one), hashlib.sha256(one.read_bytes()).hexdigest()) for one in files)


def manifest(path: Path) -> Any:
    return document_in(path)


def read(page: str) -> ElementTree.Element:
    """Parse a page, which is well-formed XML too."""
    assert page.startswith("<!DOCTYPE html>\n")
    return ElementTree.fromstring(page)


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def tables(root: ElementTree.Element, section: str | None = None) -> list[list[list[str]]]:
    """Rows of the cells of every table, of one section or of all."""
    top = root if section is None else next(s for s in root.iter("section") if s.get("id") == section)
    return [[[words(cell) for cell in row] for row in table.iter("tr")] for table in top.iter("table")]
