"""``Population``: the users of a run, their examples, labels, clusters and graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import groups, synthetic
from p2p_sim.core.argument_checks import check_labels, check_whole
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.paths import path_of
from p2p_sim.core.random_words import SEED_LIMIT

Array = npt.NDArray[Any]

MAX_USERS = 2**31 - 1
MAX_LABELS = 256
MAX_FEATURES = 10_000
_EXACT = 2**53  # whole numbers beyond are not all numbers of float64
_NAMED = 40


def check_seed(seed: Any, name: str = "seed") -> int:
    """Return a run seed, an integer from 0 to 2^64 - 1; raises InputError otherwise, with the argument's ``name``."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= int(seed) < SEED_LIMIT:
        raise InputError(f"{name} = {seed!r}: must be an integer from 0 to 2^64 - 1")
    return int(seed)


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """The users of a run, one row each; a user's id is her row.

    ``y``: secret label, bool or uint8, shape (n,).  ``clusters``: public groups, None: one cluster of everyone.
    ``x``: public features, shape (n, d).  ``public``, ``secret``: further columns by name, shape (n, ...).
    ``graph``: neighbours.  ``ids``: the ids of a part of a population, ascending; None for a whole one.
    All columns are read-only.
    """

    y: Array
    clusters: Members | None = None
    x: Array | None = None
    public: Mapping[str, Array] = field(default_factory=dict)
    secret: Mapping[str, Array] = field(default_factory=dict)
    graph: Members | None = None
    ids: Array | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("y", np.ndarray), ("clusters", Members), ("graph", Members)):
            value = getattr(self, name)
            if not isinstance(value, allowed) and (name == "y" or value is not None):
                raise InputError(
                    f"{name} of a Population is a {type(value).__name__}, must be {allowed.__name__}: "
                    "make a population of your columns by Population.from_arrays(y=..., cluster=...)"
                )
        for name in ("y", "x", "ids"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        for name in ("public", "secret"):
            columns = {key: _read_only(column) for key, column in getattr(self, name).items()}
            object.__setattr__(self, name, columns)

    @classmethod
    def from_arrays(
        cls,
        *,
        y: Any,
        x: Any = None,
        cluster: Any = None,
        public: Mapping[str, Any] | None = None,
        secret: Mapping[str, Any] | None = None,
    ) -> Population:
        """Make a population from columns of one length.

        ``y``: bool, or integers 0 .. k - 1 (k <= 256).  ``cluster``: non-negative integers, gaps allowed.
        Columns are copied, except arrays of ``x``, ``public`` and ``secret`` that nobody can write to: after
        ``x.setflags(write=False)`` a huge array is taken as it is.
        Raises InputError for no users, columns of other lengths, masked or missing values, other labels.
        """
        labels = _labels(y)
        members = None if cluster is None else groups.clusters(array_of("cluster", cluster))
        features = None if x is None else _finite(array_of("x", x))
        open_columns, hidden = named_columns("public", public), named_columns("secret", secret)
        columns = {f"public column {k!r}": v for k, v in open_columns.items()}
        columns |= {f"secret column {k!r}": v for k, v in hidden.items()}
        columns |= {} if features is None else {"x": features}
        columns |= {} if members is None else {"cluster": members.codes}
        for name, column in columns.items():
            if len(column) != len(labels):
                raise InputError(f"{name} has {len(column)} rows, y has {len(labels)}: give one row a user")
        return cls(labels, members, _owned(features, x), open_columns, hidden)

    @classmethod
    def from_table(cls, table: Any, *, label: str = "y", cluster: str | None = None) -> Population:
        """Make a population from a mapping, pandas frame or Arrow table: ``label`` is y, the rest become x.

        Every other column must be numeric; ``p2p_sim.learning.data.datasets`` encodes text columns.  What pandas
        kept as the index of its rows is no column.  Raises InputError for names that occur twice, and for whole numbers
        that features beside them would round.
        """
        names, parts = _named_columns(table)
        for wanted in [label] + ([cluster] if cluster else []):
            if wanted not in names:
                more = " and more" if names[_NAMED:] else ""
                raise InputError(
                    f"no column {wanted!r}; the table has {names[:_NAMED]}{more}: choose by label= and cluster="
                )
        columns = {name: array_of(f"column {name!r}", part) for name, part in zip(names, parts, strict=True)}
        rest = [name for name in names if name not in (label, cluster)]
        for name in names:
            if columns[name].ndim == 0:
                raise InputError(f"column {name!r} = {table[name]!r}: give one row a user")
        for name in rest:
            if columns[name].dtype.kind not in "buif":
                raise InputError(
                    f"column {name!r} has type {columns[name].dtype}: features are numbers; encode it first"
                )
        for name in rest:
            if len(columns[name]) != len(columns[label]):
                raise InputError(
                    f"column {name!r} has {len(columns[name])} rows, {label!r} has {len(columns[label])}"
                )
        x = _side_by_side({name: columns[name] for name in rest}) if rest else None
        if x is not None:
            x.setflags(write=False)  # nobody else holds it: no copy is made
        return cls.from_arrays(y=columns[label], x=x, cluster=columns[cluster] if cluster else None)

    @classmethod
    def from_file(cls, path: str | Path, *, label: str = "y", cluster: str | None = None) -> Population:
        """Make a population from a CSV or Parquet file, as ``from_table`` does."""
        from pyarrow import ArrowInvalid, csv, parquet

        source = path_of("path", path)
        if not source.is_file():
            raise InputError(f"no file {str(source)!r}: give the path of a .csv or .parquet file")
        if source.suffix not in (".csv", ".parquet"):
            raise InputError(
                f"file {str(source)!r}: only .csv and .parquet are read here; other kinds: datasets.load"
            )
        try:
            table = (
                parquet.ParquetFile(source).read() if source.suffix == ".parquet" else csv.read_csv(source)
            )
            names = table.column_names
        except (ArrowInvalid, OSError, UnicodeDecodeError) as error:
            raise InputError(f"file {str(source)!r} cannot be read: {error}") from error
        for name, column in zip(names, table.columns if source.suffix == ".csv" else (), strict=False):
            if str(column.type) == "double" and bool(_too_long(column.to_numpy())):
                raise InputError(
                    f"column {name!r} of {str(source)!r} holds numbers from 2^53 on, of which float64 does not keep "
                    "every whole one: read the file with p2p_sim.learning.data.datasets.load, which tells them apart"
                )
        return cls.from_table(table, label=label, cluster=cluster)

    @classmethod
    def synthetic(
        cls,
        *,
        users: int,
        cluster_size: int | None = None,
        labels: int = 2,
        shares: Sequence[Any] | None = None,
        positive: float | None = None,
        features: int = 0,
        seed: int = 0,
    ) -> Population:
        """Make users with random labels, in clusters of consecutive ids; the last cluster may be smaller.

        ``labels``: how many, 2 to 256.  ``shares``: their probabilities, which sum to 1; None: all alike.
        ``positive``: of two labels the probability of label 1, instead of ``shares``.  ``features``: how many columns
        ``x`` has, up to 10,000.  Each is a mean for the label plus discrete Gaussian noise of variance 1.  The means
        are those of digits: a label is written in the least base in which ``features`` digits are enough, each
        feature stands for one digit, all in turn, and adjacent digits have means 2 apart.  So d features tell two
        labels apart as well as one of deviation 1 tells √d from -√d.  Labels and features are keyed draws of role
        "synthetic": a larger population begins with the same users.  Raises InputError for other numbers, and for
        shares that do not sum to 1.
        """
        check_whole("users", users, 1, MAX_USERS)
        if cluster_size is not None:
            check_whole("cluster_size", cluster_size, 1, MAX_USERS)
        check_labels("labels", labels)
        check_whole("features", features, 0, MAX_FEATURES)
        chances = synthetic.shares_of(labels, shares, positive)
        check_seed(seed)
        y = synthetic.draw_labels(users, chances, seed)
        x = synthetic.draw_features(y, labels, features, seed) if features else None
        if cluster_size is None:
            return cls(y, x=x)
        starts = np.minimum(np.arange(0, users + cluster_size, cluster_size, dtype=np.int64), users)
        codes = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        return cls(y, Members(codes, starts, None, np.arange(len(starts) - 1)), x)

    @property
    def divided(self) -> bool:
        """Whether there are clusters."""
        return self.clusters is not None

    def in_one_cluster(self) -> Population:
        """Return the same users without clusters."""
        return replace(self, clusters=None)

    def piece(self, low: int, high: int) -> Population:
        """Return the users of the rows ``low .. high - 1``, without their ids and graph; clusters are those of all."""
        members = None if self.clusters is None else self.clusters.block(low, high)
        rows = slice(low, high)
        x = None if self.x is None else self.x[rows]
        public, secret = (
            {name: column[rows] for name, column in columns.items()} for columns in (self.public, self.secret)
        )
        return Population(self.y[rows], members, x, public, secret)

    def with_graph(self, edges: Any) -> Population:
        """Return the same users joined by undirected edges, shape (m, 2), of user ids: gives ``me.neighbours``."""
        if self.ids is not None:
            raise InputError("give the whole population its graph: a part's users keep the ids of the whole")
        return replace(self, graph=groups.neighbours(array_of("edges", edges), self.users))

    def sorted_by_cluster(self) -> tuple[Population, Array]:
        """Return (the population with clusters of consecutive ids, the old row of each new one).

        Runs are faster when a cluster's users lie together.
        """
        if self.graph is not None or self.ids is not None:
            raise InputError("sort a population by cluster before it gets a graph: edges name its rows")
        if self.clusters is None or self.clusters.order is None:
            return self, np.arange(self.users)
        order = self.clusters.order
        members = replace(self.clusters, codes=self.clusters.codes[order], order=None)
        public, secret = _each(self.public, order), _each(self.secret, order)
        x = None if self.x is None else self.x[order]
        return Population(self.y[order], members, x, public, secret), order.astype(np.int64)

    def part(self, rows: Array) -> Population:
        """Return the users of some rows (ascending), who keep ids, draws, and the clusters and neighbours they had.

        Group tables stay those of the whole population, so a group's size and members do not depend on the part.
        """
        ids = rows if self.ids is None else self.ids[rows]
        whole = self.clusters or Members(np.zeros(self.users, np.int32), np.array([0, self.users]), None)
        graph = None if self.graph is None else self.graph.pick(rows)
        x = None if self.x is None else self.x[rows]
        public, secret = _each(self.public, rows), _each(self.secret, rows)
        return Population(self.y[rows], whole.pick(rows), x, public, secret, graph, ids)

    def __repr__(self) -> str:
        groups = "" if not self.divided else f" in {len(self.sizes):,} clusters"
        return f"<Population of {self.users:,} users{groups}>"  # labels are secret: no array is printed

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.y)

    def row(self, user: Any, what: str) -> int:
        """Return the row of a user, given by id; raises InputError, which begins with ``what``, if she is not there."""
        ids = range(self.users) if self.ids is None else self.ids
        first, last = int(ids[0]), int(ids[-1])
        whole = isinstance(user, (int, np.integer)) and not isinstance(user, bool)
        row = (
            int(np.searchsorted(ids, user))
            if whole and first <= user <= last and self.ids is not None
            else user
        )
        if not whole or not first <= user <= last or int(ids[row]) != user:
            some = "" if last - first + 1 == self.users else f", {self.users:,} of them"
            raise InputError(f"{what}: users are {first} to {last}{some}")
        return int(row)

    def rows_of(self, users: Array) -> npt.NDArray[np.int64]:
        """Return the rows of users, given by id (m,), who are all there."""
        rows = users if self.ids is None else np.searchsorted(self.ids, users)
        return np.asarray(rows, np.int64)

    @cached_property
    def labels(self) -> int:
        """How many label values there can be: 2 for bool, otherwise the largest present plus one."""
        return 2 if self.y.dtype == np.bool_ else max(2, int(self.y.max()) + 1)

    @property
    def sizes(self) -> Array:
        """Users in each cluster."""
        return np.array([self.users]) if self.clusters is None else np.diff(self.clusters.starts)

    @cached_property
    def hash(self) -> str:
        """SHA-256 over ids, labels, clusters, features, further columns and graph, as hex."""
        digest = hashlib.sha256(f"{self.users}".encode())
        cluster = None if self.clusters is None else self.clusters.label
        graph, whole = self.graph, self.graph is not None and self.graph.complete
        columns = {
            "y": self.y.astype(np.uint8),
            "cluster": cluster,
            "x": self.x,
            "graph": None if graph is None or whole else np.concatenate([graph.starts, graph.order]),
            "complete graph": graph.codes if graph is not None and whole else None,
            "ids": self.ids,
        }
        columns |= {f"public/{k}": v for k, v in self.public.items()}
        columns |= {f"secret/{k}": v for k, v in self.secret.items()}
        for name in sorted(columns):
            column = columns[name]
            if column is not None:
                digest.update(f"/{name}/{column.shape}/{column.dtype.str}/".encode())
                flat = np.ascontiguousarray(column)
                if column.dtype.hasobject:
                    raise InputError(f"column {name!r} holds objects: give numbers or fixed-width text")
                digest.update(flat.view(np.uint8).data if column.dtype.kind in "mM" else flat.data)
        return digest.hexdigest()


