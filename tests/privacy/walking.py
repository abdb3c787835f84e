"""Exact laws of walks and neighbours on graphs of very few users, in fractions: nothing of the package is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

Edges = Sequence[tuple[int, int]]
Places = list[list[Fraction]]
Sight = tuple[int, ...]


def near(edges: Edges, users: int) -> list[list[int]]:
    """The neighbours of every user."""
    found: list[list[int]] = [[] for _ in range(users)]
    for one, other in edges:
        found[one].append(other)
        found[other].append(one)
    return found


def everybody(users: int) -> list[list[int]]:
    """The complete graph, where everybody is her own neighbour too."""
    return [list(range(users)) for _ in range(users)]


def walked(neighbours: list[list[int]], steps: int) -> Places:
    """The chance that user k's report is at j after so many steps, by [k][j]."""
    users = len(neighbours)
    laws = [[Fraction(int(j == k)) for j in range(users)] for k in range(users)]
    for _ in range(steps):
        after = [[Fraction(0)] * users for _ in range(users)]
        for k, law in enumerate(laws):
            for j, chance in enumerate(law):
                for to in neighbours[j]:
                    after[k][to] += chance / len(neighbours[j])
        laws = after
    return laws


def arrivals(places: Places, says: list[list[Fraction]]) -> dict[Sight, Fraction]:
    """The law of how many reports of each label each holder hands in; ``says``: of each user, by label."""
    users, labels = len(places), len(says[0])
    law, total = {(0,) * (users * labels): 1}, 1  # whole numbers are faster than fractions
    for where, said in zip(places, says, strict=True):
        weights = {(j, y): where[j] * said[y] for j, y in product(range(users), range(labels))}
        scale = math.lcm(*(weight.denominator for weight in weights.values()))
        ways = [(j * labels + y, int(weight * scale)) for (j, y), weight in weights.items() if weight]
        after: dict[Sight, int] = {}
        for counts, chance in law.items():
            for at, weight in ways:
                seen = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
                after[seen] = after.get(seen, 0) + chance * weight
        law, total = after, total * scale
    return {seen: Fraction(chance, total) for seen, chance in law.items()}


def randomized(y: Sequence[int], lie: Fraction, labels: int = 2) -> list[list[Fraction]]:
    """What each user says, by label: each other label with probability ``lie``."""
    return [[1 - (labels - 1) * lie if said == own else lie for said in range(labels)] for own in y]


def reported(
    neighbours: list[list[int]], y: Sequence[int], flip: Fraction, theta: Fraction
) -> dict[Sight, Fraction]:
    """The law of what a learner hears from each user over neighbours: 0 or 1, or -1 for nothing."""
    a, b, c, d = flip.numerator, flip.denominator, theta.numerator, theta.denominator
    law: dict[Sight, int] = {}  # whole numbers are faster than fractions
    for bits in product((0, 1), repeat=len(y)):
        chance = math.prod(a if bit != own else b - a for bit, own in zip(bits, y, strict=True))
        heard: dict[Sight, int] = {(): chance}
        for of in neighbours:
            ones = sum(bits[j] for j in of)
            ways = {1: c * ones, 0: c * (len(of) - ones), -1: (d - c) * len(of)}
            heard = {(*said, y): p * w for said, p in heard.items() for y, w in ways.items() if w}
        for said, weight in heard.items():
            law[said] = law.get(said, 0) + weight
    total = math.prod(b * d * len(of) for of in neighbours)
    return {said: Fraction(weight, total) for said, weight in law.items()}


def delta(one: dict[Sight, Fraction], other: dict[Sight, Fraction], ratio: Fraction) -> Fraction:
    """The larger hockey-stick divergence at e^epsilon = ``ratio``."""
    zero = Fraction(0)
    keys = one.keys() | other.keys()
    first = sum((max(zero, one.get(k, zero) - ratio * other.get(k, zero)) for k in keys), zero)
    second = sum((max(zero, other.get(k, zero) - ratio * one.get(k, zero)) for k in keys), zero)
    return max(first, second)
