"""What views of real runs say of labels, where noise has no end of values: against every labeling of a few users."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.privacy.label_likelihoods import LabelLikelihoods
from p2p_sim.privacy.registered import accounting
from protocols import (
    Alibi,
    ClusterResponse,
    EncryptedShuffle,
    LabelProportions,
    LaplaceLabelProportions,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
    SecureAggregation,
)
from protocols.laplace_label_proportions import scale
from protocols.secure_aggregation import polya_weights
from tests.privacy.mechanisms.every_view import log_ratios

Floats = np.ndarray[Any, np.dtype[np.float64]]

LABELS = [1, 0, 1, 1, 0, 0, 1]
ETA = np.array([0.6, 0.2, 0.7, 0.45, 0.3, 0.35, 0.8])


def people(users: int = 7, **columns: Any) -> Population:
    return Population.from_arrays(y=np.array(LABELS[:users], bool), **columns)


def beliefs(users: int = 7, certain: Sequence[int] = ()) -> Floats:
    eta = np.stack([1 - ETA, ETA], axis=1)[:users]
    for user in certain:
        eta[user] = np.eye(2)[LABELS[user]]
    return eta


def attacked(protocol: Any, run: Any, view: str, eta: Floats, channels: str = "plain") -> LabelLikelihoods:
    entry: Any = accounting(type(protocol))
    found: LabelLikelihoods = entry.attack(protocol, run.view(view, channels=channels), eta)
    return found


def of_every_labeling(eta: Floats, chance: Callable[[Any], float]) -> Floats:
    """Return P(what was seen | y_i = c), (n, k), from P(what was seen | all labels)."""
    n, k = eta.shape
    found = np.zeros((n, k))
    for y in itertools.product(range(k), repeat=n):
        each = eta[np.arange(n), y]
        if (share := float(chance(np.array(y)))) > 0:
            for i in range(n):
                found[i, y[i]] += np.delete(each, i).prod() * share
    return found


def same(found: LabelLikelihoods, expected: Floats, own: Sequence[int] = (), atol: float = 1e-11) -> None:
    """Check likelihoods of all users but the view's own: those of whom nothing is said have equal ones."""
    logs = np.zeros(expected.shape)
    logs[found.users] = found.log
    others = [user for user in range(len(expected)) if user not in own]
    with np.errstate(divide="ignore"):
        wanted = log_ratios(np.log(expected[others]))
    np.testing.assert_allclose(log_ratios(logs[others]), wanted, atol=atol)


@pytest.mark.parametrize("view", ["learner", "learner+user:1", "aggregator"])
@pytest.mark.parametrize("faults", [None, ["drop=0.3"]])
def test_noisy_proportions(view: str, faults: list[str] | None) -> None:
    protocol = LaplaceLabelProportions(0.8, bag_size=3, grid=2)
    run = p2p_sim.run(protocol, people(), seed=3, trace="full", faults=faults)
    bags, own = [range(3), range(3, 7)], [1] if "user" in view else []
    eta = beliefs(certain=own)
    told = run.view(view).messages["proportion"]

    def chance(y: Any) -> float:
        product = 1.0
        for bag, size, total in zip(told["bag"], told["size"], told["total"], strict=True):
            parts = list(itertools.combinations(bags[bag], int(size)))
            sums = np.array([y[list(part)].sum() for part in parts])
            product *= np.exp(-0.4 * np.abs(total - 2 * sums)).mean()
        return product

    found = attacked(protocol, run, view, eta)
    if view == "aggregator":
        arrived = found.users.tolist()
        assert found.log.argmax(axis=1).tolist() == [LABELS[user] for user in arrived]
        assert len(arrived) == int(told["size"].sum())
        return
    same(found, of_every_labeling(eta, chance), own)
    assert found.basis == ("lower" if faults and own else "exact")


