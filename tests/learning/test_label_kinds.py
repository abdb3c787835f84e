"""What labels are, which protocols take them, and what data warn of; each row of the table says what must be told."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core import InputError
from p2p_sim.learning import data_split, data_warnings
from p2p_sim.learning.applicability import LabelKind, applicable, label_kind
from p2p_sim.learning.data import datasets
from protocols import (
    BinnedResponse,
    EncryptedShuffle,
    LabelProportions,
    PeerPermutation,
    RandomizedResponse,
    UnbiasedResponse,
)


def table(folder: Path, labels: list[object], more: dict[str, list[object]] | None = None) -> str:
    """Write a file with a feature, some more columns, and labels; return its path."""
    features = {"a": [i * 7 % 10 / 10 for i in range(len(labels))]} | (more or {}) | {"y": labels}
    rows = [",".join(map(str, row)) for row in zip(*features.values(), strict=True)]
    path = folder / "own.csv"
    path.write_text("\n".join([",".join(features), *rows]) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("labels", "said", "kind"),
    [
        (["no", "yes"] * 20, {}, LabelKind("binary", "y", 2)),
        ([0, 1] * 20, {}, LabelKind("binary", "y", 2)),
        ([1, 2, 3, 4] * 20, {}, LabelKind("k", "y", 4)),
        (["a", "b", "c"] * 20, {}, LabelKind("k", "y", 3)),
        (["a", "b", "c"] * 20, {"positive": ["b"]}, LabelKind("binary", "y", 2)),
        (["a", "b"] * 20, {"classes": ["a", "b", "c"]}, LabelKind("k", "y", 3)),
        ([1, 2, 3, 4] * 20, {"range": (1, 5)}, LabelKind("numeric", "y", 4, (1, 5))),
        (list(range(40)), {"range": (0, 50)}, LabelKind("numeric", "y", 40, (0, 50))),
        (list(range(300)), {"range": (0, 50)}, LabelKind("numeric", "y", 300, (0, 50))),
        (list(range(40)), {"positive": ["3"]}, LabelKind("binary", "y", 2)),
    ],
)
def test_a_label_has_one_kind(
    tmp_path: Path, labels: list[object], said: dict[str, object], kind: LabelKind
) -> None:
    assert label_kind(datasets.load_by_kind(table(tmp_path, labels), **said)) == kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("classes", "labels", "warned"),
    [
        ("no,yes", 3, True),
        ("no,yes", 2, False),
        ("no,yes,never", 4, True),
        ("no,yes,never", 3, False),
        (None, 3, False),
    ],
)
def test_more_labels_than_declared_classes_are_warned_of(
    tmp_path: Path, classes: str | None, labels: int, warned: bool
) -> None:
    """What occurs need not be all there is, so that of labels nobody declared more are fine."""
    declared = None if classes is None else classes.split(",")
    data = datasets.load_by_kind(table(tmp_path, ["no", "yes"] * 30), classes=declared)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        data_split.gather(RandomizedResponse(1.0, labels), data)
    told = [str(each.message) for each in found if "nobody has the others" in str(each.message)]
    assert len(told) == warned
    if warned and declared:
        assert f"is set to {labels} labels, and label 'y' has {len(declared)} classes" in told[0]


def test_named_sets_have_the_kind_of_their_default() -> None:
    assert label_kind(datasets.load_by_kind("digits")).name == "binary"
    assert label_kind(datasets.load_by_kind("digits", classes=[str(i) for i in range(10)])).count == 10


@pytest.mark.parametrize(
    ("labels", "said", "words"),
    [
        (list(range(40)), {}, "40 different.*--range LOW,HIGH; it is not taken.*--positive.*--categorical y"),
        ([0.5, 1, 2] * 20, {}, "3 different numbers"),
        (["a", "b"] * 20, {"range": (0, 1)}, "is text, 'a', 'b', and range goes with numbers"),
        ([0, 1] * 20, {"range": (0, 1), "positive": ["1"]}, "range says .* numbers, and positive that it is classes"),
    ],
)  # fmt: skip
def test_a_label_that_nobody_explains_is_asked_about(
    tmp_path: Path, labels: list[object], said: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        datasets.load_by_kind(table(tmp_path, labels), **said)  # type: ignore[arg-type]


def test_the_range_of_numbers_says_nothing_of_the_labels(tmp_path: Path) -> None:
    """Twin files that differ in the largest label alone have the same range."""
    found = [
        datasets.load_by_kind(table(tmp_path, [*range(40), last]), range=(0, 50)).range for last in (41, 49)
    ]
    assert found == [(0, 50), (0, 50)]


BINARY, FOUR, NUMBERS = (
    LabelKind("binary", "ill", 2),
    LabelKind("k", "town", 4),
    LabelKind("numeric", "hours", 99),
)


@pytest.mark.parametrize(
    ("mechanism", "kind", "words"),
    [
        (RandomizedResponse, BINARY, None),
        (RandomizedResponse, FOUR, None),
        (RandomizedResponse(1.0, 4), FOUR, None),
        (UnbiasedResponse, NUMBERS, None),
        (UnbiasedResponse(1.0, 16), NUMBERS, None),
        (RandomizedResponse(1.0), FOUR, ["set to 2 labels", "'town' is 4 classes", "--labels 4"]),
        (RandomizedResponse, NUMBERS, ["takes classes", "'hours' is numbers", "unbiased-response", "--positive"]),
        (PeerPermutation, FOUR, ["takes two classes", "randomized-response", "--positive"]),
        (LabelProportions(10), NUMBERS, ["takes classes", "binned-response, unbiased-response or interval-response"]),
        (BinnedResponse, BINARY, ["takes numbers", "'ill' is two classes", "randomized-response"]),
        (BinnedResponse, FOUR, ["takes numbers", "'town' is 4 classes"]),
    ],
)  # fmt: skip
def test_a_mismatch_is_named_with_what_to_use_instead(
    mechanism: object, kind: LabelKind, words: list[str] | None
) -> None:
    found = applicable(mechanism, kind)  # type: ignore[arg-type]
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert [word for word in words if word not in found] == [], found


def gathered(path: str, protocol: object = None, **how: object) -> data_split.Examples:
    """Read and divide a file for randomized response, or another protocol."""
    protocol = protocol or RandomizedResponse(1.0)
    return data_split.gather(protocol, data_split.read(protocol, path), **how)  # type: ignore[arg-type]


def test_rare_labels_are_told_and_weighted(tmp_path: Path) -> None:
    often = gathered(table(tmp_path, [int(i % 10 == 0) for i in range(2000)]))
    assert data_warnings.rare_labels(often) == []
    assert data_warnings.utility_metric(often) == "accuracy"
    rare = gathered(table(tmp_path, [int(i % 25 == 0) for i in range(2000)]))
    [said] = data_warnings.rare_labels(rare)
    assert "y = 1" in said
    assert "average precision" in said
    count = int(rare.population.y.sum())
    assert f"({count} of 1,600)" in said
    assert data_warnings.utility_metric(rare) == "auc"
    assert rare.about["data"]["warnings"] == [said]


def test_numbers_have_no_rare_labels(tmp_path: Path) -> None:
    path = table(tmp_path, [*range(90), *[99] * 900])
    found = gathered(path, UnbiasedResponse(1.0, 16, 0.0, 99.0))
    assert data_warnings.rare_labels(found) == []
    assert data_warnings.utility_metric(found) == "rmse"


def test_few_users_are_told_what_vanishes_and_what_stays(tmp_path: Path) -> None:
    path = table(tmp_path, [0, 1] * 20)
    few = gathered(path, EncryptedShuffle(1.0), clusters=2)
    [said] = data_warnings.few_users(few, EncryptedShuffle(1.0))
    assert "2 of the 2 clusters have fewer than 30 users" in said
    assert "as in randomized response, protects as before" in said
    assert data_warnings.few_users(few, RandomizedResponse(1.0)) == []
    assert data_warnings.data_warnings(few, EncryptedShuffle(1.0)) == few.about["data"]["warnings"]
    enough = gathered(table(tmp_path, [0, 1] * 40), EncryptedShuffle(1.0), clusters=1)
    assert data_warnings.few_users(enough, EncryptedShuffle(1.0)) == []


def test_the_figures_of_the_warning_of_few_users_are_those_of_the_law() -> None:
    figures = [
        privacy.profile(EncryptedShuffle(1.0), cluster_size=n).epsilon(1e-6) for n in (20, data_warnings.CROWD, 50, 100)
    ]  # fmt: skip
    assert np.allclose(figures, [1.0, 0.988, 0.75, 0.48], atol=0.005)
    assert math.isclose(figures[0], 0.999, abs_tol=5e-4)
    for figure in ("1.00", "0.75", "0.48"):
        assert figure in data_warnings.LOST


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("id", list(range(100, 140)), "makes everybody unique.*--drop id"),
        ("plan", ["basic"] * 40, "'plan' is the same in every row.*--drop plan"),
        ("zero", [0] * 40, "'zero' is the same in every row"),
        ("income", [(i * 7919) % 1000 for i in range(40)], None),
    ],
)
def test_ids_and_constants_are_told(
    tmp_path: Path, name: str, column: list[object], words: str | None
) -> None:
    found = gathered(table(tmp_path, [0, 1] * 20, {name: column}))
    said = " ".join(found.cautions)
    assert re.search(words, said) if words else said == ""


def test_a_mechanism_registers_kinds_that_there_are() -> None:
    assert privacy.Accounting(labels=("k", "numeric")).labels == ("k", "numeric")
    for wrong in (("several",), ()):
        with pytest.raises(InputError, match="must be some of binary, k, numeric"):
            privacy.Accounting(labels=wrong)
