"""Data sets: load a named one, or a person's own file; list what is available."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near, near_path
from p2p_sim.core.label_kinds import BINARY, NUMERIC
from p2p_sim.core.number_texts import read_number
from p2p_sim.learning.data import (
    completion,
    description,
    encoding,
    files,
    label_columns,
    named_datasets,
    sources,
)
from p2p_sim.learning.data.named_datasets import NAMED, Named
from p2p_sim.learning.data.reading_options import PLAIN, Reading, option
from p2p_sim.learning.data.tables import Column, Table, find, listing, take

ID = (
    "every row has another value of {}, which makes everybody unique: an id tells nothing of others, and becomes "
    "features; leave it out by --drop {name} (in Python Reading(drop=...))"
)


@dataclass(frozen=True, repr=False)
class Dataset:
    """Examples of n people, read and encoded; numbers keep their raw values where float32 can (a model scales them)."""

    name: str
    x: npt.NDArray[np.float32]  # (n, d)
    y: npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | npt.NDArray[np.uint32]  # (n,) bool, or classes 0..k-1
    cluster: npt.NDArray[np.int64] | None  # (n,), where a column was given
    features: tuple[str, ...]  # d names
    label: str  # the label's column
    classes: tuple[str, ...]  # what each value of y means, y = 0 first
    positive: str  # what y = 1 means, and how it was chosen
    source: str  # "bundled with scikit-learn", "folder $P2P_SIM_DATA", "OpenML 554 (mnist_784 v1)", or a path
    test: npt.NDArray[np.bool_] | None  # (n,), rows of the data set's own test part; None if it has none
    classes_from: str = (
        ""  # "declared", "pinned" (of a named set), "fixed" (0 and 1, or positive or not), "inferred"
    )
    kept: npt.NDArray[np.int64] | None = (
        None  # (n,), rows of the file, where rows with missing values were left out
    )
    total: int = 0  # rows of the file, where some were left out
    ids: tuple[str, ...] = ()  # columns of an own file among the features that look like ids
    numeric: bool = False  # whether the classes are numbers, of which a protocol takes the nearest it has
    range: tuple[float, float] | None = None  # of numbers, if it was said: public, never looked up in labels
    cautions: tuple[str, ...] = ()  # what to beware of in the features of an own file: ids, constants

    def file_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the file's rows of some rows of the examples."""
        return rows if self.kept is None else self.kept[rows]

    @property
    def rows_in_file(self) -> int:
        """How many rows the file has, those left out too."""
        return len(self.y) if self.kept is None else self.total

    def values(self) -> npt.NDArray[np.float64] | None:
        """Return the number that is each row's label, (n,); None where labels are classes.

        Raises InputError for a label that is no number.
        """
        if not self.numeric:
            return None
        numbers = []
        for name in self.classes:
            try:
                numbers.append(read_number(name))
            except ValueError:
                raise InputError(
                    f"label {self.label!r} of {self.name} holds {name!r}, which is no number: name a column of numbers "
                    "(--label), or take a protocol for classes"
                ) from None
        return np.array(numbers)[self.y]

    def content(self) -> str:
        """Return the SHA-256 of features, labels and test part as they are here, as hex."""
        digest = hashlib.sha256()
        for column in (self.x, self.y, self.test):
            if column is not None:
                digest.update(f"{column.dtype} {column.shape} ".encode())
                digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    def fidelity(self) -> str:
        """Return "exact" for a named set with every example as published, "as given" for a file; or what is not."""
        named = NAMED.get(self.name)
        if named is None or not self.source.startswith(("bundled", "folder", "OpenML")):
            return "as given"
        return "exact" if self.source.startswith("OpenML") else named.copy


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
    numbers: bool = False,
    classes: Sequence[str] | None = None,
    reading: Reading = PLAIN,
) -> Dataset:
    """Load a named data set, or a CSV, TSV, Parquet, npz, IDX or svmlight file (text may be gzipped).

    A named set is read from scikit-learn, else from the folder in P2P_SIM_DATA, else from OpenML.  ``label``
    names the label's column (a named set has a default; a file, a column called label, y, target or class);
    every other column becomes features.  ``positive`` lists the values, as text, that count as 1; without it
    a named set has a default and a label of two values takes the larger.  ``multiclass`` keeps all classes,
    at most 256; ``numbers`` keeps more, for a protocol that rounds numbers.  ``classes``: every value
    that a label can have, in the order of their numbers; None: those that occur.
    ``cluster`` names a column of whole numbers, or of text.  ``reading``: how a file is to be read.  InputError says
    what cannot be used: name, value, what is allowed, what to do.

    *Assumes:* the list of classes is public.  Where it is taken from the labels, one label can change the numbers that
    stand for everybody else's: ``classes_from`` is then "inferred".
    """
    multiclass = multiclass or numbers
    check_positive(positive, multiclass, numbers)
    how = (label, positive, cluster, classes)
    return _examples(name_or_path, *read(name_or_path, reading), reading, *how, multiclass, numbers)


