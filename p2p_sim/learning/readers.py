"""Named data sets to tables, from scikit-learn and from the data folder: train rows, then test rows."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning import images, sources
from p2p_sim.learning.delimited import read_known
from p2p_sim.learning.named import UNUSED, Named
from p2p_sim.learning.table import Array, Category, Column, Table, category, concatenate


def from_sklearn(named: Named) -> Table:
    """Read digits or breast-cancer, which scikit-learn carries."""
    from sklearn import datasets

    bunch = datasets.load_digits() if named.name == "digits" else datasets.load_breast_cancer()
    names = (
        images.pixel_names(named.shape) if named.shape else tuple(str(name) for name in bunch.feature_names)
    )
    return images_table(named, bunch.data, bunch.target.astype(np.int64), None, names)


def from_folder(named: Named) -> Table:
    """Read a named set from the folder P2P_SIM_DATA, each file checked; InputError names a bad file."""
    if named.kind == "idx":
        return _idx(named)
    if named.kind == "cifar":
        pixels, codes, test = images.read_cifar(sources.read(named.files[0]), named.values, named.files[0])
        return images_table(named, pixels, codes, test)
    if named.kind == "clicks":
        return _clicks(named)
    return _tables(named)


def images_table(
    named: Named, pixels: Array, codes: Array, test: Array | None, names: tuple[str, ...] | None = None
) -> Table:
    """Make the table of an image set: pixels (n, ...), codes (n,) into its class names, test rows."""
    label = category(codes, named.values, ordered=True)
    block = pixels.reshape(len(pixels), -1)
    return Table({named.label: label}, block, names or images.pixel_names(named.shape), test)


def parts_table(named: Named, parts: list[dict[str, Column]]) -> Table:
    """Join the parts (train, or train and test) of a table set; InputError: not the pinned rows a part."""
    columns = {
        name: concatenate([part[name] for part in parts]) for name in named.columns if name not in UNUSED
    }
    rows = [len(part[named.label]) for part in parts]
    if rows != [sum(counts) for counts in named.counts]:
        raise InputError(
            f"{named.name} came with {rows} rows; this version has {[sum(c) for c in named.counts]}"
        )
    test = np.repeat([False, True], rows) if len(rows) == 2 else None
    return Table(columns, test=test)


def _idx(named: Named) -> Table:
    parts = [images.parse_idx(sources.read(name), name) for name in named.files]
    test = np.repeat([False, True], [len(parts[0]), len(parts[2])])
    pixels = np.concatenate([parts[0].reshape(len(parts[0]), -1), parts[2].reshape(len(parts[2]), -1)])
    return images_table(named, pixels, np.concatenate([parts[1], parts[3]]), test)


def _tables(named: Named) -> Table:
    parts = []
    for name in named.files:
        header = None if named.name == "magic" else named.columns
        skip = 1 if name == "adult/adult.test.gz" else 0
        numeric = (*named.numeric, *UNUSED)
        part = read_known(sources.read(name), name, numeric, names=header, skip=skip)
        label = part[named.label]
        if skip and isinstance(label, Category):  # the labels of this file end in a full stop
            part[named.label] = Category(label.codes, tuple(value.rstrip(".") for value in label.values))
        parts.append(part)
    return parts_table(named, parts)


def _clicks(named: Named) -> Table:
    """Join six logs; the row index and the time are left out, and an item is numbered within its campaign.

    The affinity columns belong to a campaign's items, of which it has 34, 46 or 80: those it lacks are 0.
    """
    parts = []
    for name in named.files:
        policy, campaign = PurePosixPath(name).name.removesuffix(".csv.gz").split("_")
        part = read_known(sources.read(name), name, named.numeric)
        rows = len(part["click"])
        item = part["item_id"]
        assert isinstance(item, Category)
        part["item"] = Category(item.codes, tuple(f"{campaign}:{value}" for value in item.values))
        for column, value in (("policy", policy), ("campaign", campaign)):
            part[column] = Category(np.zeros(rows, np.int64), (value,))
        for column in named.numeric:
            part.setdefault(column, np.zeros(rows))
        parts.append({column: part[column] for column in named.columns})
    joined = {column: concatenate([part[column] for part in parts]) for column in named.columns}
    return parts_table(named, [joined])
