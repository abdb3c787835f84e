"""phi of cluster response from a public sample: how far labels given features are from those of a cluster, on average.

phi = E sum_y |p(y | x) - p(y | c)|, of the sample itself: p(y | x) among its rows of equal features, p(y | c) among
those of a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from p2p_sim.core import InputError
from p2p_sim.core.number_texts import read_whole
from protocols._pinned_files import lines_of, pinned

FORMS = "a .csv file with the columns label and cluster, and optional features"
"""How a sample is written."""


def phi_of(labels: Any, clusters: Any, features: Any = None) -> float:
    """Return phi of a public sample, from 0 to 2, at least 1/n: for ``ClusterResponse(phi=...)``.

    ``labels`` (n,), ``clusters`` (n,): of each row.  ``features`` (n, d): rows of equal ones share p(y | x); None: no
    two rows have equal ones, so that labels follow from features, which makes phi largest.  Raises InputError for no
    rows, or columns of other lengths.

    *Source:* Clustering 2022, section 4: the definition of phi, with shares in the sample for probabilities; so it is
    too small where clusters have few rows in it.
    *Assumes:* the sample is public, and says nothing of the users' labels.
    """
    y, c = np.asarray(labels), np.asarray(clusters)
    x = None if features is None else np.asarray(features)
    if y.ndim != 1 or not len(y):
        raise InputError(f"labels: shape {y.shape}; give one a row of the sample, and at least one row")
    for name, column, width in (("clusters", c, 1), ("features", x, 2)):
        if column is not None and (column.ndim != width or len(column) != len(y)):
            raise InputError(
                f"{name}: shape {column.shape}, and there are {len(y):,} labels; give a row for each"
            )
    same: Sequence[Hashable] = range(len(y)) if x is None else [tuple(row) for row in x.tolist()]
    return _phi(y.tolist(), c.tolist(), same)


def phi_of_file(name: str, spec: str, labels: int) -> float:
    """Return phi of a file that ``pinned_sample`` returned; raises InputError for one that is no sample."""
    return _read(name, spec, labels)


def pinned_sample(name: str, path: Any) -> str:
    """Return the path of a sample with 16 digits of its SHA-256; raises InputError for what is no path of a file."""
    if not isinstance(path, str) or not (path.endswith(".csv") or ".csv@" in path):
        raise InputError(f"{name} = {path!r}: give {FORMS}")
    return pinned(name, path, FORMS)


@lru_cache(maxsize=16)
def _read(name: str, spec: str, labels: int) -> float:
    where, header, lines = lines_of(name, spec, FORMS)
    if not {"label", "cluster"} <= {*header} or len({*header}) < len(header):
        raise InputError(
            f"{where}: its first line is {header}; it must name the columns label and cluster, each once"
        )
    y, c, x = list[int](), list[str](), list[tuple[str, ...]]()
    for at, line in lines:
        values = dict(zip(header, line, strict=True))
        try:
            label = read_whole(values.pop("label"))
        except ValueError as error:
            raise InputError(f"{at}: a label {error}") from None
        if not 0 <= label < labels:
            raise InputError(f"{at}: label {label} is none of 0 to {labels - 1}")
        y.append(label)
        c.append(values.pop("cluster"))
        if not c[-1]:
            raise InputError(f"{at}: names no cluster; give every row one")
        x.append(tuple(values.values()))
    if not y:
        raise InputError(f"{where}: has no rows; give a public sample of users with their clusters")
    return _phi(y, c, x if len(header) > 2 else range(len(y)))


def _phi(y: Sequence[int], c: Sequence[Hashable], x: Sequence[Hashable]) -> float:
    """Return phi exactly, rounded once."""
    values = sorted({*y})
    in_cluster, in_x, of_cluster, of_x = (
        Counter(part) for part in (zip(c, y, strict=True), zip(x, y, strict=True), c, x)
    )
    whole = Fraction(0)
    for (cluster, row), count in Counter(zip(c, x, strict=True)).items():
        apart = sum(
            abs(in_x[row, label] * of_cluster[cluster] - in_cluster[cluster, label] * of_x[row])
            for label in values
            if in_x[row, label] or in_cluster[cluster, label]
        )
        whole += Fraction(count * apart, of_cluster[cluster] * of_x[row])
    return float(max(whole / len(y), Fraction(1, len(y))))
