"""``p2p_sim.compare``: its figures against the accountant, what it recommends, and that it goes on where it ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import p2p_sim
from p2p_sim import catalogue, privacy
from p2p_sim.cli import program
from p2p_sim.comparison import calibrations, comparing, runs
from p2p_sim.comparison.result import Comparison
from p2p_sim.comparison.table import FRONT
from p2p_sim.core.errors import InputError
from p2p_sim.learning import users_of_run
from p2p_sim.protocol_parameters import complete, parameters
from p2p_sim.rundir import comparison_files
from p2p_sim.sweep import folder
from p2p_sim.sweep.memory import Need
from p2p_sim.sweep.table import FAILED
from p2p_sim.sweep.time_budget import TimedWorkers
from tests.comparison.conftest import FEW, PEOPLE

Compared = Callable[..., Comparison]


def test_every_epsilon_is_the_accountant_s_at_the_calibrated_parameter(compared: Compared) -> None:
    found = compared(constraints=["user<=1.2", "coalition(3)<=4"], seeds=1)
    assert set(found.table["status"]) <= {"front", "dominated"}
    views = {"learner": 1.0, "user": 1.2, "learner+3*user": 4.0}
    for row in found.table.to_dict("records"):
        kind = catalogue.named(row["protocol"])
        fixed = complete(kind, parameters(kind), {}, but=row["parameter"])
        protocol = kind(**fixed, **{row["parameter"]: row["value"]})
        people = users_of_run.synthetic(protocol, 240, cluster_size=60, seed=0)[0]
        for view, most in views.items():
            told = privacy.profile(protocol, view, population=people)
            assert row[f"epsilon_nats[{view}]"] == pytest.approx(told.epsilon(1e-6), rel=1e-9), (
                row["protocol"],
                view,
            )
            assert row[f"basis[{view}]"] == told.basis
            assert told.epsilon_bracket(1e-6).upper <= most * (1 + 1e-9)
        assert (
            max(row[f"epsilon_nats[{view}]"] / most for view, most in views.items()) > 0.99
        )  # no noise too much
    peer = found.table.set_index("protocol").loc["peer-to-peer"]
    assert peer["bound_by"] == "user"  # alone the target allows a peer 1.5
    assert peer["epsilon_nats[user]"] == pytest.approx(1.2)


def test_each_figure_has_a_basis_and_the_row_is_that_of_evaluate(compared: Compared) -> None:
    found = compared(protocols=["randomized-response"], seeds=[3])
    row = found.table.iloc[0]
    for name in found.table:
        if name.startswith("epsilon_nats["):
            assert row[name.replace("epsilon_nats", "basis")] in ("exact", "upper", "lower"), name
    assert row["attack_basis"] in ("measured", "exact")
    from p2p_sim.evaluate import _utility
    from p2p_sim.learning import experiment

    kind = catalogue.named("randomized-response")
    run = experiment.simulate(kind(epsilon=row["value"]), **PEOPLE, seed=3, costs=True, progress=False)
    told = _utility(run)
    assert row["utility"] == max(told["accuracy[released]"], told["accuracy[corrected]"])
    assert row["messages[a user]"] == 1
    assert row["bytes[a user]"] == run.by_kind()["report"].nbytes / 240
    assert row["seconds[network]"] == pytest.approx(run.costs().seconds, rel=0.2)


def test_what_ended_goes_on_and_gives_the_same_table(compared: Compared, pools: Any, tmp_path: Path) -> None:
    whole = compared("whole")
    calibrating, running = pools
    first = (len(calibrating.made), len(running.made))

    class StoppedError(Exception):
        pass

    take, left = running.take, [3]

    def stopping() -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise StoppedError
        return take()

    running.take = stopping
    with pytest.raises(StoppedError):
        compared("b")
    running.take = take
    again = compared("b")
    assert (len(calibrating.made), len(running.made)) == (2 * first[0], 2 * first[1])  # nothing is made twice
    same = [name for name in whole.table if name != "seconds"]  # which measures computing
    pandas.testing.assert_frame_equal(again.table[same], whole.table[same])
    assert again.recommendation == whole.recommendation
    compared("b")
    assert len(running.made) == 2 * first[1]
    with pytest.raises(InputError, match="has a comparison that differs: it asked something else") as told:
        compared("b", target="epsilon=2")
    assert '(promises = [["learner", "curious", 1.0]] then, [["learner", "curious", 2.0]] now)' in str(
        told.value
    )
    assert "Give another --out" in str(told.value)
    was = [{"people": {"data": "a.csv"}, "delta": 1e-9}, [["alibi", 1.0]]]
    drops = [{"people": {"data": "a.csv", "drop": ["id", "const"]}, "delta": 1e-9}, [["alibi", 1.0]]]
    asked = 'it asked something else (drop = not given then, ["id", "const"] now)'
    assert calibrations._asked_else(was, drops) == asked
    assert calibrations._asked_else(was, [was[0], []]) == "it was of other protocols"


def test_what_there_was_no_time_to_calibrate_is_made_when_it_goes_on(
    compared: Compared, pools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep grows then: its runs are kept."""
    calibrating, running = pools
    give = TimedWorkers.give

    def all_but_one(self: TimedWorkers, index: int, text: str, group: str) -> bool:
        late = group == "encrypted-shuffle" and '"promises"' in text
        return False if late else give(self, index, text, group)

    monkeypatch.setattr(TimedWorkers, "give", all_but_one)
    first = compared(seeds=1)
    assert dict(first.table[["protocol", "status"]].to_numpy())["encrypted-shuffle"] == "left out"
    monkeypatch.setattr(TimedWorkers, "give", give)
    before = (len(calibrating.made), len(running.made))
    whole = compared(seeds=1)
    assert (len(calibrating.made), len(running.made)) == (
        before[0] + 1,
        before[1] + 1,
    )  # nothing is made twice
    same = [name for name in whole.table if name != "seconds"]  # which measures computing
    pandas.testing.assert_frame_equal(compared("another", seeds=1).table[same], whole.table[same])


