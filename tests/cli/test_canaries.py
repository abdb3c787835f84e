"""``run --canaries`` and the attack on the models of such a run, as a stranger types them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pandas
import pytest

from p2p_sim.core import module_finder
from p2p_sim.rundir import run_directory

RUN = ("run", "randomized-response", "--data", "breast-cancer", "--epsilon", "6", "--seed", "3")
OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

class ByHeart(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.inside_ = KNeighborsClassifier(1).fit(X, y)
        self.classes_ = self.inside_.classes_
        return self

    def predict(self, X):
        return self.inside_.predict(X)

    def predict_proba(self, X):
        return self.inside_.predict_proba(X)

class Broken(ByHeart):
    def predict(self, X):
        return self.nothing
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_learners.py").write_text(OWN)


def test_the_model_of_a_run_with_canaries_is_attacked(cli, tmp_path: Path, own: None) -> None:
    words = ("--model", "my_learners:ByHeart", "--canaries", "0.2", "--attack")
    made = cli(*RUN, *words, "--out", "mine", "--json")
    assert made.status == 0, made.err
    planted = made.json["canaries"]
    assert planted["users"] == 91
    said = f"91 of the users are canaries: a coin flipped the labels of {planted['flipped']} of them before the run"
    assert said in made.json["accuracy"]["note"]
    kept = pandas.read_parquet(tmp_path / "mine" / "canaries.parquet")
    assert list(kept) == ["user", "label", "other", "flipped", "released", "corrected"]
    assert kept["flipped"].sum() == planted["flipped"]
    (now,) = made.json["label_inference"]
    done = cli("attack", "--run", "mine", "--data", "breast-cancer")
    assert done.status == 0
    assert f"note: {said}; they are no victims below" in done.out
    text = re.search(r"Of 91 canaries, .* the released model tell (\d+) coins right", done.out)
    assert text is not None
    assert int(text[1]) > 80
    assert re.search(
        r"So epsilon of a label is at least \d.*; the law of the view allows 6 \(exact\)\.", done.out
    )
    (row,) = [each for each in now["attackers"] if each["name"] == "canaries"]
    assert row["epsilon"]["right"] == int(text[1])
    report = cli("report", "mine", "--format", "md", "--out", "mine.md")
    assert report.status == 0
    page = (tmp_path / "mine.md").read_text()
    assert "a coin flipped the labels of" in page
    assert "So epsilon of a label is at least" in page


def test_summary_and_repeated_command_say_it(cli) -> None:
    first = cli(*RUN, "--canaries", "0.1", "--out", "one")
    assert re.search(
        r"^Canaries    46 of the users; a coin flipped the labels of \d+ of them", first.out, re.MULTILINE
    )
    command = json.loads(Path("one/run.json").read_text())["notes"]["command"]
    again = cli(*command[1:], "--out", "two", "--json")
    assert again.json["digest"] in first.out
    plain = cli(*RUN, "--out", "three", "--json")
    assert "canaries" not in plain.json
    assert plain.json["digest"] not in first.out


def test_what_is_wrong_is_said_by_name(cli, own: None) -> None:
    for words, said in (
        (("--canaries", "2"), "canaries = 2.0: must be a share of the users, above 0 and at most 1"),
        (("--canaries", "0"), "canaries = 0.0: must be a share"),
        (("--canaries", "many"), "'--canaries': 'many' must be a number"),
        (("--canaries", "1e-4"), "that is 0, and at least 2 canaries are needed; give a larger share"),
        (
            ("--canaries", "0.1", "--model", "none"),
            "this one trains none: give data or features, and a model",
        ),
        (("--model", "my_learners:Broken"), "raises AttributeError on the released labels"),
        (("--model", "my_learners:Nothing"), "has no attribute 'Nothing'; give MODULE:CLASS"),
        (("--model", "json:JSONDecoder"), "needed is a class derived from sklearn.base.ClassifierMixin"),
    ):
        done = cli(*RUN, *words, "--out", "bad")
        assert (done.status, done.out) == (2, "")
        assert said in done.err
        assert not Path("bad").exists()
    few = cli(*RUN, "--canaries", "1e-4", "--plan")
    assert (few.status, "that is 0, and at least 2 canaries are needed" in few.err) == (2, True)
    assert cli(*RUN, "--canaries", "0.1", "--plan").status == 0
    stored = cli("run", "randomized-response", "--population", "shards", "--canaries", "0.1")
    assert (stored.status, "this one trains none" in stored.err) == (2, True)
    synthetic = ("randomized-response", "--epsilon", "1", "--users", "100")
    assert "trains none" in cli("run", *synthetic, "--canaries", "0.1").err
    done = cli("attack", *synthetic, "--canaries", "0.1")
    assert "--canaries 0.1: the share of users for --attacker canaries, which is not asked for" in done.err


def test_without_the_population_no_canary_is_kept(cli, tmp_path: Path) -> None:
    made = cli(*RUN[:-2], "--canaries", "0.1", "--no-population", "--out", "bare")
    assert made.status == 0
    assert not (tmp_path / "bare" / "canaries.parquet").exists()
    assert cli("attack", "--run", "bare").status == 2


def as_a_fresh_process() -> None:
    """Forget the modules of one's own that were imported."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, module_finder.Own)]
    sys.modules.pop("my_learners", None)


def test_a_run_that_was_cut_off_goes_on_with_its_canaries_and_its_model(
    cli, tmp_path: Path, own: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*RUN, "--model", "my_learners:ByHeart", "--canaries", "0.2", "--attack")
    assert cli(*words, "--out", "whole").status == 0

    def stop(*_given: object) -> None:
        raise KeyboardInterrupt

    as_a_fresh_process()
    with monkeypatch.context() as patch:
        patch.setattr(run_directory, "text_of", stop)  # canaries.parquet is there by then
        assert cli(*words, "--out", "cut").status == 130
    assert [each.name for each in next(tmp_path.glob("cut.partial-*")).iterdir()] == ["asked.json"]
    (tmp_path / "my_learners.py").write_text(OWN.replace("Classifier(1)", "Classifier(33)"))
    as_a_fresh_process()
    refused = cli("run", "--resume", "cut")
    assert (refused.status, "my_learners.py differs" in refused.err) == (2, True), refused.err
    (tmp_path / "my_learners.py").write_text(OWN)
    assert "contradicts run" in cli("run", "--resume", "cut", "--canaries", "0.3").err
    as_a_fresh_process()
    done = cli("run", "--resume", "cut")
    assert done.status == 0, done.err
    whole, cut = (pandas.read_parquet(tmp_path / name / "canaries.parquet") for name in ("whole", "cut"))
    pandas.testing.assert_frame_equal(whole, cut, check_exact=True)
