"""``p2p-sim attack``: of a fresh run and of a saved one, what it prints, writes and keeps, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
import pytest

import p2p_sim
from p2p_sim.leakage.attack import attack
from p2p_sim.report import attack_table
from protocols import RandomizedResponse
from tests.report.guesses import bound, inference

FRESH = ("attack", "randomized-response", "--epsilon", "1", "--users", "400", "--eta", "prior")


def attackers(view: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in view["attackers"]}


def test_a_fresh_run_is_attacked_as_in_python(cli) -> None:
    done = cli(*FRESH, "--share", "0.3", "--seed", "7", "--json")
    assert done.status == 0
    found = done.json
    (view,) = found["views"]
    people = p2p_sim.Population.synthetic(users=400, positive=0.3, seed=7)
    run = p2p_sim.run(RandomizedResponse(1.0), people, seed=7)
    same = attack(run, "learner", eta="prior")
    assert attackers(view).keys() == {each.name for each in same.rows}
    for each in same.rows:
        if each.basis != "refused":
            assert attackers(view)[each.name]["utility"] == each.utility._asdict()
    assert view["per_user"]["users"] == 400
    given = "--epsilon 1.0 --labels 2 --eta prior --users 400 --share 0.3 --seed 7"
    assert found["command"] == f"p2p-sim attack randomized-response {given}"
    again = cli(*shlex.split(found["command"])[1:], "--json").json
    assert again["views"] == [view]


def test_the_text_says_it_in_plain_words(cli) -> None:
    done = cli(*FRESH)
    assert "guessed right (95 %)" in done.out
    assert "people, an attacker with these messages guesses" in done.out
    assert done.err == ""


def test_the_guide_shows_what_the_first_of_its_commands_prints(cli) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "attack-command.md").read_text()
    command, shown = guide.split("```sh\n")[1].split("\n")[0], guide.split("```text\n")[1].split("```")[0]
    printed = cli(*shlex.split(command)[1:]).out.splitlines()
    assert len(shown.splitlines()) > 6
    assert [line for line in shown.splitlines() if line.rstrip() not in map(str.rstrip, printed)] == []


def test_all_views_have_a_table_or_a_reason(cli) -> None:
    done = cli(
        "attack",
        "peer-to-peer",
        "--users",
        "60",
        "--cluster-size",
        "6",
        "--eta",
        "prior",
        "--all-views",
        "--json",
    )
    assert done.status == 0
    assert [view["name"] for view in done.json["views"]] == [
        "learner", "user", "learner+user", "learner+3*user", "user", "wire", "learner+wire"
    ]  # fmt: skip
    assert not any(view["refused"] for view in done.json["views"])
    deviating = done.json["views"][4]
    assert deviating["view"] == "user: one deviating peer"
    assert "no run has users or servers who deviate" in attackers(deviating)["optimal"]["source"]


def test_several_views_are_held_against_their_bounds_in_one_table(cli) -> None:
    shown = ("peer-to-peer", "--users", "600", "--cluster-size", "20", "--alpha", "0.1", "--eta", "prior")
    views = cli("attack", *shown, "--view", "learner", "--view", "user", "--view", "wire").out
    table = [line.split() for line in views.rpartition("\n\n")[2].splitlines()]
    assert [(line[0], line[-2], line[-1]) for line in table] == [
        ("view", "most", "bound"), ("learner", "0.1031", "holds"),
        ("user:", "0.0236", "holds"), ("user:", "0.4721", "holds"), ("wire,", "0.3024", "holds"),
    ]  # fmt: skip
    assert "proven at most" not in cli("attack", *shown, "--view", "learner").out


def test_who_might_deviate_is_attacked_as_who_does_not(cli) -> None:
    of = ("secure-aggregation", "--bag-size", "6", "--users", "24", "--eta", "prior", "--epsilon", "1")
    done = cli("attack", *of, "--view", "aggregator+3*user", "--json")
    assert done.status == 0
    curious, deviating = done.json["views"]
    assert (curious["view"], curious["users"]) == ("aggregator+3*user", 21)
    assert deviating["view"] == "aggregator+3*user: deviating users"
    assert "no run has messages of users or servers who deviate" in attackers(deviating)["optimal"]["why"]
    assert [bound["holds"] for bound in deviating["bounds"] if "Theorem 2;" in bound["source"]] == [True]


def test_users_and_the_plot_are_written(cli, tmp_path: Path) -> None:
    done = cli(*FRESH, "--view", "learner", "--view", "wire", "--per-user", "users.csv", "--plot", "risk.svg")
    assert done.status == 0
    table = pandas.read_csv(tmp_path / "users.csv")
    assert table["view"].value_counts().to_dict() == {"learner": 400, "wire": 400}
    assert (table["posterior"] >= 0.5).all()
    assert stat.S_IMODE((tmp_path / "users.csv").stat().st_mode) == 0o600
    assert (tmp_path / "risk.svg").read_text().startswith("<svg")


@pytest.fixture
def saved(cli, tmp_path: Path) -> Path:
    made = (
        "run",
        "randomized-response",
        "--epsilon",
        "1",
        "--data",
        "breast-cancer",
        "--model",
        "none",
        "--seed",
        "3",
    )
    assert cli(*made, "--out", "mine").status == 0
    return tmp_path / "mine"


def test_a_saved_run_keeps_what_was_found(cli, saved: Path) -> None:
    done = cli("attack", "--run", "mine", "--eta", "prior")
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith("Kept in mine/attack.json\n")
    kept = json.loads((saved / "attack.json").read_text())
    assert stat.S_IMODE((saved / "attack.json").stat().st_mode) == 0o600
    assert [each["name"] for each in kept["attacks"]] == ["learner"]
    cli("attack", "--run", "mine", "--eta", "prior", "--attack-seed", "1")
    cli("attack", "--run", "mine", "--eta", "prior", "--utility", "weighted")
    again = json.loads((saved / "attack.json").read_text())["attacks"]
    assert [(each["utility"], each["seed"]) for each in again] == [("0/1", 0), ("0/1", 1), ("weighted", 0)]
    cli("attack", "--run", "mine", "--eta", "prior", "--attack-seed", "1")
    assert len(json.loads((saved / "attack.json").read_text())["attacks"]) == 3


def test_the_same_attack_has_the_same_seed_in_both_commands(cli) -> None:
    of = ("randomized-response", "--epsilon", "1", "--users", "300", "--features", "2", "--seed", "5")
    (fresh,) = cli("attack", *of, "--json").json["views"]
    (at_once,) = cli("run", *of, "--attack", "--model", "none", "--out", "mine", "--json").json[
        "label_inference"
    ]
    saved = cli("attack", "--run", "mine", "--eta", "prior")
    assert fresh["seed"] == at_once["seed"] == 0
    assert fresh["attackers"] == at_once["attackers"]
    assert "; seed 5\n" in saved.out
    assert "; seed of the estimates 0\n" in saved.out


def test_where_no_attacker_uses_the_messages_it_says_so(cli) -> None:
    done = cli(*FRESH, "--attacker", "prior")
    assert attack_table.NONE_RAN in done.out
    assert "as many as without" not in done.out
    assert "sure of" not in done.out
    assert cli(*FRESH, "--attacker", "prior", "--per-user", "a.csv").status == 2


def test_a_view_that_reads_nothing_adds_exactly_nothing(cli) -> None:
    done = cli(*FRESH, "--view", "wire", "--channels", "encrypted")
    assert "The messages add nothing to this: the view reads none that tells of a label." in done.out
    (view,) = cli(*FRESH, "--view", "wire", "--channels", "encrypted", "--json").json["views"]
    assert attackers(view)["optimal"]["advantage"] == {"lower": 0.0, "value": 0.0, "upper": 0.0}


def test_one_user_tells_nothing(cli) -> None:
    done = cli("attack", "randomized-response", "--epsilon", "1", "--users", "1", "--eta", "prior")
    assert "Labels of 1 user are too few" in done.out
    assert "sure of" not in done.out


def test_features_of_a_saved_run_come_from_its_data(cli, saved: Path) -> None:
    without = cli("attack", "--run", "mine")
    assert "this run kept no features of its users" in without.err
    with_them = cli("attack", "--run", "mine", "--data", "breast-cancer", "--eta", "model", "--json")
    assert "logistic-regression" in with_them.json["views"][0]["eta_from"]
    other = cli("attack", "--run", "mine", "--data", "digits", "--eta", "model")
    assert other.status == 2
    assert "these are not the users of run 'mine'; give the data, and the options" in other.err
    assert len(json.loads((saved / "attack.json").read_text())["attacks"]) == 2


def test_data_of_a_saved_run_are_read_as_the_run_read_them(cli, tmp_path: Path) -> None:
    lines = [f"u{i},{i % 11 or ''},{'mf'[i % 2]},{('ill', 'well')[i % 3 == 0]}" for i in range(200)]
    (tmp_path / "own.csv").write_text("\n".join(["id,age,sex,diagnosis", *lines]))
    read = (
        "--data",
        "own.csv",
        "--label",
        "diagnosis",
        "--positive",
        "ill",
        "--missing",
        "impute",
        "--drop",
        "id",
    )
    made = ("run", "randomized-response", "--epsilon", "1", *read, "--model", "none", "--seed", "3")
    assert cli(*made, "--out", "r3").status == 0
    attack_it = ("attack", "--run", "r3", "--attacker", "prior", "--eta", "model", "--data", "own.csv")
    plain = cli(*attack_it, "--json")
    assert plain.status == 0
    assert (
        cli(*attack_it, "--label", "diagnosis", "--missing", "impute", "--json").json["views"]
        == plain.json["views"]
    )
    kept = (tmp_path / "r3" / "attack.json").read_bytes()
    for words, text in (
        (("--drop", "age"), "--drop age contradicts run 'r3', which has id"),
        (("--missing", "drop"), "--missing drop contradicts run 'r3', which has impute"),
        (("--numeric", "age"), "--numeric age contradicts run 'r3', which has no --numeric"),
    ):
        done = cli(*attack_it, *words)
        assert (done.status, text in done.err) == (2, True)
    (tmp_path / "own.csv").write_text(
        "\n".join(["id,age,diagnosis", *(re.sub(",[mf],", ",", line) for line in lines)])
    )
    other = cli(*attack_it)
    assert (other.status, "features, and the users of run 'r3' had" in other.err) == (2, True)
    assert (tmp_path / "r3" / "attack.json").read_bytes() == kept


def test_run_attacks_at_once_where_it_is_asked_to(cli, tmp_path: Path) -> None:
    made = ("run", "randomized-response", "--epsilon", "1", "--users", "300", "--seed", str(2**63))
    assert "an attacker" not in cli(*made, "--out", "quiet").out
    assert not (tmp_path / "quiet" / "attack.json").exists()
    done = cli(*made, "--attack", "--out", "loud")
    assert "people, an attacker with these messages guesses" in done.out
    (kept,) = json.loads((tmp_path / "loud" / "attack.json").read_text())["attacks"]
    assert kept["name"] == "learner"
    refused = cli(*made, "--attack", "--no-population")
    assert refused.status == 2
    assert "--attack tells of the labels" in refused.err


def test_an_attack_that_beats_the_law_of_its_view_ends_with_status_1(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for allowed, status in ((0.2, 0), (0.01, 1)):
        monkeypatch.setattr(
            attack_table, "attack", lambda *_, at=allowed, **__: inference(bounds=(bound(at),))
        )
        done = cli(*FRESH)
        assert done.status == status
        assert (attack_table.ABOVE in done.out) == bool(status)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("attack", "randomized-response", "--epsilon", "1"), "there are no users: give --data"),
        ((*FRESH, "--data", "digits"), "--data and --users are both given"),
        ((*FRESH, "--eta", "guess"), "--eta is given twice"),
        ((*FRESH, "--utility", "3"), "--utility '3': must be one of 0/1, weighted"),
        ((*FRESH, "--channels", "no"), "--channels 'no': must be one of plain, encrypted"),
        ((*FRESH, "--all-views", "--view", "wire"), "--all-views and --view are both given"),
        ((*FRESH, "--view", "curator"), "curator"),
        ((*FRESH, "--attacker", "oracle"), "--attacker 'oracle': must be one of prior, simple-prediction, optimal"),
        ((*FRESH[:4], "--data", "digits", "--eta", "true"), "give --eta knn, model or prior"),
        ((*FRESH, "--confidence", "1"), "must be a number in [0.5, 1)"),
        ((*FRESH, "--confidence", "2"), "--confidence 2.0: must"),
        ((*FRESH[:4], "--users", "9", "--features", "1", "--share", "0", "--eta", "model"), "--eta model: a model"),
        ((*FRESH, "--plot", "a.pdf"), "--plot 'a.pdf': the name must end in .svg or .png"),
        ((*FRESH, "--per-user", "a.txt"), "--per-user 'a.txt': the name must end in .csv or .parquet"),
        ((*FRESH, "--per-user", "no/a.csv"), "--per-user 'no/a.csv': give a file in a folder that exists"),
        (("attack", "--run", "none"), "none"),
        (("attack", "--run", "mine", "--seed", "3"), "--seed is for a fresh run, and --run names one"),
        (("attack", "--run", "mine", "--users", "3"), "--users is for a fresh run, and --run names one"),
        (("attack", "--run", "mine", "--backend", "shards"), "--backend is for a fresh run, and --run names one"),
        ((*FRESH, "--address", "h:1"), "address = 'h:1' means nothing to backend 'local'"),
        (("attack", "peer-to-peer", "--run", "mine"), "peer-to-peer contradicts run 'mine'"),
        (("attack", "--run", "mine", "--epsilon", "2"), "--epsilon 2.0 contradicts run 'mine', which has 1.0"),
        ((*FRESH[:4], "--data", "digits", "--share", "0.5"), "--share needs --users"),
    ],
)  # fmt: skip
def test_bad_input_is_named(cli, saved: Path, words: tuple[str, ...], text: str) -> None:
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert text in done.err
    assert not (saved / "attack.json").exists()


OWN = '''
"""Guesses what was reported; what the view lacks is said; and two that are wrong."""

import numpy as np

from p2p_sim import InputError

print("importing this prints")


def as_reported(knowledge):
    if "report" not in knowledge.view.messages:
        raise InputError("as_reported: needs reports")
    reports = knowledge.view.messages["report"]
    if not reports["readable"].all():
        raise InputError("as_reported: needs reports that it can read")
    guess = np.zeros(knowledge.people.users, int)
    guess[reports["sender"]] = reports["y"]
    return guess


def wrong(knowledge):
    return {}["labels"]


def ones(seen):
    reports = seen.kinds["report"]
    return np.bincount(seen.world_of(reports), reports.fields["y"], seen.worlds)
'''


def test_an_attacker_of_ones_own_stands_beside_the_others(cli, tmp_path: Path) -> None:
    (tmp_path / "ada_own.py").write_text(OWN)
    done = cli(*FRESH, "--attacker", "ada_own:as_reported", "--attacker", "optimal", "--json")
    assert done.status == 0
    (view,) = done.json["views"]
    own, best = attackers(view)["ada_own:as_reported"], attackers(view)["optimal"]
    assert (
        own["utility"] == best["utility"]
    )  # of labels as frequent as here Bayes says what was reported, too
    again = cli(*shlex.split(done.json["command"])[1:], "--json").json
    assert again["views"] == [view]
    unread = cli(*FRESH, "--attacker", "ada_own:as_reported", "--view", "wire", "--channels", "encrypted")
    assert "ada_own:as_reported: as_reported: needs reports that it can read" in unread.out
    for name, text in (
        ("ada_own:wrong", "ada_own:wrong: it raises KeyError: 'labels'"), ("ada_own:none", "no attribute 'none'"),
        ("bob_own:f", "attacker 'bob_own:f': No module named 'bob_own'; give MODULE:FUNCTION"),
    ):  # fmt: skip
        refused = cli(*FRESH, "--attacker", name)
        assert (refused.status, refused.out, text in refused.err) == (2, "", True)


def test_the_attacker_of_the_guide_works_as_written(cli, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "attack-command.md").read_text()
    own = guide.split("## An attacker of your own")[1]
    (tmp_path / "ada.py").write_text(own.split("```python\n")[1].split("```")[0])
    command = own.split("```text\n$ p2p-sim ")[1].split("\n")[0]
    (view,) = cli(*shlex.split(command), "--json").json["views"]
    assert attackers(view)["ada:majority_of_cluster"]["basis"] == "measured"
    assert attackers(view)["ada:majority_of_cluster"]["advantage"]["value"] > 0.02


def test_a_statistic_of_ones_own_is_audited(cli, tmp_path: Path) -> None:
    (tmp_path / "ada_own.py").write_text(OWN)
    audit = ("audit", "randomized-response", "--epsilon", "1", "--trials", "2000", "--delta", "0")
    done = cli(*audit, "--statistic", "ada_own:ones", "--claim", "0.2", "--json")
    assert done.status == 1  # the claim is 0.2, and the truth is 1
    (view,) = done.json["views"]
    assert 0.2 < view["lower"] < 1
    assert "ada_own:ones" in view["statistic"]
    assert "--statistic ada_own:ones" in done.json["command"]
    for name, text in (
        ("ada_own:wrong", "statistic ada_own:wrong: it raises KeyError"), ("ada_own:np", "needed is a function"),
        ("luck", "MODULE:FUNCTION"),
    ):  # fmt: skip
        refused = cli(*audit, "--statistic", name)
        assert (refused.status, refused.out, text in refused.err) == (2, "", True)


def test_ids_among_the_features_are_named(cli, tmp_path: Path) -> None:
    lines = [f"{7 * i % 300},{i * i % 11},{i % 17 / 4},{('ill', 'well')[i % 3 == 0]}" for i in range(300)]
    (tmp_path / "own.csv").write_text("\n".join(["number,age,acid,health", *lines]))
    of = ("--data", "own.csv", "--label", "health", "--positive", "ill")
    said = (
        "among the features 'number' looks like an id, which tells nothing of others: leave it out by --drop"
    )
    attacked = ("attack", "randomized-response", "--epsilon", "1", *of, "--seed", "1")
    assert f"found exactly; {said}" in cli(*attacked).out
    for silent in (("--eta", "prior"), ("--drop", "number")):
        assert "looks like an id" not in cli(*attacked, *silent).out
    leaked = cli("leakage", *of, "--flip", "0.1", "--json").json
    assert leaked["notes"] == [said]


def test_one_crowd_is_estimated_by_people_who_are_not_in_it(cli) -> None:
    of = (
        "encrypted-shuffle",
        "--epsilon",
        "3",
        "--over",
        "everybody",
        "--data",
        "breast-cancer",
        "--seed",
        "3",
    )
    (fresh,) = cli("attack", *of, "--attacker", "optimal", "--json").json["views"]
    assert "people who are not in the run" in fresh["eta_from"]
    assert attackers(fresh)["optimal"]["basis"] == "measured"
    (at_once,) = cli("run", *of, "--attack", "--model", "none", "--out", "mine", "--json").json[
        "label_inference"
    ]
    assert attackers(at_once)["optimal"] == attackers(fresh)["optimal"]
    (saved,) = cli(
        "attack", "--run", "mine", "--data", "breast-cancer", "--attacker", "optimal", "--json"
    ).json["views"]
    assert attackers(saved)["optimal"] == attackers(fresh)["optimal"]


TWIN = '''
"""Randomized response that is said to lie more often than it does."""

from p2p_sim import privacy
from p2p_sim.core import Party, Rounds
from protocols import RandomizedResponse


class Twin(RandomizedResponse):
    """Users say that they lie, and do not."""

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y)


privacy.register(Twin, privacy.accounting(RandomizedResponse))
'''


def test_a_program_with_less_noise_than_its_law_says_ends_with_status_1(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaky_twin.py").write_text(TWIN)
    monkeypatch.syspath_prepend(tmp_path)
    words = ("--epsilon", "0.5", "--users", "400", "--eta", "prior")
    done = cli("attack", "leaky_twin:Twin", *words)
    assert done.status == 1
    assert "guesses 100 right" in done.out
    assert attack_table.ABOVE in done.out
    both = cli("attack", "leaky_twin:Twin", *words, "--view", "learner", "--view", "user").out
    assert [line.split()[-1] for line in both.splitlines()[-2:]] == ["exceeded", "holds"]
    assert cli("attack", "randomized-response", *words).status == 0
