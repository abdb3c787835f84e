"""What to take: one protocol, with the reasons for it and the doubts; or what to relax where nothing fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2p_sim.comparison.beyond_guessing import auc_error
from p2p_sim.comparison.calibrations import Calibrated
from p2p_sim.comparison.fit_to_promises import rounded_up
from p2p_sim.comparison.pareto_front import COSTS
from p2p_sim.comparison.promises import Promises
from p2p_sim.comparison.table import DOMINATED, FRONT, WORST_PARTY, Row
from p2p_sim.sweep.summary import CONFIDENCE, interval
from p2p_sim.sweep.table import FAILED, LEFT_OUT

_LARGE = 1.05
"""A party who learns more than so many times the target is worth a doubt."""

_MOST_RELAXED = 3

_ENOUGH = 3
"""Seeds whose error bar says something: that of two is thirteen times as wide as their mean is off."""

_FEW_ROWS, _FEW_RARE = 100, 20
"""Test rows, and those of a rare class, fewer than which are worth a doubt."""


@dataclass(frozen=True)
class Relaxation:
    """What would make a protocol fit, or be of use.

    ``to``: the epsilons, in nats, of the promises that have to be relaxed.  ``then``: what it does there, in words.
    """

    protocol: str
    to: Mapping[str, float]
    why: str
    then: str = "fits"

    def text(self, promises: Promises) -> str:
        """Return it in words."""
        before = {each.view.key: each.epsilon for each in promises.every}
        steps = [
            f"{'the target' if key == promises.target.view.key else 'the constraint'} on {key} from {before[key]:g} to "
            f"{value:g}"
            for key, value in self.to.items()
        ]
        return f"relax {' and '.join(steps)}: then {self.protocol} {self.then}"


@dataclass(frozen=True)
class Recommendation:
    """What to take.

    ``protocol``: None if nothing is recommended, and then ``relax`` says which epsilons would help, and ``instead``
    what else; ``parameter``, ``value``: at which setting.  ``agreeing``: of how many ``seeds`` each alone would
    recommend the same.  ``alternative``: another one for who does not want to trust what this one needs; empty if there
    is none.
    """

    protocol: str | None
    parameter: str
    value: float | None
    reasons: tuple[str, ...]
    doubts: tuple[str, ...]
    relax: tuple[Relaxation, ...]
    seeds: int
    agreeing: int
    alternative: str = ""
    instead: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        """Whether each seed alone would recommend the same."""
        return self.protocol is not None and self.agreeing == self.seeds

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "protocol": self.protocol, "parameter": self.parameter, "value": self.value,
            "reasons": list(self.reasons), "doubts": list(self.doubts),
            "relax": [{**vars(each), "to": dict(each.to)} for each in self.relax], "instead": list(self.instead),
            "seeds": self.seeds, "agreeing": self.agreeing, "alternative": self.alternative,
        }  # fmt: skip


@dataclass(frozen=True)
class Rung:
    """A protocol calibrated to a larger target alone: ``row`` is what its runs gave there."""

    calibrated: Calibrated
    row: Row


Utilities = Mapping[str, Mapping[int, float]]
"""Of each protocol, the utility by seed."""


def recommended(
    rows: Sequence[Row],
    utilities: Utilities,
    calibrated: Sequence[Calibrated],
    promises: Promises,
    remarks: Sequence[str],
    *,
    same_users: bool = True,
    rungs: Sequence[Rung] | None = None,
) -> Recommendation:
    """Choose among rows that fit, marked by ``pareto_front.marked``.  ``remarks``: further doubts, of all protocols.

    ``rungs``: what protocols do where the target is larger, which matters where none is of use at the target itself;
    None: that was not tried.  ``same_users``: whether all seeds have the same users and test rows, as of data, so that
    error bars do not know of others.

    Of the protocols whose utility differs from the best one's by no more than its error bar, the one is taken whose
    worst party learns least; then the one that sends fewer bytes; then the better one.
    """
    fit = [row for row in rows if row["status"] in (FRONT, DOMINATED)]
    informative = features_tell(fit)
    useful = [row for row in fit if informative and is_useful(row)]
    missing = _missing(rows)
    if not useful:
        if not fit:
            advice = _to_fit(rows, calibrated, promises)
        else:
            advice = _of_use(fit, rungs, promises) if informative else _uninformative_features(fit)
        return replace(advice, doubts=(*_of_test_rows(fit), *missing, *remarks))
    tied = alike(useful, utilities)
    taken = min(tied, key=lambda row: _order(row, float(row["utility"])))
    whole, agreeing = _stability(useful, utilities, str(taken["protocol"]))
    doubts = [
        *_of_utility(taken, useful, tied, same_users),
        *_of_stability(whole, agreeing),
        *_of_privacy(taken, promises),
        *_of_attack(taken),
        *_of_note(str(taken.get("note") or ""), remarks),
        *missing,
        *remarks,
    ]
    reasons = _reasons(taken, useful, tied, promises)
    return Recommendation(
        str(taken["protocol"]), str(taken["parameter"]), taken["value"], tuple(reasons), tuple(doubts), (), whole,
        agreeing, _alternative(taken, useful),
    )  # fmt: skip


def alike(rows: Sequence[Row], utilities: Utilities) -> list[Row]:
    """Return the rows whose utility is the best, or differs from the best one's by no more than the error bar.

    The error bar is of the difference, seed by seed, as all have the same test rows.  Of one seed there is none, and
    then only the best is returned.
    """
    best = max(rows, key=lambda row: float(row["utility"]))
    return [
        row for row in rows if row is best or _gap(best, row, utilities)[0] <= _gap(best, row, utilities)[1]
    ]


def _gap(best: Row, other: Row, utilities: Utilities) -> tuple[float, float]:
    """Return how much better one row is in the mean over the seeds that both have, and the error bar of that."""
    mine, its = utilities[str(best["protocol"])], utilities[str(other["protocol"])]
    mean, half = interval([mine[seed] - its[seed] for seed in mine if seed in its])
    return mean, -math.inf if math.isnan(half) else half


def _order(row: Row, utility: float) -> tuple[float, float, float]:
    """Return what decides between protocols of like utility; of equals the catalogue's first is taken."""
    worst, nbytes = row.get(WORST_PARTY), row.get(COSTS[0])
    least = math.inf if worst is None else float(f"{worst:.3g}")
    return least, 0.0 if nbytes is None else float(f"{nbytes:.3g}"), -utility


