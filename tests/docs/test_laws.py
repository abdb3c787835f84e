"""docs/laws.md: every figure on it is computed again, what it cites is there, and what cites it finds its section."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq
from scipy.special import i0e, ndtr

from p2p_sim import Population, privacy
from p2p_sim.privacy.bounds import attacks2023, clustering2022, release2023, shuffle, unified2023
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from protocols import PeerToPeer, RandomizedResponse, SecureAggregation

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "laws.md").read_text()
FLAT = " ".join(PAGE.split())
HEADINGS = re.findall(r"^##+ (.*)$", PAGE, re.MULTILINE)
ANCHORS = re.findall(r'^<a id="([^"]+)"></a>$', PAGE, re.MULTILINE)
TEXTS = {
    path: path.read_text()
    for part in ("p2p_sim", "protocols", "experiments", "benchmarks", "tests", "docs", ".")
    for path in (ROOT.glob("*") if part == "." else (ROOT / part).rglob("*"))
    if path.suffix in {".py", ".md", ".toml", ".cff", ".csv", ".yml"} and path.is_file()
}
Floats = npt.NDArray[np.float64]
blocks = privacy.building_blocks


# Clustering 2022 and Algorithm 2
ASKED, PROMISED = 0.39614, 2.5e-9


@cache
def exact(alpha: float, view: str = "learner") -> float:
    return privacy.profile(PeerToPeer(alpha), view, cluster_size=20_000).epsilon(PROMISED)


def misprinted(s: int) -> float:
    """Eq. 32 of Clustering 2022 at theta = 1, as printed."""
    return 1 + 3 / (math.e * math.sqrt(s * math.log(s))) + 2**0.75 * 3 / s**0.25


def worst_ends(delta: float) -> tuple[list[float], float]:
    law = [
        privacy.profile(PeerToPeer(0.2), cluster_size=10, composition=n1).epsilon(delta) for n1 in range(10)
    ]
    return law, max(law[0], law[-1])


@cache
def nearly_coins() -> privacy.Bracket:
    return privacy.profile(PeerToPeer(0.485), cluster_size=12_000).epsilon_bracket(1e-6)


def late(faults: list[str]) -> float:
    """Two users of Algorithm 2, at the worst label of the other, enumerated."""
    found = []
    for other in (0, 1):
        people = Population.from_arrays(y=np.array([1, other]), cluster=np.zeros(2, int))
        found.append(privacy.enumerate_view(PeerToPeer(0.2), people, faults=faults).delta(1.0))
    return max(found)


def metadata(theta: float) -> float:
    """By how much less than a flip the learner sees who knows who asked whom."""
    seen = privacy.profile(PeerToPeer(0.2, theta), "learner+wire", cluster_size=1000, channels="encrypted")
    return seen.delta(0.0) / privacy.LocalResponse.flipping(0.2).delta(0.0).value


# Pitfalls 2021
def logit(z: float) -> float:
    return math.log(z / (1 - z))


def h(z: float) -> float:
    return (2 * z - 1) * logit(z)


def loss(eta: float, positive: float, pi: float) -> float:
    """Return the expected instance-based privacy loss at a point."""
    return (2 * eta - 1) * (logit(eta) - logit(positive)) + h(pi)


def low_threshold(positive: float, pi: float, tau: float) -> float:
    """Return t_L of Lemma 1 as printed; t_H = 1 - t_L."""
    root = math.sqrt(math.e)
    return 1 / (math.exp(((root + 1) / (root - 1) * (tau - h(pi))) ** (2 / 3) + logit(positive)) + 1)


N, K, CONFIDENCE = 10**6, 10**4, 0.01
TWICE_C = 2 * math.sqrt(2 * math.log(6 * N / CONFIDENCE) / K)  # with no bias at all


def summed(view: str, users: str = "curious") -> float:
    protocol = SecureAggregation(bag_size=10, threshold=8, epsilon=1.0)
    if users == "curious":
        return privacy.profile(protocol, view, cluster_size=10).epsilon(1e-6)
    return privacy.profile(protocol, view, cluster_size=10, users="all deviating").epsilon(1e-6)


def either_way() -> tuple[float, float]:
    """A pair of distributions, and a fair coin that is seen and may turn it round: delta at ln 2 of both."""
    sure, even = [Fraction(1), Fraction(0)], [Fraction(1, 2), Fraction(1, 2)]
    one, other = blocks.two_distributions(sure, even), blocks.two_distributions(even, sure)
    both = blocks.visible_cases([(0.5, one), (0.5, other)])
    assert one.delta(math.log(2)) == other.delta(math.log(2))
    return one.delta(math.log(2)), both.delta(math.log(2))


def of_ten_labels(theta: float) -> privacy.PrivacyProfile:
    return privacy.profile(PeerToPeer(0.3, theta, labels=10), cluster_size=1000)


CENTRAL, TEN = (1, 0.5, 0.4), privacy.profile(PeerToPeer(0.1), cluster_size=10)
FIGURES: dict[str, Callable[[], float]] = {
    "0.37125": lambda: privacy.profile(PeerToPeer(0.3, labels=3), cluster_size=2).delta(0.0),
    "0.638": lambda: of_ten_labels(1.0).epsilon(1e-6),
    "0.514": lambda: of_ten_labels(0.1).epsilon(1e-6),
    "0.690": lambda: privacy.shuffled_response(1000, math.log(21), 10).epsilon(1e-6),
    "0.28765": lambda: privacy.profile(RandomizedResponse(1.0)).delta(0.5),
    "0.70029": lambda: max(worst_ends(1e-3)[0]),
    "0.00093708": lambda: nearly_coins().lower,
    "0.00093829": lambda: nearly_coins().upper,
    "0.63440": lambda: worst_ends(1e-3)[1],
    "8.43035": lambda: privacy.composed(TEN, 10, same_case=True).epsilon(1e-6),
    "9.17040": lambda: privacy.composed(TEN, 10).epsilon(1e-6),
    "0.632": lambda: metadata(1.0),
    "0.0952": lambda: metadata(0.1),
    "0.044": lambda: late(["late=0.3"]),
    "0.004": lambda: late([]),
    "0.9179": lambda: privacy.shuffled_response(21, 1.0, 3).epsilon(1e-6),
    "0.9280": lambda: shuffle.blanket(21, 1.0, 1e-6, labels=3).epsilon,
    "0.0861": lambda: privacy.profile(PeerToPeer(1 / (1 + math.e)), cluster_size=1000).epsilon(1e-6),
    "0.1266": lambda: privacy.shuffled_response(1000, 1.0).epsilon(1e-6),
    "0.1487": lambda: shuffle.clone_stronger(1000, 1.0, 1e-6).epsilon,
    "0.1824": lambda: shuffle.clone(1000, 1.0, 1e-6).epsilon,
    "0.5662": lambda: shuffle.fmt2021_theorem(1000, 1.0, 1e-6).epsilon,
    "0.6495": lambda: shuffle.fmt2021_code(1000, 1.0, 1e-6).epsilon,
    "0.97199": lambda: summed("learner"),
    "3.0716": lambda: summed("aggregator", "all deviating"),
    "2.2528": lambda: clustering2022.theorem1_printed(*CENTRAL).epsilon,
    "3.2528": lambda: clustering2022.theorem1_corrected(*CENTRAL).epsilon,
    "2.9808": lambda: 2 + math.log(8 / 3),
    "1.42505": lambda: clustering2022.theorem3(20_000, 1.0).epsilon,
    "2.5e-9": lambda: clustering2022.theorem3(20_000, 1.0).delta,
    "0.39614": lambda: clustering2022.theorem3(20_000, 1.0).parameters["alpha"],
    "1.42674": lambda: misprinted(20_000),
    "0.81": lambda: (1 - 0.1) ** 2,
    "1.22944": lambda: (
        clustering2022.lemma9(
            20_000, clustering2022.theorem3(20_000, 1.0).parameters["alpha"], 1.0, delta=PROMISED
        ).epsilon
    ),
    "0.009356": lambda: exact(ASKED),
    "1.42279": lambda: exact(0.00013),
    "8.94785": lambda: privacy.profile(
        PeerToPeer(0.00013), "user", cluster_size=20_000, users="deviating"
    ).epsilon(PROMISED),
    "24.46": lambda: clustering2022.theorem5_printed(9, 10, 1).value,
    "0.23197": lambda: clustering2022.theorem5_sharper(1, 10, 1).value,
    "0.30203": lambda: clustering2022.theorem5_printed(1, 10, 1).value,
    "0.8326": lambda: attacks2023.corollary1_weighted(0.1, 0, [0.03, 0.97]).value,
    "0.46212": lambda: attacks2023.theorem2(1, 0, 1).value,
    "0.23106": lambda: attacks2023.theorem2_zero_one(1, 0, [[0.5, 0.5]]).value,
    "0.7602": lambda: float(ndtr(1 / math.sqrt(2))),
    "0.5282": lambda: float(ndtr(1 / (math.sqrt(2) * 10))),
    "0.5028": lambda: float(ndtr(1 / (math.sqrt(2) * 100))),
    "0.5885": lambda: float(ndtr(1 / math.sqrt(2 * 10))),
    "0.31606": lambda: unified2023.laplace_llp_printed([0.5], 1).value,
    "0.19673": lambda: unified2023.laplace_llp_sharper([0.5], 1).value,
    "0.46882": lambda: max(math.sqrt(t) * float(i0e(t)) for t in np.linspace(0.7, 0.9, 2001)),
    "1.77": lambda: math.sqrt(0.5) * math.sqrt(2 * math.pi),
    "0.4589": lambda: -loss(0.7, 0.9, 0.4),
    "12.93": lambda: loss(1 - low_threshold(0.5, 0.01, 10.5), 0.5, 0.01),
    "0.0931": lambda: low_threshold(0.256, 0.01, 6),
    "5.49": lambda: loss(low_threshold(0.256, 0.01, 6), 0.256, 0.01),
    "0.0593": lambda: brentq(lambda eta: loss(eta, 0.256, 0.01) - 6, 1e-9, 0.256),
    "0.8029": lambda: brentq(lambda eta: loss(eta, 0.256, 0.01) - 6, 0.5, 1 - 1e-9),
    "6.261": lambda: loss(0.9, 0.5, 0.01),
    "0.8953": lambda: brentq(lambda eta: loss(eta, 0.5, 0.01) - 6.2, 0.5, 1 - 1e-9),
    "0.1272": lambda: TWICE_C,
    "0.0051": lambda: math.sqrt(math.log(6 / CONFIDENCE) / (2 * N)) + CONFIDENCE / 3,
    "27.63": lambda: math.log(10**12),
    "10.6806": lambda: release2023.theorem7_1_sharper(2, 0.01, 2, 0.1).epsilon,
    "10.6866": lambda: release2023.theorem7_1_printed(2, 0.01, 2, 0.1).epsilon,
    "5.293": lambda: math.log(199),
}
"""Figures of the page, as it prints them, and how each is computed."""

GIVEN = {
    "0.00013", "0.01", "0.03", "0.1", "0.2", "0.25", "0.256", "0.3", "0.4", "0.485", "0.5", "0.6", "0.7", "0.8", "0.9",
    "0.97", "3.5", "3.6", "4.2", "4.3", "5.2", "6.1", "6.2", "6.4", "7.1", "10.5", "5.19",
}  # fmt: skip
"""Parameters, numbers of theorems, and what a paper prints."""


def test_every_figure_is_computed_here_and_no_other_is_printed() -> None:
    printed = set(re.findall(r"(?<![\w.])\d+\.\d+(?:e-\d+)?", PAGE))
    assert printed - GIVEN == set(FIGURES)
    assert printed >= GIVEN


@pytest.mark.parametrize("printed", FIGURES)
def test_figure(printed: str) -> None:
    """The value rounds to what is printed."""
    digits, _, power = printed.partition("e")
    scale = 10.0 ** int(power or 0)
    places = len(digits.partition(".")[2])
    assert f"{FIGURES[printed]() / scale:.{places}f}" == digits


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("δ = 0.5, and both together have δ = 0.25", either_way, (0.5, 0.25)),
        ("it is n1 = 3", lambda: int(np.argmax(worst_ends(1e-3)[0])), 3),
        (
            "n = 3 and α = 1/4, δ(0) = 1/6",
            lambda: privacy.profile(PeerToPeer(0.25), "user", cluster_size=3).delta(0),
            1 / 6,
        ),
        (
            "37/108 at ε = 0",
            lambda: privacy.profile(PeerToPeer(0.25), "learner+1*user", cluster_size=3).delta(0),
            37 / 108,
        ),
        (
            "9/32 at e^ε = 5/4",
            lambda: privacy.profile(PeerToPeer(0.25), "learner+1*user", cluster_size=3).delta(math.log(1.25)),
            9 / 32,
        ),
        (
            "δ_2(0) is 2/3 by the chain and 1/2 by two flips",
            lambda: (
                privacy.grouped(privacy.profile(RandomizedResponse(math.log(3))), 2).delta(0),
                privacy.profile(RandomizedResponse(math.log(3)), group=2).delta(0),
            ),
            (2 / 3, 1 / 2),
        ),
        ("with two users 1 (eight)", lambda: round(summed("learner+2*user"), 5), 1.0),
        ("its log ratio is 2; printed is 1", lambda: clustering2022.theorem1_printed(1, 1, 0.1).epsilon, 1),
        ("in total 3ε", lambda: clustering2022.corollary2_corrected(1, 0.1, 2).epsilon, 3),
        ("not 2ε", lambda: clustering2022.corollary2_printed(1, 0.1, 2).epsilon, 2),
        ("s = 9, ε = 1", lambda: clustering2022.theorem5_printed(9, 10, 1).value > 1, True),
        ("The odds 1/9 are below e^−1", lambda: math.exp(-1) > 1 / 9, True),
    ],
)
def test_statement(printed: str, value: Callable[[], object], expected: object) -> None:
    assert printed in FLAT
    assert value() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("size", "theta"), [(11_108, 1.0), (62_423, 0.25), (188_930, 0.1)])
def test_least_cluster_of_theorem_3(size: int, theta: float) -> None:
    assert f"{size:,} at θ = {theta:g}" in FLAT
    assert clustering2022.theorem3(size, theta).holds
    assert not clustering2022.theorem3(size - 1, theta).holds


def test_theorem_3_and_lemma_9_do_not_apply_to_the_small_alpha() -> None:
    assert "| 0.00013 | does not apply | does not apply |" in PAGE
    assert clustering2022.theorem3(20_000, 1.0).parameters["alpha"] > 0.00013
    assert not clustering2022.lemma9(20_000, 0.00013, 1.0, delta=PROMISED).holds
    assert "some 3,000 times smaller" in FLAT
    assert 3000 < ASKED / 0.00013 < 3100


def test_worst_composition_of_a_shuffle_is_in_the_middle() -> None:
    assert "n = 200, a = 0.01, ε = 0 has its worst at 99 ones among the others" in FLAT
    found = ShuffledBits(0.01, 200).at_worst(0.0)
    assert found.composition in (99, 100)  # of 199 others, both are alike
    deltas = [ShuffledBits(0.01, 200, composition=ones).delta(0.0).value for ones in (0, 50, 99)]
    assert deltas == sorted(deltas)


def released(one: Floats, zero: Floats, tau: float) -> Floats:
    """Return q~(1) of Algorithm 1 of Clustering 2022 for two labels, from noisy shares: its lines 5 to 18."""
    q = [np.clip(share, tau, 1.0) for share in (one, zero)]
    gap = 1 - q[0] - q[1]
    xi = [np.where(gap < 0, share - tau, 1 - share) for share in q]
    moved = np.divide(xi[0] * gap, xi[0] + xi[1], out=np.zeros_like(gap), where=xi[0] + xi[1] > 0)
    return np.asarray(q[0] + moved)


def test_theorem_1_of_clustering_2022_fails_by_a_factor_of_two() -> None:
    """Of 4 labels 1 or 2 are ones: where the event happens, both noisy shares are e times as likely if it is 2."""
    grid = (np.arange(-160, 360) + 0.5) / 200
    one, zero = np.meshgrid(grid, grid, indexing="ij")

    def log_ratio(event: npt.NDArray[np.bool_]) -> Floats:
        # Laplace noise of scale sigma/n = 1/4 on each share: with two ones, and with one
        up = 4 * (np.abs(one[event] - 0.25) - np.abs(one[event] - 0.5))
        down = 4 * (np.abs(zero[event] - 0.75) - np.abs(zero[event] - 0.5))
        return np.asarray(up + down)

    first = released(one, zero, 0.1) >= 0.7
    assert first.any()
    assert one[first].min() > 0.6
    assert zero[first].max() < 0.4
    assert np.allclose(log_ratio(first), 2)
    second = released(one, zero, 0.4) >= 0.6 - 1e-12
    assert (second == ((one > 0.6) & (zero < 0.4))).all()
    assert np.allclose(log_ratio(second), 2)
    shown = [(1 - 0.5) * label + 0.5 * 0.6 for label in (1, 0)]
    assert shown == pytest.approx([0.8, 0.3])
    told = 2 + math.log(shown[0] / shown[1])
    printed, corrected = (
        clustering2022.theorem1_printed(*CENTRAL),
        clustering2022.theorem1_corrected(*CENTRAL),
    )
    assert printed.epsilon < told < corrected.epsilon


def test_the_short_attacker_of_unified_2023_guesses_the_wrong_way_round() -> None:
    """Whatever is seen, 0 is likelier where the odds are below e^-epsilon; at k = 1 the bound is reached."""
    seen = [float(unified2023.laplace_llp_posterior([0.1], told, 1)[0]) for told in np.linspace(-5, 6, 111)]
    assert max(seen) == pytest.approx(0.23197, abs=5e-6)


def test_the_counterexample_to_theorem_2_of_pitfalls_2021() -> None:
    threshold = FIGURES["0.8953"]()
    assert loss(0.9, 0.5, 0.01) == pytest.approx(loss(0.1, 0.5, 0.01))
    assert loss(0.9, 0.5, 0.01) > 6.2  # J(tau) = 1
    assert threshold > 0.9 - TWICE_C  # and no point is counted
    assert 1 - threshold < 0.1 + TWICE_C


@pytest.mark.parametrize("positive", [0.044, 0.256, 0.5, 0.861])
def test_the_expected_loss_is_convex_with_its_least_value_between_a_half_and_the_prior(
    positive: float,
) -> None:
    eta = np.linspace(0.001, 0.999, 1999)
    values = np.array([loss(float(each), positive, 0.01) for each in eta])
    assert (np.diff(values, 2) > 0).all()
    low, high = sorted((0.5, positive))
    assert low - 1e-3 <= eta[values.argmin()] <= high + 1e-3


def risks(law: Floats, synthetic: Floats, losses: Floats, lam: float) -> tuple[float, float, float]:
    """Return (the risk, Lemma G.1 of Release 2023 as printed, corrected); ``law`` (k, m), ``losses`` (m, k)."""
    labels, k = law.sum(axis=1), len(law)
    features = law / labels[:, None]
    told = release2023.mechanism2_law(features, synthetic, lam)  # (true label, features, label)
    shown = np.einsum("y,yxz->xz", labels, told)
    first = float((shown * losses).sum() - lam / k * (shown.sum(axis=1) @ losses.sum(axis=1)))
    second = float((synthetic @ losses @ labels).sum())
    risk = float((law.T * losses).sum())
    scaled = first / (1 - lam) ** 2
    return risk, scaled + lam / (1 - lam) * second, scaled - lam / ((1 - lam) * k) * second


def test_lemma_g1_of_release_2023() -> None:
    assert "four times the risk" in FLAT
    risk, printed, corrected = risks(
        np.array([[0.3], [0.7]]), np.ones((2, 1)), np.array([[1.0, 0.5]]), lam=0.5
    )
    assert (printed, corrected) == pytest.approx((4 * risk, risk))
    random = np.random.default_rng(5)
    for _ in range(20):
        k, m = int(random.integers(2, 5)), int(random.integers(1, 5))
        law = random.dirichlet(np.ones(k * m)).reshape(k, m)
        risk, _, corrected = risks(
            law, random.dirichlet(np.ones(m), k), random.random((m, k)), float(random.uniform(0.05, 0.9))
        )
        assert corrected == pytest.approx(risk)


def gap(p: Floats, q: Floats, x: float) -> float:
    return float(np.maximum(p - x * q, 0).sum())


def test_identities_of_the_divergence() -> None:
    """The curve in both directions, and a noisy bit in place of the label, on random distributions."""
    random = np.random.default_rng(3)
    for _ in range(200):
        p, q = random.dirichlet(np.ones(5), 2)
        x, a = float(random.uniform(0.1, 5)), float(random.uniform(0, 0.5))
        assert gap(p, q, x) == pytest.approx(1 - x + x * gap(q, p, 1 / x), abs=1e-12)
        x = max(x, 1.0)
        keep = 1 - a - x * a
        noisy = gap((1 - a) * p + a * q, a * p + (1 - a) * q, x)
        expected = keep * gap(p, q, (x * (1 - a) - a) / keep) if keep > 0 else 0.0
        assert noisy == pytest.approx(expected, abs=1e-12)


def test_a_vote_dominates_a_neighbour_s_report() -> None:
    for degree in (2, 3, 7):
        for ones in range(degree):
            fewest, theta = min(ones, degree - 1 - ones), 0.7
            heard = [
                np.array([theta * (ones + bit) / degree, theta * (degree - ones - bit) / degree, 1 - theta])
                for bit in (1, 0)
            ]
            given = theta * (2 * fewest + 1) / degree
            right, wrong = given * (fewest + 1) / (2 * fewest + 1), given * fewest / (2 * fewest + 1)
            vote = [np.array([right, wrong, 1 - given]), np.array([wrong, right, 1 - given])]
            for x in np.linspace(1, 4, 31):
                most = gap(vote[0], vote[1], x)
                assert max(gap(heard[0], heard[1], x), gap(heard[1], heard[0], x)) <= most + 1e-12
                assert most == pytest.approx(theta / degree * max(0.0, 1 - (x - 1) * fewest), abs=1e-12)


# The page and those who cite it
def test_every_section_has_an_anchor_of_its_own() -> None:
    before = re.findall(r'^<a id="[^"]+"></a>\n##+ ', PAGE, re.MULTILINE)
    assert len(before) == len(HEADINGS) == len(ANCHORS) == len(set(ANCHORS))
    assert len(set(HEADINGS)) == len(HEADINGS)


def test_links_to_sections_find_them() -> None:
    inside = re.findall(r"\]\(#([^)]+)\)", PAGE)
    outside = [anchor for text in TEXTS.values() for anchor in re.findall(r"laws\.md#([\w-]+)", text)]
    assert inside
    assert outside
    assert not {*inside, *outside} - set(ANCHORS)


def test_docstrings_cite_sections_that_exist() -> None:
    cited = set()
    for path, text in TEXTS.items():
        if path.suffix == ".py" and "tests" not in path.parts:
            for found in re.findall(r'docs/laws\.md``, ("[^"]+"(?: and "[^"]+")*)', " ".join(text.split())):
                cited |= set(re.findall(r'"([^"]+)"', found))
    assert len(cited) > 20
    assert not cited - set(HEADINGS)


def test_code_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:p2p_sim|tests)/[^`]+)`", PAGE)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]


def test_nothing_cites_what_a_reader_of_the_repository_does_not_have() -> None:
    missing = "claims" + ".md"
    assert not [str(path) for path, text in TEXTS.items() if missing in text]