@pytest.mark.parametrize("budget", ["10m", None])
def test_what_was_left_out_is_made_in_the_time_that_others_left_over(
    budget: str | None, compared: Compared, pools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first there is no time for one protocol's calibration, and for one run of another."""
    give, late = TimedWorkers.give, {"encrypted-shuffle": 1, "peer-to-peer": 1}

    def at_last(self: TimedWorkers, index: int, text: str, group: str) -> bool:
        for name in late:
            calibrating = '"promises"' in text
            if late[name] and name in text and calibrating == (name == "encrypted-shuffle"):
                late[name] -= 1
                return False
        return give(self, index, text, group)

    monkeypatch.setattr(TimedWorkers, "give", at_last)
    found = compared(budget=budget).table.set_index("protocol")
    made = {"front", "dominated"}
    assert (found.loc["encrypted-shuffle", "status"] in made) == (budget is not None)
    assert found.loc["peer-to-peer", "seeds"] == (1 if budget is None else 2)


def test_labels_of_nothing_are_recommended_to_nobody(compared: Compared, tmp_path: Path) -> None:
    """Labels without anything to do with the features: 4 of 6 such tables were said to be worth collecting."""
    draw = np.random.default_rng(102)
    table = pandas.DataFrame(draw.normal(size=(300, 4)), columns=list("abcd"))
    table["town"] = draw.choice(["Oslo", "Rome"], 300)
    table["y"] = np.where(draw.random(300) < 0.5, "yes", "no")
    table.to_csv(tmp_path / "noise.csv", index=False)
    how: dict[str, Any] = {"data": str(tmp_path / "noise.csv"), "label": "y", "positive": "yes"}
    found = compared(
        **how, cluster_column="town", protocols=["randomized-response", "prior-response"], seeds=3
    )
    advice, told = found.recommendation, str(found)
    assert advice.protocol is None
    assert advice.reasons[0].startswith("the features tell nothing of the label that 60 test rows can show")
    assert "o: not shown to be better than guessing" in told
    assert not re.search(r"-response +\*", told)
    assert "prior-response is randomized-response where its prior" in told
    assert any(each.startswith("column 'town' says who meets whom, so no model") for each in advice.doubts)


def test_what_was_calibrated_for_other_data_is_not_taken_up(compared: Compared, tmp_path: Path) -> None:
    place = tmp_path / "some.csv"
    how: dict[str, Any] = {"data": str(place), "label": "y", "positive": "yes"}
    how |= {"target": "epsilon=0", "protocols": ["laplace-label-proportions"], "seeds": 1}

    def write(more: int) -> None:
        rows = [f"{i % 7},{'yes' if i % 3 else 'no'}" for i in range(60 + more)]
        place.write_text("\n".join(["x,y", *rows]) + "\n")

    write(0)
    assert compared(**how).recommendation.protocol is None  # so there is no run either, which would tell
    write(30)
    with pytest.raises(InputError, match="has a comparison that differs: its data are others"):
        compared(**how)


def test_where_nothing_fits_what_is_relaxed_makes_it_fit(compared: Compared) -> None:
    few = ["label-proportions", "secure-aggregation"]
    none = compared("none", protocols=few, target="epsilon=0.002", constraints=["coalition(3)<=0.001"])
    advice = none.recommendation
    assert advice.protocol is None
    assert advice.reasons[0].startswith("nothing fits: no protocol keeps learner <= 0.002")
    assert [each.protocol for each in advice.relax] == ["secure-aggregation"]
    assert none.table.set_index("protocol").loc["label-proportions", "status"] == "does not fit"
    to = dict(advice.relax[0].to)
    assert to["learner"] > 0.002
    relaxed = compared(
        "relaxed",
        protocols=few,
        target={"epsilon": to["learner"]},
        constraints={"coalition(3)": to["learner+3*user"]},
    )
    assert relaxed.table.set_index("protocol").loc["secure-aggregation", "parameter"] == "epsilon"


def test_where_what_fits_is_of_no_use_the_target_is_said_that_would_do(compared: Compared) -> None:
    how: dict[str, Any] = {"protocols": ["randomized-response"], "users": 300, "features": 2, "seeds": 3}
    none = compared("none", **how, target="epsilon=0.2", constraints=["user<=0"], picture=True)
    advice = none.recommendation
    assert advice.protocol is None
    assert advice.reasons[0].startswith("nothing that fits learns more than always guessing the same does")
    (relaxed,) = advice.relax
    assert relaxed.text(none.question.promises).startswith("relax the target on learner from 0.2 to ")
    assert "then randomized-response learns more than guessing, " in relaxed.text(none.question.promises)
    assert set(relaxed.to) == {"learner"}  # a user sees nothing there either
    again = compared("relaxed", **how, target={"epsilon": relaxed.to["learner"]}, constraints=["user<=0"])
    assert again.recommendation.protocol == "randomized-response"
    untried = compared("untried", **how, target="epsilon=0.2", constraints=["user<=0"])
    assert "no other epsilon was tried, as that takes --out" in untried.recommendation.reasons[1]


def test_where_nothing_tried_is_of_use_that_is_said(compared: Compared) -> None:
    none = compared(
        protocols=["randomized-response"], users=60, features=1, seeds=3, target="epsilon=0.01", picture=True
    )
    advice = none.recommendation
    assert (advice.protocol, advice.relax) == (None, ())
    assert advice.reasons[1].startswith(
        "nor does any where learner may learn 0.02 or 0.04 (the best there is "
    )


def test_a_constraint_that_cannot_be_kept_is_named_with_what_would_do(compared: Compared) -> None:
    few = ["secure-aggregation"]
    none = compared("none", protocols=few, constraints=["aggregator (all deviating)<=0.001"])
    row, advice = none.table.iloc[0], none.recommendation
    assert row["status"] == "does not fit"
    assert "keeps the target, but aggregator (all deviating) learns" in row["why"]
    (view, value), *_ = advice.relax[0].to.items()
    fits = compared("fits", protocols=few, constraints={view: value})
    assert fits.table.iloc[0]["status"] in ("front", "dominated")


def test_protocols_that_do_not_apply_and_one_that_fails_leave_the_others_alone(
    compared: Compared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = '''
from dataclasses import dataclass
from p2p_sim.core import Message, Party, Protocol, Rounds

@dataclass(frozen=True)
class Breaking(Protocol):
    """``epsilon``: of nothing."""
    epsilon: float = 1.0
    report = Message("user", "learner", "tells a label", y=bool)

    def user(self, me: Party) -> Rounds:
        raise RuntimeError("broken on purpose")
        yield self.report(y=me.y)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()
'''
    (tmp_path / "breaking.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    names = ["breaking:Breaking", "binned-response", "double-response", "randomized-response"]
    found = compared(protocols=names).table.set_index("protocol")
    assert found.loc["breaking:Breaking", "status"] == "failed"
    assert "broken on purpose" in found.loc["breaking:Breaking", "why"]
    assert found.loc["binned-response", "why"] == "made for numbers, and label 'y' is two classes"
    assert "--generator" in found.loc["double-response", "why"]
    assert found.loc["randomized-response", "status"] == "front"


def test_several_classes_go_to_protocols_that_take_them(compared: Compared) -> None:
    names = ["randomized-response", "peer-permutation"]
    found = compared(protocols=names, users=300, features=2, shares=[0.4, 0.3, 0.3], seeds=1).table
    found = found.set_index("protocol")
    assert found.loc["randomized-response", "status"] == "front"
    assert found.loc["peer-permutation", "why"] == "made for two classes, and label 'y' is 3 classes"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"protocols": ["no-such"]}, "unknown protocol 'no-such'"),
        ({"protocols": ["alibi", "alibi"]}, "named twice"),
        ({"protocols": ["binned-response"]}, "no protocol here takes two classes"),
        ({"constraints": ["server:nobody<=1"]}, "no protocol here has a party 'nobody'"),
        ({"seeds": [1, 1]}, "each may be named once"),
        ({"seeds": 0}, "seeds = 0"),
        ({"budget": "soon"}, "give a time such as 90s, 10m or 1h"),
        ({"data": "breast-cancer", "cluster_size": 3}, "cluster_size needs users"),
        ({"users": 10, "label": "y"}, "label needs data"),
        ({"users": 10, "colour": "y"}, "no argument of compare"),
        ({"data": "no-such-set"}, "no-such-set"),
        ({"users": 30, "shares": [0.2, 0.3]}, "sum to 0.5, must sum to 1"),
        ({"users": 30, "shares": [1.0]}, "shares"),
        ({"users": 30, "shares": [0.5, 0.5], "share": 0.5}, "leave it out"),
        ({"workers": -1}, "workers = -1"),
        ({"workers": 2, "address": "here:1"}, "workers and address are both given"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(
    how: dict[str, Any], said: str, compared: Compared, pools: Any, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        compared(**how)
    assert said in str(refused.value)
    assert not pools[0].made
    assert not (tmp_path / "a").exists()


def test_a_range_that_most_labels_are_outside_is_refused_before_any_work(
    compared: Compared, pools: Any, tmp_path: Path
) -> None:
    (tmp_path / "n.csv").write_text("x,y\n" + "".join(f"{i % 7},{i + 0.5}\n" for i in range(40)))
    with pytest.raises(InputError, match=r"30 of 40 numbers.*outside 0 to 10: give the range .*\(--range\)"):
        compared(data=tmp_path / "n.csv", label="y", range=(0, 10), protocols=None)
    assert not pools[0].made
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("inside", "said"),
    [("run.json", "holds something else, such as 'run.json'"), ("", "is a file, or in one")],
)
def test_a_place_of_something_else_is_left_as_it_is(
    inside: str, said: str, compared: Compared, tmp_path: Path
) -> None:
    kept = tmp_path / "a" / inside
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("precious")
    with pytest.raises(InputError, match=re.escape(said)):
        compared()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
    assert kept.read_text() == "precious"


def test_it_shows_itself_and_writes_what_is_documented(compared: Compared, tmp_path: Path) -> None:
    how: dict[str, Any] = {"target": "epsilon=3", "seeds": 3}
    found = compared(picture=True, protocols=["randomized-response", "peer-to-peer"], **how)
    page = (tmp_path / "a" / comparison_files.REPORT).read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert {point["protocol"] for point in found.points} == {"randomized-response", "peer-to-peer"}
    assert len(found.points) == 2 * (1 + len(comparing.SCALES))
    assert found.recommendation.protocol in str(found)
    shown = found._repr_html_()
    assert "<table>" in shown
    drawn = re.findall("<text[^>]*>(.*?)</text>", shown)
    assert {*found.front["protocol"], "true labels", "guessing"} <= {*drawn}
    found.to_html(tmp_path / "b.html")
    assert (tmp_path / "b.html").read_text() == page
    for name in (
        comparison_files.TABLE,
        comparison_files.TABLE_CSV,
        comparison_files.WHOLE,
        comparison_files.REPORT,
    ):
        assert (tmp_path / "a" / name).stat().st_mode & 0o077 == 0, name  # it tells seeds
    assert folder.is_sweep(tmp_path / "a" / comparison_files.RUNS)


def test_the_tables_of_the_page_are_no_wider_than_it(
    chromium: Any, compared: Compared, tmp_path: Path
) -> None:
    compared(constraints=["user<=3", "coalition(3)<=5"], protocols=[*FEW, "secure-aggregation"], picture=True)
    window = chromium.new_context(viewport={"width": 1200, "height": 900})
    tab = window.new_page()
    tab.goto((tmp_path / "a" / comparison_files.REPORT).as_uri())
    widths = tab.eval_on_selector_all(
        "table", "all => all.map(one => [one.getBoundingClientRect().width, one.parentElement.clientWidth])"
    )
    assert len(widths) > 6
    assert all(table <= room + 1 for table, room in widths), widths
    assert tab.get_by_title("what learner learns of one label, in nats").count() >= 1
    window.close()


def test_a_target_of_nothing_has_the_same_setting_at_every_epsilon(
    compared: Compared, tmp_path: Path
) -> None:
    """Its runs are made once; the sweep refused what was asked twice."""
    found = compared(picture=True, protocols=["randomized-response"], target="epsilon=0", seeds=1)
    assert {point["utility"] for point in found.points} == {found.points[0]["utility"]}
    assert len(found.points) == 1 + len(comparing.SCALES)
    assert (tmp_path / "a" / comparing.REPORT).stat().st_size


def test_a_sample_runs_where_there_are_many(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_USERS", 120)
    found = compared(protocols=["randomized-response"], **PEOPLE)
    assert found.users == 240
    assert set(found.table["run_users"]) == {120}
    assert any("120 of the 240 users" in each for each in found.recommendation.doubts)


def test_a_protocol_that_many_cannot_be_simulated_for_runs_among_fewer(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "FEWER_USERS", 120)
    monkeypatch.setattr("protocols.secure_aggregation.MOST_SHARES", 16 * 15 * 9)  # of nine bags of 16
    found = compared(protocols=["secure-aggregation", "randomized-response"])
    among = found.table.set_index("protocol")["run_users"]
    assert dict(among) == {"secure-aggregation": 120, "randomized-response": 240}
    doubt = next(each for each in found.recommendation.doubts if "cannot be simulated" in each)
    assert "secure-aggregation" in doubt
    assert "among 120 users, and more users" in doubt
    assert "randomized-response" not in doubt


def test_what_memory_cannot_hold_fails_alone(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = iter([1 << 40, 0])
    monkeypatch.setattr(runs, "need_of", lambda *_: Need(next(needs), 0))
    found = compared(seeds=1, protocols=["peer-to-peer", "randomized-response"])
    status, why = (found.table.set_index("protocol")[name] for name in ("status", "why"))
    (failed,) = status[status == FAILED].index
    assert "a run among 240 users needs 1.1 TB of memory, and this machine has " in why[failed]
    assert set(status) == {FAILED, FRONT}


def test_protocols_left_out_for_one_reason_share_a_line(compared: Compared) -> None:
    names = ["randomized-response", "binned-response", "unbiased-response"]
    told = str(compared(protocols=names, target="epsilon=3", seeds=3))
    line = (
        "binned-response, unbiased-response: does not apply: made for numbers, and label 'y' is two classes"
    )
    assert line in told.splitlines()
    assert "Take randomized-response with epsilon = 3 (in full 3.00000" in told


def test_numbers_are_attacked_and_numbers_taken_as_classes_are_doubted(
    compared: Compared, tmp_path: Path
) -> None:
    table = pandas.DataFrame({"age": [20 + i % 50 for i in range(300)]})
    table["visits"] = (table["age"] - 20) // 10 + table.index % 2
    table.loc[0, "visits"] = 9  # too rare for a model of classes
    table.to_csv(tmp_path / "visits.csv", index=False)
    data: dict[str, Any] = {"data": str(tmp_path / "visits.csv"), "label": "visits", "seeds": 1}
    measured = compared("numbers", **data, protocols=["unbiased-response"], range=(0, 9))
    assert measured.table.loc[0, "attack_basis"] == "measured"
    assert not any("--range" in each for each in measured.recommendation.doubts)
    with pytest.warns(UserWarning, match="classes there are was taken from the labels"):
        classes = compared("classes", **data, protocols=["randomized-response"])
    assert any("--range LOW,HIGH" in each for each in classes.recommendation.doubts)


def test_it_is_exported() -> None:
    assert p2p_sim.compare.__name__ == "compare"


def test_who_interrupts_it_is_told_how_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_how: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("p2p_sim.comparison.compare", interrupted)
    assert program.main(["compare", "--users", "30", "--target", "epsilon=1"]) == 130
    assert capsys.readouterr().err.endswith("give the same command again to go on\ninterrupted\n")


def test_columns_to_leave_out_are_warned_of_before_minutes_are_spent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class BegunError(Exception):
        pass

    def begun(*_: Any) -> Any:
        raise BegunError

    monkeypatch.setattr(comparing._Work, "calibrated", begun)
    table = {"id": np.arange(300), "same": np.ones(300), "x": np.arange(300) % 7, "y": np.arange(300) % 2}
    pandas.DataFrame(table).to_csv(tmp_path / "f.csv", index=False)
    about = {"label": "y", "positive": "1", "target": "epsilon=1", "out": tmp_path / "o", "progress": False}
    with pytest.warns(UserWarning, match="--drop") as heard, pytest.raises(BegunError):
        p2p_sim.compare(tmp_path / "f.csv", **about)
    assert [re.findall("--drop [a-z]+", str(each.message)) for each in heard] == [
        ["--drop id"],
        ["--drop same"],
    ]