def is_useful(row: Row) -> bool:
    """Whether a row is shown to learn more than always guessing the same does; see ``beyond_guessing``."""
    return row.get("gain_lower") is None or row["gain_lower"] > 0


def features_tell(rows: Sequence[Row]) -> bool:
    """Whether the model of true labels is shown to learn more than guessing, as far as anybody knows."""
    known = [row["gain_lower[true]"] for row in rows if row.get("gain_lower[true]") is not None]
    return not known or max(known) > 0


def _stability(rows: Sequence[Row], utilities: Utilities, taken: str) -> tuple[int, int]:
    """Return how many seeds all rows have, and how many of them alone would take the same protocol.

    A seed alone has no error bar: that of the mean over seeds says what is alike, times the root of their number.
    """
    common = sorted(set.intersection(*(set(utilities[str(row["protocol"])]) for row in rows)))
    agreeing = 0
    for seed in common:
        best = max(rows, key=lambda row: utilities[str(row["protocol"])][seed])
        top = utilities[str(best["protocol"])][seed]
        tied = []
        for row in rows:
            _, half = _gap(best, row, utilities)
            within = half * math.sqrt(len(common)) if math.isfinite(half) else 0.0
            if row is best or top - utilities[str(row["protocol"])][seed] <= within:
                tied.append(row)
        alone = min(tied, key=lambda row: _order(row, utilities[str(row["protocol"])][seed]))
        agreeing += str(alone["protocol"]) == taken
    return len(common), agreeing


def _reasons(taken: Row, useful: Sequence[Row], tied: Sequence[Row], promises: Promises) -> list[str]:
    reasons = (
        [f"{taken['parameter']} = {taken['value']:.6g} keeps {promises.text()}"] if taken["parameter"] else []
    )
    best = max(useful, key=lambda row: float(row["utility"]))
    shown = _percent(taken)
    if len(useful) == 1:
        reasons.append(f"it alone fits and learns more than guessing does: {shown}")
    elif taken is best:
        reasons.append(
            f"it has the best utility, {shown}, of the {len(useful)} that fit and learn more than guessing does"
        )
    else:
        reasons.append(
            f"its utility, {shown}, is within the error bars of the best, {best['protocol']}, {_percent(best)}"
        )
    reasons += _beside(taken)
    others = [str(row["protocol"]) for row in tied if row is not taken]
    if others:
        worst, alike = taken.get(WORST_PARTY), ", ".join([str(taken["protocol"]), *others])
        least = (
            "none has a worst party whose ε is known"
            if worst is None
            else f"its worst party ({taken.get('worst_party')}) learns least, ε = {worst:.4g}"
        )
        reasons.append(
            f"{len(tied)} protocols are equally good ({alike}); of these {least}, and among equals it sends fewest "
            "bytes"
        )
    if taken.get("bytes[a user]") is not None:
        messages = taken["messages[a user]"]
        reasons.append(
            f"a user sends and receives {taken['bytes[a user]']:,.0f} bytes in {messages:.3g} "
            + ("message" if messages == 1 else "messages")
        )
    if taken.get("trust"):
        reasons.append(f"all you must trust is this: {taken['trust']}")
    return reasons


