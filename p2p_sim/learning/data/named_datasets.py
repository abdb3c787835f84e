"""The data sets known by name: what each holds, how it is read and checked; from a data folder, or from OpenML."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import images, sources
from p2p_sim.learning.data.label_columns import present
from p2p_sim.learning.data.sources import VARIABLE
from p2p_sim.learning.data.tables import (
    Array,
    Category,
    Column,
    Table,
    category,
    concatenate,
    number_text,
    take,
    text_category,
)

_CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_DIGITS = tuple("0123456789")
_ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
    "income",
)  # fmt: skip
_CENSUS = (
    "age", "class of worker", "industry code", "occupation code", "education", "wage per hour",
    "enrolled in education", "marital status", "major industry", "major occupation", "race",
    "hispanic origin", "sex", "union member", "reason for unemployment", "employment status", "capital gains",
    "capital losses", "dividends", "tax filer status", "previous region", "previous state", "family status",
    "household summary", "instance weight", "migration msa", "migration region", "migration within region",
    "same house a year ago", "previous sunbelt", "persons worked for employer", "parents present",
    "father's birth country", "mother's birth country", "birth country", "citizenship", "own business",
    "veteran questionnaire", "veterans benefits", "weeks worked", "year", "income",
)  # fmt: skip
_MAGIC = (
    "fLength", "fWidth", "fSize", "fConc", "fConcl", "fAsym", "fM3Long", "fM3Trans", "fAlpha", "fDist",
    "Class",
)  # fmt: skip
_CLICKS = tuple(
    f"open-bandit-clicks/{policy}_{campaign}.csv.gz"
    for policy in ("bts", "random")
    for campaign in ("all", "men", "women")
)
_USER = tuple(f"user_feature_{i}" for i in range(4))
_AFFINITY = tuple(f"user-item_affinity_{i}" for i in range(80))


@dataclass(frozen=True)
class OpenML:
    """A copy on OpenML: its data id, which is of one version for ever, and that version's name."""

    id: int
    title: str
    content: str | None = None  # sum of the rows' SHA-256, see ``content_sum``; None where not known


@dataclass(frozen=True)
class Named:
    """One data set: its kind of reader, columns, classes, rows a class in each part, and default label."""

    name: str
    kind: str  # bundled, idx, cifar, table, clicks
    label: str
    positive: tuple[str, ...]
    classes: tuple[str, str]
    width: int  # features, after encoding, with the default label
    counts: tuple[tuple[int, ...], ...]  # for each part (train, then test): rows of each class in `values`
    values: tuple[str, ...]
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    openml: OpenML | None = None
    copy: str = "exact"
    """What the bundled or downloaded copy is: every example as published, or what it lacks."""

    @property
    def rows(self) -> int:
        """Rows of all parts together."""
        return sum(map(sum, self.counts))


def _idx_files(folder: str) -> tuple[str, ...]:
    return tuple(
        f"{folder}/{part}-{kind}-ubyte.gz"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    )


