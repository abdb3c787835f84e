"""What is said of attackers: the sentence, the table, the counts of users, and where a bound is exceeded."""

from __future__ import annotations

import csv
import io
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

from p2p_sim import InputError
from p2p_sim.coalition import Coalition
from p2p_sim.leakage.advantage import over_any_baseline
from p2p_sim.leakage.attack_results import Interval, Least, PerUser
from p2p_sim.privacy.table_rows import TableRow
from p2p_sim.report import attack_section, attack_table, per_user_certainty, terminal
from tests.report.guesses import REFUSED, bound, exactly, inference, people, row

LEARNER = TableRow("learner", "learner", Coalition.parse("learner", ("user", "learner")))


def told(**changes: Any) -> dict[str, Any]:
    return attack_table.row(LEARNER, inference(**changes), "")


def first(*rows: Any, **changes: Any) -> str:
    return str(told(rows=rows, **changes)["sentences"][0])


def test_the_table_is_told_in_plain_words() -> None:
    found = told()
    assert found["sentences"] == [
        "Of 100 people, an attacker with these messages guesses 83 right; without them 76.",
        "With confidence 95 %, the messages add between 5 and 9 right guesses of 100.",
        "She is at least 90 % sure of 10 of 10 users, and of 0 without messages; she is right about 5 of these 10.",
    ]
    assert not found["failed"]


@pytest.mark.parametrize(
    ("utility", "baseline", "text"),
    [
        (
            0.8349,
            0.8341,
            "Of 100 people, an attacker with these messages guesses 83.49 right; without them 83.41.",
        ),
        (
            0.5,
            0.5,
            "Of 100 people, an attacker with these messages guesses 50 right, as many as without them.",
        ),
        (
            0.500000001,
            0.5,
            "Of 100 people, an attacker with these messages guesses 50 right, as many as without them.",
        ),
        (
            0.785,
            0.7412,
            "Of 100 people, an attacker with these messages guesses 78.5 right; without them 74.1.",
        ),
        (1.0, 0.0, "Of 100 people, an attacker with these messages guesses 100 right; without them 0."),
        (
            0.0301,
            0.03,
            "Of 100 people, an attacker with these messages guesses 3.01 right; without them 3.",
        ),
    ],
)
def test_all_is_of_100_people_with_as_many_digits_as_show_the_difference(
    utility: float, baseline: float, text: str
) -> None:
    assert first(row("optimal", exactly(utility), baseline, "exact")) == text


def test_an_attacker_who_would_do_better_without_messages_leaves_them_out() -> None:
    found = told(rows=(row("optimal", Interval(0.7, 0.72, 0.78)),))
    assert found["sentences"][0].endswith("guesses 76 right, as many as without them.")
    assert found["sentences"][1].endswith(
        "the messages add 2 right guesses of 100 at most, and perhaps nothing."
    )
    surely = told(rows=(row("optimal", Interval(0.7, 0.72, 0.74)),))
    assert surely["sentences"][1].endswith("the messages add nothing to this.")


def test_one_attacker_is_told_of_the_optimal_one_where_she_is_there() -> None:
    weak, strong = (
        row("optimal", Interval(0.7, 0.72, 0.74)),
        row("simple-prediction", Interval(0.8, 0.82, 0.84)),
    )
    prior = row("prior", exactly(0.76))
    assert attack_table.best(told(rows=(prior, strong, weak)))["name"] == "optimal"  # type: ignore[index]
    assert attack_table.best(told(rows=(prior, weak), per_user=None))["name"] == "optimal"  # type: ignore[index]
    other = told(rows=(prior, strong))
    assert "sure of" not in " ".join(other["sentences"])  # counts are of the optimal attack
    assert attack_table.best(told(rows=(prior,))) is None


@pytest.mark.parametrize(("name", "basis"), [("optimal", "lower"), ("simple-prediction", "measured")])
def test_what_a_better_attack_may_beat_is_no_upper_bound(name: str, basis: str) -> None:
    said = told(rows=(row(name, Interval(0.75, 0.77, 0.79), 0.76, basis),), per_user=None)["sentences"]
    assert said[1:] == [
        "With confidence 95 %, this attack adds between 0 and 3 right guesses of 100; a better one may add more.",
        "Bounds allow the messages to add 20 right guesses of 100 at most.",
    ]


def test_what_is_surely_allowed_is_no_more_than_bounds_allow() -> None:
    wide = told(rows=(row("optimal", Interval(0.7, 0.78, 0.86)),), bounds=(bound(0.05),))
    assert wide["sentences"][1].endswith(
        "the messages add 5 right guesses of 100 at most, and perhaps nothing."
    )


