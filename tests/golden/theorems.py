"""Figures of every public function of ``privacy.bounds``: what holds, the values, and the parameters asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from p2p_sim.privacy import bounds
from tests.golden.accounts import Figure

TEXTS = ("why", "source", "quantity")

CONDITIONALS = [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]
LAW, OTHER = [0.5, 0.3, 0.2], [0.25, 0.25, 0.5]
FEATURES, SYNTHETIC = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
MODEL = [[0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]
ETA = [0.1, 0.35, 0.5, 0.8]

ATTACKS: dict[str, list[tuple[Any, ...]]] = {
    "distance": [(1.0,), (0.5, 0.01), (float("inf"),)],
    "theorem2": [(1.0, 0.01, 0.5)],
    "corollary1": [(1.0, 0.01), (2.0, 0.0, 3.0)],
    "corollary1_weighted": [(1.0, 0.0, [0.2, 0.3, 0.5])],
    "theorem2_zero_one": [(1.0, 1e-6, CONDITIONALS)],
    "theorem3": [(0.5, 0.0, 0.7)],
    "label_independent_utility": [(CONDITIONALS,), (CONDITIONALS, [[1.0, 0.5], [0.0, 2.0]])],
    "mean_supremum": [(CONDITIONALS,)],
    "weighted_utility": [([0.2, 0.3, 0.5],)],
}
CLUSTERING: dict[str, list[tuple[Any, ...]]] = {
    "theorem1_printed": [(2.0, 0.5, 0.1), (0.0, 0.5, 0.1)],
    "theorem1_corrected": [(2.0, 0.5, 0.1), (2.0, 0.0, 0.1)],
    "theorem2_shape": [(3, 10.0, 0.05, 1000, 0.1, 50, 2.0, 0.5, 0.2, 0.1)],
    "corollary1": [(1.0, 2), (0.5, 10)],
    "corollary2_printed": [(1.0, 0.2, 3), (1.0, 0.5, 3)],
    "corollary2_corrected": [(1.0, 0.2, 3), (1.0, 0.5, 3)],
    "corollary2_split": [(0.5, 1.0, 0.2, 3)],
    "theorem3": [(100_000, 1.0), (10, 1.0), (1_000_000, 0.5)],
    "lemma9": [(1000, 0.1, 0.5, 1e-6), (1000, 0.1, 0.5, None, 2.0), (10, 0.1, 0.5, 1e-6)],
    "theorem4_shape": [(10.0, 0.05, 0.5, 1000, 0.1, 0.2)],
    "theorem5_printed": [(2, 20, 0.5), (5, 4, 0.5)],
    "theorem5_sharper": [(2, 20, 0.5), (5, 4, 0.5)],
}
RELEASE: dict[str, list[tuple[Any, ...]]] = {
    "theorem5_2_printed": [(2.0, 0.5, 0.01, 0.6, 3, 0.9)],
    "theorem5_2_sharper": [(2.0, 0.5, 0.6)],
    "theorem5_2_sharpest": [(2.0, 0.5, 0.6, 0.8)],
    "theorem7_1_printed": [(2.0, 0.5, 3, 0.2), (2.0, 0.0, 3, 0.2)],
    "theorem7_1_sharper": [(2.0, 0.5, 3, 0.2)],
    "theorem7_2": [(3.0, 0.4, 4), (3.0, 0.9, 4)],
    "label_divergence": [(2.0, 0.5, 2), (4.0, 0.2, 10)],
    "renyi_divergence": [(LAW, OTHER, 2.0), (LAW, [0.5, 0.5, 0.0], 2.0)],
    "mechanism1_law": [(FEATURES, MODEL, 0.3)],
    "mechanism2_law": [(FEATURES, SYNTHETIC, 0.3)],
    "mechanism3_law": [(3, 0.4)],
    "approximate": [(bounds.release2023.label_divergence(4.0, 0.4, 3), 1e-6)],
}
SHUFFLE: dict[str, list[tuple[Any, ...]]] = {
    "fmt2021_theorem": [(10_000, 1.0, 1e-6), (10, 1.0, 1e-6)],
    "fmt2021_code": [(10_000, 1.0, 1e-6, 50)],
    "clone": [(500, 1.0, 1e-6), (500, 1.0, None, 0.2), (500, 2.0, 1e-6, None, 5)],
    "clone_stronger": [(500, 1.0, 1e-6), (500, 1.0, None, 0.2)],
    "blanket": [(500, 1.0, 1e-6), (500, 1.0, None, 0.2, 4)],
    "blanket_hoeffding": [(5000, 1.0, 1e-6, None, 4, 3), (5000, 1.0, None, 0.2)],
}
UNIFIED: dict[str, list[tuple[Any, ...]]] = {
    "rr_advantage": [(ETA, 1.0), (ETA, 0.5, [0.1, 0.2, 0.3, 0.4])],
    "rr_attack": [(ETA, [0, 1, 1, 0], 1.0)],
    "poisson_binomial": [(ETA,)],
    "llp_posterior": [(ETA, 2)],
    "llp_advantage": [(ETA,)],
    "theorem3_4_exact": [(0.3, 8)],
    "theorem3_4": [(0.3, 8), (0.5, 100)],
    "theorem3_5": [(0.2, 8)],
    "lemma_a1": [(0.2, 0.4, 9)],
    "laplace_llp_printed": [(ETA, 1.0)],
    "laplace_llp_sharper": [(ETA, 1.0)],
    "laplace_llp_posterior": [(ETA, 0.4, 1.0)],
}
PAPERS: dict[str, tuple[Any, Mapping[str, list[tuple[Any, ...]]]]] = {
    "attacks2023": (bounds.attacks2023, ATTACKS),
    "clustering2022": (bounds.clustering2022, CLUSTERING),
    "release2023": (bounds.release2023, RELEASE),
    "shuffle": (bounds.shuffle, SHUFFLE),
    "unified2023": (bounds.unified2023, UNIFIED),
}


def stated(found: Any) -> Any:
    """Return a bound without its texts; a plain number or array as it is."""
    if is_dataclass(found) and not isinstance(found, type):
        return {name: value for name, value in asdict(found).items() if name not in TEXTS}
    return found


def _called(paper: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    return stated(getattr(paper, name)(*arguments))


def _divergence() -> Any:
    release = bounds.release2023
    law = release.mechanism1_law(np.array(FEATURES), np.array(MODEL), 0.3)
    return stated(release.exact_divergence(law, 2.0))


THEOREMS: dict[str, Figure] = {
    f"bounds/{paper}/{name}, {number}": partial(_called, module, name, arguments)
    for paper, (module, table) in PAPERS.items()
    for name, calls in table.items()
    for number, arguments in enumerate(calls)
} | {"bounds/release2023/exact_divergence": _divergence}
