"""Means over seeds with their intervals, the worst epsilon, and the plot of both."""

from __future__ import annotations

import math
from typing import Any

import pandas
import pytest
from scipy import stats

from p2p_sim import InputError
from p2p_sim.sweep import plot, summary


def table(*settings: dict[str, Any]) -> pandas.DataFrame:
    """Rows of settings, each tried with as many seeds as it has accuracies."""
    rows = []
    for number, setting in enumerate(settings):
        values = {"data": "digits", "status": "made", **setting}
        for seed, accuracy in enumerate(values.pop("accuracies")):
            figures = {"accuracy[released]": accuracy, "accuracy[true]": 0.9}
            rows.append({"run": len(rows), "setting": number, "seed": seed, **values, **figures, "error": ""})
    return pandas.DataFrame(rows)


FLIP, RR = {"protocol": "peer-to-peer"}, {"protocol": "randomized-response"}
EPSILON = "epsilon_nats[learner]"
SWEPT = table(
    FLIP | {"parameter[alpha]": 0.1, "parameter[theta]": 0.5, EPSILON: 1.5, "accuracies": [0.7, 0.8, 0.75]},
    FLIP | {"parameter[alpha]": 0.2, "parameter[theta]": 0.5, EPSILON: 0.9, "accuracies": [0.6, 0.7]},
    FLIP | {"parameter[alpha]": 0.3, "parameter[theta]": 1.0, EPSILON: 0.5, "accuracies": [0.65]},
    RR | {"parameter[epsilon]": 1.0, EPSILON: 1.0, "accuracies": [0.8, 0.8]},
    RR | {"parameter[epsilon]": math.inf, EPSILON: math.inf, "accuracies": [0.9, 0.9]},
)


@pytest.mark.parametrize("values", [[0.7, 0.8, 0.75], [0.1, 0.9], [0.25] * 4])
def test_an_interval_is_student_s(values: list[float]) -> None:
    mean, half = summary.interval(values)
    error = stats.sem(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=error) if error else (mean, mean)
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_one_trial_has_no_interval() -> None:
    mean, half = summary.interval([0.5])
    assert mean == 0.5
    assert math.isnan(half)


def test_a_setting_has_its_mean_and_its_worst_epsilon() -> None:
    some = SWEPT.copy()
    some.loc[1, EPSILON] = 1.7  # of another split
    some.loc[3, ["status", EPSILON, "accuracy[released]"]] = ["failed", math.nan, math.nan]
    first, second, *_ = summary.by_setting(some)
    assert (first[EPSILON], first["accuracy[released]"]) == (1.7, pytest.approx(0.75))
    assert (second["runs"], second["failed"], second["±accuracy[released]"]) == (2, 1, None)
    assert summary.names_of_settings(some) == ["protocol", *(n for n in some if n.startswith("parameter["))]


def test_the_plot_has_a_line_for_each_series_and_says_what_it_leaves_out(tmp_path: Any) -> None:
    place = tmp_path / "a.svg"
    assert plot.write(str(place), SWEPT).startswith("1 setting without a finite ε")
    drawn = plot.drawn(SWEPT)
    assert [row[0] for row in drawn.rows] == [0, 1, 2, 3]
    text = place.read_text()
    for label in (
        "peer-to-peer, theta = 0.5",
        "peer-to-peer, theta = 1",
        "randomized-response",
        "true labels",
    ):
        assert f">{label}<" in text
    assert plot.write(str(tmp_path / "b.svg"), SWEPT)
    assert (tmp_path / "b.svg").read_text() == text  # the same bytes for the same table


@pytest.mark.parametrize("missing", [EPSILON, "accuracy[released]"])
def test_a_table_without_figures_is_not_drawn(missing: str) -> None:
    with pytest.raises(InputError, match="--plot"):
        plot.drawn(SWEPT.assign(**{missing: math.nan}))


def test_numbers_are_summarised_and_drawn_by_their_errors() -> None:
    rows = SWEPT.rename(columns={"accuracy[released]": "rmse[released]", "accuracy[true]": "rmse[true]"})
    rows["rmse[released]"] *= 10  # hours, not shares
    first, *_ = summary.by_setting(rows)
    assert first["rmse[released]"] == pytest.approx(7.5)
    assert first["accuracy[released]"] is None
    found = plot.drawn(rows)
    assert (found.columns[2], found.rows[0][2]) == ("rmse[released]", pytest.approx(7.5))
    text = summary.as_text(
        {
            "path": "sweeps/a", "settings": summary.by_setting(rows), "failed": 0, "made_before": 0, "runs": 10,
            "errors": [], "table": ["table.csv"], "plot": None,
        }
    )  # fmt: skip
    assert "7.5 ± 1.2" in text
