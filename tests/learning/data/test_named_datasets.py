"""Named data sets: their counts are those of the data's README, and nothing in the features is the label."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import sources
from p2p_sim.learning.data.datasets import Dataset, available, load
from p2p_sim.learning.data.named_datasets import NAMED
from tests.learning.conftest import need

pytestmark = pytest.mark.slow

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def check_listing(data):
    """What `available` says of a set is what loading it gives."""
    info = next(info for info in available() if info.name == data.name)
    assert (info.rows, info.features) == data.x.shape == (len(data.y), len(data.features))
    assert (info.label, info.positive, info.where) == (data.label, data.positive, data.source)
    assert data.x.dtype == np.float32
    assert np.isfinite(data.x).all()
    assert len(set(data.features)) == len(data.features)
    assert data.classes[1] == data.positive


def test_digits():
    data = load("digits")
    check_listing(data)
    assert data.x.shape == (1797, 64)
    assert data.y.dtype == np.bool_
    assert data.y.sum() == 896
    assert data.classes == ("digit < 5", "digit >= 5")
    assert data.test is None
    assert data.cluster is None
    many = load("digits", multiclass=True)
    assert many.y.dtype == np.uint8
    assert np.bincount(many.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (data.y == (many.y >= 5)).all()
    assert many.classes == tuple("0123456789")


def test_digits_with_other_positive_classes():
    many = load("digits", multiclass=True).y
    data = load("digits", positive=["0", "8"])
    assert (data.y == np.isin(many, [0, 8])).all()
    assert data.classes == ("digit not in {0, 8}", "digit in {0, 8}")
    assert load("digits", positive=["3"]).classes == ("digit is not 3", "digit = 3")


def test_breast_cancer():
    data = load("breast-cancer")
    check_listing(data)
    assert data.y.sum() == 212
    assert data.positive == "diagnosis = malignant"
    radius = data.x[:, data.features.index("mean radius")]
    assert radius[data.y].mean() > 1.3 * radius[~data.y].mean()  # malignant ones are larger


def test_mnist(named):
    data = named("mnist")
    check_listing(data)
    assert data.x.shape == (70000, 784)
    assert data.x.max() == 255
    many = load("mnist", multiclass=True).y
    assert np.bincount(many[~data.test]).tolist() == MNIST_TRAIN
    assert np.bincount(many[data.test]).tolist() == MNIST_TEST
    assert (data.y == (many >= 5)).all()
    mean = [data.x[many == digit].mean(axis=0).reshape(28, 28) for digit in (0, 1)]
    assert mean[0][14, 14] < 20 < 200 < mean[1][14, 14]  # a zero is empty in the middle, a one is not


def test_fashion_mnist(named):
    data = named("fashion-mnist")
    check_listing(data)
    assert data.x.shape == (70000, 784)
    assert data.test.sum() == 10000
    assert data.y[~data.test].sum() == 30000
    assert data.y[data.test].sum() == 5000


def test_adult(named):
    data = named("adult")
    check_listing(data)
    assert len(data.y) == 32561 + 16281
    assert data.test.sum() == 16281
    assert round(data.y.mean(), 3) == 0.239
    assert [data.y[~data.test].sum(), data.y[data.test].sum()] == [7841, 3846]
    assert "workclass=?" in data.features
    assert not any(name.startswith("income") for name in data.features)
    assert data.x[0, data.features.index("age")] == 39


def test_adult_with_another_label(named):
    income = named("adult").y
    data = load("adult", label="sex", positive=["Male"])
    assert data.y.sum() == 32650
    assert data.classes == ("sex = Female", "sex = Male")
    assert not any(name.startswith("sex") for name in data.features)
    assert (data.x[:, data.features.index("income=>50K")] == income).all()
    assert load("adult", label="race", multiclass=True).classes[-1] == "White"
    with pytest.raises(InputError, match="5 classes"):
        load("adult", label="race")
    with pytest.raises(InputError, match=r"no label column 'wage'.*'age', 'workclass'"):
        load("adult", label="wage")
    with pytest.raises(InputError, match=r"'male' does not occur.*'Female', 'Male'"):
        load("adult", label="sex", positive=["male"])


def test_census_income(named):
    data = named("census-income")
    check_listing(data)
    assert len(data.y) == 199523 + 99762
    assert data.test.sum() == 99762
    assert round(data.y.mean(), 3) == 0.062
    assert not any("weight" in name or name.startswith("income") for name in data.features)
    hot = [i for i, name in enumerate(data.features) if name.startswith("education=")]
    assert (data.x[:1000, hot].sum(axis=1) == 1).all()


def test_magic(named):
    data = named("magic")
    check_listing(data)
    assert data.x.shape == (19020, 10)
    assert round(data.y.mean(), 3) == 0.648


def test_clicks(named):
    data = named("clicks")
    check_listing(data)
    assert len(data.y) == 60000
    assert data.y.sum() == 287
    groups = {name.split("=")[0].split("#")[0] for name in data.features}
    affinities = {f"user-item_affinity_{i}" for i in range(80)}
    assert groups - affinities == {
        "campaign", "policy", "item", "position", "propensity_score", *(f"user_feature_{i}" for i in range(4))
    }  # fmt: skip
    assert data.x[:, data.features.index("campaign=men")].sum() == 20000
    assert data.x[:, data.features.index("policy=random")].sum() == 30000
    items = {
        f"{campaign}:{i}"
        for campaign, count in (("all", 80), ("men", 34), ("women", 46))
        for i in range(count)
    }
    places = {int.from_bytes(hashlib.sha256(item.encode()).digest()[:8], "little") % 64 for item in items}
    used = data.x[:, [data.features.index(f"item#{i:02d}") for i in range(64)]].any(axis=0)
    assert (
        set(np.flatnonzero(used).tolist()) == places
    )  # an item number means something within its campaign only
    varying = data.x[:, data.x.std(axis=0) > 0]
    assert np.abs(np.corrcoef(varying.T, data.y)[-1, :-1]).max() < 0.5  # no feature gives the click away


def test_cifar10(named):
    need("cifar10")
    pytest.importorskip("PIL", reason="cifar10 is JPEG files and Pillow is not installed")
    data = named("cifar10")
    check_listing(data)
    assert data.x.shape == (60000, 3072)
    assert data.test.sum() == 10000
    assert data.y[~data.test].sum() == 30000
    assert data.y[data.test].sum() == 6000
    ship = data.x[:5000].reshape(5000, 32, 32, 3).mean(axis=(0, 1, 2))  # airplanes come first: blue sky
    assert ship[2] > ship[0]


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    need("magic")
    kept = sources.folder() / "magic-telescope" / "telescope.csv.gz"
    copy = tmp_path / "magic-telescope" / "telescope.csv.gz"
    copy.parent.mkdir()
    shutil.copyfile(kept, copy)
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path))
    assert load("magic").source == "folder $P2P_SIM_DATA"
    copy.write_bytes(copy.read_bytes() + b"\0")
    with pytest.raises(InputError, match=r"telescope.csv.gz has SHA-256 .* the pinned copy has b7642e2d"):
        load("magic")


def test_every_file_is_pinned():
    assert {name for named in NAMED.values() for name in named.files} == set(sources.PINNED)
    assert all(len(found) == 64 for found in sources.PINNED.values())


def test_available_without_a_folder(monkeypatch):
    monkeypatch.delenv(sources.VARIABLE, raising=False)
    where = {info.name: info.where for info in available()}
    assert list(where) == list(NAMED)
    assert where["digits"] == "bundled with scikit-learn"
    assert where["mnist"] == "OpenML 554 (mnist_784 v1), fetched on first use"
    assert where["clicks"].startswith("not available: P2P_SIM_DATA is not set, and OpenML has no copy")
    monkeypatch.setenv(sources.VARIABLE, "/no/such/folder")
    assert "'/no/such/folder', which is not a folder" in {i.name: i.where for i in available()}["adult"]
    with pytest.raises(InputError, match="not a folder"):
        load("adult")
    monkeypatch.setenv(sources.VARIABLE, "~nobody-of-this-name/data")
    with pytest.raises(InputError, match=r"P2P_SIM_DATA is .* no usable path .* set it to the data folder"):
        load("adult")


def test_a_set_that_is_nowhere(monkeypatch, tmp_path: Path):
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path))
    with pytest.raises(
        InputError, match=r"clicks is not available: the folder lacks open-bandit-clicks/bts_all"
    ):
        load("clicks")


def test_cifar10_without_pillow(monkeypatch):
    from p2p_sim.learning.data import images

    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(InputError, match="pip install pillow"):
        images.read_cifar(b"", ("airplane",), "archive")


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("digits", "bundled with scikit-learn", "exact"),
        ("mnist", "folder $P2P_SIM_DATA", "exact"),
        ("cifar10", "folder $P2P_SIM_DATA", "lossy: JPEG copies, order lost"),
        ("cifar10", "OpenML 40927 (CIFAR_10 v1)", "exact"),
        ("clicks", "folder $P2P_SIM_DATA", "a sample of Open Bandit Data"),
        ("mnist", "/home/me/mnist.csv", "as given"),
        ("mine", "mine.csv", "as given"),
    ],
)
def test_a_set_says_whether_it_is_as_published(name, source, said):
    data = Dataset(
        name,
        np.zeros((2, 1), np.float32),
        np.array([True, False]),
        None,
        ("a",),
        "y",
        ("0", "1"),
        "1",
        source,
        None,
    )
    assert data.fidelity() == said
    other = dataclasses.replace(data, y=np.array([True, True]))
    assert data.content() != other.content()