def test_proportions_of_bags_with_missing_users() -> None:
    protocol = LabelProportions(7)
    run = p2p_sim.run(protocol, people(), seed=4, trace="full", faults=["drop=0.3"])
    told = run.view("learner").messages["proportion"]
    size, total = int(told["size"][0]), int(told["total"][0])
    assert size < 7

    def chance(y: Any) -> float:
        parts = [y[list(part)].sum() == total for part in itertools.combinations(range(7), size)]
        return float(np.mean(parts))

    found = attacked(protocol, run, "learner", beliefs())
    assert found.basis == "exact"
    same(found, of_every_labeling(beliefs(), chance))


@pytest.mark.parametrize("view", ["learner", "aggregator", "learner+user:0+user:1"])
@pytest.mark.parametrize("epsilon", [0.7, np.inf])
def test_secure_sums(view: str, epsilon: float) -> None:
    protocol = SecureAggregation(3, epsilon=epsilon, grid=2)
    run = p2p_sim.run(protocol, people(), seed=6, trace="full")
    seen, own = run.view(view), [0, 1] if "user" in view else []
    told, bags = seen.messages["total"], [range(3), range(3, 7)]
    eta = beliefs(certain=own)
    one = np.ones(1)
    if protocol.noisy:
        weights = polya_weights(scale(epsilon, 2), protocol.least)
        one = np.array([weight / sum(weights) for weight in weights])
    share = np.convolve(one, one[::-1])  # of one user: up less down
    drawn = {name.split("/")[1]: column["value"] for name, column in seen.draws.items()}

    def chance(y: Any) -> float:
        product = 1.0
        for bag, total in zip(told["bag"], told["total"], strict=True):
            mine = [user for user in bags[bag] if user in own]
            noise = np.ones(1)
            for _ in range(len(bags[bag]) - len(mine)):
                noise = np.convolve(noise, share)
            rest = int(total) - 2 * int(y[list(bags[bag])].sum())
            if mine and protocol.noisy:
                rest -= int(drawn["noise up"].sum()) - int(drawn["noise down"].sum())
            at = rest + len(noise) // 2
            product *= noise[at] if 0 <= at < len(noise) else 0.0
        return product

    found = attacked(protocol, run, view, eta)
    assert found.basis == "exact"
    same(found, of_every_labeling(eta, chance), own, atol=1e-9)


def test_who_collude_with_a_server_of_masked_values_may_know_more() -> None:
    protocol = SecureAggregation(3, epsilon=1.0)
    run = p2p_sim.run(protocol, people(), seed=6, trace="full")
    assert attacked(protocol, run, "aggregator+user:0", beliefs(certain=[0])).basis == "lower"


def flips(alpha: float, said: Any, y: Any) -> float:
    return float(np.where(said == y, 1 - alpha, alpha).prod())


@pytest.mark.parametrize(
    ("view", "channels"),
    [("learner", "plain"), ("learner+wire", "encrypted"), ("learner+user:2", "plain"), ("user:2", "plain"),
     ("wire", "plain"), ("wire", "encrypted")],
)  # fmt: skip
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_peer_permutation(view: str, channels: str, seed: int) -> None:
    """The wire and colluders undo the permutation; the learner sees the number of ones of a cluster."""
    protocol, cluster = PeerPermutation(0.2), [5, 5, 5, 8, 8, 5, 8]
    run = p2p_sim.run(protocol, people(cluster=cluster), seed=seed, trace="full")
    handed = run.view("+".join(f"user:{user}" for user in range(7))).messages["label"]
    said = np.zeros(7, bool)
    said[handed["sender"]] = handed["y_hat"]
    own = [2] if "user" in view else []
    eta, parts = beliefs(certain=own), [np.array([0, 1, 2, 5]), np.array([3, 4, 6])]
    if view == "learner":
        open_, summed = np.zeros(0, int), parts
    elif view == "learner+user:2":  # the cluster of user 2 knows its permutation
        open_, summed = parts[0], [parts[1]]
    elif view == "user:2":
        open_, summed = handed["sender"][handed["recipient"] == 2], []
    else:
        open_, summed = (np.zeros(0, int) if (view, channels) == ("wire", "encrypted") else np.arange(7)), []

    def chance(y: Any) -> float:
        product = flips(0.2, said[open_], y[open_])
        for part in summed:
            every = np.array(list(itertools.product([False, True], repeat=len(part))))
            product *= sum(flips(0.2, each, y[part]) for each in every if each.sum() == said[part].sum())
        return product

    found = attacked(protocol, run, view, eta, channels)
    assert found.basis == "exact"
    same(found, of_every_labeling(eta, chance), own)


