"""The table of a comparison: a row for each protocol, from what was calibrated, run, attacked and costed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2p_sim.comparison import best_attacker, beyond_guessing
from p2p_sim.comparison.calibrations import Calibrated
from p2p_sim.comparison.candidates import Inapplicable
from p2p_sim.comparison.promises import Promises
from p2p_sim.privacy.table_rows import rows as privacy_rows
from p2p_sim.report.mechanism_list import docstring_part
from p2p_sim.sweep.summary import interval
from p2p_sim.sweep.table import FAILED, LEFT_OUT, MADE

FITS, FRONT, DOMINATED = "fits", "front", "dominated"
FITS_NOT, NOT_APPLICABLE = "does not fit", "does not apply"
"""Values of ``status``; a protocol that fits is "front" or "dominated" once it is compared with the others."""

WORST_PARTY = "epsilon_nats[worst party]"
"""The column of the epsilon of the party who learns most by herself."""

BASIS = {
    "utility": (
        "measured on the test rows: the mean over seeds, ± its 95 % interval by Student's t; accuracy, the area under "
        "the ROC curve where a class is rare, the coefficient of determination of numbers"
    ),
    "gain": (
        "measured on the test rows: the utility beyond that of guessing; gain_lower holds at 95 % for all protocols "
        "together and knows of the test rows and of the seeds; gain_lower[true] is that of the model of true labels"
    ),
    "utility[true]": "measured on the test rows, of a model trained on the true labels",
    "utility[constant]": "measured on the test rows, of always guessing the most frequent label, or the mean",
    "epsilon_nats": "accounted for all users at the calibrated parameter; basis[VIEW] says how sure",
    "advantage": (
        "the mean over attack_seeds seeds, of the best of the attackers; attack_basis says how, with an interval that "
        "holds at 95 % although she was chosen (Bonferroni); advantage_of says of what: users, the protocol's coins"
    ),
    "attack_baseline": "measured in the same runs: the share guessed right without any message",
    "messages[a user]": "counted in the run of the first seed: sent and received, the mean of all users",
    "bytes[a user]": "counted in the run of the first seed, as they travel: sent and received, the mean of all users",
    "seconds[network]": "simulated: the critical path over links of 20 ms and 10 Mbit, servers 1 ms and 1 Gbit",
    "seconds": "simulated as seconds[network], and computing as it was measured on this machine",
    WORST_PARTY: "the largest ε of a party by herself: of each server, a peer, and a peer who deviates",
}
"""What the figures of each column are based on."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Trials:
    """Runs of one protocol: rows of the sweep's table, in the order of its seeds; ``among``: users of a run."""

    rows: Sequence[Mapping[str, Any]]
    among: int

    @property
    def made(self) -> list[Mapping[str, Any]]:
        """Those that were made."""
        return [row for row in self.rows if row["status"] == MADE]

    @property
    def all_failed(self) -> bool:
        """Whether no run could be made, for another reason than lack of time."""
        return {row["status"] for row in self.rows} == {FAILED}

    @property
    def metric(self) -> str:
        """What utility is measured by, of which more is better: "accuracy"; "auc" for a rare class; "r2" of numbers."""
        metric = str(self.first("utility") or "accuracy")
        return "r2" if metric == "rmse" else metric

    def utilities(self) -> tuple[str, dict[int, float]]:
        """Return which model is the better one in the mean, "released" or "corrected", and its figure by seed."""
        best, found = "released", dict[int, float]()
        for which, own in self.models().items():
            if not found or _mean(own) > _mean(found):
                best, found = which, own
        return best, found

    def models(self) -> dict[str, dict[int, float]]:
        """Return, for each model that all runs have, its figure by seed."""
        every = {which: self.figures(f"{self.metric}[{which}]") for which in ("released", "corrected")}
        return {which: own for which, own in every.items() if own and len(own) == len(self.made)}

    def figures(self, name: str) -> dict[int, float]:
        """Return a column by seed, where it is not missing."""
        found = {int(row["seed"]): row.get(name) for row in self.made}
        return {
            seed: float(value) for seed, value in found.items() if value is not None and not _missing(value)
        }

    def first(self, name: str) -> Any:
        """Return the value of a column in the first run that has one; None if none has."""
        known = (row.get(name) for row in self.made)
        return next((_plain(value) for value in known if value is not None and not _missing(value)), None)