def _beside(taken: Row) -> list[str]:
    """Return in words what its utility is to be held against."""
    known = [
        f"{baseline} {shown(taken[key], None, str(taken['metric']))}"
        for key, baseline in (
            ("utility[true]", "true labels would give"),
            ("utility[constant]", "guessing gives"),
        )
        if taken.get(key) is not None
    ]
    return [", and ".join(known)] if known else []


def _of_utility(taken: Row, useful: Sequence[Row], tied: Sequence[Row], same_users: bool) -> list[str]:
    found = []
    others = [row for row in tied if row is not taken]
    if others:
        names = ", ".join(str(row["protocol"]) for row in others)
        found.append(f"its difference in utility from {names} is smaller than the error bars")
    tests, utility = taken.get("test_rows"), float(taken["utility"])
    rest = [row for row in useful if row is not taken and row not in others]
    if same_users and tests and rest and taken["metric"] != "r2":
        rare = taken.get("rare_test_rows") or 0
        one = (
            auc_error(tests, rare) if taken["metric"] == "auc" else math.sqrt(utility * (1 - utility) / tests)
        )
        error = 1.96 * math.sqrt(2) * one
        near = [str(row["protocol"]) for row in rest if abs(utility - row["utility"]) < error]
        if near:
            found.append(
                f"with another {tests:,} test rows it and {', '.join(near)} could change places: all seeds share the "
                "same test rows, so error bars cover only the protocols' randomness"
            )
    if len(useful) > 1:
        found.append(
            "it was chosen by the same test rows that measure it, which flatters it: on others expect a little less"
        )
    if others and taken["seeds"] < _ENOUGH:
        found.append("error bars of two seeds are wide, so that much is alike: give --seeds 5")
    return found + _of_test_rows([taken])


def _of_test_rows(rows: Sequence[Row]) -> list[str]:
    """Return that there are few test rows, or few of the rare class."""
    if not rows or not rows[0].get("test_rows"):
        return []
    tests, rare = rows[0]["test_rows"], rows[0].get("rare_test_rows")
    if rows[0]["metric"] == "auc" and rare is not None and rare < _FEW_RARE:
        return [
            f"of the {tests:,} test rows only {rare} are of the rare class, so that utility is hardly known"
        ]
    return (
        [f"there are only {tests:,} test rows, so that utility is hardly known"] if tests < _FEW_ROWS else []
    )


def _of_stability(seeds: int, agreeing: int) -> list[str]:
    if seeds < 2:
        return []
    if agreeing == seeds:
        return []
    return [f"it is not stable: of {seeds} seeds, each by itself, {agreeing} would recommend the same"]


def _of_privacy(taken: Row, promises: Promises) -> list[str]:
    found, named = [], [each.view.key for each in promises.every]
    for key in named:
        basis = taken[f"basis[{key}]"]
        if basis == "upper":
            found.append(
                f"the ε of {key} is an upper bound: the truth may be smaller, and the noise too large"
            )
        elif basis == "lower":
            found.append(f"the ε of {key} is a lower figure; the promise rests on its certified upper end")
        elif basis != "exact":
            found.append(f"the ε of {key} is {basis}, not proven")
    worst, who = taken.get(WORST_PARTY), str(taken.get("worst_party"))
    if worst is None and taken.get("worst_party"):
        found.append(f"what {who} learns is not known, and may be everything")
    if worst is not None and who not in named and worst > _LARGE * promises.target.epsilon:
        shown = "everything: she is trusted with the labels" if math.isinf(worst) else f"ε = {worst:.4g}"
        found.append(f"{who} learns {shown}, and no constraint names her")
    return found