def check_positive(positive: Sequence[str] | None, multiclass: bool, numbers: bool) -> None:
    """Raise InputError for ``positive`` where all classes are asked for, or numbers."""
    if positive is None:
        return
    if numbers:
        raise InputError(
            f"positive is {list(positive)}, which makes two classes, and numbers are asked for: leave positive "
            "(--positive) out, or take a protocol for two classes"
        )
    if multiclass:
        raise InputError(
            f"positive is {list(positive)}, which makes two labels, and all classes are asked for: leave positive "
            "(--positive) out, or have two labels, not both"
        )


def load_by_kind(
    name_or_path: str,
    *,
    label: str | None = None,
    positive: Sequence[str] | None = None,
    cluster: str | None = None,
    classes: Sequence[str] | None = None,
    range: tuple[float, float] | None = None,
    reading: Reading = PLAIN,
) -> Dataset:
    """Load a data set as ``load`` does, before any protocol is chosen: the label's kind is found out.

    Two values, or ``positive``, are two classes; text, and up to 20 whole numbers, are classes; with ``range``, the
    public least and greatest number, labels are numbers.  Raises InputError for numbers of which no range is said: it
    is never looked up in the labels.
    """
    named = NAMED.get(name_or_path)
    table, source = read(name_or_path, reading)
    chosen = label or (files.default_label(table, name_or_path) if named is None else named.label)
    if named is not None and chosen == named.label and range is None and classes is None:
        kind = BINARY
    else:
        column = find(table, chosen, "label", name_or_path)
        gap = completion.gaps_of(table, [chosen]).get(chosen)
        there = column if gap is None else take(column, ~gap.rows)
        kind = label_columns.kind_of(there, chosen, name_or_path, positive, classes, range)
    how = (label, positive, cluster, classes)
    found = _examples(
        name_or_path, table, source, reading, *how, multiclass=kind != BINARY, numbers=kind == NUMERIC
    )
    return replace(found, range=range)


def _examples(
    name_or_path: str,
    table: Table,
    source: str,
    reading: Reading,
    label: str | None,
    positive: Sequence[str] | None,
    cluster: str | None,
    classes: Sequence[str] | None,
    multiclass: bool,
    numbers: bool,
) -> Dataset:
    """Return the examples that a table holds; see ``load``."""
    named = NAMED.get(name_or_path)
    chosen = label or (files.default_label(table, name_or_path) if named is None else named.label)
    if table.rows == 0:
        raise InputError(f"{name_or_path} has no rows; give at least two, of different labels")
    if cluster == chosen:
        raise InputError(
            f"cluster column {cluster!r} is the label too; clusters are public, labels are not: name another"
        )
    taken = {chosen} if cluster is None else {chosen, cluster}
    for name, role in ((chosen, "label"), (cluster, "cluster")):
        if name is not None:
            find(table, name, role, name_or_path)
    total = table.rows
    table, kept = completion.complete(table, reading.missing, taken, name_or_path)
    column = find(table, chosen, "label", name_or_path)
    meant = _meaning(column, chosen, positive, multiclass, numbers, named, name_or_path, classes)
    groups = None
    if cluster is not None:
        groups = label_columns.clusters(find(table, cluster, "cluster", name_or_path), cluster, name_or_path)
    ids = [] if named is not None else description.ids(table, taken)
    if ids:
        warnings.warn(ID.format(listing(tuple(ids), 6), name=ids[0]), stacklevel=2)
    cautions = (
        ()
        if named is not None
        else (*description.cautions(table, taken), *label_columns.cautions(column, chosen, positive))
    )
    x, features = encoding.features(table, taken, name_or_path)
    pinned = named is not None and chosen == named.label
    inferred = (
        "declared"
        if classes is not None
        else "pinned"
        if pinned
        else "inferred"
        if meant.inferred
        else "fixed"
    )
    return Dataset(
        name=name_or_path if named is not None else Path(name_or_path).name,
        x=x, y=meant.y, cluster=groups, features=features, label=chosen, classes=meant.classes,
        positive=meant.positive, source=source, test=table.test, classes_from=inferred,
        kept=kept, total=total, ids=() if named is not None else tuple(description.like_ids(table, taken)),
        numeric=numbers, cautions=cautions,
    )  # fmt: skip


