"""What every protocol owes its users: a law or a reason for every view, also under faults; enumeration; audits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, ProtocolError, privacy
from p2p_sim.privacy.accountant import local_epsilon
from p2p_sim.privacy.table_rows import TableRow, rows
from protocols import (
    ALL,
    Alibi,
    BinnedResponse,
    ClusterResponse,
    DoubleResponse,
    DummyFeatures,
    EncryptedShuffle,
    IntervalResponse,
    LabelProportions,
    LaplaceLabelProportions,
    MultiStage,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    PriorResponse,
    RandomizedResponse,
    SecureAggregation,
    UnbiasedResponse,
)  # fmt: skip
from tests.contract.cases import PROTOCOLS, joined, unclustered

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

FAULTS = [
    ["drop=0.1"], ["loss=0.1"], ["late=0.1"], ["duplicate=0.2"], ["lie=flip:0.2"], ["lie=constant1:0.2"],
    ["stop=learner:0"], ["tamper=0.1"], ["misdirect=0.1"], ["replay=0.2"], ["drop=0.05", "loss=0.05", "lie=random:0.1"],
]  # fmt: skip
EPSILONS = (0.0, 0.3, 1.0)


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


def size_of(protocol: Any) -> int:
    """Users of a small cluster."""
    return max(5, int(getattr(protocol, "bag_size", 0)))


def seals(protocol: Any) -> bool:
    return any(message.opener == message.recipient for message in protocol.messages().values())


def told(protocol: Any, view: TableRow, people: Population, channels: str, faults: Any) -> Any:
    """A view's profile, after what any profile must be."""
    found = privacy.profile(
        protocol, view.name, population=people, channels=channels, users=view.users, faults=faults
    )
    assert found.basis in ("exact", "upper", "lower", "refused")
    if found.law is None:
        assert type(protocol).__name__ in found.why
        with pytest.raises(privacy.RefusedError, match=view.name.replace("+", r"\+").replace("*", r"\*")):
            found.delta(1.0)
    else:
        assert found.source
        assert [0.0 <= found.delta(at) <= 1.0 for at in EPSILONS] == [True] * 3
        assert found.delta_bracket(0.0).upper >= found.delta_bracket(1.0).lower
    return found


@pytest.mark.parametrize("channels", ["plain", "encrypted"])
def test_every_view_has_a_law_or_a_reason(protocol: Any, channels: str) -> None:
    people = joined(protocol, unclustered(size_of(protocol)))
    for view in rows(protocol):
        told(protocol, view, people, channels, None)


def test_and_so_it_has_under_faults(protocol: Any) -> None:
    people = joined(protocol, unclustered(size_of(protocol)))
    for faults in FAULTS:
        if faults[0].partition("=")[0] in ("tamper", "misdirect", "replay") and not seals(protocol):
            with pytest.raises(InputError, match="seals nothing"):
                privacy.profile(protocol, cluster_size=9, faults=faults)
            continue
        for view in rows(protocol):
            assert told(protocol, view, people, "plain", faults).basis in ("upper", "refused")


@pytest.mark.parametrize("name", ["learner+nobody", "2*learner", "user:x"])
def test_views_that_are_none_are_named(protocol: Any, name: str) -> None:
    with pytest.raises(InputError, match="view = "):
        privacy.profile(protocol, name, cluster_size=9)


FEW: list[Any] = [
    PeerToPeer(0.2), RandomizedResponse(1.0, labels=3), PriorResponse(1.0, 3, "0.6,0.3,0.1"), MultiStage(1.0),
    BinnedResponse(2.0, 3), UnbiasedResponse(1.0, 2), IntervalResponse(1.0, 3, window=0), Alibi(1.0),
    ClusterResponse(1.0), ClusterResponse(1.0, preset="uniform"), DummyFeatures(0.5, 3),
    DoubleResponse(1.0, "0|1", truth="0|1"),
    EncryptedShuffle(1.0), EncryptedShuffle(1.0, shufflers=2),
    NetworkShuffle(1.0, steps=1), PeerPermutation(0.2), LabelProportions(4), LaplaceLabelProportions(1.0, 4),
    SecureAggregation(3),
]  # fmt: skip
"""Every protocol with so few draws that three users are enumerated, if they can be at all."""

ENDLESS = r"draw '(share|noise|private key)' .*(outcomes|Laplace).*audit instead"
"""What is said of draws with too many outcomes."""


@pytest.mark.parametrize("protocol", FEW, ids=lambda p: type(p).__name__)
def test_every_coalition_is_enumerated_or_refused_by_name(protocol: Any) -> None:
    """And what is enumerated is never more than the law says."""
    labels = np.array([0, 1, 0], np.uint8)
    people = joined(protocol, Population.from_arrays(y=labels if protocol.label_count() > 2 else labels > 0))
    for view in rows(protocol):
        if view.users == "deviating" or view.colluders > 2:
            continue
        law = told(protocol, view, people, "plain", None)
        endless = (PeerPermutation, LaplaceLabelProportions, SecureAggregation, Alibi)
        if isinstance(protocol, endless) or getattr(protocol, "preset", "") == "cluster":
            with pytest.raises((InputError, ProtocolError), match=ENDLESS):
                privacy.enumerate_view(protocol, people, view=view.name)
            continue
        found = privacy.enumerate_view(protocol, people, view=view.name)
        assert sum(found.world.values()) == sum(found.neighbour.values()) == 1
        for at in EPSILONS:
            assert law.law is None or found.delta(at) <= law.delta_bracket(at).upper + 1e-12, view.name


