"""Label noise of any form: corrected losses are unbiased, by adding up everything that can be reported."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax

from p2p_sim import InputError, Population, privacy
from p2p_sim.learning.training import losses
from p2p_sim.learning.training.losses import Bags, easy_llp, forward, from_likelihoods, summary, weighted
from p2p_sim.privacy import DenseMatrices, Evidence, LabelNoise, ResamplingMatrices
from p2p_sim.privacy.label_matrices import inverse
from p2p_sim.privacy.mechanisms import alibi, prior_response
from protocols import Alibi, PriorResponse, RandomizedResponse

TO = 1e-10
RNG = np.random.default_rng(0)
ASYMMETRIC = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.3, 0.4]])
Q = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
MATRICES = {
    "uniform": ResamplingMatrices.uniform(4, 0.6),
    "binary": ResamplingMatrices.uniform(2, 0.3),
    "of clusters": ResamplingMatrices(np.array([0.3, 0.8]), Q, np.array([0, 1, 1])),
    "asymmetric": DenseMatrices(ASYMMETRIC),
    "of groups": DenseMatrices(np.stack([ASYMMETRIC, ASYMMETRIC[::-1, ::-1]]), np.array([1, 0, 0])),
    "random": DenseMatrices(RNG.dirichlet(np.ones(5), 5)),
}


def space(labels: int, users: int = 3) -> tuple[Any, Any]:
    """P(y | x) of each user's features, and scores of a model that has nothing to do with it."""
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(labels), users), rng.normal(size=(users, labels)) * 2


def risk(p: Any, scores: Any) -> float:
    """The true risk: the mean over users and labels of the cross-entropy."""
    return -float((p * log_softmax(scores, axis=1)).sum()) / len(p)


def corrected_risk(law: LabelNoise | Any, assumed: Any) -> tuple[float, float]:
    """The mean of the corrected loss over labels and reports, by adding up all of them, and the true risk."""
    p, scores = space(law.labels)
    total = 0.0
    for user, y, j in itertools.product(range(len(p)), range(law.labels), range(law.labels)):
        number = 0 if law.group is None else law.group[user]
        weights = assumed.weights(np.array([user]), np.array([j]))
        total += p[user, y] * law.dense(number)[y, j] * weighted(scores[[user]], weights)[0]
    return total / len(p), risk(p, scores)


@pytest.mark.parametrize("name", MATRICES)
def test_the_corrected_loss_is_unbiased(name: str) -> None:
    """The mean over everything that can be reported is the true risk; uncorrected it is not."""
    law = MATRICES[name]
    found, true = corrected_risk(law, law)
    assert abs(found - true) <= TO
    plain, _ = corrected_risk(law, ResamplingMatrices(0.0, np.full(law.labels, 1 / law.labels)))
    assert abs(plain - true) > 1e-3


def test_a_matrix_taken_for_its_transpose_is_off() -> None:
    """The broken twin: rows are true labels, and columns are reports."""
    turned = ASYMMETRIC.T / ASYMMETRIC.sum(axis=0)[:, None]
    found, true = corrected_risk(MATRICES["asymmetric"], DenseMatrices(turned))
    assert abs(found - true) > 1e-2


@pytest.mark.parametrize("name", MATRICES)
def test_likelihoods_are_columns_of_the_matrices_and_closed_forms_are_inverses(name: str) -> None:
    law = MATRICES[name]
    users, every = np.arange(3), np.arange(law.labels)
    for user in users:
        matrix = law.dense(0 if law.group is None else law.group[user])
        evidence = law.evidence(np.full(law.labels, user), every)
        assert np.allclose(evidence.likelihood, matrix.T, rtol=0, atol=1e-15)
        assert np.allclose(evidence.unbiased(), np.linalg.inv(matrix), rtol=0, atol=1e-12)
        assert not evidence.uninformative


def test_algorithm_1_s_loss() -> None:
    """Its modified loss of a report y is (l(y) - beta q . l) / (1 - beta), with the q of the cluster."""
    loss, law = np.array([0.3, 1.7, 0.9]), MATRICES["of clusters"]
    for user, y in itertools.product(range(3), repeat=2):
        beta, q = ([0.3, 0.8, 0.8][user], Q[min(user, 1)])
        expected = (loss[y] - beta * q @ loss) / (1 - beta)
        assert law.weights(np.array([user]), np.array([y]))[0] @ loss == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [name for name, law in MATRICES.items() if law.group is None])