def test_noisy_one_hot_labels() -> None:
    protocol, users = Alibi(1.5, labels=3, grid=4), 5
    labels = np.array([2, 0, 1, 1, 0], np.uint8)
    run = p2p_sim.run(protocol, Population.from_arrays(y=labels), seed=1, trace="full")
    eta = np.random.default_rng(0).dirichlet(np.ones(3), users)
    scores = run.view("learner").messages["report"]["scores"]
    expected = np.exp(
        [[-1.5 / 8 * np.abs(scores[i] - 4 * np.eye(3)[c]).sum() for c in range(3)] for i in range(users)]
    )
    same(attacked(protocol, run, "learner", eta), expected)


@pytest.mark.parametrize(("labels", "users"), [(2, 6), (3, 4)])
@pytest.mark.parametrize("view", ["learner", "learner+user:1"])
def test_noisy_distribution_of_a_cluster(labels: int, users: int, view: str) -> None:
    protocol = ClusterResponse(1.2, labels, phi=0.2)
    y, random = np.array([1, 0, 1, 1, 0, 0], np.uint8)[:users], np.random.default_rng(2)
    run = p2p_sim.run(protocol, Population.from_arrays(y=y), seed=9, trace="full")
    seen, own = run.view(view).messages, [1] if "user" in view else []
    eta = random.dirichlet(np.ones(labels), users)
    eta[own] = np.eye(labels)[y[own]]
    weights = seen["distribution"]["weights"][0]
    said = seen["released"]["y"][np.argsort(seen["released"]["user"])]
    _, sigma, lam, _ = protocol.settings()
    assert sigma is not None
    reach = 60 if labels == 2 else 25
    noise = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * labels), axis=-1).reshape(-1, labels)
    log_mass = -np.abs(noise).sum(axis=1) / float(sigma)
    mass = np.exp(log_mass) / np.exp(log_mass).sum()
    chance_of: dict[tuple[int, ...], float] = {}

    def chance(y: Any) -> float:
        counts = np.bincount(y, minlength=labels)
        if tuple(counts) not in chance_of:
            q = protocol.resampling(np.broadcast_to(counts, noise.shape), noise)
            chance_of[tuple(counts)] = float(mass[(q == weights).all(axis=1)].sum())
        shares = float(lam) * weights[said] / weights.sum() + (1 - float(lam)) * (said == y)
        return float(chance_of[tuple(counts)] * shares.prod())

    found = attacked(protocol, run, view, eta)
    assert found.basis == "exact"
    same(found, of_every_labeling(eta, chance), own, atol=1e-6 if labels == 2 else 2e-3)  # noise was cut here


def test_large_clusters_of_a_curator_are_marked() -> None:
    protocol = ClusterResponse(1.2, 3, grid=4)
    y = np.arange(300, dtype=np.uint8) % 3
    run = p2p_sim.run(protocol, Population.from_arrays(y=y), seed=9, trace="full")
    found = attacked(protocol, run, "learner", np.full((300, 3), 1 / 3))
    assert (found.basis, len(found.users)) == ("lower", 300)
    hidden = ClusterResponse(1.2, phi_share=0.2)
    run = p2p_sim.run(hidden, people(), seed=9, trace="full")
    with pytest.raises(InputError, match="lacks lambda"):
        attacked(hidden, run, "learner", beliefs())


CROWDS_OF_THREE: list[tuple[Any, str, float]] = [
    (EncryptedShuffle(1.0, 3), "mixed", 2 / (2 + np.e)),
    (PeerToPeer(0.3, labels=3), "report", 0.3),
]
"""Protocols with the kind of message that the learner counts, and how often a label is another one."""


