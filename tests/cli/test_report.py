"""``p2p-sim report``: where pages go, and what is refused."""

from __future__ import annotations

import json

import pytest

import p2p_sim
from p2p_sim.report import report_content, report_page
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.test_app import plain
from tests.cli.test_trace_export import said
from tests.tiny import people

SEED = 2**63 + 41
"""Large enough to be withheld."""


@pytest.fixture
def two(tmp_path):
    for name in ("a", "b"):
        p2p_sim.run(PeerToPeer(0.1), people(), seed=SEED).save(tmp_path / "runs" / name)
    return tmp_path


@pytest.mark.slow
def test_the_page_of_one_run_goes_into_it(cli, two):
    before = below(two).keys()
    done = cli("report", "runs/a")
    place = two / "runs" / "a" / "report.html"
    assert (done.status, done.out) == (0, f"Report written to {place}\n")
    assert place.read_text() == report_page.page(report_content.documents(["runs/a"]), "html")
    assert below(two).keys() == before | {"runs/a/report.html"}
    assert p2p_sim.load(two / "runs" / "a").seed == SEED
    assert cli("report", "runs/a").status == 0


@pytest.mark.slow
def test_the_page_of_several_goes_beside_the_first(cli, two):
    assert str(two / "runs" / "report.html") in cli("report", "runs/b", "runs/a").out
    text = (two / "runs" / "report.html").read_text()
    assert text == report_page.page(report_content.documents(["runs/b", "runs/a"]), "html")


def test_other_formats_and_places(cli, two):
    told = cli("report", "runs/a", "--json")
    assert told.json["runs"][0]["parameters"]["alpha"] == 0.1
    assert cli("report", "runs/a", "--format", "json").out == told.out
    assert cli("report", "runs/a", "--format", "md").out.startswith("# peer-to-peer: a – p2p-sim\n")
    done = cli("report", "runs/a", "--json", "--no-seed", "--out", "r.json")
    assert done.out == "Report written to r.json\n"
    assert json.loads((two / "r.json").read_text())["runs"][0]["seed"] == "withheld"
    assert not (two / "runs" / "a" / "report.html").exists()


BAD = {
    "none": ((), ["RUN"]),
    "no run": (("runs/c",), ["'runs/c'", "not a run directory"]),
    "twice": (("runs/a", "runs/a"), ["'runs/a'", "named twice"]),
    "format": (("runs/a", "--format", "pdf"), ["--format 'pdf'", "html, md, json"]),
    "place": (("runs/a", "--out", "/proc/a.html"), ["'/proc/a.html'", "cannot be written"]),
    "folder": (("runs/a", "--out", "nowhere/a"), ["--out 'nowhere/a'", "folder that exists"]),
}


@pytest.mark.parametrize(("given", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input(given, told, cli, two):
    before = below(two)
    done = cli("report", *given)
    assert (done.status, done.out, below(two)) == (2, "", before)
    assert len(said(done)) == 1
    assert all(word in done.err for word in told), done.err


def test_help_has_an_example(cli):
    assert "Example: p2p-sim report runs/latest" in plain(cli("report", "--help").out)