def test_forward_is_the_same_by_matrix_and_by_likelihood(name: str) -> None:
    law = MATRICES[name]
    _, scores = space(law.labels, 6)
    y = np.arange(6) % law.labels
    bags = Bags(np.arange(6), np.eye(law.labels)[y])
    likelihood = law.likelihood(np.arange(6), y)
    value, gradient = from_likelihoods(scores, likelihood)
    expected, slope = forward(scores, bags, law.dense().T)
    shift = np.log(likelihood.max(axis=1)).sum()
    assert value - shift == pytest.approx(expected, abs=1e-12)
    assert np.allclose(gradient, slope, rtol=0, atol=1e-12)


def test_gradients_of_weighted_losses() -> None:
    _, scores = space(3, 4)
    weights = RNG.normal(size=(4, 3))
    for loss, given in ((weighted, weights), (from_likelihoods, abs(weights))):
        off = check_grad(
            lambda flat, loss=loss, given=given: loss(flat.reshape(4, 3), given)[0],
            lambda flat, loss=loss, given=given: loss(flat.reshape(4, 3), given)[1].ravel(),
            scores.ravel(),
        )
        assert off < 1e-6


@pytest.mark.parametrize(
    ("epsilon", "prior"),
    [(1.0, "uniform"), (0.5, "0.4,0.35,0.25"), (1.0, "0.7,0.2,0.1"), (0.5, "0.9,0.06,0.04")],
)
def test_prior_response_s_reports_are_as_likely_as_its_program_makes_them(epsilon: float, prior: str) -> None:
    """One user, enumerated for each of her labels: the likelihood of each report is what the program does."""
    protocol = PriorResponse(epsilon, 3, prior)
    rows, m = prior_response.matrix(protocol), prior_response.reportable(protocol)
    assert rows is not None
    for y in range(3):
        people = Population.from_arrays(y=np.array([y], np.uint8))
        law = np.zeros(3)
        for seen, chance in privacy.enumerate_view(protocol, people).world.items():
            law[int(seen[0][0][-1].strip("(),[]"))] += float(chance)
        assert np.allclose(law, rows[y], rtol=0, atol=1e-15)
    columns = {"sender": np.zeros(3, np.int64), "y": np.arange(3, dtype=np.uint8)}
    evidence = prior_response.evidence(protocol, columns, Population.from_arrays(y=np.zeros(1, np.uint8)))
    can = rows.any(axis=0)
    assert np.allclose(evidence.likelihood[can], rows.T[can], rtol=0, atol=1e-15)
    if m == 3:
        assert np.abs(rows @ evidence.unbiased() - np.eye(3)).max() <= TO
        assert not evidence.note
        return
    assert "the forward loss, which needs none" in evidence.note
    with pytest.raises(InputError, match="use the forward correction"):
        evidence.unbiased()


def test_prior_response_with_priors_of_users_is_batched() -> None:
    protocol = PriorResponse(1.0, 4, "public")
    prior = np.random.default_rng(2).dirichlet(np.ones(4), 50)
    people = Population.from_arrays(y=np.zeros(50, np.uint8), public={"prior": prior})
    every = prior_response.matrices(protocol, prior)
    assert np.allclose(every.sum(axis=2), 1, rtol=0, atol=1e-12)
    said = np.array([np.flatnonzero(rows.any(axis=0))[-1] for rows in every])
    sender = np.arange(50)[::-1]
    evidence = prior_response.evidence(protocol, {"sender": sender, "y": said[sender]}, people)
    assert np.allclose(evidence.likelihood, every[sender, :, said[sender]], rtol=0, atol=1e-15)
    assert len({int(rows.any(axis=0).sum()) for rows in every}) > 1  # several m


@pytest.mark.parametrize(("epsilon", "grid", "labels"), [(4.0, 2, 2), (3.0, 3, 2), (6.0, 2, 3)])
@pytest.mark.parametrize("wrong", [1.0, 1.2])
def test_alibi_s_scores_give_an_unbiased_loss(epsilon: float, grid: int, labels: int, wrong: float) -> None:
    """Over all noisy scores, but for a mass of 1e-15: weights of another epsilon are off."""
    q = np.exp(-epsilon / (2 * grid))
    most = int(np.ceil(36 / -np.log(q))) if labels == 2 else int(np.ceil(30 / -np.log(q)))
    steps = np.arange(-most, most + 1)
    chance = (1 - q) / (1 + q) * q ** abs(steps)
    noise = np.array(list(itertools.product(steps, repeat=labels)))
    mass = np.prod(chance[noise + most], axis=1)
    p, scores = space(labels)
    means = np.stack([
        mass @ alibi.unbiased(Alibi(epsilon * wrong, labels, grid), noise + grid * np.eye(labels, dtype=int)[y])
        for y in range(labels)
    ])  # fmt: skip
    found = np.mean([p[user] @ [weighted(scores[[user]], w[None])[0] for w in means] for user in range(3)])
    assert (abs(found - risk(p, scores)) <= TO) == (wrong == 1)