@pytest.mark.parametrize(("protocol", "kind", "lie"), CROWDS_OF_THREE)
def test_large_crowds_with_three_labels_look_at_the_likeliest_answer(
    protocol: Any, kind: str, lie: float
) -> None:
    """Of each user the number of her likeliest answer is all that counts: by adding up one user after the other."""
    users, random = 600, np.random.default_rng(5)
    eta = random.dirichlet([1.0, 2.0, 0.5], users)
    y = np.array([random.choice(3, p=row) for row in eta], np.uint8)
    run = p2p_sim.run(protocol, Population.from_arrays(y=y), seed=5, trace="full")
    found = attacked(protocol, run, "learner", eta)
    assert found.basis == "lower"
    matrix = np.full((3, 3), lie / 2) + (1 - 1.5 * lie) * np.eye(3)
    answers, seen = eta @ matrix, np.bincount(run.view("learner").messages[kind]["y"], minlength=3)
    told = np.arange(users + 1)
    for user in (0, 1, 2, 3):
        answer = int(answers[user].argmax())
        of_others = np.ones(1)
        for chance in np.delete(answers[:, answer], user):
            of_others = np.convolve(of_others, [1 - chance, chance])
        if kind == "mixed":
            weights = (told == seen[answer]).astype(float)
        else:  # each report is the answer of a random user
            weights = binom.pmf(seen[answer], users, told / users)
        without, with_hers = of_others @ weights[:-1], of_others @ weights[1:]
        expected = np.log(matrix[:, answer] * with_hers + (1 - matrix[:, answer]) * without)
        assert np.ptp(expected) > 1e-4
        said = found.log[found.users == user][0]
        np.testing.assert_allclose(said - said[0], expected - expected[0], atol=1e-9)


def a_cluster_of_peers(alpha: float, users: int, ones: int, chance: float) -> float:
    """Return ln P(ones of the reports | label 1) / P(it | label 0): each report is the answer of a random user."""
    said = np.arange(users)  # ones among the answers of the others
    others = binom.pmf(said, users - 1, chance * (1 - alpha) + (1 - chance) * alpha)
    zero, one = (float(others @ binom.pmf(ones, users, (said + mine) / users)) for mine in (0, 1))
    return float(np.log(((1 - alpha) * one + alpha * zero) / ((1 - alpha) * zero + alpha * one)))


@pytest.mark.parametrize("protocol", [EncryptedShuffle(0.5), PeerToPeer(0.3)])
def test_large_crowds_say_as_much_as_their_count(protocol: Any) -> None:
    """Of users alike, Bayes' rule on the count alone: P(said 1 | count) is the share of ones in the reports."""
    users = 40_000
    y = np.arange(users) % 5 == 0
    run = p2p_sim.run(protocol, Population.from_arrays(y=y), seed=5, trace="full")
    found = attacked(protocol, run, "learner", np.tile([0.7, 0.3], (users, 1)))
    assert found.basis == "exact"
    assert np.ptp(found.log, axis=0) == pytest.approx([0, 0], abs=1e-9)
    if isinstance(protocol, EncryptedShuffle):
        lie = float(protocol.randomizer.lying())
        ones = run.outputs["learner"]["y"].mean()
        said = np.array([[1 - lie, lie], [lie, 1 - lie]])
        before = np.array([0.7, 0.3]) @ said
        ratio = said @ (np.array([1 - ones, ones]) / before)
        expected = float(np.log(ratio[1] / ratio[0]))
    else:
        ones = int(run.view("learner").messages["report"]["y"].sum())
        expected = a_cluster_of_peers(protocol.alpha, users, ones, 0.3)
    assert abs(expected) > 0.01
    assert found.log[0, 1] - found.log[0, 0] == pytest.approx(expected, abs=1e-8)


def test_sampled_traces_and_wrong_priors_are_refused() -> None:
    run = p2p_sim.run(RandomizedResponse(1.0), people(), seed=1, trace="full")
    with pytest.raises(InputError, match=r"eta: has shape \(3, 2\); give"):
        attacked(RandomizedResponse(1.0), run, "learner", beliefs(3))
    counts = LabelProportions(7)
    run = p2p_sim.run(counts, people(), seed=1, trace="full")
    with pytest.raises(InputError, match="impossible whatever label user"):
        attacked(counts, run, "learner", np.tile([1.0, 0.0], (7, 1)))
