"""Looks: what each statistic measured of each pair of labels, with its share of the error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from p2p_sim import backends
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.classifier import THRESHOLDS
from p2p_sim.privacy.auditing.evidence import BESIDE, Evidence, Progress, by_attack, by_law, by_learning
from p2p_sim.privacy.auditing.law_test import LawTest, law_test
from p2p_sim.privacy.auditing.measure import Measured, measured, worst_of_few
from p2p_sim.privacy.auditing.own_attack import AttackStatistic
from p2p_sim.privacy.auditing.pairs import Pair, Pairs, pair_seed
from p2p_sim.privacy.auditing.rest_of_view import p_value
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.auditing.worlds import Situation, seed_of
from p2p_sim.privacy.law import Law

EXACT_SHARE = 0.8
"""Part of the error that the exact statistic, or a registered attack, has, where a classifier has the rest."""


@dataclass(frozen=True)
class Look:
    """What one statistic measured of two labels of the victim.

    ``labels``: the two.  ``statistic``, ``lower``, ``cap``, ``trials``, ``confidence``: as of an audit, of this look
    alone.  The bounds of all looks hold at once with the confidence of the audit.
    """

    labels: tuple[int, int]
    statistic: str
    lower: float
    cap: float
    trials: int
    confidence: float


@dataclass(frozen=True)
class Looked:
    """A look with all that was measured; ``composition``: honest others with the second of the two labels."""

    look: Look
    found: Measured
    composition: int
    pilot: str = ""


@dataclass(frozen=True)
class Search:
    """What is looked for in every pair of labels.

    ``statistic``: what was asked for.  ``exact``: of labels 0 and 1, None where no law is known.  ``attack``: given, or
    registered, to look where there is no exact one.  ``chosen``: honest
    others with the second label, None if a pilot has to tell.  ``here``: returns the exact law with so many.
    """

    situation: Situation
    statistic: str | AttackStatistic
    exact: Statistic | None
    attack: AttackStatistic | None
    chosen: int | None
    honest: int
    here: Callable[[int], Law | None]
    point: tuple[str, float]
    trials: int
    seed: int
    false_alarm: float
    settings: backends.Settings
    progress: Progress

    def all(self, pairs: Pairs, confidence: float) -> tuple[list[Looked], LawTest | None]:
        """Look at all pairs; their bounds hold at once with the confidence, over which the error is shared."""
        count, looked, tests = len(pairs.looked_at), [], []
        each = confidence if count == 1 else 1 - (1 - confidence) / count
        if each >= 1:
            raise InputError(
                f"confidence = {confidence!r}: too near to 1 to be shared over {count} pairs of labels; give a lower "
                "one, or one pair"
            )
        search = replace(self, false_alarm=self.false_alarm / count)
        for pair in pairs.looked_at:
            found, test = search.look(pair, each)
            looked += found
            tests += [] if test is None else [test]
        return looked, whole_test(tests)

    def look(self, pair: Pair, confidence: float) -> tuple[list[Looked], LawTest | None]:
        """Run the worlds of a pair and return what each statistic measured, and the test of the law."""
        exact = None if self.exact is None else self.exact.between(pair)
        if exact is None:
            if self.statistic == "exact":
                raise InputError(
                    f"statistic = 'exact': no law of labels {pair[0]} and {pair[1]} is known; give 'auto' or "
                    "'classifier'"
                )
            return self._without_law(pair, confidence), None
        situation = replace(self.situation, labels=pair)
        beside, sure, rest = self._shared(confidence)
        seed = pair_seed(self.seed, pair)
        evidence = by_law(situation, exact, self.trials, seed, self.settings, self.progress)
        test = law_test(exact, evidence.columns, seed, self.false_alarm)
        if evidence.late is not None:
            odd = f"messages {evidence.late!r} came in several rounds; the law knows of one"
            test = replace(test, p_value=0.0, rejected=True, why=odd)
        looked = [self._looked(situation, evidence, sure)]
        if rest is not None:
            seed = seed_of(seed, "classifier beside the law")
            evidence = by_learning(situation, beside, seed, self.settings, self.progress, exact, quick=True)
            looked.append(self._looked(situation, evidence, rest))
            assert evidence.ratios is not None
            assert evidence.above is not None
            assert evidence.below is not None
            test = test.with_rest(
                p_value(evidence.scores, evidence.ratios, evidence.above, evidence.below, evidence.around)
            )
        return looked, test

    def _shared(self, confidence: float) -> tuple[int, float, float | None]:
        """Return the worlds of a classifier beside, the first look's confidence, and its own; None for none."""
        beside = min(self.trials, BESIDE) if self.statistic == "auto" else 0
        rest = 1 - (1 - EXACT_SHARE) * (1 - confidence)
        return (
            (beside, 1 - EXACT_SHARE * (1 - confidence), rest)
            if _enough(beside, rest)
            else (0, confidence, None)
        )

    def _without_law(self, pair: Pair, confidence: float) -> list[Looked]:
        """Return what an attack measured, and a classifier, or the latter alone."""
        situation, seed, pilot = replace(self.situation, labels=pair), pair_seed(self.seed, pair), ""
        if self.chosen is None:
            ones, pilot = worst_of_few(situation, self.honest, self.point, self.trials, seed, self._evidence)
            situation = replace(situation, composition=ones)
        beside, sure, rest = (0, confidence, None) if self.attack is None else self._shared(confidence)
        evidence = self._evidence(situation, self.trials, seed)
        evidence.how += pilot
        looked = [replace(self._looked(situation, evidence, sure), pilot=pilot)]
        if rest is not None:
            seed = seed_of(seed, "classifier beside an attack")
            evidence = by_learning(situation, beside, seed, self.settings, self.progress, quick=True)
            looked.append(replace(self._looked(situation, evidence, rest), pilot=pilot))
        return looked

    def _evidence(self, situation: Situation, trials: int, seed: int) -> Evidence:
        """Return the scores of worlds, by the attack or, without one, by a classifier."""
        if self.attack is None:
            return by_learning(situation, trials, seed, self.settings, self.progress)
        return by_attack(situation, self.attack, self.point, trials, seed, self.settings, self.progress)

    def _looked(self, situation: Situation, evidence: Evidence, confidence: float) -> Looked:
        ones = situation.composition
        found = measured(*self.point, evidence, confidence, self.here(ones))
        first, second = situation.labels
        look = Look((first, second), evidence.how, found.lower, found.cap, evidence.trials, confidence)
        return Looked(look, found, ones)


def _enough(trials: int, confidence: float) -> bool:
    """Whether a classifier that learns from some of so many worlds could show anything."""
    return (
        trials > 1
        and confidence < 1
        and confidence_bounds.cap_epsilon(trials // 2, 0.0, THRESHOLDS, confidence) > 0
    )


def whole_test(tests: list[LawTest]) -> LawTest | None:
    """Return the tests of several pairs as one: the smallest p-value times their number; None if there is none."""
    if not tests:
        return None
    worst = min(tests, key=lambda test: test.p_value)
    return replace(
        worst,
        p_value=min(1.0, worst.p_value * len(tests)),
        tests=tuple(each for test in tests for each in test.tests),
        false_alarm=worst.false_alarm * len(tests),
    )
