"""``reference_values.csv``: every row, each to the digits given, and inside the bracket where there is one."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from p2p_sim import privacy
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.bounds import clustering2022, shuffle
from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from protocols import PeerToPeer, RandomizedResponse

LINES = (Path(__file__).parent / "reference_values.csv").read_text().splitlines()
ROWS = list(csv.DictReader(line for line in LINES if not line.startswith("#")))
Given = dict[str, float]
Found = float | Bracket | tuple[float, ...]


def parameters(text: str) -> Given:
    """Return the numbers of ``n=3 alpha=1/4``."""
    found = re.findall(r"(\w+)=([\d.e/-]+)", text)
    return {
        name: float(top) / float(low or 1)
        for name, (top, _, low) in ((n, v.partition("/")) for n, v in found)
    }


def figure(profile: privacy.PrivacyProfile, p: Given) -> Bracket:
    return profile.epsilon_bracket(p["delta"]) if "delta" in p else profile.delta_bracket(p["eps"])


def shuffled_bits(p: Given, text: str) -> Found:
    n, local = int(p["n"]), p["eps0"]
    bounds = {
        "2/(e^eps0+1) clone": shuffle.clone_stronger, "e^-eps0 clone": shuffle.clone,
        "FMT2021 closed form, theorem": shuffle.fmt2021_theorem,
        "FMT2021 closed form, authors' code": shuffle.fmt2021_code,
    }  # fmt: skip
    for name, bound in bounds.items():
        if text.endswith(" " + name):
            assert bound(n, local, p["delta"]).holds
            return bound(n, local, p["delta"]).epsilon
    if "ones" in p:
        return ShuffledBits.of(n, local, composition=int(p["ones"])).delta(p["eps"])
    return figure(privacy.shuffled_response(n, local, colluders=int(p.get("t", 0))), p)


def peers(view: str) -> Callable[[Given, str], Found]:
    def find(p: Given, _: str) -> Found:
        alpha = p["alpha"] if "alpha" in p else 1 / (1 + math.exp(p["eps0"]))
        protocol = PeerToPeer(alpha, p.get("theta", 1.0))
        return figure(privacy.profile(protocol, view, cluster_size=int(p["n"])), p)

    return find


def metadata(p: Given, _: str) -> Found:
    protocol, local = PeerToPeer(0.25, p["theta"]), LocalResponse.flipping(0.25).delta(0.2).value
    view = privacy.profile(protocol, "learner+wire", cluster_size=int(p["n"]), channels="encrypted")
    return Bracket(*(end / local for end in view.delta_bracket(0.2)))


def composed(labels: int) -> Callable[[Given, str], Found]:
    def find(p: Given, text: str) -> Found:
        (times,) = re.findall(r" x(\d+) ", text)
        return figure(privacy.composed(privacy.profile(RandomizedResponse(p["eps0"], labels)), int(times)), p)

    return find


def theorem3(p: Given, _: str) -> Found:
    found = clustering2022.theorem3(p["s"], p["theta"])
    return found.parameters["alpha"], found.epsilon, found.delta


def perfect(_: Given, text: str) -> Found:
    assert text == "1e6 trials per world, 0.05 split over two bounds"
    trials, error = 10**6, 0.05 / 2
    return float(
        confidence_bounds.ratio(
            confidence_bounds.lower(trials, trials, error), confidence_bounds.upper(0, trials, error), 0.0
        )
    )


HOW: dict[str, Callable[[Given, str], Found]] = {
    "shuffled binary RR": shuffled_bits,
    "shuffled binary RR with t colluders": shuffled_bits,
    "shuffled 3-ary RR": lambda p, _: figure(privacy.shuffled_response(int(p["n"]), p["eps0"], 3), p),
    "resampled with replacement (peer-to-peer at theta=1)": peers("learner"),
    "local binary RR": lambda p, _: figure(privacy.profile(RandomizedResponse(p["eps0"])), p),
    "local k-ary RR": lambda p, _: figure(
        privacy.profile(RandomizedResponse(p["eps0"], int(p["k"]))), {"eps": 0.0}
    ),
    "binary RR composed": composed(2),
    "10-ary RR composed": composed(10),
    "Laplace b=1 sensitivity 1": lambda p, _: figure(privacy.laplace(1.0, 1.0), p),
    "Gaussian sigma=2 sensitivity 1": lambda p, _: figure(privacy.gaussian(2.0, 1.0), p),
    "peer-to-peer learner+1 user": peers("learner+1*user"),
    "peer-to-peer learner": peers("learner"),
    "peer-to-peer learner + traffic metadata": metadata,
    "peer-to-peer one peer": peers("user"),
    "Theorem 3 (printed)": theorem3,
    "Lemma 9": lambda p, _: clustering2022.lemma9(p["s"], p["alpha"], p["theta"], delta=p["delta"]).epsilon,
    "Clopper-Pearson upper": lambda _, __: float(confidence_bounds.upper(0, 100, 0.05)),
    "audit cap with a perfect attack": perfect,
}


def same(value: float, printed: str) -> bool:
    """Return whether a value rounds to the digits printed."""
    return Decimal(value).quantize(Decimal(printed)) == Decimal(printed)


def test_the_file_is_whole() -> None:
    assert len(ROWS) == 40
    assert {row["mechanism"] for row in ROWS} == set(HOW)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[f"{row['mechanism']}, {row['parameters']}" for row in ROWS])
def test_row(row: dict[str, str]) -> None:
    text, printed = row["parameters"], row["value"].split(";")
    found = HOW[row["mechanism"]](parameters(text), text)
    if isinstance(found, Bracket):
        slack = 0.5 * float(Decimal(1).scaleb(int(Decimal(printed[0]).as_tuple().exponent)))
        assert found.lower - slack <= float(printed[0]) <= found.upper + slack
        assert found.lower <= found.value <= found.upper
        found = found.value
    values = found if isinstance(found, tuple) else (found,)
    assert all(same(value, one) for value, one in zip(values, printed, strict=True)), values


def test_what_the_rows_say_of_compositions() -> None:
    """Worst with 2 ones, not 0; at n = 200 in the middle; at n = 10 at 3 ones, where the ends give .63440."""
    worst, _ = ShuffledBits.of(1000, 2).worst(1e-6)
    assert isinstance(worst, ShuffledBits)
    assert worst.composition in (2, 997)
    assert ShuffledBits.of(100, 1).delta(0.3).value == pytest.approx(1.8032e-4, rel=1e-4)
    assert ShuffledBits.of(100, 1, composition=1).delta(0.3).value == pytest.approx(1.8032e-4, rel=1e-4)
    middle = ShuffledBits(0.01, 200).at_worst(0.0)
    assert isinstance(middle, ShuffledBits)
    assert middle.composition in (99, 100)

    def at(ones: int) -> float:
        return privacy.profile(PeerToPeer(0.2), cluster_size=10, composition=ones).epsilon(1e-3)

    assert same(max(at(0), at(9)), "0.6344020")
    assert same(at(3), "0.7002928")


def test_brackets_are_narrow_and_bases_say_what_was_covered() -> None:
    for n, local in ((1, 1.0), (100, 1.0), (1000, 0.5), (1000, 4.0)):
        found = privacy.shuffled_response(n, local)
        low, _, high = found.epsilon_bracket(1e-6)
        assert (found.basis, high <= low * (1 + 1e-10)) == ("exact", True)
    large = privacy.shuffled_response(100_000, 4.0)
    low, value, high = large.delta_bracket(0.0847)
    assert (large.basis, low <= value <= high < 1.1 * value) == ("lower", True)
    assert privacy.profile(PeerToPeer(0.39614), cluster_size=20_000).basis == "exact"
    wide = privacy.profile(PeerToPeer(0.39614), cluster_size=20_000).epsilon_bracket(2.5e-9)
    assert wide.upper <= wide.lower * 1.001


def test_metadata_of_reports_that_all_come() -> None:
    found = metadata({"n": 1000, "theta": 1.0}, "")
    assert isinstance(found, Bracket)
    assert same(found.value, "0.632")


def test_the_known_failure_of_a_variation_ratio() -> None:
    assert privacy.shuffled_response(5, 1.0, 3).delta(0.5) == pytest.approx(0.0522221534, abs=1e-10)


def test_the_headline_the_same_promise_needs_far_less_noise() -> None:
    profile = privacy.profile(PeerToPeer(0.00013), cluster_size=20_000)
    assert 1.0 < profile.epsilon(2.5e-9) <= 1.425
    assert privacy.profile(PeerToPeer(0.00013), "user", cluster_size=20_000).epsilon(2.5e-9) > 8.9


def test_coalitions_at_another_ratio() -> None:
    found = privacy.profile(PeerToPeer(0.25), "learner+1*user", cluster_size=3).delta(math.log(1.25))
    assert found == pytest.approx(9 / 32)
