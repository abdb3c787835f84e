"""Algorithm 2 by brute force: every flip, pick and coin of up to four users, with whole-number weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

View = Callable[[tuple[int, ...], tuple[int, ...], tuple[int, ...]], object]
Law = dict[object, Fraction]


def law(labels: Sequence[int], alpha: Fraction, theta: Fraction, view: View, kinds: int = 2) -> Law:
    """Return the law of ``view(bits, picks, kept)`` for users 0.. with these labels, of 0 .. ``kinds`` - 1."""
    n = len(labels)
    weights: Counter[object] = Counter()
    stay, flip = (alpha.denominator - alpha.numerator) * (kinds - 1), alpha.numerator
    drop, keep = theta.denominator - theta.numerator, theta.numerator
    for bits in product(range(kinds), repeat=n):
        flips = sum(b != y for b, y in zip(bits, labels, strict=True))
        for kept in product((0, 1), repeat=n):
            weight = flip**flips * stay ** (n - flips) * keep ** sum(kept) * drop ** (n - sum(kept))
            if weight:
                for picks in product(range(n), repeat=n):
                    weights[view(bits, picks, kept)] += weight
    whole = (alpha.denominator * (kinds - 1) * theta.denominator * n) ** n
    return {seen: Fraction(weight, whole) for seen, weight in weights.items()}


def coalition(learner: bool, users: tuple[int, ...]) -> View:
    """Return what the learner and some curious users see, and their own bits."""

    def view(bits: tuple[int, ...], picks: tuple[int, ...], kept: tuple[int, ...]) -> object:
        reports = tuple(bits[j] if k else None for j, k in zip(picks, kept, strict=True)) if learner else ()
        own = tuple((bits[u], picks[u], bits[picks[u]], kept[u]) for u in users)
        asked = tuple(j if j in users else None for j in picks) if users else ()
        return reports, own, asked

    return view


def wire(bits: tuple[int, ...], picks: tuple[int, ...], kept: tuple[int, ...]) -> object:
    """Return what travels unencrypted: a self-ask does not, but is missed."""
    answers = tuple((j, bits[j]) if i != j else None for i, j in enumerate(picks))
    return answers, tuple(bits[j] if k else None for j, k in zip(picks, kept, strict=True))


def metadata(bits: tuple[int, ...], picks: tuple[int, ...], kept: tuple[int, ...]) -> object:
    """Return what the learner and an encrypted wire see."""
    return picks, tuple(bits[j] if k else None for j, k in zip(picks, kept, strict=True))


def sealed(bits: tuple[int, ...], picks: tuple[int, ...], kept: tuple[int, ...]) -> object:
    """Return what an encrypted wire sees."""
    return picks, kept


@lru_cache(maxsize=128)
def pairs(n: int, alpha: Fraction, theta: Fraction, view: View) -> tuple[tuple[Law, Law], ...]:
    """Return, for every labelling of users 1.., the laws with the label of user 0 at 0 and at 1."""
    return tuple(
        (law((0, *rest), alpha, theta, view), law((1, *rest), alpha, theta, view))
        for rest in product((0, 1), repeat=n - 1)
    )


def excess(over: Law, under: Law, scale: Fraction) -> Fraction:
    """Return the hockey-stick divergence at e^epsilon = ``scale``."""
    return sum(
        (max(Fraction(0), p - scale * under.get(s, Fraction(0))) for s, p in over.items()), Fraction(0)
    )


def delta(n: int, alpha: Fraction, theta: Fraction, view: View, scale: Fraction) -> Fraction:
    """Return delta at e^epsilon = ``scale``, the worst labelling and direction."""
    found = pairs(n, alpha, theta, view)
    return max(max(excess(q, p, scale), excess(p, q, scale)) for p, q in found)
