"""Statistics of views: their laws against enumeration and the accountant, and what they read from real runs."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, backends, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing import common_statistics
from p2p_sim.privacy.auditing.audit import statistic_of
from p2p_sim.privacy.auditing.law_test import law_test
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages
from p2p_sim.privacy.auditing.worlds import Situation, batches
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn, upper_tails
from protocols import PeerToPeer, RandomizedResponse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

VIEWS = [
    (view, "plain") for view in ("learner", "user", "2*user", "learner+user", "learner+2*user", "wire")
] + [
    ("learner+wire", "plain"),
    ("learner+wire+user", "plain"),
    ("wire", "encrypted"),
    ("wire+user", "encrypted"),
    ("learner+wire", "encrypted"),
    ("learner+wire+user", "encrypted"),
]


def coalition_of(view: str) -> Coalition:
    return Coalition.parse(view, ("user", "learner"))


def made(protocol: Any, view: str, size: int, composition: int, channels: str = "plain") -> Any:
    return statistic_of(protocol, coalition_of(view), size=size, composition=composition, channels=channels)


def every_way(n: int, view: str, channels: str) -> tuple[Seen, Any, Any, Any]:
    """Each way of one cluster as a world: what the view sees of it, and all bits, picks and kept reports."""
    who = coalition_of(view)
    grid = np.array(list(product(*[(0, 1)] * n, *[range(n)] * n, *[(0, 1)] * n)))
    bits, picks, kept = grid[:, :n], grid[:, n : 2 * n], grid[:, 2 * n :]
    start = np.arange(len(grid))[:, None] * n
    users = (start + np.arange(n)).ravel()
    asked, told = (start + picks).ravel(), np.take_along_axis(bits, picks, 1).ravel()
    inside = (users % n >= 1) & (users % n <= who.some_users)
    touched = inside | inside[asked]
    seen = touched | ((users != asked) & who.wire)
    open_ = touched | (who.wire and channels == "plain")
    kinds, messages, rounds = {}, PeerToPeer(0.25).messages(), np.zeros(len(users), np.int32)

    def put(kind: str, rows: Any, sender: Any, recipient: Any, reads: Any = None, **fields: Any) -> None:
        columns = {name: np.where(reads, column, 0)[rows] for name, column in fields.items()}
        if len(sender[rows]):
            readable = None if reads is None or reads[rows].all() else reads[rows]
            args = (rounds[rows], sender[rows], recipient[rows], columns, readable)
            kinds[kind] = SeenMessages(messages[kind], *args)

    put("ask", seen, users, asked)
    put("label", seen, asked, users, open_, y_hat=told)
    handled = inside | ("learner" in who.servers)
    reports = (handled | who.wire) & kept.ravel().astype(bool)
    put("report", reports, users, users * 0, handled | (who.wire and channels == "plain"), y=told)
    return Seen(n, len(grid), who.some_users, kinds), bits, picks, kept


def weights(bits: Any, kept: Any, ones: Any, alpha: float, theta: float) -> Any:
    """The probability of each way, with ``ones`` the users of label 1."""
    y = np.isin(np.arange(bits.shape[1]), ones)
    flips = np.where(bits != y, alpha, 1 - alpha).prod(1)
    return flips * np.where(kept == 1, theta, 1 - theta).prod(1) / bits.shape[1] ** bits.shape[1]


def excess(over: Any, under: Any, epsilon: float) -> float:
    return float(np.maximum(over - math.exp(epsilon) * under, 0).sum())


@pytest.mark.parametrize(("view", "channels"), VIEWS)
@pytest.mark.parametrize(("alpha", "theta"), [(0.25, 1.0), (0.125, 0.5), (0.0, 0.75)])
def test_law_equals_enumeration(view: str, channels: str, alpha: float, theta: float) -> None:
    """Ratios, probabilities and cells are those of all ways; nothing that the view tells is lost."""
    n, protocol = 3, PeerToPeer(alpha, theta)
    seen, bits, _, kept = every_way(n, view, channels)
    for composition in range(n - seen.colluders):
        stat = made(protocol, view, n, composition, channels)
        columns = stat.read(seen)
        rows, back = np.unique(np.stack(list(columns.values()), 1), axis=0, return_inverse=True)
        values = dict(zip(columns, rows.T, strict=True))
        ones = list(range(1 + seen.colluders, 1 + seen.colluders + composition))
        laws = []
        for label in (0, 1):
            way = weights(bits, kept, [0, *ones] if label else ones, alpha, theta)
            laws.append(np.bincount(back, way))
            _cells_fit(stat, values, label, laws[label])
        can = laws[0] + laws[1] > 0
        with np.errstate(divide="ignore"):
            exact = np.log(laws[1][can]) - np.log(laws[0][can])
        np.testing.assert_allclose(stat.ratios(values)[can], exact, atol=1e-12)
        if composition == 0 and (theta == 1 or view == "learner+user"):  # enumeration takes its time
            population = Population.from_arrays(y=np.zeros(n, np.bool_))
            truth = privacy.enumerate_view(protocol, population, view=view, channels=channels)
            for epsilon in (0.0, 0.2, 1.0):
                mine = max(excess(laws[1], laws[0], epsilon), excess(laws[0], laws[1], epsilon))
                assert mine == pytest.approx(truth.delta(epsilon), abs=1e-13)


def _cells_fit(stat: Any, values: Any, label: int, law: Any) -> None:
    """The probabilities multiply to the law, and the cells of each coordinate tile [0, 1] given those before."""
    if not stat.draws:
        return
    below, mass = stat.row_law(values, label)
    silent = values["bit"] >= 0 if "bit" in values else np.zeros(len(law), bool)
    np.testing.assert_allclose(mass.prod(1), law, atol=1e-14)
    order = np.lexsort([values[name] for name in reversed(stat.coordinates)])
    for i in order:
        width = stat.draws if not silent[i] else 1
        for j in range(width if law[i] > 0 else 0):
            same = law > 0
            for name in stat.coordinates[:j]:
                same = same & (values[name] == values[name][i])
            smaller = np.unique(below[same & (below[:, j] < below[i, j] - 1e-15), j])
            end = max(
                (b + m for b, m in zip(below[same, j], mass[same, j], strict=True) if b in smaller), default=0
            )
            assert below[i, j] == pytest.approx(end, abs=1e-14)


def every_row(stat: Any) -> dict[str, Any]:
    """Each value of the columns that can be: more than can be, perhaps."""
    n, c, ones = stat.honest, stat.colluders, stat.composition
    rows = [
        (-1, known, picked, said, m, k, own)
        for known in range(min(c, n - 1) + 1)
        for picked in range(max(0, known - (n - 1 - ones)), min(known, ones) + 1)
        for said in range(known + 1)
        for m in range(n + 1)
        for k in range(m + 1)
        for own in range(3)
    ] + [(bit, 0, 0, 0, 0, 0, 0) for bit in (0, 1)]
    table = dict(zip(("bit", "known", "picked", "said", "m", "k", "own"), np.array(rows).T, strict=True))
    return table if c else {name: table[name][:-2] for name in ("m", "k", "own")}


@pytest.mark.parametrize(
    ("view", "n", "composition", "alpha", "theta"),
    [
        ("learner", 60, 17, 0.1, 0.5),
        ("learner", 300, 0, 0.2, 1.0),
        ("learner+user", 25, 7, 0.2, 0.5),
        ("learner+4*user", 14, 5, 0.1, 1.0),
        ("learner+6*user", 9, 0, 0.3, 0.75),
        ("learner", 40, 39, 0.0, 0.5),
    ],
)
def test_law_sums_to_the_accountant_s(
    view: str, n: int, composition: int, alpha: float, theta: float
) -> None:
    protocol = PeerToPeer(alpha, theta)
    stat = made(protocol, view, n, composition)
    rows = every_row(stat)
    zero, one = (stat.row_law(rows, label)[1].prod(1) for label in (0, 1))
    ratio = stat.ratios(rows)
    profile = privacy.profile(protocol, view, cluster_size=n, composition=composition)
    for epsilon in (0.0, 0.1, 0.5, 1.5):
        expected = profile.directions(epsilon)
        chosen = one[ratio > epsilon].sum() - math.exp(epsilon) * zero[ratio > epsilon].sum()
        assert chosen == pytest.approx(expected[0], abs=1e-10)
        assert excess(zero, one, epsilon) == pytest.approx(expected[1], abs=1e-10)
    assert zero.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("view", ["user", "3*user", "wire", "learner+wire"])
@pytest.mark.parametrize("channels", ["plain", "encrypted"])
@pytest.mark.parametrize("n", [1, 50])
def test_chance_of_being_told_is_the_accountant_s(view: str, channels: str, n: int) -> None:
    protocol = PeerToPeer(0.1, 0.3)
    if n == 1 and "user" in view:
        return
    stat = made(protocol, view, n, 0, channels)
    expected = privacy.profile(protocol, view, cluster_size=n, channels=channels).delta(0.5)
    keep = (0.9 - 0.1 * math.exp(0.5)) * (
        stat.row_law({"bit": np.array([1])}, 1)[1][0, 0] / 0.9 if stat.draws else 0
    )
    assert keep == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "alpha", "ones"), [(20_000, 0.1, 5000), (20_000, 0.004, 0), (3000, 0.5, 0)])
def test_few_terms_are_as_good_as_all(n: int, alpha: float, ones: int) -> None:
    draws = Urn(alpha, ones, n - 1 - ones).draws(1e-40)
    mean = (ones * (1 - 2 * alpha) + n * alpha) / 2
    m = np.full(9, n // 2)
    k = np.round(mean + np.linspace(-6, 6, 9) * math.sqrt(mean)).clip(0).astype(np.int64)
    stat = made(PeerToPeer(alpha, 0.5), "learner", n, ones)
    near = np.array([draws.ratio(int(a), int(b)) for a, b in zip(m, k, strict=True)])
    expected = np.log((1 - alpha) * np.exp(near) + alpha) - np.log(alpha * np.exp(near) + 1 - alpha)
    rows = {"m": m, "k": k, "own": m * 0}
    np.testing.assert_allclose(stat.ratios(rows), expected, atol=1e-11)
    below = stat.row_law(rows, 0)[0][:, 1]
    mass = draws.ones.mass
    for value, at in zip(below, k, strict=True):
        tail = upper_tails(n // 2, int(at), n, draws.counts)
        up = (1 - alpha) * (mass @ tail[:-1]) + alpha * (mass @ tail[1:])
        assert value == pytest.approx(1 - up, abs=1e-11)


@pytest.mark.parametrize(("view", "channels"), VIEWS)
@pytest.mark.parametrize("theta", [1.0, 0.6])
def test_real_runs_follow_the_law(view: str, channels: str, theta: float) -> None:
    protocol, size = PeerToPeer(0.15, theta), 12
    situation = Situation(protocol, coalition_of(view), size, 4, channels)
    stat = made(protocol, view, size, 4, channels)
    found = law_test(stat, by_label(stat, situation, 20_000), 5, 1e-9)
    assert found.tested == bool(stat.draws)
    assert not found.rejected, found.why


def by_label(stat: Any, situation: Situation, trials: int) -> dict[int, Any]:
    """The statistic of real worlds, by the victim's label."""
    found = [
        (stat.read(seen), seen.ones) for seen in batches(situation, trials, 3, backends.Settings("local"))
    ]
    return {
        label: {
            name: np.concatenate([part[name][ones == label] for part, ones in found]) for name in found[0][0]
        }
        for label in (0, 1)
    }