def tries_of(every: Iterable[Trials]) -> int:
    """Return how many models there are, of which one looks at the best."""
    return sum(len(trials.models()) for trials in every)


def row_of(each: Calibrated, trials: Trials, promises: Promises, *, same_users: bool, tries: int = 1) -> Row:
    """Return the row of a protocol that was calibrated.

    ``same_users``: whether all seeds have the same; ``tries``: see ``tries_of``.
    """
    own = each.job.candidate
    found: Row = {"protocol": own.name, "status": FITS if each.fits else FITS_NOT, "why": each.why}
    if each.fitted is None:
        found["status"] = LEFT_OUT if each.left_out else FAILED
    if each.fits:
        assert each.fitted is not None
        found |= {"parameter": own.vary or "", "value": each.fitted.value, "bound_by": each.fitted.bound_by}
        found |= _privacy(each, promises)
        found["run_users"] = trials.among if trials.made else None
        found |= _utility(trials)
        found |= _gain(trials, same_users, tries)
        found |= _attack(trials, same_users)
        found |= {
            name: trials.first(name)
            for name in ("messages[a user]", "bytes[a user]", "seconds[network]", "seconds")
        }
        if not trials.made:
            statuses = {row["status"] for row in trials.rows}
            found["status"] = LEFT_OUT if statuses == {LEFT_OUT} else FAILED
            found["why"] = next((str(row["error"]) for row in trials.rows if row["error"]), "it was not run")
        elif found["utility"] is None:
            found["why"] = "no model was trained on what it released"
    return found | {"trust": docstring_part(own.kind, "Assumes")}


def row_without(each: Inapplicable) -> Row:
    """Return the row of a protocol that does not apply."""
    return {"protocol": each.name, "status": NOT_APPLICABLE, "why": each.why}


def frame(found: Iterable[Row]) -> Any:
    """Return rows as a pandas frame; what a row lacks is missing there."""
    import pandas

    every = list(found)
    names = list(dict.fromkeys(name for row in every for name in row))
    names.sort(key=lambda name: name in ("trust", "why"))  # long texts last
    return pandas.DataFrame([{name: row.get(name) for name in names} for row in every], columns=names)


def views_of(promises: Promises, rows: Sequence[Row]) -> list[str]:
    """Return the views that a table shows: those of the promises first, then those that most protocols have."""
    named = [each.view.key for each in promises.every]
    counts: dict[str, int] = {}
    for row in rows:
        for name in row:
            if name.startswith("epsilon_nats[") and name != WORST_PARTY:
                key = name[13:-1]
                counts[key] = counts.get(key, 0) + 1
    more = [key for key in counts if key not in named]
    return [*named, *sorted(more, key=lambda key: -counts[key])]


def parties_of(each: Calibrated) -> list[str]:
    """Return the keys of the views of one party by herself: every server, a peer, and a peer who deviates."""
    found = privacy_rows(each.job.candidate.made())
    return [
        row.key for row in found if len(row.coalition.servers) + row.colluders == 1 and not row.coalition.wire
    ]


def _privacy(each: Calibrated, promises: Promises) -> Row:
    assert each.fitted is not None
    figures = each.fitted.figures
    found: Row = {}
    for key in dict.fromkeys([*(promise.view.key for promise in promises.every), *figures]):
        one = figures[key]
        found[f"epsilon_nats[{key}]"] = one["epsilon"]
        found[f"epsilon_upper[{key}]"] = one["upper"]
        found[f"basis[{key}]"] = one["basis"]
    parties = [key for key in parties_of(each) if key in figures]
    unknown = [key for key in parties if math.isnan(figures[key]["upper"])]  # may be everything
    worst = next(iter(unknown), max(parties, key=lambda key: float(figures[key]["upper"]), default=""))
    return found | {
        "worst_party": worst,
        WORST_PARTY: _known(figures[worst]["upper"]) if worst else None,
        "basis[worst party]": figures[worst]["basis"] if worst else "refused",
    }