def test_alibi_s_cut_scores_vary_less_than_its_scores() -> None:
    rng, protocol = np.random.default_rng(3), Alibi(1.0, 5, 8)
    y, q = rng.integers(5, size=20_000), np.exp(-1 / 16)
    noise = rng.geometric(1 - q, (20_000, 5)) - rng.geometric(1 - q, (20_000, 5))
    scores = noise + 8 * np.eye(5, dtype=int)[y]
    cut, raw = summary(alibi.unbiased(protocol, scores)), summary(scores / 8)
    assert cut.inflation < raw.inflation / 2
    assert cut.most < raw.most


def test_alibi_s_likelihood_is_that_of_the_scores() -> None:
    protocol = Alibi(3.0, 3, 4)
    scores = np.random.default_rng(4).integers(-6, 12, size=(20, 3))
    q = np.exp(-3.0 / 8)
    exact = np.stack(
        [np.prod(q ** abs(scores - 4 * np.eye(3, dtype=int)[y]), axis=1) for y in range(3)], axis=1
    )
    people = Population.from_arrays(y=np.zeros(20, np.uint8))
    found = alibi.evidence(protocol, {"sender": np.arange(20), "scores": scores}, people).likelihood
    assert np.allclose(
        found / found.sum(axis=1, keepdims=True), exact / exact.sum(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_easy_llp_is_unbiased(size: int, known: bool) -> None:
    """Over all bags of independent examples of a finite space; with another prior it is not, but for bags of one."""
    p, scores = space(3, 2)
    shares = np.array([0.6, 0.4])  # of the two kinds of features
    prior = shares @ p if known else np.full(3, 1 / 3)
    pairs, total = list(itertools.product(range(2), range(3))), 0.0
    for bag in itertools.product(pairs, repeat=size):
        chance = np.prod([shares[x] * p[x, y] for x, y in bag])
        counts = np.bincount([y for _, y in bag], minlength=3)[None]
        weights = easy_llp(Bags(np.zeros(size, np.int64), counts), prior)
        total += chance * weighted(scores[[x for x, _ in bag]], weights)[0] / size
    true = -float((shares[:, None] * p * log_softmax(scores, axis=1)).sum())
    assert (abs(total - true) <= TO) == (known or size == 1)


def test_easy_llp_is_unbiased_where_a_label_did_not_come() -> None:
    """Of a bag of three, one label is lost, whoever's it is."""
    p, scores = space(3, 2)
    shares, total = np.array([0.6, 0.4]), 0.0
    prior, pairs = shares @ p, list(itertools.product(range(2), range(3)))
    for bag in itertools.product(pairs, repeat=3):
        chance = np.prod([shares[x] * p[x, y] for x, y in bag])
        for lost in range(3):
            came = [y for i, (_, y) in enumerate(bag) if i != lost]
            weights = easy_llp(Bags(np.zeros(3, np.int64), np.bincount(came, minlength=3)[None]), prior)
            total += chance / 3 * weighted(scores[[x for x, _ in bag]], weights)[0] / 3
    true = -float((shares[:, None] * p * log_softmax(scores, axis=1)).sum())
    assert abs(total - true) <= TO
    nothing = Bags(np.zeros(2, np.int64), np.zeros((1, 3)))
    assert not easy_llp(nothing, prior).any()


def test_easy_llp_leaves_out_users_of_no_bag_and_refuses_a_prior_that_does_not_fit() -> None:
    bags = Bags(np.array([0, -1, 0]), np.array([[1.0, 1.0]]))
    assert easy_llp(bags, np.array([0.5, 0.5])).tolist() == [[0.5, 0.5], [0, 0], [0.5, 0.5]]
    for prior in ([0.5, 0.6], [1.0], [1.5, -0.5]):
        with pytest.raises(InputError, match="give 2 probabilities that sum to 1"):
            easy_llp(bags, np.array(prior))


def test_a_singular_matrix_names_the_labels_that_it_does_not_tell_apart() -> None:
    with pytest.raises(InputError, match=r"do not tell labels 0, 2 apart; use the forward correction"):
        inverse(np.array([[0.5, 0.5, 0], [0, 1, 0], [0.5, 0.5, 0]]))
    with pytest.raises(
        InputError, match=r"a mixture of labels (2 and one of labels 0, 1|0, 1 and one of labels 2)"
    ):
        inverse(np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.25, 0.5, 0.25]]))
    nearly = np.array([[0.5 + 1e-8, 0.5 - 1e-8], [0.5, 0.5]])
    with pytest.raises(InputError, match=r"do not tell labels 0, 1 apart"):
        inverse(nearly)
    with pytest.raises(InputError, match=r"beta = 1.0 of group 1: a report says nothing"):
        ResamplingMatrices(np.array([0.5, 1.0]), Q).weights(np.zeros(1, np.int64), np.zeros(1, np.int64))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DenseMatrices(np.eye(3)[:2]), "give (g, k, k)"),
        (lambda: DenseMatrices(np.array([[0.5, 0.6], [0.5, 0.5]])), "matrix 0, row 0 is [0.5, 0.6], whose sum is 1.1"),
        (lambda: DenseMatrices(np.array([[1.5, -0.5], [0.5, 0.5]])), "probabilities from 0 to 1"),
        (lambda: DenseMatrices(ASYMMETRIC, np.array([1])), "from 0 to 0"),
        (lambda: ResamplingMatrices(1.5, Q), "each must be from 0 to 1"),
        (lambda: ResamplingMatrices(0.5, 2 * Q), "q 0 is"),
        (lambda: ResamplingMatrices(np.full(3, 0.5), Q), "one row for each group"),
        (lambda: ResamplingMatrices.uniform(3, 0.7), "must be from 0 to 2/3"),
        (lambda: LabelNoise(Fraction(3, 2)), "lie = Fraction(3, 2): must be a number in [0, 1]"),
        (lambda: LabelNoise(Fraction(-1, 9)), "lie = Fraction(-1, 9): must be a number in [0, 1]"),
        (lambda: LabelNoise(Fraction(0), 1), "labels = 1: must be an integer from 2 to 256"),
        (lambda: LabelNoise(Fraction(0), 2, "senders"), "whose = 'senders': must be one of sender, cluster, everybody"),
        (lambda: LabelNoise(Fraction(0), 2, "walk", -1), "steps = -1: must be an integer from 0"),
        (lambda: LabelNoise(Fraction(1, 4), 3, matrix=DenseMatrices(ASYMMETRIC)), "give one of them"),
        (lambda: LabelNoise(Fraction(0), 2, matrix=DenseMatrices(ASYMMETRIC)), "the matrix has 3"),
        (lambda: LabelNoise(Fraction(0), 3, matrix=MATRICES["of groups"]), "give reports"),
        (lambda: LabelNoise(Fraction(0), 3, "cluster", reports=lambda columns, people: None), 'give "sender"'),
    ],
)  # fmt: skip
def test_noise_that_cannot_be_is_refused(make: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert text in str(caught.value)


def test_variance_of_weights_is_what_randomized_response_makes_it() -> None:
    """The mean sum of squares over the reports of one label is that of the inverse's entries."""
    protocol = RandomizedResponse(1.0, 4)
    lie = float(protocol.lying())
    law = ResamplingMatrices.uniform(4, lie)
    y = np.repeat(np.arange(4), [700, 100, 100, 100])
    found = summary(law.weights(np.zeros(len(y), np.int64), y))
    a, b = (1 - lie / 3) / (1 - 4 * lie / 3), -lie / 3 / (1 - 4 * lie / 3)
    assert (found.least, found.most) == (pytest.approx(b), pytest.approx(a))
    assert found.inflation == pytest.approx(a**2 + 3 * b**2)
    assert summary(np.eye(3)) == losses.WeightSummary(0.0, 1.0, 1.0)


def test_evidence_that_says_nothing_trains_nothing() -> None:
    x = np.zeros((2, 1))
    for users, likelihood in ((np.arange(2), np.ones((2, 3))), (np.zeros(0, np.int64), np.ones((0, 3)))):
        with pytest.raises(InputError, match="nothing to learn from"):
            losses.match_reports(x, Evidence(users, likelihood, lambda: np.zeros((0, 3))))
