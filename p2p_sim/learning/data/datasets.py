"""Data sets: load a named one, or a person's own file; list what is available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import files, label_columns, named_datasets, sources, tabular
from p2p_sim.learning.data.named_datasets import NAMED, Named
from p2p_sim.learning.data.tabular import Column, Table, find


@dataclass(frozen=True, repr=False)
class Dataset:
    """Examples of n people, read and encoded; numbers keep their raw values, a model scales them itself."""

    name: str
    x: npt.NDArray[np.float32]  # (n, d)
    y: npt.NDArray[np.bool_] | npt.NDArray[np.uint8]  # (n,) bool, or classes 0..k-1
    cluster: npt.NDArray[np.int64] | None  # (n,), where a column was given
    features: tuple[str, ...]  # d names
    label: str  # the label's column
    classes: tuple[str, ...]  # what each value of y means, y = 0 first
    positive: str  # what y = 1 means, and how it was chosen
    source: str  # "bundled with scikit-learn", "folder $P2P_SIM_DATA", "OpenML 554 (mnist_784 v1)", or a path
    test: npt.NDArray[np.bool_] | None  # (n,), rows of the data set's own test part; None if it has none


@dataclass(frozen=True)
class DatasetInfo:
    """One line about a named data set: its size, its default label, and where it comes from now."""

    name: str
    rows: int
    features: int
    label: str
    positive: str
    where: str


def load(
    name_or_path: str,
    *,
    label: str | None = None,
    positive: Sequence[str] | None = None,
    cluster: str | None = None,
    multiclass: bool = False,
) -> Dataset:
    """Load a named data set, or a CSV, TSV, Parquet, npz, IDX or svmlight file (text may be gzipped).

    A named set is read from scikit-learn, else from the folder in P2P_SIM_DATA, else from OpenML.  ``label``
    names the label's column (a named set has a default; a file, a column called label, y, target or class);
    every other column becomes features.  ``positive`` lists the values, as text, that count as 1; without it
    a named set has a default and a label of two values takes the larger.  ``multiclass`` keeps all classes,
    at most 256.  ``cluster`` names a column of whole numbers.  InputError says what cannot be used: name,
    value, what is allowed, what to do.
    """
    named = NAMED.get(name_or_path)
    if multiclass and positive is not None:
        raise InputError(
            f"positive is {list(positive)} and multiclass is on; give positive classes, or keep all, not both"
        )
    if named is not None:
        (table, source), chosen = _open(named), label or named.label
    else:
        table, source = files.read(_path(name_or_path)), name_or_path
        chosen = label or files.default_label(table, name_or_path)
    if table.rows == 0:
        raise InputError(f"{name_or_path} has no rows; give at least two, of different labels")
    if cluster == chosen:
        raise InputError(
            f"cluster column {cluster!r} is the label too; clusters are public, labels are not: name another"
        )
    column = find(table, chosen, "label", name_or_path)
    meant = _meaning(column, chosen, positive, multiclass, named, name_or_path)
    groups = None
    if cluster is not None:
        groups = label_columns.clusters(find(table, cluster, "cluster", name_or_path), cluster, name_or_path)
    taken = {chosen} if cluster is None else {chosen, cluster}
    x, features = tabular.features(table, taken, name_or_path)
    return Dataset(
        name=name_or_path if named is not None else Path(name_or_path).name,
        x=x, y=meant.y, cluster=groups, features=features, label=chosen, classes=meant.classes,
        positive=meant.positive, source=source, test=table.test,
    )  # fmt: skip


def available() -> list[DatasetInfo]:
    """List the named data sets and where each would come from, without reading any of them or the network."""
    return [
        DatasetInfo(named.name, named.rows, named.width, named.label, named.classes[1], _where(named))
        for named in NAMED.values()
    ]


def _meaning(
    column: Column,
    label: str,
    positive: Sequence[str] | None,
    multiclass: bool,
    named: Named | None,
    where: str,
) -> label_columns.Labels:
    if multiclass:
        return label_columns.multi(column, label, where)
    if named is None or label != named.label or positive is not None:
        return label_columns.binary(
            column, label, [positive] if isinstance(positive, str) else positive, where
        )
    plain = label_columns.binary(column, label, named.positive, where)
    return label_columns.Labels(plain.y, named.classes, named.classes[1])


def _open(named: Named) -> tuple[Table, str]:
    if named.kind == "bundled":
        return named_datasets.from_sklearn(named), "bundled with scikit-learn"
    lacks = sources.missing(named.files)
    if not lacks:
        return named_datasets.from_folder(named), f"folder ${sources.VARIABLE}"
    if named.openml is None:
        raise InputError(f"{named.name} is not available: {_absent(named, lacks)}")
    return named_datasets.fetch(named, named.openml), f"OpenML {named.openml.id} ({named.openml.title})"


def _where(named: Named) -> str:
    if named.kind == "bundled":
        return "bundled with scikit-learn"
    try:
        lacks = sources.missing(named.files)
    except InputError as error:
        return f"not available: {error}"
    if not lacks:
        return f"folder ${sources.VARIABLE}"
    if named.openml is None:
        return f"not available: {_absent(named, lacks)}"
    return f"OpenML {named.openml.id} ({named.openml.title}), fetched on first use"


def _absent(named: Named, lacks: list[str]) -> str:
    why = f"the folder lacks {lacks[0]}" if sources.folder() else f"{sources.VARIABLE} is not set"
    return f"{why}, and OpenML has no copy; set {sources.VARIABLE} to a folder that has {named.files[0]}"


def _path(name: str) -> Path:
    try:
        path = Path(name).expanduser()
        path.exists()
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(
            f"{str(name)[:80]!r} is no usable path ({error}); give the path of a file"
        ) from error
    if name and path.is_dir():
        raise InputError(
            f"data {name!r} is a folder; pass one file in it, or a known name: {', '.join(NAMED)}"
        )
    if name and path.exists():
        return path
    if path.suffix or len(path.parts) > 1:
        raise InputError(
            f"there is no data file {name!r}; check the path, or pass a known name: {', '.join(NAMED)}"
        )
    raise InputError(
        f"unknown data set {name!r}; known names are {', '.join(NAMED)}; the path of a file would do too"
    )
