"""Which rows `account` shows, at which composition, and what its curves follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.privacy import table_rows
from p2p_sim.privacy.laws.noise import Gaussian
from p2p_sim.report import curves, privacy_table
from p2p_sim.report.privacy_table import AccountRequest
from protocols import PeerToPeer, RandomizedResponse
from tests.cli.conftest import below
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.slow

ACCOUNT = ("account", "peer-to-peer", "--alpha", "0.1")
SMALL = (*ACCOUNT, "--cluster-size", "12")
LABELS = [f"{i},{int(i < 9)},{int(i < 14)}" for i in range(40)]


def names(told):
    return [(row["name"], row["users"]) for row in told["views"]]


def test_only_the_views_asked_for(cli):
    told = cli(*SMALL, "--view", "wire", "--view", "2*user + learner", "--view", "wire", "--json").json
    assert names(told) == [("wire", "curious"), ("2*user + learner", "curious")]
    expected = privacy.profile(PeerToPeer(0.1), "learner+2*user", cluster_size=12).epsilon(1e-6)
    assert told["views"][1]["exact"]["epsilon"] == expected
    assert told["views"][1]["view"] == "learner+2*user"
    both = cli(*SMALL, "--view", "user", "--json").json
    assert names(both) == [("user", "curious"), ("user", "deviating")]
    named = cli(*SMALL, "--view", "learner+user:7", "--json").json["views"][0]
    assert named["exact"] == cli(*SMALL, "--view", "user+learner", "--json").json["views"][0]["exact"]


def test_a_composition_of_one_cluster(cli):
    for ones in (0, 5, 11):
        told = cli(*SMALL, "--view", "learner", "--composition", ones, "--json").json
        expected = privacy.profile(PeerToPeer(0.1), cluster_size=12, composition=ones)
        assert told["views"][0]["exact"]["epsilon"] == expected.epsilon(1e-6)
        assert told["composition"] == ones
    worst = cli(*SMALL, "--view", "learner", "--composition", "worst").out
    assert worst == cli(*SMALL, "--view", "learner").out
    assert "composition: 5" in cli(*SMALL, "--view", "wire", "--composition", "5").out
    eleven = {
        row["name"]: row["refused"] for row in cli(*SMALL, "--composition", "11", "--json").json["views"]
    }
    assert eleven["learner"] == ""
    assert eleven["learner+3*user"] == "composition = 11: there are 8 other honest users"


def test_the_labels_that_a_population_has(cli, tmp_path):
    (tmp_path / "a.csv").write_text("a,y,c\n" + "\n".join(LABELS) + "\n")
    words = (*ACCOUNT, "--data", "a.csv", "--cluster-column", "c", "--test", "0.1")
    told = cli(*words, "--composition", "population", "--plot", "a.svg", "--json").json
    found = {row["name"]: row for row in told["views"]}
    worst = {row["name"]: row for row in cli(*words, "--json").json["views"]}
    assert 0 < found["learner"]["exact"]["epsilon"] < worst["learner"]["exact"]["epsilon"]
    assert "labels as they are in this population" in found["learner"]["exact"]["assumes"][-1]
    assert "is for views without users" in found["learner+user"]["refused"]
    assert (tmp_path / "a.svg").stat().st_size > 0
    refused(cli(*words, "--composition", "population", "--view", "user"), "'user'", "without users")
    refused(cli(*words, "--composition", "3"), "composition = 3", "--cluster-size alone")


CASES = {
    "unknown view": (("--view", "moon"), ["'moon'", "learner, user, user:17, 3*user, wire"]),
    "repeated part": (("--view", "wire+wire"), ["'wire+wire'", "each party once"]),
    "empty view": (("--view", ""), ["unknown part ''"]),
    "no users": (("--view", "0*user"), ["'0*user'", "at least one"]),
    "too many users": (("--view", "12*user"), ["'12*user'", "at most 11 beside the victim"]),
    "text": (("--composition", "best"), ["'best'", "worst, population, or"]),
    "half": (("--composition", "1.5"), ["'1.5'", "worst, population, or"]),
    "nan": (("--composition", "nan"), ["'nan'", "worst, population, or"]),
    "negative": (("--composition", "-1"), ["composition = -1"]),
    "fits no view": (("--composition", "12"), ["composition = 12", "11 other honest users"]),
    "does not fit this view": (
        ("--composition", "11", "--view", "learner+user"),
        ["'learner+user'", "10 other"],
    ),
    "nobody's labels": (("--composition", "population"), ["'population'", "--data or --users"]),
}


@pytest.mark.parametrize("case", CASES)
def test_refuses(case, cli, tmp_path):
    words, parts = CASES[case]
    refused(cli(*SMALL, *words), *parts)
    assert below(tmp_path) == {}


@dataclass(frozen=True)
class Relayed(Protocol):
    """A protocol whose servers are called otherwise."""

    hand = Message("user", "relay", "hands a bit in", y=bool)
    pass_on = Message("relay", "analyst", "passes the bits on", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.hand(y=me.y)

    def relay(self, me: Party) -> Rounds:
        handed = yield self.hand.receive()
        yield self.pass_on(y=handed.y)

    def analyst(self, me: Party) -> Rounds:
        yield self.pass_on.receive()


@dataclass(frozen=True)
class Gossip(Protocol):
    """A protocol without servers."""

    tell = Message("user", "user", "tells a peer", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.tell(to=me.draw.member("peer", me.cluster), y=me.y)


def test_users_alone_have_rows():
    found = [(view.name, view.users) for view in table_rows.rows(Gossip())]
    assert found == [("user", "curious"), ("user", "deviating"), ("wire", "curious")]


def test_every_server_has_a_row():
    alone, few = ["relay", "analyst", "user"], ["relay+user", "relay+3*user"]
    expected = [*alone, *few, "relay+analyst", "wire", "relay+wire"]
    assert [view.name for view in table_rows.rows(Relayed())] == expected
    assert [view.name for view in table_rows.rows(RandomizedResponse(1.0))] == ["learner", "user", "wire"]


@dataclass(frozen=True)
class Noisy(Relayed):
    """Whose draws are too many for a law to be found."""

    def user(self, me: Party) -> Rounds:
        yield self.hand(y=(me.y + me.draw.laplace("noise", 1)) > 0)

    def relay(self, me: Party) -> Rounds:
        yield self.hand.receive()
        yield self.pass_on(y=True)


def test_what_is_refused_for_one_reason_is_a_line():
    def told(protocol, *views):
        question = AccountRequest(
            protocol, 1e-6, population=Population.synthetic(users=9, seed=1), only=views
        )
        return privacy_table.table_of(question, lambda *_: [], None)

    whole = told(Noisy())
    above, why = privacy_table.as_text(whole).split("\n")
    assert above.endswith("; 9 users")
    assert why == f"refused for every view: {whole['views'][0]['refused']}"
    assert "refused   -" in privacy_table.as_text(told(Noisy(), "relay"))
    whole["views"][2]["refused"] = "another reason"
    assert privacy_table.as_text(whole).count("refused   -") == len(whole["views"])


@pytest.mark.parametrize("view", ["learner", "learner+user", "wire"])
@pytest.mark.parametrize(("alpha", "theta", "size"), [(0.1, 1.0, 100), (0.2, 0.5, 25), (0.0, 1.0, 9)])
def test_a_curve_is_its_profile_and_the_line_never_below(view, alpha, theta, size):
    law = privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=size).law
    epsilons, deltas = curves.curve(law)
    assert epsilons[0] == 0
    assert (np.diff(epsilons) > 0).all()
    assert law.delta(float(epsilons[-1])).value <= 1e-12 or alpha == 0

    def true(epsilon):
        return max(1e-12, law.delta(float(epsilon)).value if epsilon < law.pure() else 0.0)

    for epsilon, delta in list(zip(epsilons, deltas, strict=True))[::2]:
        assert delta == pytest.approx(true(epsilon), rel=1e-6)
    drawn = list(zip(*curves.line(epsilons, deltas), strict=True))
    for epsilon, delta in drawn[::7]:
        assert true(epsilon) * (1 - 1e-9) <= delta
        assert delta <= true(epsilon) * 1.5 or epsilon > 0.99 * law.pure()


def test_where_a_curve_is_steep_it_has_points():
    """It was drawn 900 times too low at 0.8222, between two compositions."""
    law = privacy.profile(PeerToPeer(0.1), cluster_size=100).law
    epsilons, deltas = curves.line(*curves.curve(law))
    assert (
        np.exp(np.interp(0.8222, epsilons, np.log(deltas))) >= law.delta(0.8222).value * (1 - 1e-4) > 4.2e-7
    )
    assert np.abs(np.diff(np.log10(curves.curve(law)[1]))).max() < 0.5


def test_what_was_drawn_is_said(cli, tmp_path):
    words = ("--view", "learner", "--view", "user", "--plot", "a.svg", "--delta", "1e-3")
    out = cli(*SMALL, *words).out
    what = "line at δ = 0.001; plain channels"
    assert out.endswith(f"δ(ε) of 3 views drawn in a.svg (3 exact; clusters of 12; {what})\n")
    drawing = (tmp_path / "a.svg").read_text()
    for told in ("peer-to-peer: alpha = 0.1, theta = 1.0", f"clusters of 12; {what}", "learner (exact)"):
        assert f"<!-- {told}" in drawing or f"{told} -->" in drawing, told


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_curves_are_written_as_a_table(cli, tmp_path, ending):
    out = cli(*SMALL, "--view", "learner", "--view", "user", "--plot", f"a.{ending}").out
    assert f"δ(ε) of 3 views written to a.{ending} (3 exact; clusters of 12; " in out
    read = pandas.read_csv if ending == "csv" else pandas.read_parquet
    table = read(tmp_path / f"a.{ending}")
    assert list(table) == ["epsilon_nats", "delta_lower", "delta", "delta_upper", "basis", "view"]
    assert list(table.view.unique()) == ["learner", "user: one curious peer", "user: one deviating peer"]
    profile = privacy.profile(PeerToPeer(0.1, 1.0), "learner", cluster_size=12)
    mine = table[table.view == "learner"].drop(columns="view").reset_index(drop=True)
    pandas.testing.assert_frame_equal(mine, profile.curve().drop(columns="view"), rtol=1e-15, atol=0)


def test_a_delta_that_hides_everything(cli):
    out = cli(*SMALL, "--view", "user", "--delta", "0.01").out
    assert "note: δ = 0.01 is not far below 1/12: a peer who sees" in out
    assert "note:" not in cli(*SMALL, "--view", "user", "--delta", "0.008").out
    million = (*ACCOUNT, "--cluster-size", "1000000", "--view", "user")
    assert "not far below 1/1,000,000" in cli(*million).out
    assert "1/1,000,000" in cli(*million, "--json").json["hidden"]
    solved = ("calibrate", "peer-to-peer", "--view", "user", "--cluster-size", "12", "--epsilon", "2")
    assert "note: δ = 0.01 is not far below 1/12" in cli(*solved, "--delta", "0.01").out
    assert "note:" not in cli(*solved).out


def test_curves_of_several_laws_and_of_none_that_end():
    people = Population.from_arrays(y=np.arange(30) < 4, cluster=np.repeat([0, 1], [10, 20]))
    profile = privacy.profile(PeerToPeer(0.2), population=people, composition="population")
    epsilons, deltas = curves.curve(profile.law)
    assert deltas[4] == pytest.approx(profile.delta(float(epsilons[4])), rel=1e-9)
    endless = curves.curve(Gaussian(1.0))
    assert 1e-12 <= endless[1][-1] < 1e-11