def array_of(name: str, values: Any) -> Array:
    """Return values as an array; raises InputError for masked values and ragged rows."""
    if np.ma.isMaskedArray(values):
        raise InputError(f"{name} is a masked array: fill or drop missing values first")
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is no array with one row a user ({error}): make all rows alike") from error


def named_columns(part: str, columns: Any) -> dict[str, Array]:
    """Return further columns by name, owned; raises InputError for what is no mapping, or holds objects."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"{part} = {columns!r}: give columns by name, such as {part}={{'age': ages}}")
    found = {}
    for name, values in columns.items():
        column = array_of(f"{part} column {name!r}", values)
        if column.ndim == 0:
            raise InputError(f"{part} column {name!r} = {values!r}: give one row a user")
        if column.dtype.hasobject:
            raise InputError(f"{part} column {name!r} holds objects: give numbers or fixed-width text")
        found[name] = _owned(column, values)
    return found


def _owned(column: Any, given: Any) -> Any:
    """Return a column that nobody else can change: a copy, unless it is new or nobody can write to it."""
    fresh = isinstance(given, (list, tuple)) or column is None
    return column if fresh or not _writable(column) else column.copy()


def _writable(array: Array) -> bool:
    """Whether an array can be written to, by itself or by the arrays that it is a view of."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return True
        part = part.base
    return False


