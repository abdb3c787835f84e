"""What the accountant says of shuffles: who sees what, beside the theorems, and for whole populations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy import accountant
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.table_rows import rows
from protocols import EncryptedShuffle, PeerPermutation, RandomizedResponse

DELTA = 1e-6
SHUFFLE, CHAIN, PEERS = EncryptedShuffle(1.0), EncryptedShuffle(1.0, shufflers=3), PeerPermutation(0.2)


def epsilon(protocol, view="learner", size=100, **options):
    return privacy.profile(protocol, view, cluster_size=size, **options).epsilon(DELTA)


def test_the_learner_s_figure_is_that_of_the_shuffle_and_in_order_with_the_theorems() -> None:
    for size, local in ((1000, 1.0), (5000, 0.5), (300, 2.0)):
        exact = epsilon(EncryptedShuffle(local), size=size)
        assert exact == pytest.approx(privacy.shuffled_response(size, local).epsilon(DELTA), rel=1e-9)
        told = {p["name"]: p for p in accountant.of(EncryptedShuffle(local), "learner", [size], DELTA, True)}
        assert exact <= told["stronger clone"]["epsilon"] <= told["clone"]["epsilon"]
        if told["FMT 2021"]["holds"]:
            assert told["clone"]["epsilon"] <= told["FMT 2021"]["epsilon"]
    assert epsilon(PEERS) == pytest.approx(epsilon(EncryptedShuffle(math.log(4))), rel=1e-9)


def test_colluding_users_shrink_the_crowd() -> None:
    for c in (1, 3, 50, 99):
        assert epsilon(SHUFFLE, f"learner+{c}*user") == pytest.approx(
            epsilon(SHUFFLE, size=100 - c), rel=1e-9
        )
        told = accountant.of(SHUFFLE, f"learner+{c}*user", [100], DELTA, True)
        alone = accountant.of(SHUFFLE, "learner", [100 - c], DELTA, True)
        assert [p["epsilon"] for p in told] == [p["epsilon"] for p in alone]


@pytest.mark.parametrize(
    ("protocol", "view", "law"),
    [
        (SHUFFLE, "shuffler", Nothing), (SHUFFLE, "user", Nothing), (SHUFFLE, "wire", Nothing),
        (SHUFFLE, "shuffler+3*user+wire", Nothing), (SHUFFLE, "shuffler+learner", LocalResponse),
        (SHUFFLE, "shuffler+learner+user+wire", LocalResponse), (CHAIN, "shuffler+shuffler2+shuffler3", Nothing),
        (CHAIN, "shuffler+shuffler2+shuffler3+learner", LocalResponse), (EncryptedShuffle(0.0), "learner", Nothing),
        (EncryptedShuffle(math.inf), "learner", LocalResponse), (PEERS, "learner+user", LocalResponse),
        (PEERS, "wire", LocalResponse), (PEERS, "learner+wire", LocalResponse), (PeerPermutation(0.5), "wire", Nothing),
    ],
)  # fmt: skip
def test_nothing_or_all(protocol, view, law) -> None:
    profile = privacy.profile(protocol, view, cluster_size=100)
    assert profile.basis == "exact"
    assert isinstance(profile.law, law)
    promised = accountant.of(protocol, view, [100], DELTA, profile.law.pure() > 0)
    assert all(p["epsilon"] >= profile.epsilon(DELTA) for p in promised)


def test_one_honest_shuffler_is_enough() -> None:
    for view in ("shuffler+learner", "shuffler2+shuffler3+learner", "learner+shuffler+shuffler3+wire"):
        assert epsilon(CHAIN, view) == epsilon(SHUFFLE)


def test_a_shuffler_that_takes_no_part_helps_nobody_and_has_no_row() -> None:
    assert epsilon(SHUFFLE, "shuffler2+shuffler3+learner") == epsilon(SHUFFLE)
    names = [view.name for view in rows(SHUFFLE)]
    assert names == [
        "shuffler", "learner", "user", "learner+user", "learner+3*user", "shuffler+learner", "wire", "learner+wire",
    ]  # fmt: skip
    assert {"shuffler2", "shuffler3", "shuffler+shuffler2+shuffler3+learner"} <= {v.name for v in rows(CHAIN)}
    assert [view.name for view in rows(RandomizedResponse(1.0))] == ["learner", "user", "wire"]
    assert [view.users for view in rows(PEERS)].count("deviating") == 1


def test_a_peer_gets_each_label_with_one_chance_in_n() -> None:
    local = LocalResponse.flipping(0.2)
    for c in (1, 3, 9):
        profile = privacy.profile(PEERS, f"{c}*user", cluster_size=10)
        assert profile.delta(0.3) == pytest.approx(c / 10 * local.delta(0.3).value, rel=1e-12)
        assert privacy.profile(PEERS, f"{c}*user+wire", cluster_size=10, channels="encrypted").delta(
            0.3
        ) == profile.delta(0.3)
    assert epsilon(PEERS, "wire", channels="encrypted") == 0
    deviating = privacy.profile(PEERS, "user", cluster_size=10, users="deviating")
    assert deviating.delta(0.3) == local.delta(0.3).value


PEOPLE = Population.from_arrays(y=np.arange(60) % 2 == 0, cluster=np.repeat([0, 1, 2], [10, 20, 30]))


def test_clusters_hide_as_the_smallest_does_and_everybody_as_all() -> None:
    crowd = EncryptedShuffle(1.0, over="everybody")
    assert privacy.profile(SHUFFLE, population=PEOPLE).epsilon(DELTA) == pytest.approx(
        epsilon(SHUFFLE, size=10)
    )
    assert privacy.profile(crowd, population=PEOPLE).epsilon(DELTA) == pytest.approx(
        epsilon(SHUFFLE, size=60)
    )
    whole = Population.from_arrays(y=PEOPLE.y)
    found = privacy.profile(crowd, population=PEOPLE, composition="population")
    assert found.epsilon(DELTA) == privacy.profile(
        SHUFFLE, population=whole, composition="population"
    ).epsilon(DELTA)
    for by_size in privacy.by_cluster(crowd, population=PEOPLE).values():
        assert by_size.epsilon(DELTA) == pytest.approx(epsilon(SHUFFLE, size=60))


def test_more_than_two_labels() -> None:
    three = EncryptedShuffle(1.0, labels=3)
    assert privacy.profile(three, cluster_size=10).basis == "exact"
    assert privacy.profile(three, cluster_size=5000).basis == "upper"
    assert privacy.profile(three, cluster_size=5000, composition=7).basis == "upper"
    worst = privacy.profile(three, cluster_size=10).delta(0.4)
    some = [privacy.profile(three, cluster_size=10, composition=ones) for ones in range(10)]
    assert max(one.delta(0.4) for one in some) <= worst + 1e-12
    people = Population.from_arrays(y=np.arange(9) % 3)
    refused = privacy.profile(three, population=people, composition="population")
    assert refused.basis == "refused"
    assert "counts two labels" in refused.why
    assert epsilon(EncryptedShuffle(800.0, labels=3)) == pytest.approx(800)
    assert privacy.profile(EncryptedShuffle(800.0), cluster_size=9).basis == "upper"


def test_a_crowd_of_unknown_size_is_asked_for() -> None:
    for protocol in (SHUFFLE, PEERS):
        with pytest.raises(InputError, match="give cluster_size or population"):
            privacy.profile(protocol)
    assert privacy.profile(SHUFFLE, "shuffler").epsilon(0) == 0
    with pytest.raises(InputError, match="a cluster of 3 has 2 users beside the victim"):
        privacy.profile(SHUFFLE, "shuffler+3*user", cluster_size=3)


@pytest.mark.slow
def test_the_local_budget_that_a_crowd_turns_into_another() -> None:
    found = privacy.calibrate(EncryptedShuffle, vary="epsilon", cluster_size=500, epsilon=0.5, delta=DELTA)
    assert epsilon(EncryptedShuffle(found.value), size=500) == pytest.approx(0.5, abs=1e-6)
    assert found.value > 1.5
