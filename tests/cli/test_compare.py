"""``p2p-sim compare``: what it prints, its exit status, going on, time budgets; what ``ls`` and ``rm`` know of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from p2p_sim.comparison import folder
from p2p_sim.rundir import comparison_files
from tests.cli.conftest import below
from tests.comparison.conftest import pools

__all__ = ["pools"]

TWO = ("--protocols", "randomized-response,peer-to-peer")
FEW = ("compare", "--users", 240, "--cluster-size", 60, "--features", 3, *TWO, "--seeds", 3)
ASKED = (*FEW, "--target", "epsilon=3")

SLEEPING = '''
import time
from dataclasses import dataclass
from p2p_sim.core import Message, Party, Protocol, Rounds

@dataclass(frozen=True)
class Sleeping(Protocol):
    """``lie``: probability of a lie."""
    lie: float = 0.25
    report = Message("user", "learner", "tells a label", y=bool)

    def user(self, me: Party) -> Rounds:
        time.sleep(600)
        yield self.report(y=me.y ^ me.draw.bernoulli("lie", self.lie))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()
'''


@pytest.mark.usefixtures("pools")
def test_it_recommends_and_goes_on_where_it_was(cli: Any, pools: Any) -> None:
    done = cli(*ASKED, "user<=2", "--out", "mine")
    assert done.status == 0
    assert "asked for: ε of learner <= 3, with user <= 2, at δ = 1e-06" in done.out
    assert "Take " in done.out
    assert done.out.endswith("Kept in mine\n")
    assert {"calibrations", "runs", "picture"} <= {place.name for place in Path("mine").iterdir()}
    made = [len(each.made) for each in pools]
    again = cli(*ASKED, "user<=2", "--out", "mine", "--json")
    assert [len(each.made) for each in pools] == made  # nothing is made twice
    assert again.status == 0
    assert again.json["recommendation"]["protocol"] in done.out


@pytest.mark.usefixtures("pools")
def test_where_nothing_fits_the_status_is_1_and_it_says_what_would_do(cli: Any) -> None:
    how = ("--features", 2, "--seeds", 1, "--protocols")
    done = cli("compare", "--users", 90, *how, "label-proportions", "--target", "epsilon=0.002")
    assert done.status == 1
    assert "Nothing is recommended: nothing fits: no protocol keeps" in done.out
    peers = ("compare", "--users", 12, "--cluster-size", 3, *how, "peer-to-peer", "--target", "epsilon=1")
    none = cli(*peers, "coalition(3)<=4")
    assert none.status == 1
    told = " ".join(none.out.split())
    assert (
        "learner+3*user is 3 users who look at another one, and the largest cluster has only 3 users" in told
    )
    assert "what would do: make the clusters larger (one of 4 users at least" in told


@pytest.mark.usefixtures("pools")
def test_what_there_was_no_time_for_is_named_and_made_later(cli: Any) -> None:
    first = cli(*ASKED, "--out", "mine", "--budget", "0.000001s")
    assert first.status == 1
    assert "there was no time for" in first.out
    assert "with a larger --budget" in " ".join(first.out.split())
    assert cli("ls", "--json").json[0]["state"] == "incomplete"
    assert cli(*ASKED, "--out", "mine").status == 0
    assert cli("ls", "--json").json[0]["state"] == "complete"


@pytest.mark.slow
def test_a_time_budget_is_kept_by_stopping_what_does_not_end(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    people = ("compare", "--users", 100, "--cluster-size", 50, "--features", 2, "--seeds", 1)
    begun = time.monotonic()
    done = cli(*people, "--protocols", "randomized-response,sleeping:Sleeping", "--target", "epsilon=1",
               "--workers", 2, "--budget", "40s", "--json")  # fmt: skip
    assert time.monotonic() - begun < 60
    statuses = {row["protocol"]: row["status"] for row in done.json["rows"]}
    assert statuses == {"randomized-response": "front", "sleeping:Sleeping": "left out"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (FEW, "--target is missing: say what a view may learn, such as p2p-sim compare --data FILE.csv"),
        ((*ASKED, "--budget", "soon"), "give a time such as 90s"),
        ((*ASKED, "user<2"), "give a view and what it may learn at most"),
        (("compare", "--target", "epsilon=1"), "there are no people"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_left(words: Any, said: str, cli: Any, tmp_path: Path) -> None:
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert not list(below(tmp_path))


@pytest.fixture
def kept(cli: Any, pools: Any, tmp_path: Path) -> Path:
    """A folder with a comparison."""
    assert cli(*ASKED).status == 0
    (place,) = (tmp_path / folder.COMPARISONS).iterdir()
    return place


def test_ls_lists_comparisons(cli: Any, kept: Path) -> None:
    (row,) = cli("ls", "--json").json
    assert (row["kind"], row["state"]) == ("comparison", "complete")
    assert row["what"].startswith("synthetic, 240 users, 2 protocols, ")
    assert row["what"].endswith(" is recommended")
    assert cli("ls", kept, "--json").json[0]["kind"] == "comparison"
    (kept / comparison_files.WHOLE).unlink()
    assert cli("ls", "--json").json[0]["what"] == "2 of 2 calibrations"
    (kept / comparison_files.WHOLE).write_text("{")
    assert cli("ls", "--json").json[0]["state"] == "damaged"


def test_rm_removes_a_comparison_but_none_that_is_written_or_holds_other_files(cli: Any, kept: Path) -> None:
    assert "nobody is there to be asked whether to remove comparison" in cli("rm", kept).err
    for name in ("notes.txt", "runs/notes.txt"):
        (kept / name).write_text("mine")
        assert f"also holds '{name}', which is no file of a comparison" in cli("rm", kept, "--yes").err
        (kept / name).unlink()
    with folder.held(kept):
        assert "is being written by another comparison" in cli("rm", kept, "--yes").err
        assert cli("ls", "--json").json[0]["state"] == "running"
        second = cli(*ASKED)
        assert second.status == 2
        assert (
            f"'comparisons/{kept.name}' is being written by another comparison: wait for its end"
            in second.err
        )
    assert cli("rm", kept, "--yes").status == 0
    assert not kept.exists()


@pytest.mark.usefixtures("ray_session")
def test_a_ray_cluster_gives_the_same_table(
    cli: Any, pools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    here = cli(*ASKED, "--json").json
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    address = ray.get_runtime_context().gcs_address
    there = cli(*ASKED, "--out", "there", "--address", address, "--json").json

    def told(found: Any) -> str:
        rows = [{name: value for name, value in row.items() if name != "seconds"} for row in found["rows"]]
        return json.dumps(rows)  # but the time that computing took

    assert told(there) == told(here)
    assert there["recommendation"] == here["recommendation"]
