"""The unbiased risk of double randomized response, by enumeration on finite spaces, and what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.learning.training.release_loss import double_response

SPACES = [(2, 1, 0.5), (2, 3, 0.1), (3, 4, 0.35), (4, 2, 0.9), (3, 5, 0.0)]


def space(k: int, m: int) -> tuple[Any, ...]:
    """P(x | y) and the generator (k, m), shares of labels (k,), and losses by x and label (m, k)."""
    rng = np.random.default_rng(k * 10 + m)
    true, drawn, shares = (
        rng.dirichlet(np.ones(m), k),
        rng.dirichlet(np.ones(m), k),
        rng.dirichlet(np.ones(k)),
    )
    return true, drawn, shares, rng.normal(size=(m, k)) * 3


def released_law(true: Any, drawn: Any, shares: Any, lam: float) -> Any:
    """P(features, label) of what Mechanism 2 releases, (m, k), step by step."""
    k, m = true.shape
    law = np.zeros((m, k))
    for y, x, new_y, new_x in itertools.product(range(k), range(m), (False, True), (False, True)):
        chance = shares[y] * true[y, x] * (lam if new_y else 1 - lam) * (lam if new_x else 1 - lam)
        said = np.full(k, 1 / k) if new_y else np.eye(k)[y]
        shown = drawn.mean(axis=0) if new_x else np.eye(m)[x]
        law += chance * np.outer(shown, said)
    return law


def printed(losses: Any, law: Any, drawn: Any, shares: Any, lam: float) -> float:
    """Lemma G.1 as the paper prints it: plus, and without 1/k, in its last term."""
    k = len(drawn)
    first = (law * losses).sum() - lam / k * (law.sum(axis=1) @ losses).sum()
    return float(first / (1 - lam) ** 2 + lam / (1 - lam) * sum(row @ losses @ shares for row in drawn))


@pytest.mark.parametrize(("k", "m", "lam"), SPACES)
@pytest.mark.parametrize("known", [True, False], ids=["shares known", "shares undone"])
def test_the_expected_risk_is_the_true_one(k: int, m: int, lam: float, known: bool) -> None:
    true, drawn, shares, losses = space(k, m)
    law = released_law(true, drawn, shares, lam)
    risk = float((shares[:, None] * true * losses.T).sum())
    x, said = (rows.ravel() for rows in np.indices((m, k)))
    loss = double_response(said, lam, drawn, shares if known else None, law.ravel())
    assert loss.risk(losses[x], losses) == pytest.approx(risk, abs=1e-10)
    assert loss.released.sum() + loss.synthetic.sum() == pytest.approx(1, abs=1e-10)
    if lam:
        assert abs(printed(losses, law, drawn, shares, lam) - risk) > 1e-2
    else:
        assert printed(losses, law, drawn, shares, lam) == pytest.approx(risk)


def test_two_users_by_two_users() -> None:
    """The mean over all releases of two users, each with her chance, not of the law of one user."""
    true, drawn, shares, losses = space(2, 2)
    law, lam = released_law(true, drawn, shares, 0.4), 0.4
    mean = 0.0
    for (x, y), (w, v) in itertools.product(np.ndindex(2, 2), repeat=2):
        mean += law[x, y] * law[w, v] * double_response([y, v], lam, drawn).risk(losses[[x, w]], losses)
    assert mean == pytest.approx(float((shares[:, None] * true * losses.T).sum()), abs=1e-10)


def test_the_paper_s_counterexample() -> None:
    """One feature vector, two labels, half replaced: as printed the risk is four times what it is."""
    law = released_law(np.ones((2, 1)), np.ones((2, 1)), np.array([0.5, 0.5]), 0.5)
    losses = np.ones((1, 2))
    assert printed(losses, law, np.ones((2, 1)), np.array([0.5, 0.5]), 0.5) == pytest.approx(4)
    loss = double_response([0, 1], 0.5, np.ones((2, 1)), None, law.ravel())
    assert loss.risk(np.ones((2, 2)), losses) == pytest.approx(1)


def test_the_gradient_is_that_of_the_cross_entropy() -> None:
    _, drawn, shares, _ = space(3, 4)
    rng = np.random.default_rng(5)
    loss = double_response([0, 2, 1, 1, 2], 0.3, drawn, shares)
    scores, synthetic = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    value, *slopes = loss.cross_entropy(scores, synthetic)
    minus_log = [np.log(np.exp(s).sum(axis=1, keepdims=True)) - s for s in (scores, synthetic)]
    assert value == pytest.approx(loss.risk(*minus_log), abs=1e-12)
    for given, slope in zip((scores, synthetic), slopes, strict=True):
        for at in np.ndindex(*given.shape):
            before = given[at]
            ends = []
            for step in (1e-5, -1e-5):
                given[at] = before + step
                ends.append(loss.cross_entropy(scores, synthetic)[0])
            given[at] = before
            assert slope[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lam": 1.0}, ["lam = 1", "nothing is left", "below 1"]),
        ({"lam": 1.5}, ["lam = 1.5", "from 0 to below 1"]),
        ({"lam": float("nan")}, ["lam = nan"]),
        ({"released": [0, 2]}, ["released", "from 0 to 1", "row of chances"]),
        ({"released": []}, ["released", "at least one"]),
        ({"chances": [[0.5, 0.5], [0.0, 0.0]]}, ["chances", "summing to 1", "lacks"]),
        ({"chances": [[0.5, 0.5]]}, ["chances", "(1, 2)", "two labels"]),
        ({"shares": [0.2, 0.3, 0.5]}, ["shares", "2 shares"]),
        ({"shares": [0.2, 0.2]}, ["shares", "summing to 1"]),
        ({"counts": [1.0]}, ["counts", "needs 2 numbers"]),
    ],
)
def test_bad_input_is_named(given: dict[str, Any], words: list[str]) -> None:
    whole: dict[str, Any] = {"released": [0, 1], "lam": 0.5, "chances": [[0.5, 0.5], [1.0, 0.0]]}
    with pytest.raises(InputError) as caught:
        double_response(**whole | given)
    assert all(word in str(caught.value) for word in words), caught.value


def test_losses_of_other_shapes_are_refused() -> None:
    loss = double_response([0, 1], 0.5, np.eye(2))
    with pytest.raises(InputError, match=r"synthetic_losses of shape \(3, 2\): needs \(2, 2\)"):
        loss.risk(np.ones((2, 2)), np.ones((3, 2)))