def _utility(trials: Trials) -> Row:
    which, by_seed = trials.utilities()
    metric = trials.metric
    mean, half = interval(list(by_seed.values()))
    note = trials.first("note")
    return {
        "metric": metric, "utility": _known(mean), "utility_error": _known(half),
        "utility_of": which if by_seed else "", "seeds": len(by_seed),
        "utility[true]": _known(interval(list(trials.figures(f"{metric}[true]").values()))[0]),
        "utility[constant]": _known(interval(list(trials.figures(f"{metric}[constant]").values()))[0]),
        "test_rows": trials.first("test_rows"), "note": note or "",
    }  # fmt: skip


def _gain(trials: Trials, same_users: bool, tries: int) -> Row:
    """Return how much more than guessing was learned, of the protocol's model and of that of true labels."""
    metric, (_, by_seed) = trials.metric, trials.utilities()
    constants, true = (trials.figures(f"{metric}[{which}]") for which in ("constant", "true"))
    rows = _test_rows(trials, same_users)
    found: Row = {
        "gain": None, "gain_lower": None, "gain_lower[true]": None,
        "rare_test_rows": round(rows.rare) if metric == "auc" else None,
    }  # fmt: skip
    both = [seed for seed in by_seed if seed in constants]
    if both:
        pairs = [by_seed[seed] for seed in both], [constants[seed] for seed in both]
        own = beyond_guessing.of_protocol(metric, *pairs, rows, tries)
        found |= {"gain": own.value, "gain_lower": own.lower}
    both = [seed for seed in true if seed in constants]
    if both:
        pairs = [true[seed] for seed in both], [constants[seed] for seed in both]
        found["gain_lower[true]"] = beyond_guessing.of_true_labels(metric, *pairs, rows).lower
    ranked = list(trials.figures("auc[true]").values())
    if (
        metric == "accuracy" and ranked
    ):  # a model may know which labels are likelier, and call none of them likely
        own = beyond_guessing.of_true_labels("auc", ranked, [_COIN] * len(ranked), rows)
        found["auc_gain_lower[true]"] = own.lower
    return found


_COIN = 0.5
"""The area under the ROC curve of guessing."""


def _test_rows(trials: Trials, same_users: bool) -> beyond_guessing.TestRows:
    """Return the test rows of a run.

    Of two classes always guessing the frequent one is right on its share of them; of more, the users' least share is
    taken.
    """
    count = int(trials.first("test_rows") or 0)
    shares = [float(share) for share in str(trials.first("class_shares") or "").split()]
    right = trials.first("accuracy[constant]")
    least = min(shares, default=0.0) if len(shares) > 2 or right is None else min(right, 1 - right)
    return beyond_guessing.TestRows(count, count * least, same_users)


def _attack(trials: Trials, same_users: bool) -> Row:
    """Return the figures of the best attacker among those who look at messages."""
    names = {name[10:-1] for row in trials.made for name in row if name.startswith("advantage[")}
    found = best_attacker.best({name: _attacked(trials, name) for name in names}, same_users=same_users)
    why = trials.first("attack_why") or ""
    if found is None:
        return {"attacker": "", "attack_basis": "refused", "attack_why": why or "no run was attacked"}
    return {
        "attacker": found.name, "advantage": found.advantage, "advantage_lower": found.lower,
        "advantage_upper": found.upper, "advantage_of": found.of, "attack_seeds": found.seeds,
        "attack_baseline": found.baseline, "attack_basis": found.basis,
        "attack_utility": trials.first("attack_utility") or "0/1", "attack_eta": trials.first("attack_eta_from"),
        "attack_why": why,
    }  # fmt: skip


def _attacked(trials: Trials, name: str) -> list[best_attacker.Attacked]:
    """Return what an attacker gained in each run in which she made her attack."""
    found = []
    for row in trials.made:
        if _given(row, f"advantage[{name}]"):
            advantage, lower, upper, baseline = (
                float(row[f"{each}[{name}]"])
                for each in ("advantage", "advantage_lower", "advantage_upper", "attack_baseline")
            )
            basis, groups = str(row[f"advantage_basis[{name}]"]), int(row["attack_groups"])
            found.append(best_attacker.Attacked(advantage, lower, upper, baseline, basis, groups))
    return found


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _given(row: Mapping[str, Any], name: str) -> bool:
    value = row.get(name)
    return value is not None and not _missing(value)


def _missing(value: Any) -> bool:
    import pandas

    return bool(pandas.isna(value))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
