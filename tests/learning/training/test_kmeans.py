"""k-means: seeded, the same for any number of threads and any hash seed, and refusing what it cannot do."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.kmeans import kmeans

PROGRAM = """
import hashlib, numpy as np
from p2p_sim.core.random_words import words
from p2p_sim.learning.training.kmeans import kmeans
x = (words(5, 9, 0, 6000 * 20) >> np.uint64(40)).reshape(6000, 20).astype(np.float32)
print(hashlib.sha256(kmeans(x, 30, seed=3).tobytes()).hexdigest())
"""


def blobs():
    """Three far groups of 50 rows, and a second feature that would drown the first if not standardised."""
    rows = np.arange(150)
    return np.stack([rows // 50 + 0.01 * (rows % 7), 1e6 * (rows // 50 == 1) + rows % 3], axis=1)


def test_what_differs_is_kept_beside_a_large_offset():
    """In float32 all of 5e7 to 5e7 + 1 would be one place or two."""
    near = np.repeat([0.0, 0.5, 1.0], 20)[:, None]
    assert kmeans(near + 5e7, 3, seed=1).tolist() == kmeans(near, 3, seed=1).tolist()
    assert len(set(kmeans(near + 5e7, 3, seed=1).tolist())) == 3


def test_far_groups_are_found():
    cluster = kmeans(blobs(), 3, seed=1)
    assert cluster.dtype == np.int64
    assert np.bincount(cluster).tolist() == [50, 50, 50]
    assert len({tuple(cluster[i : i + 50]) for i in (0, 50, 100)}) == 3
    assert all(len(set(cluster[i : i + 50].tolist())) == 1 for i in (0, 50, 100))


def test_features_are_standardised():
    rows = np.arange(200)
    wide = 1e6 * np.sin(rows * 12.9898)  # no structure, large numbers
    split = np.where(rows < 100, 0.0, 1.0) + 1e-3 * np.cos(rows)
    narrow = np.stack([split] * 9 + [wide], axis=1)
    cluster = kmeans(narrow, 2, seed=4)
    assert len(set(cluster[:100].tolist())) == 1
    assert cluster[0] != cluster[150]


def test_seed_matters_and_is_enough():
    x = np.sin(np.arange(4000.0) * 12.9898).reshape(1000, 4)
    assert (kmeans(x, 20, seed=1) == kmeans(x, 20, seed=1)).all()
    assert (kmeans(x, 20, seed=1) != kmeans(x, 20, seed=2)).any()
    kmeans(x, 2, seed=2**64 - 1)


@pytest.mark.slow
def test_threads_and_hash_seeds_do_not_matter():
    found = set()
    for threads, hashes in (("1", "1"), ("5", "2")):
        settings = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": hashes}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_the_fit_runs_on_one_thread(monkeypatch):
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_info, threadpool_limits

    seen = []

    def fit_predict(self, x):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return np.arange(len(x)) % self.n_clusters

    monkeypatch.setattr(MiniBatchKMeans, "fit_predict", fit_predict)
    with threadpool_limits(limits=2):
        kmeans(blobs(), 3, seed=1)
    assert set(seen) == {1}


def test_global_random_state_is_untouched():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    kmeans(blobs(), 3, seed=1)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_one_cluster_and_as_many_as_rows():
    assert kmeans(blobs(), 1, seed=0).tolist() == [0] * 150
    x = np.arange(5.0).reshape(5, 1) ** 2
    assert sorted(kmeans(x, 5, seed=0).tolist()) == [0, 1, 2, 3, 4]


def test_fewer_distinct_rows_than_clusters_is_warned_about():
    x = np.repeat([[0.0], [1.0]], 10, axis=0)
    with pytest.warns(UserWarning, match="asked for 5 clusters and 2 are not empty"):
        cluster = kmeans(x, 5, seed=0)
    assert set(cluster.tolist()) == {0, 1}


@pytest.mark.parametrize("clusters", [0, -1, 151, 2.0, True, "3"])
def test_number_of_clusters(clusters):
    with pytest.raises(InputError, match=r"clusters is .*; give a whole number from 1 to the 150 rows"):
        kmeans(blobs(), clusters, seed=0)


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((0, 2)), np.array([["a"]])])
def test_x_must_be_a_table(x):
    with pytest.raises(InputError, match="clusters need numbers of shape"):
        kmeans(x, 1, seed=0)


def test_x_must_be_finite():
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(InputError, match="not finite"):
            kmeans(np.array([[1.0], [bad], [2.0]]), 2, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, None])
def test_seed_range(seed):
    with pytest.raises(InputError, match="seed = "):
        kmeans(blobs(), 2, seed=seed)
