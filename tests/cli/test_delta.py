"""One delta for all tables: a figure that is promised is the figure that comes back."""

from __future__ import annotations

import pytest

from tests.cli.test_bad_input import refused


def learner(table):
    return next(row["exact"]["epsilon"] for row in table["views"] if row["name"] == "learner")


@pytest.mark.slow
@pytest.mark.parametrize("asked", [(), ("--delta", "0.001")], ids=["default", "given"])
def test_what_calibrate_promises_comes_back(cli, asked):
    promised = cli(
        "calibrate", "peer-to-peer", "--epsilon", "1", "--cluster-size", "60", *asked, "--json"
    ).json
    alpha = repr(promised["value"])
    where = ("peer-to-peer", "--alpha", alpha)
    accounted = cli("account", *where, "--cluster-size", "60", *asked, "--json").json
    run = cli(
        "run", *where, "--users", "3000", "--cluster-size", "60", *asked, "--out", "here", "--json"
    ).json
    reported = cli("report", "here", "--json").json["runs"][0]
    tables = [accounted, run["privacy"], reported["privacy"]]
    assert {table["delta"] for table in tables} == {promised["delta"]} == {0.001 if asked else 1e-6}
    for table in tables:
        assert learner(table) == pytest.approx(promised["achieved"]["epsilon"], rel=1e-9)
        assert 0.999 < learner(table) <= 1 + 1e-9


def test_a_report_accounts_again_at_another_delta(cli):
    run = cli("run", "randomized-response", "--users", "300", "--seed", "1", "--out", "here", "--json").json
    again = cli("report", "here", "--delta", "0.01", "--json").json["runs"][0]["privacy"]
    assert (run["privacy"]["delta"], again["delta"]) == (1e-6, 0.01)
    assert learner(again) < learner(run["privacy"])
    asked = cli("account", "randomized-response", "--delta", "0.01", "--json").json
    assert learner(again) == learner(asked)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "randomized-response", "--users", "30"),
        ("account", "randomized-response"),
        ("report", "here"),
        ("trace", "serve", "here"),
    ],
)
@pytest.mark.parametrize("delta", ["1", "-0.5", "nan"])
def test_a_delta_that_is_none_is_refused(cli, words, delta):
    refused(cli(*words, "--delta", delta), "delta")
