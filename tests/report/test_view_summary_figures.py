"""What the page says that viewpoints learn, over all protocols: the figures of ``privacy.profile``, basis and all."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2p_sim
from p2p_sim import privacy
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.overview import in_focus, overview
from p2p_sim.report.figure_text import bound_text, bracket_text, figure
from p2p_sim.report.view_summary import view_privacy
from tests.contract.cases import PROTOCOLS, people_of

pytestmark = pytest.mark.slow

AT = 1e-6
"""The delta of the page, for runs of up to 1,000 users."""


@pytest.fixture(scope="module", params=PROTOCOLS)
def run(request):
    protocol = PROTOCOLS[request.param]
    return p2p_sim.run(protocol, people_of(protocol, "contiguous", 44), seed=3)


def test_the_page_tells_the_figure_of_every_viewpoint(run):
    told = KnownRun.of(run)
    for point in overview(run, "run", told)["viewpoints"]:
        view = in_focus(point["view"], 4) or told.main
        for channels in ("plain", "encrypted") if "wire" in view else ("plain",):
            name = view.replace("user:4", "user")
            profile = privacy.profile(run.source, name, population=run.population, channels=channels)
            first = view_privacy(run, view, channels)["rows"][0]
            source = "; ".join([profile.source, *profile.assumes])
            assert (first["basis"], first["source"]) == (profile.basis, source)
            told = bracket_text(figure(profile, AT))
            sign = "from" if " to " in told else {"exact": "=", "upper": "≤"}[profile.basis]
            assert first["text"] == f"ε {sign} {told} at δ = 1e-06"


@given(st.floats(1e-300, 1e300))
def test_what_a_theorem_proves_holds_as_printed(epsilon):
    shown = Decimal(bound_text(epsilon, "upper"))
    assert 1 - Decimal("1e-12") <= shown / Decimal(repr(epsilon)) <= Decimal("1.001")  # as bracket_text says
    assert bound_text(epsilon, "claimed") == f"{epsilon:.4g}"  # as the paper has it


def test_a_bound_of_nothing_or_all():
    assert [bound_text(value, "upper") for value in (0.0, math.inf)] == ["0", "inf"]