def _of_attack(taken: Row) -> list[str]:
    if taken["attack_basis"] == "refused":
        return [f"no attack was measured ({taken['attack_why']})"]
    found = []
    if taken["attack_basis"] != "exact":
        ends = f"{100 * taken['advantage_lower']:+.2f} to {100 * taken['advantage_upper']:+.2f} points"
        of = ", of the protocol's randomness alone," if taken.get("advantage_of") == "coins" else ""
        found.append(
            f"the attack is an estimate ({taken['attack_basis']}, {CONFIDENCE:.0%} interval{of} of its advantage "
            f"{ends}), and there may be better ones"
        )
    return found


def _alternative(taken: Row, useful: Sequence[Row]) -> str:
    """Return in words the best protocol in which no party learns everything, where one does, or may, in that taken."""
    worst, who = taken.get(WORST_PARTY), taken.get("worst_party")
    if not who or (worst is not None and math.isfinite(worst)):
        return ""
    safe = [row for row in useful if row.get(WORST_PARTY) is not None and math.isfinite(row[WORST_PARTY])]
    if not safe:
        return ""
    best = max(safe, key=lambda row: float(row["utility"]))
    setting = f" ({best['parameter']} = {best['value']:.6g})" if best["parameter"] else ""
    return (
        f"who does not trust {who} takes {best['protocol']}{setting}: {_percent(best)}, and {best['worst_party']} "
        f"learns most, ε = {best[WORST_PARTY]:.4g}"
    )


def _of_note(note: str, remarks: Sequence[str]) -> list[str]:
    """Return what the note of a protocol's runs, sentences with semicolons between, says beside the remarks."""
    for each in sorted(remarks, key=len, reverse=True):
        note = note.replace(each, "")
    left = "; ".join(part.strip() for part in note.split(";") if part.strip())
    return [left] if left else []


def _missing(rows: Sequence[Row]) -> list[str]:
    found = []
    for status, what, do in (
        (LEFT_OUT, "there was no time for", ": give the same command with a larger --budget"),
        (FAILED, "these failed:", ""),
    ):
        names = [str(row["protocol"]) for row in rows if row["status"] == status]
        found += [f"{what} {', '.join(names)}{do}"] if names else []
    return found


def _to_fit(rows: Sequence[Row], calibrated: Sequence[Calibrated], promises: Promises) -> Recommendation:
    """Say that nothing fits, and what to relax, the least first."""
    before = {each.view.key: each.epsilon for each in promises.every}

    def factor(each: Relaxation) -> float:
        return max(
            (value / before[key] if before[key] else math.inf for key, value in each.to.items()), default=1.0
        )

    failing = [each for each in calibrated if each.fitted is not None and each.fitted.why]
    found = [
        Relaxation(each.job.candidate.name, each.fitted.relax, each.fitted.why)
        for each in failing if each.fitted is not None and each.fitted.relax
    ]  # fmt: skip
    found.sort(key=lambda each: (factor(each), each.protocol))
    if any(
        "parameter" in row or row["status"] == LEFT_OUT for row in rows
    ):  # rows of those that fit have one
        reason = "of no protocol that fits is there a run from which anything was learned"
    elif all(row["status"] == FAILED for row in rows):
        reason = "every protocol failed, for the reason beside it, so nothing is known of what fits"
    else:
        reason = f"nothing fits: no protocol keeps {promises.text()}"
    instead = dict.fromkeys(each.fitted.instead for each in failing if each.fitted is not None)
    return _none((reason,), found[:_MOST_RELAXED], [each for each in instead if each])


def _none(reasons: Iterable[str], relax: Iterable[Relaxation], instead: Iterable[str] = ()) -> Recommendation:
    return Recommendation(None, "", None, tuple(reasons), (), tuple(relax), 0, 0, instead=tuple(instead))