def test_few_users_tell_nothing() -> None:
    found = told(users=1, rows=(row("optimal", Interval(0.0, 1.0, 1.0), 0.76),), bounds=(bound(0.4622),))
    assert found["sentences"] == [
        "Labels of 1 user are too few, or depend too much on each other, to tell what the messages add.",
        "Bounds allow the messages to add 46.3 right guesses of 100 at most.",
    ]


def test_several_attacks_of_one_view_say_how_they_differ() -> None:
    one = told()
    assert attack_table.titles([one]) == ["learner"]
    other = one | {"seed": 3, "eta_from": "a model"}
    assert attack_table.titles([one, other]) == [
        "learner; P(label | features) class shares alone; seed of the estimates 0",
        "learner; P(label | features) a model; seed of the estimates 3",
    ]
    assert len(attack_table.kept_counts([one, one | {"seed": 3}])) == 2


def test_at_a_glance_is_the_strongest_attack_that_was_kept() -> None:
    strong = told(rows=(row("optimal", Interval(0.88, 0.9, 0.92)),))
    run = {"label_inference": [told(), strong, told(rows=(REFUSED,), per_user=None)]}
    assert attack_section.guessed(run) == "90.00 %; without messages 76.00 %"
    worse = told(rows=(row("optimal", Interval(0.7, 0.72, 0.74)),))
    assert attack_section.guessed({"label_inference": [worse]}) == "76.00 %; without messages 76.00 %"
    assert attack_section.guessed({"label_inference": [told(rows=(row("prior", exactly(0.7)),))]}) is None


def test_canaries_are_no_people() -> None:
    canaries = row("canaries", Interval(0.9, 0.95, 0.99), 0.5)
    assert "guesses 83 right" in first(row("optimal", Interval(0.81, 0.83, 0.85)), canaries)
    said = "Of 100 flips of planted users' labels, an attacker with these messages guesses 95 right; without them 50."
    assert first(canaries, REFUSED) == said


def test_intervals_are_of_this_estimate() -> None:
    """A better P(label | features) helps the attacker too, so no upper end is a limit for everybody."""
    one = row("optimal", Interval(0.81, 0.83, 0.85))
    estimated = told(rows=(replace(one, baseline=Interval(0.74, 0.76, 0.78)),))
    assert estimated["sentences"][2] == attack_table.ESTIMATED
    assert attack_table.ESTIMATED not in told(rows=(one,))["sentences"]


def test_exact_figures_have_no_confidence() -> None:
    assert len(told(rows=(row("optimal", exactly(0.8), basis="exact"),), per_user=None)["sentences"]) == 1


def test_a_weighted_utility_is_no_number_of_people() -> None:
    found = told(utility="weighted")
    assert "people" not in " ".join(found["sentences"][:2])
    assert found["sentences"][0].endswith("an attacker with these messages gets 0.83; without them 0.76.")


@pytest.mark.parametrize("others", [(), (row("prior", exactly(0.76)),)])
def test_where_no_attacker_uses_the_messages_nothing_is_said_of_them(others: tuple[Any, ...]) -> None:
    found = told(rows=(*others, REFUSED), per_user=None)
    assert found["sentences"] == [
        attack_table.NONE_RAN,
        "Bounds allow the messages to add 20 right guesses of 100 at most.",
    ]
    unbounded = told(rows=(*others, REFUSED), per_user=None, bounds=(bound(0.1, "claimed"),))
    assert unbounded["sentences"][1] == "No proven bound says how much the messages add at most."
    text = attack_table.view_text(found)
    assert "simple-prediction: needs features" in text
    assert "nan" not in text


def test_of_one_who_is_held_against_no_bound_nothing_is_said_of_bounds() -> None:
    """She may know more of P(label | features) than the estimate: what bounds allow is not of what she adds."""
    own = replace(row("ada:own", Interval(0.81, 0.83, 0.85)), least=Least(0.8, 0.05))
    allowed = "Bounds allow the messages to add 1 right guesses of 100 at most."
    held = told(rows=(own,), per_user=None, bounds=(bound(0.01),))
    free = told(rows=(over_any_baseline(own, np.eye(2)),), per_user=None, bounds=(bound(0.01),))
    assert (held["failed"], allowed in held["sentences"]) == (True, True)
    assert (free["failed"], allowed in free["sentences"]) == (False, False)
    assert held["sentences"][:-1] == free["sentences"]