def test_every_protocol_is_among_the_few() -> None:
    assert {type(protocol) for protocol in FEW} == set(ALL)


def test_no_audit_exceeds_what_is_told(protocol: Any) -> None:
    if protocol.graph_over() is not None or "everybody" in str(getattr(protocol, "over", "")):
        with pytest.raises(InputError, match=r"graph|audit over = 'cluster'"):
            privacy.audit(protocol, cluster_size=5, delta=0.01, trials=300)
        return
    size = size_of(protocol)
    for view in rows(protocol):
        if view.users == "deviating" or view.colluders > 1 or ("wire" in view.name and size > 5):
            continue
        found = privacy.audit(protocol, view.name, cluster_size=size, delta=0.01, trials=300)
        assert not found.failed, (view.name, found.why)
        assert found.verdict != "inconclusive" or found.lower <= (found.exact or math.inf)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("EncryptedShuffle", {"epsilon": -1.0}, ["epsilon", "-1.0", "[0, inf]"]),
        ("EncryptedShuffle", {"epsilon": 1.0, "labels": 1}, ["labels", "1", "from 2 to 256"]),
        ("EncryptedShuffle", {"epsilon": 1.0, "over": "all"}, ["over", "'all'", "cluster, everybody"]),
        ("EncryptedShuffle", {"epsilon": 1.0, "shufflers": 4}, ["shufflers", "4", "from 1 to 3"]),
        ("NetworkShuffle", {"epsilon": math.nan}, ["epsilon", "nan", "[0, inf]"]),
        ("NetworkShuffle", {"epsilon": 1.0, "steps": -1}, ["steps", "-1", "from 0 to 10,000"]),
        ("DoubleResponse", {"lam": -0.5, "generator": "0|1"}, ["lam", "-0.5", "[0, 1]"]),
        ("DummyFeatures", {"lam": 1.01}, ["lam", "1.01", "[0, 1]"]),
        ("PeerPermutation", {"alpha": 0.6}, ["alpha", "0.6", "[0, 0.5]"]),
        ("LabelProportions", {"bag_size": 0}, ["bag_size", "0", "from 1"]),
        ("ClusterResponse", {"epsilon": 0.0}, ["epsilon", "0.0", "(0, 40"]),
        ("ClusterResponse", {"epsilon": 1e-5}, ["epsilon", "1e-05", "at least 0.00015"]),
        ("ClusterResponse", {"epsilon": 40.0, "noise_share": 0.01}, ["epsilon", "40.0", "smaller epsilon"]),
        ("ClusterResponse", {"epsilon": 1.0, "labels": 300}, ["labels", "300", "from 2 to 256"]),
        (
            "ClusterResponse",
            {"epsilon": 1.0, "preset": "given"},
            ["preset", "'given'", "ClusterResponse.given"],
        ),
        ("ClusterResponse", {"epsilon": 1.0, "phi": 0.0}, ["phi", "0.0", "(0, 2]"]),
        ("ClusterResponse", {"epsilon": 1.0, "noise_share": 1.0}, ["noise_share", "1", "below 1"]),
        ("ClusterResponse", {"epsilon": 1.0, "grid": 257}, ["grid", "257", "from 1 to 256"]),
        ("LaplaceLabelProportions", {"epsilon": 0.0}, ["epsilon", "0.0", "(0, 700"]),
        ("LaplaceLabelProportions", {"epsilon": 1.0, "grid": 1.5}, ["grid", "1.5", "integer"]),
        ("SecureAggregation", {"bag_size": 1}, ["bag_size", "1", "from 2"]),
        ("SecureAggregation", {"bag_size": 4, "threshold": 5}, ["threshold", "5", "from 2 to 4"]),
        ("SecureAggregation", {"degree": 3}, ["degree", "3", "even"]),
        ("SecureAggregation", {"epsilon": -2.0}, ["epsilon", "-2.0", "(0, 700"]),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, given: dict[str, Any], words: list[str]) -> None:
    kind = next(kind for kind in ALL if kind.__name__ == name)
    with pytest.raises(InputError) as caught:
        kind(**given)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("epsilon", [1000.5, 2000.0])
@pytest.mark.parametrize(
    "kind", [RandomizedResponse, PriorResponse, MultiStage, EncryptedShuffle, NetworkShuffle]
)
def test_who_never_lies_tells_the_truth(kind: Any, epsilon: float) -> None:
    """Far below one random word in 2^64 no lie is drawn, whatever epsilon was asked for: it is infinite."""
    protocol = kind(epsilon, steps=0) if kind is NetworkShuffle else kind(epsilon)
    people = joined(protocol, unclustered(9))
    where: dict[str, Any] = {"population": people} if protocol.graph_over() else {"cluster_size": 9}
    law = privacy.profile(protocol, "shuffler+learner" if kind is EncryptedShuffle else "learner", **where)
    assert law.delta_bracket(2 * epsilon).upper == 1
    assert local_epsilon(protocol) == math.inf
    assert local_epsilon(kind(1000.0)) == 1000
