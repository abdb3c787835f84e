"""Instance-based losses of the people of a table: as a document of JSON values, as a text table, and in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from p2p_sim.leakage import estimated_loss, instance_loss
from p2p_sim.leakage.attack_results import Interval
from p2p_sim.leakage.estimated_loss import EstimatedLoss
from p2p_sim.privacy.bounds import release2023
from p2p_sim.privacy.bounds.bound import Figure, Renyi
from p2p_sim.report import terminal
from p2p_sim.result_summary import down, up

_ROWS = 8  # taus of a table, about
_POINTS = 240  # of a curve

Document = Mapping[str, Any]


def document(found: EstimatedLoss, flip: float, taus: Sequence[float]) -> dict[str, Any]:
    """Return the losses with a flip as JSON values: ``nu_max``, ``above`` at each tau, ``curve``, least and mean.

    taus in nats; empty: some between the least and the largest loss.  Raises InputError.
    """
    prior = found.prior.value
    low, high = estimated_loss.ends(found, flip)
    margin = 0.02 * (high - low) + 0.01
    curve = [_at(found, flip, float(tau)) for tau in np.linspace(low - margin, high + margin, _POINTS)]
    return {
        "flip": flip,
        "epsilon": math.log1p(-flip) - math.log(flip),
        "nu_max": interval(found.nu_max(flip)),
        "nu_max_by_theorem1": _by_theorem1(found, flip),
        "least": float(instance_loss.nu_bar(instance_loss.least_eta(prior), prior, flip)),
        "mean": float(np.mean(found.value)) + float(instance_loss.h(flip)),
        "above": [
            _at(found, flip, tau) | {"thresholds": list(instance_loss.thresholds(tau, prior, flip))}
            for tau in (taus or even(low, high))
        ],
        "curve": curve,
    }


def divergence(features: Renyi, flip: float) -> dict[str, Any]:
    """Return Renyi divergences of what is released under two labels, as JSON values in nats.

    ``features``: of features alone, estimated from below; of the flipped label alone it is exact, and both add up, as
    the flip does not look at features.
    """
    label = release2023.label_divergence(features.order, 2 * flip, 2)
    return {
        "order": features.order, "label": {"value": label.epsilon, "basis": label.basis},
        "features": {
            "at_least": features.epsilon, "estimate": features.parameters["estimate"], "basis": features.basis,
            "source": features.source,
        },
        "together": {"at_least": label.epsilon + features.epsilon, "basis": "lower"},
    }  # fmt: skip


def basis(found: EstimatedLoss) -> dict[str, Any]:
    """Return what the estimates rest on, as JSON values."""
    smooth = found.smoothness
    return {
        "people": found.n, "k": found.k, "confidence": found.confidence,
        "smoothness": {"exponent": smooth.exponent, "constant": smooth.constant},
        "prior": interval(found.prior), "eta_smallest": interval(found.smallest),
        "eta_largest": interval(found.largest), "one_label_around": found.alike,
        "radius": estimated_loss.radius(found.n, found.k, 1 - found.confidence, smooth),
        "theorem1": _theorem1(found).value,
        "basis": "measured", "conditional_on": condition(found),
    }  # fmt: skip


def _theorem1(found: EstimatedLoss) -> Figure:
    return estimated_loss.theorem1(found.n, found.k, 1 - found.confidence, found.smoothness)


def _by_theorem1(found: EstimatedLoss, flip: float) -> dict[str, Any]:
    """Return the band of the largest loss by Pitfalls 2021, Theorem 1; without ends, and why, where it says nothing."""
    figure = _theorem1(found)
    claim = {"radius": figure.value, "source": figure.source, "basis": figure.basis, "why": figure.why}
    if not figure.holds or figure.value >= 1:
        return claim | {
            "lower": None,
            "upper": None,
            "why": f"{figure.why}, radius {figure.value:.4g}" if figure.holds else figure.why,
        }
    low, high = found.nu_max_within(figure.value, flip)
    return claim | {"lower": low, "upper": high}


def condition(found: EstimatedLoss) -> str:
    """Return in words what the intervals take for granted."""
    smooth = found.smoothness
    if smooth.constant == 0:
        return (
            f"P(y = 1 | x) does not change among a person's {found.k:,} nearest neighbours; say --smoothness "
            "EXPONENT,CONSTANT if it may"
        )
    return (
        f"P(y = 1 | x) of two people differs by at most {smooth.constant:g} times the share of people in between to "
        f"the power {smooth.exponent:g}"
    )


def interval(found: Interval) -> dict[str, float]:
    """Return an interval as JSON values."""
    return {"lower": found.lower, "estimate": found.value, "upper": found.upper}


def even(low: float, high: float) -> list[float]:
    """Return about eight round numbers between two."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9) / _ROWS))
    step *= next(by for by in (1, 2, 5, 10) if step * by * _ROWS >= high - low)
    first, last = math.floor(low / step), math.ceil(high / step)
    rounded = [float(f"{step * i:.6g}") for i in range(first, last + 1)]
    return list(dict.fromkeys(rounded))  # two that are nearly the same may be rounded to one


