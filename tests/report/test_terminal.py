"""Terminals that lack letters, and objects that are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.leakage.attack import attack
from p2p_sim.learning.training.evaluation import Comparison
from p2p_sim.result_summary import down, up
from protocols import LabelProportions, PeerToPeer, RandomizedResponse

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"PYTHONIOENCODING": "latin-1"}, ["account", "randomized-response"]),
        ({"PYTHONUTF8": "0", "LC_ALL": "C"}, ["account", "randomized-response"]),
        ({"PYTHONUTF8": "0", "LC_ALL": "C"}, ["calibrate", "--help"]),
    ],
)
def test_terminals_without_greek(settings, words, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONCOERCECLOCALE": "0"} | settings
    done = subprocess.run(
        [sys.executable, "-m", "p2p_sim.cli", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"eps" in done.stdout


def things() -> list[Any]:
    """One of everything that shows itself."""
    people = Population.synthetic(users=300, cluster_size=7, positive=0.5, seed=0)
    run = p2p_sim.run(PeerToPeer(0.1), people, seed=1, trace="full", faults=["loss=0.1"])
    one = privacy.profile(PeerToPeer(0.1), population=people)
    few = Population.from_arrays(y=np.array([False, True, False]))
    return [
        run, run.view("learner+user:3"), run.view("wire", channels="encrypted").world(2), run.replay(3),
        one, privacy.profile(PeerToPeer(0.1), cluster_size=1000), privacy.compose([(one, 5)]),
        privacy.PrivacyProfile.refused("learner", "no law is known"),
        privacy.enumerate_view(PeerToPeer(0.25), few),
        privacy.calibrate(PeerToPeer, vary="alpha", cluster_size=20, epsilon=1.0, delta=1e-3),
        privacy.calibrate_noise(privacy.gaussian, epsilon=1.0, delta=1e-6, times=3),
        privacy.audit(PeerToPeer(0.1), cluster_size=5, trials=500, delta=0.1),
        attack(run, "learner", eta="prior"), _models(),
    ]  # fmt: skip


def _models() -> Comparison:
    return Comparison(0.75, 0.875, 0.5, 40, 50, 8, "logistic-regression", "few rows", accuracy_corrected=0.8)


@pytest.mark.slow
def test_notebooks_draw_what_was_measured():
    people = Population.synthetic(users=300, positive=0.5, seed=0)
    run = p2p_sim.run(RandomizedResponse(2.0), people, seed=1)
    found = attack(run, "learner", eta="prior")
    optimal = next(row for row in found.rows if row.name == "optimal")
    audit = privacy.audit(RandomizedResponse(1.0), trials=500, delta=0.0)
    for each, texts in [
        (run, ["report", "5,100 bytes"]),
        (privacy.profile(RandomizedResponse(1.0)), ["ε (nats)", "δ(ε)", "1e0", "1e-6", "1"]),
        (audit, ["measured at least", down(audit.lower), "exact", "1"]),
        (
            found,
            ["optimal", f"{optimal.utility.value:.4g}", f"{optimal.baseline.value:.4g} without the messages"],
        ),
        (_models(), ["true labels", "87.50 %", "always the majority", "50.00 %"]),
    ]:
        drawn = re.findall("<text[^>]*>(.*?)</text>", each.picture())
        assert set(texts) <= set(drawn), each
        assert each.picture() in each._repr_html_()


def test_what_cannot_be_drawn_or_takes_long_is_not():
    assert privacy.PrivacyProfile.refused("learner", "no law is known").picture() == ""
    assert privacy.profile(LabelProportions(), cluster_size=20).picture() == ""  # infinite
    assert privacy.profile(RandomizedResponse(1.0), "user").picture() == ""  # 0


@pytest.mark.slow
def test_results_show_themselves_in_one_line_a_few_lines_and_a_table():
    for each in things():
        assert len(repr(each)) < 160
        assert "\n" not in repr(each)
        lines = str(each).splitlines()
        assert 2 <= len(lines) <= 14, str(each)
        assert max(map(len, lines)) <= 100
        assert "..." not in repr(each) + str(each)
        table = Table()
        html = each._repr_html_()
        assert html.endswith(f"</table>{each.picture()}</div>")
        table.feed(html.replace(each.picture(), "") if each.picture() else html)
        assert table.open == []
        title, rows = each.summary()
        assert table.texts == [title, *(text for row in rows for text in row)]
        printer = Printer()
        # IPython looks in each class for both, from the first to the last: an inherited one comes after its repr.
        vars(type(each))["_repr_pretty_"](each, printer, False)
        assert printer.printed == str(each)


class Printer:
    """As much of IPython's as is used."""

    def text(self, text: str) -> None:
        self.printed = text


class Table(HTMLParser):
    """The texts of a table, and the tags that were not closed; whatever could load or run something is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ("div", "strong", "table", "tbody", "tr", "th", "td")
        assert {name for name, _ in attributes} <= {"scope", "style"}
        assert not any("color" in (value or "") or "url" in (value or "") for _, value in attributes)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_what_others_named_is_escaped():
    hostile = "<script>alert(1)</script>\x1b[2J\n&"
    shown = privacy.PrivacyProfile.refused(hostile, hostile)
    safe = "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\n&amp;"
    assert shown._repr_html_().count(safe) == 2
    assert "\x1b" not in str(shown)
    assert str(shown).count("\n") == 2


def test_a_run_does_not_show_its_seed():
    run = p2p_sim.run(RandomizedResponse(1.0), Population.from_arrays(y=np.arange(5) < 2), seed=987654321987)
    for shown in (repr(run), str(run), run._repr_html_()):
        assert "987654321987" not in shown
        assert str(run.digest) in shown
    assert "5 report" in str(run)


def test_the_repr_of_a_profile_computes_nothing():
    class Costly(privacy.Law):
        def directions(self, epsilon):
            raise AssertionError("computed")

        def pure(self):
            raise AssertionError("computed")

    profile = privacy.PrivacyProfile("learner", "exact", "none", law=Costly())
    assert repr(profile) == "<PrivacyProfile of learner: exact>"
    with pytest.raises(AssertionError, match="computed"):
        str(profile)


def test_figures_hold_as_printed():
    assert (down(0.123456), up(0.123456)) == ("0.1234", "0.1235")
    assert (down(2.0), up(2.0), up(9.99991), down(0)) == ("2", "2", "10", "0")
    assert (up(float("inf")), up(1e-12)) == ("inf", "1e-12")
