"""svmlight files in blocks: equal to scikit-learn's own reading, whatever the blocks; broken lines are named."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import svmlight
from p2p_sim.learning.data.datasets import describe, load
from p2p_sim.learning.data.reading_options import Reading

ROWS, WIDTH = 400, 300


@pytest.fixture(scope="module")
def made() -> tuple[sparse.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(3)
    x = sparse.random(ROWS, WIDTH, density=0.03, format="lil", random_state=rng)
    x[:, 0] = (np.arange(ROWS)[:, None] + 1) / 512  # tells rows apart
    return x.tocsr(), np.where(rng.random(ROWS) < 0.3, 1, -1)


@pytest.fixture(scope="module")
def file(made: tuple[sparse.csr_matrix, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("svmlight") / "kdd12.svm"
    dump_svmlight_file(made[0], made[1], str(path), zero_based=False)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("size", [64, 5000, svmlight.BLOCK])
def test_blocks_are_what_scikit_learn_reads_of_the_whole_file(file, tmp_path, pack, size):
    packed = tmp_path / "any-name"
    packed.write_bytes(pack(file.read_bytes()))
    found = svmlight.gather(packed, size=size)
    x, y = load_svmlight_file(str(file), zero_based=False)
    assert found.total == ROWS
    assert (found.y == y).all()
    assert (found.x != x).nnz == 0
    sizes = [len(block.y) for block in svmlight.blocks(packed, size=size)]
    assert sum(sizes) == ROWS
    assert len(sizes) == 1 if size == svmlight.BLOCK else len(sizes) > 3


def test_a_sample_depends_on_the_seed_alone_and_is_uniform(file, made):
    one = svmlight.gather(file, sample=150, seed=1)
    again = svmlight.gather(file, sample=150, seed=1, size=500)
    other = svmlight.gather(file, sample=150, seed=2)
    assert (one.x != again.x).nnz == 0
    assert (one.y == again.y).all()
    assert len(one.y) == 150
    assert one.total == ROWS
    assert (one.x != other.x).nnz > 0
    assert (np.diff(_numbers(one)) > 0).all()  # in the file's order
    assert (one.y == made[1][_numbers(one)]).all()
    counts = np.zeros(ROWS)
    for seed in range(50):  # each row 19 times on average, of a hypergeometric law
        counts[_numbers(svmlight.gather(file, sample=150, seed=seed, size=4000))] += 1
    assert abs(counts / 50 - 150 / ROWS).max() < 6.5 * (0.375 * 0.625 / 50) ** 0.5  # 1e-9, all rows


def _numbers(found: svmlight.Gathered) -> np.ndarray:
    """Return which rows of the file these are."""
    return (found.x[:, [0]].toarray().ravel() * 512).round().astype(int) - 1


def test_hashing_keeps_distances_on_average(made):
    x = made[0][:60]
    exact = (x @ x.T).toarray()
    hashed = svmlight.hash_features(x, 4096).astype(float)
    assert hashed.shape == (60, 4096)
    assert abs(hashed @ hashed.T - exact).max() < 1e-5 + 2.5  # a handful of collisions
    assert np.median(abs(hashed @ hashed.T - exact)) < 1e-6
    narrow = svmlight.hash_features(x, 8).astype(float)  # many collisions: unbiased all the same
    wrong = narrow @ narrow.T - exact
    assert abs(wrong.mean()) < 6 * wrong.std() / 60
    assert (svmlight.hash_features(x[:, :200], 16) == svmlight.hash_features(x[:, :200], 16)).all()
    with pytest.raises(InputError, match="at least 1 column"):
        svmlight.hash_features(x, 0)


BROKEN = {
    "label": (b"+1 1:2\nyes 1:2\n", "line 2 .*label is 'yes'"),
    "labels": (b"+1 1:2\n1,2 1:2\n", "line 2 .*label is '1,2'"),
    "label nan": (b"+1 1:2\n\nnan 1:2\n", "line 3 .*label is 'nan'"),
    "value": (b"+1 1:2 # a comment\n-1 1:2 3:x\n", "line 2 .*'3:x' is no index"),
    "no colon": (b"+1 1:2\n-1 12\n", "line 2 .*'12' is no index"),
    "index 0": (b"+1 1:2\n-1 0:1 1:2\n", "line 2 .*'0:1' has index 0, and features are counted from 1"),
    "decreasing": (b"+1 1:2 4:1\n-1 3:1 2:2\n", "line 2 .*'2:2' comes after index 3: indices must rise"),
    "twice": (b"+1 1:2 4:1\n-1 3:1 3:2\n", "line 2 .*'3:2' comes after index 3"),
    "too large": (
        b"+1 1:2\n-1 2147483648:1\n",
        "line 2 .*'2147483648:1' is too large: at most 2147483647",
    ),
    "far too large": (b"-1 " + b"9" * 5000 + b":1\n", "line 1 .* is too large: at most 2147483647"),
    "empty": (b"", "is empty"),
    "comments": (b"# nothing\n", "is empty"),
    "half a gzip file": (gzip.compress(b"+1 1:2\n" * 99)[:20], "cannot read .* that it is whole"),
}


@pytest.mark.parametrize("size", [4, svmlight.BLOCK])
@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_named_with_its_line(tmp_path, case, size):
    content, said = BROKEN[case]
    path = tmp_path / "a.svm"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        svmlight.gather(path, size=size)


def test_hashed_features_that_would_fill_the_memory_are_refused(file):
    with pytest.raises(
        InputError, match=r"rows or more, which take over 2 GiB in 100,000,000 columns: .*--sample"
    ):
        svmlight.gather(file, hashed=100_000_000)


def test_the_largest_index_is_read(tmp_path):
    (tmp_path / "a.svm").write_text("1 2147483647:1\n-1 1:2\n")
    assert svmlight.gather(tmp_path / "a.svm", hashed=8).x.shape == (2, 8)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        svmlight.gather(tmp_path / "none.svm")
    with pytest.raises(InputError, match="no regular file"):
        svmlight.gather(tmp_path)


def test_features_from_0_on(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 0:5 2:1\n-1 1:3\n")
    assert svmlight.gather(path, first=0).x.toarray().tolist() == [[5, 0, 1], [0, 3, 0]]
    assert load(str(path)).x.tolist() == [[5, 0, 1], [0, 3, 0]]
    path.write_text("1 1:5 3:1\n-1 2:3\n")
    assert load(str(path)).x.tolist() == [[5, 0, 1], [0, 3, 0]]


@pytest.mark.parametrize(("ending", "pack"), [("svm.bz2", bz2.compress), ("libsvm.xz", lzma.compress)])
def test_data_options(file, tmp_path, ending, pack):
    path = tmp_path / f"kdd12.{ending}"
    path.write_bytes(pack(file.read_bytes()))
    data = load(str(path), reading=Reading(sample=50, hashed=32))
    assert data.x.shape == (50, 32)
    assert data.features[:2] == ("hash0", "hash1")
    assert data.classes == ("label = -1", "label = 1")
    read_as = describe(str(path), reading=Reading(sample=50, hashed=32))["read_as"]
    assert read_as == ["50 of 400 rows, drawn at random; features hashed into 32 columns"]
    assert describe(str(path), reading=Reading(sample=50))["read_as"] == ["50 of 400 rows, drawn at random"]
    assert load(str(path)).x.shape == (400, WIDTH)


def test_options_of_other_files_are_refused(file, tmp_path):
    other = tmp_path / "a.csv"
    other.write_text("a,label\n1,0\n2,1\n")
    with pytest.raises(InputError, match="--hashed goes with svmlight files"):
        load(str(other), reading=Reading(hashed=8))
    with pytest.raises(InputError, match="--decimal goes with text files of columns"):
        load(str(file), reading=Reading(decimal=","))
    with pytest.raises(InputError, match="sample 0: needs at least 1"):
        Reading(sample=0)


def test_too_wide_to_be_written_out(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("+1 1:1 54686452:1\n-1 7:1\n" * 4)
    with pytest.raises(InputError, match=r"--sample.*--hashed"):
        load(str(path))
    assert load(str(path), reading=Reading(hashed=64)).x.shape == (8, 64)