def _read_only(column: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    if not isinstance(column, np.ndarray):
        return column
    view = column.view()
    view.flags.writeable = False
    return view


def _named_columns(table: Any) -> tuple[list[Any], list[Any]]:
    """Return the names and columns of a mapping, frame or Arrow table, without the index that pandas kept in one."""
    if not hasattr(table, "column_names") and not hasattr(table, "keys"):
        raise InputError(f"table = {table!r}: give a mapping of columns, a pandas frame or an Arrow table")
    arrow = getattr(table, "column_names", None)
    if arrow is None:
        names = list(table.keys())
        _refuse_doubles(names)
        return names, [table[name] for name in names]
    _refuse_doubles(arrow)
    kept = pandas_index(table)
    found = {name: part for name, part in zip(arrow, table.columns, strict=True) if name not in kept}
    return list(found), list(found.values())


def pandas_index(table: Any) -> list[str]:
    """Return the columns of an Arrow table in which pandas kept its index: they number rows, and are no data."""
    kept = (table.schema.pandas_metadata or {}).get(
        "index_columns", []
    )  # names, or ranges that are no columns
    return [name for name in kept if isinstance(name, str) and name in table.column_names]


def _refuse_doubles(names: list[Any]) -> None:
    seen = set[Any]()
    for name in names:
        if name in seen:
            raise InputError(f"the table has two columns called {name!r}: rename or drop one of them")
        seen.add(name)


def _too_long(numbers: Array) -> bool:
    """Whether a column holds numbers that may be whole ones, rounded."""
    return bool((np.isfinite(numbers) & (np.abs(numbers) >= _EXACT)).any())


def _side_by_side(columns: Mapping[str, Array]) -> Array:
    """Join columns of numbers to a table of one type; raises InputError if that rounds a whole number."""
    x: Array = np.column_stack(list(columns.values()))
    for name, column in columns.items() if x.dtype.kind == "f" else ():
        whole = column.dtype.kind in "iu" and len(column) > 0
        if whole and max(int(column.max()), -int(column.min())) > _EXACT:
            raise InputError(
                f"column {name!r} holds whole numbers beyond 2^53, which {x.dtype} beside other columns would round: "
                "drop it if it is an id, or scale it first"
            )
    return x


def _each(columns: Mapping[str, Array], rows: Array) -> dict[str, Array]:
    return {name: column[rows] for name, column in columns.items()}


def _labels(y: Any) -> Array:
    labels = array_of("y", y)
    if labels.ndim != 1 or len(labels) == 0:
        raise InputError(f"y has shape {labels.shape}: needed is one label a user, and at least one user")
    if len(labels) > MAX_USERS:
        raise InputError(f"{len(labels):,} users: at most {MAX_USERS:,}")
    if labels.dtype.kind not in "bui":
        raise InputError(f"y has type {labels.dtype}: labels are bool, or integers 0 to k - 1")
    if labels.dtype == np.bool_:
        return labels.copy()  # the caller may change her array later
    if int(labels.min()) < 0 or int(labels.max()) >= MAX_LABELS:
        raise InputError(
            f"y holds values from {labels.min()} to {labels.max()}: labels are 0 to k - 1, k <= {MAX_LABELS}"
        )
    return labels.astype(np.uint8)


def _finite(x: Array) -> Array:
    if x.ndim != 2:
        raise InputError(f"x has shape {x.shape}: needed is one row of features a user, shape (n, d)")
    if x.dtype.kind not in "buif":
        raise InputError(f"x has type {x.dtype}: features are numbers")
    if x.dtype.kind == "f" and not bool(np.isfinite(x).all()):
        row = int(np.argwhere(~np.isfinite(x))[0][0])
        raise InputError(f"x of user {row} is not finite: fill or drop missing values first")
    return x
