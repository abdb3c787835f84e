"""A row of ``evaluate``: what the run, the models and the accountant say, and rows that go together."""

from __future__ import annotations

import hashlib
import inspect
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import pytest

import p2p_sim
from p2p_sim import InputError, privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.learning.data import datasets
from p2p_sim.report.delta import DELTA
from protocols import LabelProportions, PeerToPeer, RandomizedResponse

SEED = 2**64 - 59  # more than a float, or an int64, can hold


def of_what(one):
    """A row says of what data and promise it is."""
    data = datasets.load("breast-cancer")
    digest = hashlib.sha256()
    for column in (data.x, data.y):
        digest.update(f"{column.dtype} {column.shape} ".encode() + column.tobytes())
    assert (one["examples"], one["content"]) == ("exact", digest.hexdigest())
    malignant, benign = map(float, one["class_shares"].split())
    ill = 212 / 569
    assert sorted([malignant, benign]) == pytest.approx(
        [ill, 1 - ill], abs=0.06
    )  # of the users, 4/5 of the rows
    assert malignant + benign == pytest.approx(1)
    assert one["includes"].startswith("one label replaced")
    assert one["assumes[learner]"]
    assert (one["trials"], math.isnan(one["standard_error"])) == (1, True)


@pytest.mark.slow
def test_a_row_is_what_the_command_line_says(cli) -> None:
    """The same run by the command; but for what that leaves out where it takes long."""
    words = ("run", "peer-to-peer", "--data", "breast-cancer", "--alpha", "0.1", "--clusters", "4")
    told = cli(*words, "--seed", SEED, "--split-seed", "5", "--json").json
    row = p2p_sim.evaluate(PeerToPeer(0.1), "breast-cancer", clusters=4, seed=SEED, split_seed=5)
    assert len(row) == 1
    one = row.iloc[0]
    assert one["protocol"] == "peer-to-peer"
    assert (one["parameter[alpha]"], one["parameter[over]"]) == (0.1, "cluster")
    assert (int(row.seed[0]), int(row.split_seed[0])) == (SEED, 5)
    assert (one["users"], one["clusters"], one["data"]) == (455, 4, "breast-cancer")
    assert one["delta"] == DELTA
    of_what(one)
    accuracy = told["accuracy"]
    names = {
        "released": "accuracy_private", "corrected": "accuracy_corrected", "true": "accuracy_true",
        "constant": "baseline",
    }  # fmt: skip
    for which, name in names.items():
        assert one[f"accuracy[{which}]"] == accuracy[name]
        for column, metric in (
            ("balanced_accuracy", "balanced_accuracy"), ("auc", "auc"), ("log_loss_nats", "log_loss"),
            ("calibration_error", "calibration_error"), ("rarest_recall", "rarest_recall"),
            ("average_precision", "average_precision"),
        ):  # fmt: skip
            assert one[f"{column}[{which}]"] == accuracy["metrics"][name][metric]
    shown = {
        f"{view['name']}{'' if view['users'] == 'curious' else ' (deviating)'}": view
        for view in told["privacy"]["views"]
    }
    columns = [name[13:-1] for name in row if name.startswith("epsilon_nats[")]
    assert columns == ["learner", "user", "user (deviating)", "wire", "learner+wire"]
    shown_there = [view for view in columns if shown[view]["exact"] is not None]
    assert set(shown_there) >= {"user", "user (deviating)", "wire"}
    for view in shown_there:
        exact = shown[view]["exact"]
        assert one[f"epsilon_nats[{view}]"] == pytest.approx(exact["epsilon"], rel=1e-12)
        assert one[f"basis[{view}]"] == exact["basis"]
    assert one["messages"] == sum(each["messages"] for each in told["messages"])


def test_rows_go_together() -> None:
    rows = [
        p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", seed=SEED, views=["learner"]),
        p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", seed=3, views=[], model="none"),
        p2p_sim.evaluate(LabelProportions(bag_size=8), "breast-cancer", seed=3, views=["aggregator"]),
    ]
    table = pandas.concat(rows, ignore_index=True)
    assert len(table) == 3
    assert table.seed.tolist() == [SEED, 3, 3]
    assert table.seed.dtype == table.split_seed.dtype == np.uint64
    assert table["accuracy[true]"].isna().tolist() == [False, True, False]
    assert table["epsilon_nats[learner]"][0] == privacy.profile(RandomizedResponse(1.0)).epsilon(DELTA)
    assert table["epsilon_nats[learner]"].isna().tolist() == [False, True, True]
    assert table["epsilon_nats[aggregator]"][2] == math.inf
    assert table["parameter[bag_size]"][2] == 8
    again = pandas.read_parquet(io.BytesIO(table.to_parquet()))
    pandas.testing.assert_frame_equal(again, table)


def test_the_same_seed_gives_the_same_row() -> None:
    one, other = (p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", seed=3) for _ in range(2))
    pandas.testing.assert_frame_equal(one, other, check_exact=True)
    fresh = [p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", views=[], model="none") for _ in "ab"]
    assert fresh[0].seed[0] != fresh[1].seed[0]


@dataclass(frozen=True)
class Passing(Protocol):
    """A label is passed on by another user, so that no law is known."""

    say = Message("user", "user", "tells a peer", y=bool)
    report = Message("user", "learner", "passes it on", y=bool)

    def user(self, me: Party) -> Rounds:
        said = yield self.say(to=me.draw.member("peer", me.cluster), y=me.y)
        yield self.report(y=said.y)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


def test_a_view_without_a_law_is_refused_and_the_rest_told() -> None:
    row = p2p_sim.evaluate(Passing(), "breast-cancer", seed=1, views=["learner"])
    assert row["basis[learner]"].tolist() == ["refused"]
    assert row["epsilon_nats[learner]"].isna().all()
    assert row["labels_released"].tolist() == [455.0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"delta": 1.0}, "delta = 1.0"),
        ({"delta": "small"}, "delta = 'small'"),
        ({"views": "learner"}, r"views = 'learner': give a list of names, such as \['learner'\]"),
        ({"views": ["moon"]}, "moon"),
        ({"views": ["learner+wire", "wire+learner"]}, "'learner.wire' and 'wire.learner' are the same view"),
        ({"model": "oracle"}, "oracle"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_wrong_arguments_are_refused_before_the_work(how, said, monkeypatch) -> None:
    monkeypatch.setattr("p2p_sim.learning.data.datasets.load", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(InputError, match=said):
        p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", **how)


def test_its_default_model_is_that_of_learn() -> None:
    assert inspect.signature(p2p_sim.evaluate).parameters["model"].default is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"protocol": RandomizedResponse}, "protocol = .*give an object"),
        ({"protocol": "randomized-response"}, "protocol = 'randomized-response': give an object"),
        ({"data": pandas.DataFrame({"a": [1]})}, r"data = DataFrame: .*to_parquet"),
        ({"data": None}, "data = NoneType: give the name"),
        ({"model": 3}, "model = 3: give the name of a model"),
        ({"views": [3]}, r"views = \[3\]: give a list of names"),
        ({"foo": 1}, "foo = 1: no argument of evaluate; known are .*'clusters'"),
        ({"clusters": "town"}, "clusters = 'town': .*cluster_column"),
        ({"test": "a"}, "test = 'a': must be a number"),
    ],
)
def test_arguments_that_are_none_are_named(arguments: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"protocol": RandomizedResponse(1.0), "data": "breast-cancer"} | arguments
    with pytest.raises(InputError, match=text):
        p2p_sim.evaluate(given.pop("protocol"), given.pop("data"), **given)