def _at(found: EstimatedLoss, flip: float, tau: float) -> dict[str, Any]:
    return {"tau": tau} | interval(found.above(tau, flip))


def as_text(losses: Document) -> str:
    """Return a document of ``p2p-sim leakage`` as text."""
    share = 100 * losses["prior"]["estimate"]
    head = (
        f"{losses['data']}: {losses['people']:,} people, {share:.3g} % with {losses['positive']}; "
        f"{losses['k']:,} nearest neighbours by {losses['features']:,} features; "
        f"confidence {100 * losses['confidence']:g} %"
    )
    parts = [terminal.visible(head), *map(terminal.visible, losses["notes"])]
    largest = losses["nu_max"]
    parts += [
        f"flip {losses['flip']:.6g}: ε = {losses['epsilon']:.4g} nats if features said nothing\n"
        f"largest loss ν_max: {_ends(largest)}\n"
        f"{_band(losses['nu_max_by_theorem1'])}\n"
        f"mean loss: estimated {_nats(losses['mean'])}",
        terminal.table(
            (
                "tau, nats",
                "more than tau: at least, %",
                "estimated, %",
                "at most, %",
                "eta below",
                "or above",
            ),
            [
                [
                    row["tau"],
                    *_percent(row),
                    *row["thresholds"],
                ]
                for row in losses["above"]
            ],
        ),
    ]
    if losses["renyi"]:
        parts.append(_divergences(losses["renyi"]))
    parts += losses["sentences"]
    parts.append(f"All of it is conditional: {losses['conditional_on']}.")
    return "\n\n".join(parts) + "\n"


def _divergences(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of Renyi divergences, and what they are good for."""
    head = ("Rényi order", "flipped label, nats", "features, at least", "together, at least")
    lines = [
        [
            row["order"], row["label"]["value"],
            float(down(row["features"]["at_least"])), float(down(row["together"]["at_least"])),
        ]
        for row in rows
    ]  # fmt: skip
    return f"{terminal.table(head, lines)}\n{_BELOW}"


_BELOW = (
    "That of features is estimated from below, by a discriminator: it may be larger by any amount (where it is "
    "0, so few people show nothing), and no (ε, δ) follows from it. That of the flipped label is exact."
)


def _percent(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return an interval of shares in percent, its ends rounded outward."""
    return float(down(100 * row["lower"])), 100 * row["estimate"], float(up(100 * row["upper"]))


def _ends(found: Mapping[str, float]) -> str:
    return f"estimated {_nats(found['estimate'])}; {_between(found['lower'], found['upper'])}"


def _band(found: Mapping[str, Any]) -> str:
    """Return the band by Theorem 1 as a line: a theorem as printed, on its authors' word."""
    said = f"  as claimed by {found['source']}: "
    if found["lower"] is None:
        return f"{said}nothing ({found['why']})"
    radius = f"(sup and inf of P(y = 1 | x) within {float(up(found['radius'])):.4g} of their estimates)"
    return f"{said}{_between(found['lower'], found['upper'])} {radius}"


def _between(lower: float, upper: float) -> str:
    most = _nats(float(up(upper)))
    return f"at least {_nats(float(down(lower)))}, " + (
        "no upper limit" if most == _LIMITLESS else f"at most {most}"
    )


_LIMITLESS = "without limit"


def _nats(value: float) -> str:
    return _LIMITLESS if math.isinf(value) else f"{value:.4g} nats"


def sentences(losses: Document) -> list[str]:
    """Return what a document says, in plain words."""
    said = [_of_people(row) for row in _rows_asked_for(losses)]
    if losses["one_label_around"]:
        said.append(
            f"The neighbours of {losses['one_label_around']:,} people all have one label: an estimated P(y = 1 | x) of "
            "0 or 1, whose loss is infinite, is no measurement; read the interval."
        )
    if losses["tuning"] is not None:
        said.append(_of_tuning(losses["tuning"]))
    return said


def _rows_asked_for(losses: Document) -> Sequence[Mapping[str, Any]]:
    """Return the taus that were asked for; else the one that is nearest to epsilon."""
    if losses["taus_asked"]:
        rows: Sequence[Mapping[str, Any]] = losses["above"]
        return rows
    return [min(losses["above"], key=lambda row: abs(row["tau"] - losses["epsilon"]))]


def _of_people(row: Mapping[str, Any]) -> str:
    odds = math.exp(min(row["tau"], 700.0))
    many = f"{odds:,.3g}" if odds < 1e6 else f"e^{row['tau']:.3g}"
    lower, estimate, upper = (f"{value:.4g}" for value in _percent(row))
    return (
        f"Of 100 people, {estimate} (at least {lower}, at most {upper}) lose more than {row['tau']:.4g} nats: features "
        f"and flipped label multiply the odds of their true label, against the prior, by more than {many} (the "
        "geometric mean over reports)."
    )


def _of_tuning(tuning: Mapping[str, Any]) -> str:
    promise = f"at most {tuning['at_most']:g} % of people lose more than {tuning['above']:g} nats"
    likely = "no flip would do" if tuning["estimate"] is None else f"{tuning['estimate']:.4g} would do"
    return f"With a flip of {tuning['flip']:.6g} or more, {promise}. By the estimated losses alone, {likely}."