_ALL = (
    Named(
        "digits", "bundled", "digit", _DIGITS[5:], ("digit < 5", "digit >= 5"), 64,
        counts=((178, 182, 177, 183, 181, 182, 181, 179, 174, 180),), values=_DIGITS, shape=(8, 8),
    ),
    Named(
        "breast-cancer", "bundled", "diagnosis", ("malignant",),
        ("diagnosis = benign", "diagnosis = malignant"), 30,
        counts=((212, 357),), values=("malignant", "benign"),
    ),
    Named(
        "mnist", "idx", "digit", _DIGITS[5:], ("digit < 5", "digit >= 5"), 784,
        counts=(
            (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        ),
        values=_DIGITS, files=_idx_files("mnist"), shape=(28, 28),
        openml=OpenML(554, "mnist_784 v1", "0e364f4c3e9f0946"),
    ),
    Named(
        "fashion-mnist", "idx", "class", ("T-shirt/top", "Pullover", "Dress", "Coat", "Shirt"),
        ("trousers, shoes or bag", "worn on the upper body (T-shirt/top, Pullover, Dress, Coat, Shirt)"), 784,
        counts=((6000,) * 10, (1000,) * 10), values=_CLOTHES, files=_idx_files("fashion-mnist"),
        shape=(28, 28), openml=OpenML(40996, "Fashion-MNIST v1", "67a39152851a6e8d"),
    ),
    Named(
        "adult", "table", "income", (">50K",), ("income <= 50K", "income > 50K"), 108,
        counts=((24720, 7841), (12435, 3846)), values=("<=50K", ">50K"),
        files=("adult/adult.data.gz", "adult/adult.test.gz"), columns=_ADULT,
        numeric=("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        openml=OpenML(1590, "adult v2", "5c7fce753784274d"),
    ),
    Named(
        "census-income", "table", "income", ("50000+.",), ("income < 50000", "income >= 50000"), 510,
        counts=((187141, 12382), (93576, 6186)), values=("- 50000.", "50000+."),
        files=tuple(f"census-income-kdd/census_income_1994_1995_{part}.csv.gz" for part in ("train", "test")),
        columns=_CENSUS,
        numeric=(
            "age", "wage per hour", "capital gains", "capital losses", "dividends",
            "persons worked for employer", "weeks worked",
        ),
        openml=OpenML(4535, "Census-Income v1"),
    ),
    Named(
        "magic", "table", "Class", ("g",), ("Class = h (hadron)", "Class = g (gamma)"), 10,
        counts=((12332, 6688),), values=("g", "h"), files=("magic-telescope/telescope.csv.gz",),
        columns=_MAGIC, numeric=_MAGIC[:-1], openml=OpenML(1120, "MagicTelescope v1"),
    ),
    Named(
        "cifar10", "cifar", "class", ("bird", "cat", "deer", "dog", "frog", "horse"),
        ("vehicle (airplane, automobile, ship, truck)", "animal (bird, cat, deer, dog, frog, horse)"), 3072,
        counts=((5000,) * 10, (1000,) * 10), values=_OBJECTS, files=("cifar10/cifar10_jpeg.tar.gz",),
        shape=(32, 32, 3), openml=OpenML(40927, "CIFAR_10 v1"),
        copy="lossy: JPEG copies, order lost",
    ),
    Named(
        "clicks", "clicks", "click", ("1",), ("click = 0", "click = 1"), 180,
        counts=((59713, 287),), values=("0", "1"), files=_CLICKS,
        columns=("campaign", "policy", "item", "position", *_USER, "propensity_score", *_AFFINITY, "click"),
        numeric=("propensity_score", *_AFFINITY), copy="a sample of Open Bandit Data",
    ),
)  # fmt: skip

NAMED = {named.name: named for named in _ALL}
UNUSED = ("instance weight",)  # a weight of the census survey, not a feature


def read_known(
    data: bytes, what: str, numeric: Collection[str], *, names: Sequence[str] | None = None, skip: int = 0
) -> dict[str, Array | Category]:
    """Read CSV whose columns are known: those in ``numeric`` as float64, others as stripped categories.

    ``names`` are the columns of a file without a header, ``skip`` is how many lines to pass over before it.
    InputError: the bytes are not such a table.
    """
    import pyarrow
    from pyarrow import csv

    reading = csv.ReadOptions(column_names=names, skip_rows=skip)
    try:
        header = names or csv.open_csv(pyarrow.BufferReader(data), read_options=reading).schema.names
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {name: pyarrow.float64() if name in numeric else text for name in header}
        table = csv.read_csv(
            pyarrow.BufferReader(data),
            read_options=reading,
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pyarrow.ArrowInvalid as error:
        raise InputError(
            f"{what} is not the expected table: {' '.join(str(error).split())}; get it again"
        ) from error
    return {name: _column(table[name].combine_chunks()) for name in header}


def _column(array: Any) -> Array | Category:
    if not hasattr(array, "dictionary"):
        numbers: Array = array.to_numpy(zero_copy_only=False)
        return numbers
    return category(np.asarray(array.indices), [str(value) for value in array.dictionary.to_pylist()])


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


def fetch(named: Named, copy: OpenML) -> Table:
    """Fetch a named set from OpenML (scikit-learn keeps a copy in its cache) and check it.

    Checked: scikit-learn holds the file to the MD5 that OpenML states; then rows of each class, part by part,
    and where it is known the sum over the rows of their SHA-256.  InputError: no network, or not the pinned
    data.
    """
    from sklearn.datasets import fetch_openml

    pictures = bool(named.shape)
    try:
        bunch = fetch_openml(data_id=copy.id, as_frame=not pictures, parser="auto")
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors; OpenMLError is a ValueError
        raise InputError(
            f"{named.name} is not in the folder of {VARIABLE} and could not be fetched from OpenML "
            f"{copy.id} ({copy.title}): {error}; set {VARIABLE} to a folder that has it, or pass a file of "
            "your own"
        ) from error
    return _pictures(named, copy, bunch) if pictures else _columns(named, copy, bunch)


def content_sum(rows: Iterable[bytes]) -> str:
    """Sum the first 8 bytes (little-endian) of each row's SHA-256 modulo 2^64, in hex: free of row order."""
    total = sum(int.from_bytes(hashlib.sha256(row).digest()[:8], "little") for row in rows)
    return f"{total % 2**64:016x}"


def image_rows(pixels: Array, codes: Array) -> Iterator[bytes]:
    """Yield each image as bytes: its pixels, then its class."""
    for row, code in zip(np.ascontiguousarray(pixels, np.uint8), codes.tolist(), strict=True):
        yield row.tobytes() + bytes([code])


def table_rows(columns: dict[str, Column]) -> Iterator[bytes]:
    """Yield each row as text: its cells in the order of the columns, joined by commas, 5 for 5.0."""
    texts = []
    for column in columns.values():
        codes, values = (column.codes, column.values) if isinstance(column, Category) else present(column)
        texts.append([values[code] for code in codes.tolist()])
    for cells in zip(*texts, strict=True):
        yield ",".join(cells).encode()


def _pictures(named: Named, copy: OpenML, bunch: Any) -> Table:
    pixels = np.asarray(bunch.data)
    if pixels.shape != (named.rows, named.width):
        raise _differs(named, copy, f"it has shape {pixels.shape}, not {(named.rows, named.width)}")
    try:
        pixels, codes = pixels.astype(np.uint8), np.array([int(float(value)) for value in bunch.target])
    except ValueError as error:
        raise _differs(named, copy, str(error)) from error
    if named.kind == "cifar":  # there, all red values come first, then green, then blue
        pixels = pixels.reshape(-1, 3, 32 * 32).transpose(0, 2, 1).reshape(len(pixels), -1)
    order, test = _order(named, copy, codes)
    pixels, codes = pixels[order], codes[order]
    if copy.content is not None and content_sum(image_rows(pixels, codes)) != copy.content:
        raise _differs(named, copy, "its content has another checksum")
    return images_table(named, pixels, codes, test)


def _columns(named: Named, copy: OpenML, bunch: Any) -> Table:
    frame = bunch.data.drop(columns=[name for name in bunch.data.columns if str(name).lower() == "id"])
    cells = [frame.iloc[:, i] for i in range(frame.shape[1])] + [bunch.target]
    if len(cells) != len(named.columns):
        raise _differs(named, copy, f"it has {len(cells)} columns, not {len(named.columns)}")
    columns = dict[str, Column]()
    for name, series in zip(named.columns, cells, strict=True):
        if name in UNUSED:
            continue
        try:
            columns[name] = _series(series, name in named.numeric)
        except ValueError as error:
            raise _differs(named, copy, f"column {name!r}: {error}") from error
    if copy.content is not None and content_sum(table_rows(columns)) != copy.content:
        raise _differs(named, copy, "its content has another checksum")
    label = columns[named.label]
    assert isinstance(label, Category)
    codes = np.array([_place(named, copy, value) for value in label.values])[label.codes]
    order, test = _order(named, copy, codes)
    ordered = {name: take(column, order) for name, column in columns.items()}
    if test is None or len(named.counts) == 1:
        return Table(ordered, test=None)
    train = {name: take(column, np.flatnonzero(~test)) for name, column in ordered.items()}
    return parts_table(
        named, [train, {name: take(column, np.flatnonzero(test)) for name, column in ordered.items()}]
    )


def _order(named: Named, copy: OpenML, codes: Array) -> tuple[Array, Array | None]:
    """Return row order (train first) and test rows; None for them if the parts are mixed."""
    every = np.arange(len(codes))
    size = len(named.values)
    counts = np.bincount(codes, minlength=size)
    if counts.tolist() != np.sum(named.counts, axis=0).tolist():
        raise _differs(named, copy, f"its classes have {counts.tolist()} rows")
    if len(named.counts) == 1:
        return every, None
    first, second = (sum(part) for part in named.counts)
    if np.bincount(codes[:first], minlength=size).tolist() == list(named.counts[0]):
        return every, every >= first
    if np.bincount(codes[:second], minlength=size).tolist() == list(
        named.counts[1]
    ):  # the test part comes first
        return np.roll(every, -second), every >= first
    return every, None


def _series(series: Any, numeric: bool) -> Column:
    if numeric:
        numbers: Array = np.asarray(series.astype("float64"))
        if not np.isfinite(numbers).all():
            raise ValueError("it has missing numbers")
        return numbers
    cells = series.astype(object)
    cells = cells.where(cells.notna(), "?")
    return text_category(_cell(cell) for cell in cells)


def _cell(cell: Any) -> str:
    return number_text(cell) if isinstance(cell, int | float) else str(cell)


def _place(named: Named, copy: OpenML, value: str) -> int:
    if value not in named.values:
        raise _differs(named, copy, f"its label has the value {value!r}")
    return named.values.index(value)


def _differs(named: Named, copy: OpenML, how: str) -> InputError:
    return InputError(
        f"OpenML {copy.id} ({copy.title}) is not the {named.name} this version of p2p-sim pins: {how}; "
        f"remove it from scikit-learn's cache (~/scikit_learn_data) and fetch again, or set {VARIABLE} to a "
        "folder that has it"
    )