def _of_use(fit: Sequence[Row], rungs: Sequence[Rung] | None, promises: Promises) -> Recommendation:
    """Say that nothing that fits is of use, and to which epsilon the target has to go until something is."""
    best = max(fit, key=lambda row: float(row["utility"]))
    guessing = shown(best["utility[constant]"], None, str(best["metric"]))
    few = best["seeds"] < _ENOUGH
    reason = (
        f"nothing that fits learns more than always guessing the same does ({guessing}), as far as {_evidence(best)} "
        f"can show: the best is {best['protocol']} with {_percent(best)}"
    )
    if best["seeds"] < 2:
        reason += "; of one seed there is no error bar, so that nothing can be shown: give --seeds 5"
    elif few:
        reason += "; two seeds show little: give --seeds 5"
    key = promises.target.view.key
    if rungs is None:
        return _none((reason, f"{_UNTRIED} {key} would have to learn for a model to be of use"), ())
    if not rungs:
        return _none((reason, f"no protocol could be run at a larger ε of {key}: {_NO_RUNG}"), ())
    by_epsilon: dict[float, list[Rung]] = {}
    for each in rungs:
        by_epsilon.setdefault(each.calibrated.job.promises.target.epsilon, []).append(each)
    for epsilon in sorted(by_epsilon):
        of_use = [each for each in by_epsilon[epsilon] if is_useful(each.row)]
        if of_use:
            first = max(of_use, key=lambda each: float(each.row["utility"]))
            return _none((reason,), [_to_be_of_use(first, promises, few)])
    tried = " or ".join(f"{epsilon:g}" for epsilon in sorted(by_epsilon))
    top = max(rungs, key=lambda each: float(each.row["utility"]))
    none = (
        f"nor does any where {key} may learn {tried} (the best there is {top.row['protocol']} with "
        f"{_percent(top.row)}): take more users, other features or another --model, or a target beyond "
        f"{max(by_epsilon):g}"
    )
    return _none((reason, none), ())


def _uninformative_features(fit: Sequence[Row]) -> Recommendation:
    """Say that the model of true labels does no better than guessing, and what is known of protocols nevertheless."""
    row = next(each for each in fit if each.get("gain_lower[true]") is not None)
    metric, true, constant = str(row["metric"]), row["utility[true]"], row["utility[constant]"]
    base = 0.0 if metric == "r2" else constant
    needed = base + (true - base) - row["gain_lower[true]"]
    beyond = metric != "r2" and needed > 1
    ranked = row.get("auc_gain_lower[true]")
    ranks = ranked is not None and ranked > 0
    begin = (
        f"{_rows_of(row)} do not show that a model of the true labels is right more often than guessing, though it "
        "does rank them: it" if ranks
        else f"the features tell nothing of the label that {_rows_of(row)} can show: a model of the true labels"
    )  # fmt: skip
    reason = (
        f"{begin} reaches {shown(true, None, metric)}, guessing {shown(constant, None, metric)}, and "
        + ("no figure" if beyond else f"only more than {shown(needed, None, metric)}")
        + " would show more at 95 %"
    )
    names = ", ".join(str(each["protocol"]) for each in fit)
    return _none(
        (reason, f"what is known is which protocols keep {_WHAT_FITS}: {names}"),
        (),
        ("take more test rows (--test), features that tell more, or another --model",),
    )


_WHAT_FITS = "what was asked, whom they need and what they cost"


def _evidence(row: Row) -> str:
    return f"{_rows_of(row)} and {row['seeds']} {'seed' if row['seeds'] == 1 else 'seeds'}"


def _rows_of(row: Row) -> str:
    return f"{row['test_rows']:,.0f} test rows" if row.get("test_rows") else "the test rows"


_UNTRIED = "no other epsilon was tried, as that takes --out (in Python picture=True), so it is not known what"
_NO_RUNG = "none could be calibrated to it, or there was no time"


def _to_be_of_use(rung: Rung, promises: Promises, few: bool) -> Relaxation:
    """Return to what the promises have to be relaxed for a protocol to be where a rung is."""
    target, fitted = rung.calibrated.job.promises.target, rung.calibrated.fitted
    assert fitted is not None
    to, unknown = {target.view.key: target.epsilon}, []
    for each in promises.constraints:
        figure = fitted.figures.get(each.view.key)
        if each.view.row(rung.calibrated.job.candidate.kind) is None:
            continue
        if figure is None or math.isnan(figure["upper"]):
            unknown.append(str(each))
        elif figure["upper"] > each.epsilon:
            to[each.view.key] = rounded_up(figure["upper"])
    then = f"learns more than guessing, {_percent(rung.row)}"
    then += f", of {rung.row['seeds']} seeds, which are few" if few else ""
    then += f"; whether {' and '.join(unknown)} can hold there was not tried" if unknown else ""
    return Relaxation(str(rung.row["protocol"]), to, "it learns no more than guessing at the target", then)


def shown(value: float, half: float | None, metric: str) -> str:
    """Return a utility with its error bar: a share in percent, R² as it is."""
    scale, digits, unit = (1, 4, "") if metric == "r2" else (100, 2, " %")
    half = half if half is None or metric == "r2" else min(1.0, half)  # no share is farther off
    return f"{scale * value:.{digits}f}" + ("" if half is None else f" ± {scale * half:.{digits}f}") + unit


def _percent(row: Row) -> str:
    return shown(row["utility"], row.get("utility_error"), str(row["metric"]))