@pytest.mark.parametrize("labels", [2, 5])
def test_randomized_response(labels: int) -> None:
    protocol = RandomizedResponse(1.0, labels)
    stat = made(protocol, "learner", 3, 1)
    y = np.arange(labels)
    zero, one = (stat.row_law({"y": y}, label)[1][:, 0] for label in (0, 1))
    np.testing.assert_allclose(stat.ratios({"y": y}), np.log(one / zero), atol=1e-12)
    assert excess(one, zero, 0.3) == pytest.approx(privacy.profile(protocol).delta(0.3), rel=1e-12)
    for view, channels, sees in (
        ("wire", "plain", True),
        ("wire", "encrypted", False),
        ("user", "plain", False),
    ):
        situation = Situation(protocol, coalition_of(view), 3, 1, channels)
        stat = made(protocol, view, 3, 1, channels)
        assert bool(stat.draws) == sees
        found = law_test(stat, by_label(stat, situation, 5000), 5, 1e-9)
        assert not found.rejected, found.why


def test_certain_answers_are_infinite_and_impossible_ones_have_no_position() -> None:
    stat = made(RandomizedResponse(math.inf, 3), "learner", 2, 0)
    y = {"y": np.array([0, 1, 2, -1])}
    assert stat.ratios(y).tolist() == [-math.inf, math.inf, 0.0, 0.0]
    coins = np.full((4, 1), 0.5)
    assert np.isnan(stat.positions(y, 1, coins))[:, 0].tolist() == [True, False, True, True]
    stat = made(PeerToPeer(0.0), "learner", 3, 0)  # nobody but the victim can have a one
    rows = {"m": np.array([3, 3, 3, 2, 4]), "k": np.array([0, 1, 3, 1, 1])}
    rows["own"] = np.array([1, 1, 2, 1, 1])
    assert stat.ratios(rows)[1:].tolist() == [math.inf] * 4
    assert np.isnan(stat.positions(rows, 0, np.full((5, 3), 0.5))).any(1).tolist() == [False, *[True] * 4]
    assert made(PeerToPeer(0.5), "user", 3, 0).ratios({"bit": np.array([-1, 0, 1])}).tolist() == [0, 0, 0]
    assert not made(PeerToPeer(0.5), "learner", 9, 2).ratios({"m": np.arange(9), "k": np.arange(9)}).any()


def test_other_protocols_have_no_statistic_and_silent_worlds_are_read() -> None:
    assert made(object(), "learner", 3, 0) is None
    silent = Seen(3, 2, 1, {})
    for view in ("learner", "learner+user", "user", "wire"):
        columns = made(PeerToPeer(0.2), view, 3, 0).read(silent)
        assert all(column.shape == (2,) for column in columns.values())
    assert made(RandomizedResponse(1.0), "learner", 3, 0).read(silent)["y"].tolist() == [-1, -1]


@pytest.mark.parametrize("size", [3, 100, 700])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counting_in_any_order(size: int, dtype: Any) -> None:
    worlds = 2000 // size + 4
    users = np.arange(worlds * size, dtype=dtype)
    y = (users * 40503 >> 7) % 3 == 0
    for kept in (users >= 0, users % 5 > 1, (users // size) % 2 == 0, users < 0):
        sender, bit = users[kept], y[kept]
        expected = kept.reshape(worlds, size).sum(1), (kept & y).reshape(worlds, size).sum(1)
        for order in (slice(None), slice(None, None, -1)):
            found = common_statistics.counted(sender[order], bit[order], size, worlds)
            assert [part.tolist() for part in found] == [part.tolist() for part in expected]