def read(name_or_path: str, reading: Reading = PLAIN) -> tuple[Table, str]:
    """Return the table of a named data set or a file, and where it comes from; no column is chosen yet."""
    named = NAMED.get(name_or_path)
    if named is None:
        return files.read(_path(name_or_path), reading), name_or_path
    options = [name for name in reading.given() if name != "drop"]
    if options:
        raise InputError(
            f"{option(options[0])} goes with a file of your own: {named.name} is known, leave it out"
        )
    table, source = _open(named)
    return table.without(reading.drop, named.name), source


def describe(
    name_or_path: str,
    *,
    label: str | None = None,
    cluster: str | None = None,
    classes: Sequence[str] | None = None,
    reading: Reading = PLAIN,
) -> dict[str, Any]:
    """Return what is understood of a data set: source, rows, read_as, columns (see ``description``), notes, as JSON.

    Nothing is refused for missing values or for lack of a label.  InputError: a file that cannot be read, a label or
    cluster column that is not there.
    """
    table, source = read(name_or_path, reading)
    named, notes = NAMED.get(name_or_path), list[str]()
    if label is None and named is not None:
        label = named.label
    if label is None:
        try:
            label = files.default_label(table, name_or_path)
        except InputError as error:
            notes.append(f"note: {error}")
    for name, role in ((label, "label"), (cluster, "cluster")):
        if name is not None and name not in reading.drop:
            find(table, name, role, name_or_path)
    gaps = completion.gaps_of(table, [name for name in (label, cluster) if name is not None])
    if gaps:
        rows = np.logical_or.reduce([gap.rows for gap in gaps.values()])
        notes.append(
            f"note: {int(rows.sum()):,} of {table.rows:,} rows miss a value: --missing drop leaves them out, --missing "
            "impute fills them (labels and clusters never), --drop leaves columns out"
        )
    if label is not None and label in table.columns and (named is None or named.label != label):
        gap = gaps.get(label)
        column = table.columns[label]
        there = column if gap is None else take(column, ~gap.rows)
        notes += label_columns.notes(there, label, classes, label in table.dates)
    return {
        "source": source if named is None else f"{named.name}, {source}", "rows": table.rows,
        "read_as": list(table.read_as),
        "columns": [vars(column) for column in description.describe(table, label, cluster)], "notes": notes,
    }  # fmt: skip


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
    numbers: bool,
    named: Named | None,
    where: str,
    classes: Sequence[str] | None,
) -> label_columns.Labels:
    if multiclass:
        return label_columns.multi(column, label, where, classes, numbers=numbers)
    if named is None or label != named.label or positive is not None:
        return label_columns.binary(
            column, label, [positive] if isinstance(positive, str) else positive, where, classes
        )
    plain = label_columns.binary(column, label, named.positive, where, classes)
    return label_columns.Labels(plain.y, named.classes, named.classes[1], False)


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
            f"there is no data file {name!r}"
            f"{near_path(name, _beside(path)) or near(path.stem, NAMED)}; check the path, or pass a known name: "
            f"{', '.join(NAMED)}"
        )
    raise InputError(
        f"unknown data set {name!r}{near(name, NAMED)}; known names are {', '.join(NAMED)}; "
        "the path of a file would do too"
    )


def _beside(path: Path) -> list[str]:
    """Return the files in the folder of a path, written as it is."""
    try:
        return [str(path.with_name(each.name)) for each in path.parent.iterdir() if each.is_file()]
    except OSError:
        return []
