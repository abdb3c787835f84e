"""A law that somebody registers for a protocol of her own, with public names alone, is used wherever laws are."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.core import Message, Protocol
from protocols import PeerToPeer

pytestmark = pytest.mark.slow

SORTED = '''
"""Users with one of k labels tell a sorter, who hands the learner noisy labels in order of their users."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from p2p_sim import privacy
from p2p_sim.core import InputError, Message, Party, Protocol, Rounds, check_range
from p2p_sim.coalition import Coalition


@dataclass(frozen=True)
class Sorted(Protocol):
    """Labels are said to a sorter, truly with some odds.

    ``epsilon``: in nats, at least 0.  ``k``: labels.
    """

    epsilon: float
    k: int = 3

    say = Message("user", "sorter", "says a noisy label", y=np.uint8)
    tell = Message("sorter", "learner", "tells whose label is which", user=np.int64, cluster=np.int64, y=np.uint8)

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, 100)

    def label_count(self) -> int:
        return self.k

    @classmethod
    def in_clusters(cls) -> bool:
        return True

    def lying(self) -> Fraction:
        lie = (self.k - 1) / (self.k - 1 + math.exp(self.epsilon))
        return Fraction(lie)

    def user(self, me: Party) -> Rounds:
        lies = me.draw.bernoulli("lie", self.lying())
        other = 1 + me.draw.below("other", self.k - 1)
        yield self.say(y=((me.y + lies * other) % self.k).astype(np.uint8))

    def sorter(self, me: Party) -> Rounds:
        said = yield self.say.receive()
        yield self.tell(user=said.sender, cluster=said.sender // SIZE, y=said.y)

    def learner(self, me: Party) -> Rounds:
        told = yield self.tell.receive()
        return {"sender": told.user.data, "y": told.y.data}


SIZE = 4


def law(protocol: Sorted, setting: privacy.Setting) -> privacy.PrivacyProfile:
    privacy.fits(setting, privacy.crowd(setting))
    local = privacy.LocalResponse(protocol.epsilon, protocol.k)
    sees = setting.view.servers or (setting.view.wire and not setting.encrypted)
    return privacy.PrivacyProfile(
        setting.text, "exact", "by hand", ("one run",), "", local if sees else privacy.Nothing()
    )


def theorems(protocol: Sorted, view: str, sizes: list[int], delta: float) -> list[privacy.Promise]:
    return [
        privacy.Promise(
            name="By hand", epsilon=protocol.epsilon, delta=0.0, holds=True, why="", basis="upper", source="here"
        )
    ]


@dataclass(frozen=True)
class Said(privacy.Statistic):
    """What the victim said: her message is the first of her world."""

    epsilon: float
    k: int
    coordinates = ("y",)

    def read(self, seen: privacy.Seen) -> dict[str, np.ndarray]:
        came = seen.kinds.get("say")
        if came is not None:
            mine = came.sender % seen.size == 0
        else:
            came = seen.kinds["tell"]
            mine = came.fields["user"] % seen.size == 0
        return {"y": came.fields["y"][mine].astype(np.int16)}

    def row_ratios(self, rows: dict[str, np.ndarray]) -> np.ndarray:
        return np.select([rows["y"] == 1, rows["y"] == 0], [self.epsilon, -self.epsilon], 0.0)

    def row_law(self, rows: dict[str, np.ndarray], label: int) -> tuple[np.ndarray, np.ndarray]:
        law = np.full(self.k, 1 / (self.k - 1 + math.exp(self.epsilon)))
        law[label] = 1 - law[label] * (self.k - 1)
        below = np.concatenate([[0.0], np.cumsum(law)])
        return below[rows["y"]][:, None], law[rows["y"]][:, None]


def statistic(
    protocol: Sorted, who: Coalition, size: int, composition: int, channels: str
) -> privacy.Statistic:
    reads = who.servers or (who.wire and channels == "plain")
    return Said(protocol.epsilon, protocol.k) if reads else privacy.Blind()


privacy.register(
    Sorted,
    privacy.Accounting(
        law=law,
        under_faults=lambda law, protocol, setting, faults: replace(law(protocol, setting), basis="upper"),
        theorems=theorems,
        statistic=statistic,
        local_epsilon=lambda protocol: protocol.epsilon,
        noise=lambda protocol: privacy.LabelNoise(protocol.lying(), protocol.k),
    ),
)
'''


@pytest.fixture
def sorted_labels(tmp_path, monkeypatch):
    """A module of a stranger, and its protocol; forgotten afterwards, so that every test registers its own."""
    (tmp_path / "sorting.py").write_text(SORTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    return importlib.import_module("sorting").Sorted


def test_profiles_and_calibration_use_it(sorted_labels):
    found = privacy.profile(sorted_labels(1.0), "learner", cluster_size=4)
    keep = math.e / (2 + math.e)
    assert found.delta(0.0) == pytest.approx(keep * (1 - math.exp(-1.0)))
    assert privacy.profile(sorted_labels(1.0), "user", cluster_size=4).epsilon(0.0) == 0
    wrong = privacy.profile(sorted_labels(1.0), "learner", cluster_size=4, faults=["drop=0.1"])
    assert (wrong.basis, wrong.epsilon(0.0)) == ("upper", 1.0)
    solved = privacy.calibrate(sorted_labels, vary="epsilon", cluster_size=4, epsilon=0.7, delta=0.0, k=5)
    assert solved.value == pytest.approx(0.7)
    assert solved.views["user"].epsilon(0.0) == 0
    people = Population.synthetic(users=20, cluster_size=8, positive=0.5, seed=1)
    assert set(privacy.by_cluster(sorted_labels(1.0), population=people)) == {"smallest", "median", "largest"}


def test_audits_count_its_statistic_beside_its_theorems(sorted_labels):
    found = privacy.audit(sorted_labels(1.0), cluster_size=4, delta=0.0, trials=4000, seed=3)
    assert found.statistic == "exact likelihood ratio"
    assert found.law is not None
    assert not found.law.rejected
    assert {claim.name for claim in found.claims} == {"exact", "By hand", "local"}
    assert 0.5 < found.lower <= 1.0
    false = privacy.audit(
        sorted_labels(2.0), against=sorted_labels(0.5), cluster_size=4, delta=0.0, trials=4000, seed=3
    )
    assert false.verdict == "violated"
    blind = privacy.audit(sorted_labels(1.0), "user", cluster_size=4, delta=0.0, trials=400, seed=3)
    assert blind.lower == 0


def test_every_verb_knows_it_once_its_module_is_imported(cli, sorted_labels):
    told = cli("account", "sorting:Sorted", "--epsilon", 1, "--cluster-size", 4, "--json").json
    rows = {row["name"]: row for row in told["views"]}
    assert rows["learner"]["exact"]["source"] == "by hand"
    assert [each["name"] for each in rows["learner"]["theorems"]] == ["By hand"]
    assert told["local_epsilon"] == 1.0
    words = ("calibrate", "sorting:Sorted", "--vary", "epsilon", "--epsilon", 0.5, "--cluster-size", 4)
    assert cli(*words, "--json").json["value"] == pytest.approx(0.5, rel=1e-5)
    options = ("--epsilon", 1, "--cluster-size", 4)
    audited = cli("audit", "sorting:Sorted", *options, "--trials", 400, "--json")
    assert audited.json["views"][0]["statistic"] == "exact likelihood ratio"
    rows = "\n".join(f"{i % 7},{i % 3}" for i in range(60))
    Path("three.csv").write_text(f"a,label\n{rows}\n")
    words = ("run", "sorting:Sorted", "--epsilon", 1, "--data", "three.csv", "--clusters", 2)
    ran = cli(*words, "--out", "r", "--json")
    assert ran.status == 0, ran.err
    page = cli("report", "r", "--format", "md")
    assert page.status == 0, page.err
    assert "By hand" in page.out
    assert "by hand" in page.out


def test_what_is_not_registered_is_refused_and_says_how(sorted_labels):
    class Derived(sorted_labels):
        pass

    assert privacy.accounting(Derived) is None
    found = privacy.profile(Derived(1.0), cluster_size=4)
    assert found.basis == "refused"
    assert "privacy.register(Derived, privacy.Accounting(law=...))" in found.why
    privacy.register(Derived, privacy.Accounting(law=lambda _protocol, setting: privacy.PrivacyProfile(
        setting.text, "exact", "by hand", (), "", privacy.Nothing())))  # fmt: skip
    assert privacy.profile(Derived(1.0), cluster_size=4).epsilon(0.0) == 0
    refused = privacy.profile(Derived(1.0), cluster_size=4, faults=["drop=0.1"])
    assert "faults (drop=0.1) are not accounted for Derived" in refused.why
    assert privacy.label_noise(Derived(1.0)) is None


class Silent(Protocol):
    """Never registered."""

    note = Message("user", "learner", "says nothing")


LAW = privacy.Accounting[Protocol]()


@pytest.mark.parametrize(
    ("kind", "accounting", "words"),
    [
        (PeerToPeer, LAW, ["PeerToPeer", "registered already", "once"]),
        (PeerToPeer(0.1), LAW, ["PeerToPeer(...)", "give the class, PeerToPeer"]),
        (int, LAW, ["int", "derived from p2p_sim.core.Protocol"]),
        (Protocol, LAW, ["derived from p2p_sim.core.Protocol"]),
        ("peer-to-peer", LAW, ["'peer-to-peer'", "derived from p2p_sim.core.Protocol"]),
        (Silent, print, ["Silent", "privacy.Accounting(law=...)"]),
    ],
)
def test_what_cannot_be_registered_is_refused_by_name(kind, accounting, words):
    with pytest.raises(InputError) as told:
        privacy.register(kind, accounting)
    assert all(word in str(told.value) for word in words), told.value
    assert privacy.accounting(Silent) is None


def test_an_entry_is_a_function():
    with pytest.raises(InputError, match=r"law = 0\.5: must be a function of the protocol"):
        privacy.Accounting(law=0.5)
