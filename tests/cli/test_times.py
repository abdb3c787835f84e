"""``--times``: figures of several runs on the same labels, with fresh coins."""

from __future__ import annotations

import pytest

from p2p_sim import privacy
from protocols import RandomizedResponse

ACCOUNT = ("account", "randomized-response", "--epsilon", "0.5", "--json")
CALIBRATE = ("calibrate", "randomized-response", "--vary", "epsilon", "--epsilon", "2", "--json")


def composed(epsilon: float, times: int) -> privacy.PrivacyProfile:
    return privacy.composed(privacy.profile(RandomizedResponse(epsilon), "learner"), times)


def test_account_tells_what_several_runs_show(cli):
    told = cli(*ACCOUNT, "--times", "10").json
    learner = {row["name"]: row for row in told["views"]}["learner"]
    expected = composed(0.5, 10)
    assert told["times"] == 10
    assert told["local_epsilon"] == pytest.approx(5)
    assert learner["exact"]["epsilon"] == pytest.approx(expected.epsilon(1e-6), rel=1e-9)
    assert learner["exact"]["basis"] == expected.basis
    assert "independent runs add up: 10 x" in learner["exact"]["source"]
    assert learner["theorems"] == []
    once = cli(*ACCOUNT).json
    assert (once["times"], once["local_epsilon"]) == (1, pytest.approx(0.5))
    assert "10 runs on the same labels, fresh coins" in cli(*ACCOUNT[:-1], "--times", "10").out


def test_calibrate_solves_for_all_runs_together(cli):
    found = cli(*CALIBRATE, "--times", "10").json
    value = found["value"]
    assert found["times"] == 10
    assert composed(value, 10).epsilon_bracket(1e-6).upper <= 2
    assert composed(value * 1.002, 10).epsilon_bracket(1e-6).lower > 2
    assert value < cli(*CALIBRATE).json["value"] / 2
    assert found["achieved"]["basis"] == composed(value, 10).basis
    assert "10 runs on the same labels" in cli(*CALIBRATE[:-1], "--times", "10").out


@pytest.mark.parametrize("words", [ACCOUNT, CALIBRATE])
@pytest.mark.parametrize("times", ["0", "1000000001", "1.5", "1_0"])
def test_times_is_a_number_of_runs(cli, words, times):
    done = cli(*words, "--times", times)
    assert done.status == 2
    assert "times" in done.err
    assert "whole number" in done.err


def test_what_does_not_compose_is_refused_by_view():
    measured = privacy.profile(RandomizedResponse(1.0), "learner")
    lower = privacy.PrivacyProfile(measured.view, "lower", "a search", (), "", measured.law)
    from p2p_sim.privacy.composition.compose import repeated

    assert repeated(lower, 1) is lower
    refused = repeated(lower, 2)
    assert (refused.basis, refused.law) == ("refused", None)
    assert "basis 'lower'" in refused.why