def test_an_attack_above_what_a_proven_bound_allows_fails() -> None:
    found = told(bounds=(bound(0.01),))
    assert found["failed"]
    (sentence,) = found["above"]
    assert "optimal: advantage 0.07" in sentence
    assert attack_table.ABOVE in attack_table.view_text(found)
    assert attack_table.failed({"views": [found]})
    assert not attack_table.failed({"views": [told(bounds=(bound(0.01, "lower"),))]})
    claimed = told(bounds=(bound(0.01, "claimed"),))
    assert not attack_table.failed({"views": [claimed]})
    assert claimed["above"] == []
    assert f"{attack_table.CLAIM}: optimal: advantage 0.07" in attack_table.view_text(claimed)
    assert not attack_table.failed({"views": [attack_table.row(LEARNER, None, "no law")]})


def test_ends_of_intervals_are_rounded_outward() -> None:
    assert (
        attack_table.interval({"value": 0.5, "lower": 0.43216, "upper": 0.56781}) == "0.5 (0.4321 to 0.5679)"
    )
    assert attack_table.interval({"value": 0.5, "lower": 0.5, "upper": 0.5}) == "0.5"
    assert attack_table.interval({"value": None, "lower": None, "upper": None}) == "-"
    assert attack_table.interval({"value": 2.0, "lower": 1.0, "upper": "inf"}) == "2 (1 to inf)"


def test_the_best_come_first_and_the_refused_last() -> None:
    assert [line[0] for line in attack_table.lines(told())] == ["optimal", "prior", "simple-prediction"]


def test_documents_are_json() -> None:
    text = terminal.as_json({"views": [told()]})
    refused = json.loads(text)["views"][0]["attackers"][2]
    assert refused["utility"] == {"lower": None, "value": None, "upper": None}


def test_users_are_counted_in_percents_whatever_rounding_does() -> None:
    chances = np.arange(101) / 100
    found = per_user_certainty.counted(
        PerUser(np.arange(101), chances, chances[::-1], np.ones(101, np.bool_))
    )
    assert found["prior"] == [1] * 99 + [2]
    assert per_user_certainty.at_least(found["prior"]) == list(range(101, 1, -1))
    assert found["right"] == found["posterior"]


def test_the_plot_has_a_line_before_and_one_for_each_view() -> None:
    one = per_user_certainty.counted(people())
    drawn = per_user_certainty.plot("risk", {"learner": one, "wire": one})
    names = list(dict.fromkeys(line[0] for line in drawn.rows))
    assert names == ["before the messages", "learner, with them", "wire, with them"]
    assert [line[2] for line in drawn.rows if line[0] == names[0]] == [100.0] * 61 + [0.0] * 39
    assert ElementTree.fromstring(drawn.svg()).tag.endswith("svg")
    assert "90 % sure of 10 of 10" in drawn.description


@pytest.mark.parametrize("name", ["users.csv", "users.parquet"])
def test_each_user_has_a_row_that_only_the_owner_may_read(tmp_path: Path, name: str) -> None:
    place = per_user_certainty.check(str(tmp_path / name), "--per-user", per_user_certainty.TABLES)
    per_user_certainty.write_table(place, {"learner": people(4), "wire": people(3)})
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    read = pandas.read_csv(place) if name.endswith("csv") else pandas.read_parquet(place)
    assert read.columns.tolist() == ["view", "user", "prior", "posterior", "right"]
    assert read["view"].tolist() == ["learner"] * 4 + ["wire"] * 3
    assert read["posterior"].tolist()[:4] == people(4).posterior.tolist()
    if name.endswith("csv"):
        assert next(csv.reader(io.StringIO(place.read_text())))[1] == "user"


def test_other_endings_are_refused() -> None:
    with pytest.raises(InputError, match=r"--plot 'a.pdf': the name must end in .svg or .png"):
        per_user_certainty.check("a.pdf", "--plot", per_user_certainty.PLOTS)


def test_what_is_guessed_by_an_estimate_is_said_to_be_her_own() -> None:
    """A better P(y | x) may have another baseline; where it is known, and for canaries, there is none better."""
    known = row("optimal", Interval(0.81, 0.83, 0.85))
    estimated = replace(known, baseline=Interval(0.74, 0.76, 0.78))
    assert first(known).endswith("guesses 83 right; without them 76.")
    assert first(estimated).endswith("guesses 83 right; without them, by what she thinks beforehand, 76.")


def test_few_crowds_do_not_tell_what_messages_add() -> None:
    unknown = replace(row("optimal", Interval(0.0, 0.83, 1.0)), advantage=Interval(-0.76, 0.07, 0.24))
    assert "are too few, or depend too much on each other" in told(rows=(unknown,))["sentences"][0]
