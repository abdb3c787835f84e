"""The bit contract in plain Python integers, written from the design; imports nothing of the engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

WORD = 1 << 64


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox4x64-10: encrypt one counter of four words under a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * c0, WORD)
        high1, low1 = divmod(0xCA5A826395121157 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % WORD, (k1 + 0xBB67AE8584CAA73B) % WORD
    return [c0, c1, c2, c3]


def output(seed: int, stream: int, counter: Sequence[int], index: int) -> int:
    """Output ``index`` of numpy's Philox started at ``counter``, which counts up before it encrypts."""
    number = sum(word << (64 * place) for place, word in enumerate(counter)) + index // 4 + 1
    words = [(number >> (64 * place)) % WORD for place in range(4)]
    return philox(words, (seed, stream))[index % 4]


def short_hash(text: str) -> int:
    """The first 8 bytes of SHA-256, little-endian."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


@dataclass(frozen=True)
class Chance:
    """The draws of one role of a run, one party at a time."""

    seed: int
    role: str = "user"

    def word(self, name: str, step: int, party: int) -> int:
        """A party's word of one draw."""
        return output(self.seed, short_hash(f"{self.role}/{name}/{step}"), (0, 0, 0, 0), party)

    def item(self, name: str, step: int, party: int, slot: int) -> int:
        """The word of the slot-th thing that a party holds or draws."""
        return output(self.seed, short_hash(f"{self.role}/{name}/{step}"), (0, party + 1, 0, 0), slot)


def bernoulli(word: int, p: Any) -> bool:
    return word < math.floor(Fraction(p) * WORD)


def uniform(word: int) -> float:
    return float(Fraction(word >> 11, 1 << 53))


def below(word: int, m: int) -> int:
    return (word * m) >> 64


def weighted(word: int, weights: Sequence[int]) -> int:
    """The outcome in whose stretch of 0 .. total - 1 the word falls."""
    place = below(word, sum(weights))
    return next(i for i in range(len(weights)) if place < sum(weights[: i + 1]))


def categorical(word: int, weights: Sequence[Any]) -> int:
    total = sum(map(Fraction, weights))
    running = Fraction(0)
    for outcome, weight in enumerate(weights):
        running += Fraction(weight)
        if word < math.floor(running / total * WORD):
            return outcome
    raise AssertionError("the last threshold is 2^64")


def laplace_tails(scale: Fraction, wanted: Iterable[int]) -> list[int]:
    """floor(P(k >= j) * 2^64) of the discrete Laplace law: q^j / (1 + q), q = e^(-1/scale), in 120 digits."""
    with localcontext() as context:
        context.prec = 120
        q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        return [math.floor(Fraction(q**j / (1 + q)) * WORD) for j in wanted]


def laplace(word: int, scale: Any) -> int:
    """Count the thresholds of P(k <= j) that are at most the word, from the least value up."""
    exact = Fraction(scale)
    size = 46 * -(-exact.numerator // exact.denominator)  # beyond this, less than one word remains
    tails = [tail for tail in _tails(exact, size) if tail]
    thresholds = tails[::-1] + [WORD - tail for tail in tails]
    return sum(bound <= word for bound in thresholds) - len(tails)


@lru_cache
def _tails(scale: Fraction, size: int) -> list[int]:
    return laplace_tails(scale, range(1, size + 1))


def permutation(words: Sequence[int]) -> list[int]:
    return sorted(range(len(words)), key=lambda i: (words[i], i))


def absorb(salt: int, rows: Iterable[Sequence[int]]) -> tuple[int, int]:
    """The two lane sums of the digest over rows of integers (negative ones in two's complement)."""
    sums = [0, 0]
    for row in rows:
        for lane, (multiplier, shift) in enumerate(((0x9E3779B97F4A7C15, 32), (0xD6E8FEB86659FD93, 29))):
            state = (salt + lane) % WORD
            for value in row:
                state = ((state ^ (value % WORD)) * multiplier) % WORD
                state ^= state >> shift
            sums[lane] += state
    return sums[0] % WORD, sums[1] % WORD


Messages = Mapping[str, Iterable[Sequence[int]]]
"""By kind: (round, sender, recipient, sequence number, fields ...)."""


def digest(messages: Messages, outputs: Mapping[str, Mapping[str, Sequence[int]]]) -> str:
    """The digest of delivered messages and of output columns (rows of several values as sequences)."""
    lanes = []
    for kind, rows in messages.items():
        lanes += [absorb(short_hash(f"{kind}/{round}"), [row]) for round, *row in rows]
    for role, columns in outputs.items():
        for name, column in columns.items():
            rows = [
                [place, *(value if isinstance(value, Sequence) else [value])]
                for place, value in enumerate(column)
            ]
            lanes.append(absorb(short_hash(f"output/{role}/{name}"), rows))
    return "".join(f"{sum(lane[side] for lane in lanes) % WORD:016x}" for side in (0, 1))
