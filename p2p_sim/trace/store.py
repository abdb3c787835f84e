"""Run directories: what a run left, as JSON and Parquet, written whole and then renamed into place."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count, TraceLevel
from p2p_sim.core.message import USER, field_dtype, field_shape
from p2p_sim.core.population import Population

Array = npt.NDArray[Any]
FORMAT = 1
_ROWS = 1 << 20


def sorted_trace(
    protocol: Any, trace: Mapping[str, list[dict[str, Array]]], level: TraceLevel
) -> dict[str, dict[str, Array]]:
    """Join the traced parts of each kind, in the order (round, recipient, sender, seq), and add ``nbytes``."""
    if level.name in ("none", "counts"):
        return {}
    sizes = protocol.vector_lengths()
    return {
        kind: _joined(message, trace.get(kind, []), sizes) for kind, message in protocol.messages().items()
    }


def save(run: Any, path: Path, force: bool, population: bool) -> Path:
    """Write a run directory; see ``Run.save``."""
    check_free(path, force)
    made = _make_parents(path.parent)
    building = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        building.chmod(0o755)
        for folder, tables in (("outputs", run.outputs), ("messages", run._trace)):
            for name, columns in tables.items():
                if columns:
                    _write(building / folder / f"{name}.parquet", columns)
        if population and run.population is not None:
            _write_population(building, run.population)
        (building / "run.json").write_text(json.dumps(describe(run), indent=2, allow_nan=False) + "\n")
        _put_in_place(building, path, force)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        for parent in reversed(made):
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    return path


def check_free(path: Path, force: bool) -> None:
    """Check that a run can be written to a folder; raises InputError if something is there and ``force`` is not set."""
    if path.is_symlink() or (path.exists() and not force):
        raise InputError(
            f"output {str(path)!r} exists already: choose another name, or replace it with --force (force=True)"
        )
    if (
        path.exists()
        and not (path / "run.json").is_file()
        and any(path.iterdir() if path.is_dir() else [path])
    ):
        raise InputError(
            f"output {str(path)!r} is not a run directory: it is not replaced; choose another name"
        )


def describe(run: Any) -> dict[str, Any]:
    """Return what run.json holds."""
    counts = [
        {"kind": kind, "round": round, "messages": c.messages, "travelled": c.travelled, "nbytes": c.nbytes}
        for (kind, round), c in sorted(run.counts.items(), key=lambda item: item[0][::-1])
    ]
    people = run.population
    return {
        "format": FORMAT,
        "protocol": run.protocol,
        "parameters": {name: _to_json(value) for name, value in run.parameters.items()},
        "seed": run.seed,
        "backend": run.backend,
        "trace": run.trace,
        "digest": run.digest,
        "users": None if people is None else people.users,
        "population_hash": None if people is None else people.hash,
        "stored_hash": None if people is None else _stored(people).hash,
        "counts": counts,
        "timings": run.timings,
        "outputs": {role: list(columns) for role, columns in run.outputs.items()},
        "versions": versions(),
        "notes": run.notes,
    }


def versions() -> dict[str, str]:
    """Return the versions of what computed a run."""
    names = ("p2p-sim", "numpy", "numba", "ray", "scikit-learn", "pyarrow")
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {"python": sys.version.split()[0], **found}


def load(path: Path) -> dict[str, Any]:
    """Read a run directory; return what ``Run`` is made of."""
    manifest = path / "run.json"
    if not manifest.is_file():
        raise InputError(f"{str(path)!r} is not a run directory: it has no run.json")
    try:
        told = json.loads(manifest.read_text())
        if told["format"] != FORMAT:
            raise InputError(f"{str(path)!r} has format {told['format']}; this version reads format {FORMAT}")
        outputs: dict[str, dict[str, Array]] = {role: {} for role in told["outputs"]}
        outputs |= _read_all(path / "outputs")
        counts = {
            (c["kind"], c["round"]): Count(c["messages"], c["travelled"], c["nbytes"]) for c in told["counts"]
        }
        parameters = {name: _from_json(value) for name, value in told["parameters"].items()}
        plain = {
            key: told[key] for key in ("protocol", "seed", "backend", "trace", "digest", "timings", "notes")
        }
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise InputError(f"{str(manifest)!r} is damaged ({error!r}): run the protocol again") from error
    people = _read_population(path, told.get("stored_hash"))
    return {**plain, "parameters": parameters, "counts": counts, "outputs": outputs, "population": people,
            "source": _program(told["protocol"], parameters), "_trace": _read_all(path / "messages")}  # fmt: skip


def _joined(message: Any, parts: list[dict[str, Array]], sizes: dict[str, int]) -> dict[str, Array]:
    if not parts:
        parts = [{name: np.zeros(0, np.int32) for name in ("round", "sender", "recipient", "seq")}]
        parts[0] |= {
            k: np.zeros((0, *field_shape(f, sizes)), field_dtype(f)) for k, f in message.fields.items()
        }
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("sender", "recipient"):
        columns[name] = columns[name].astype(np.int64)
    order = np.lexsort((columns["seq"], columns["sender"], columns["recipient"], columns["round"]))
    columns = {name: column[order] for name, column in columns.items()}
    travels = np.ones(len(order), np.bool_)
    if message.sender == message.recipient == USER:
        travels = columns["sender"] != columns["recipient"]
    columns["nbytes"] = np.where(travels, message.nbytes(sizes), 0)
    return columns


def _write(path: Path, columns: Mapping[str, Array]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(exist_ok=True)
    arrays = {}
    for name, column in columns.items():
        flat = np.ascontiguousarray(column)
        arrays[name] = (
            pa.array(flat)
            if flat.ndim == 1
            else pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1])
        )
    parquet.write_table(pa.table(arrays), path, compression="zstd")


def _read_all(folder: Path) -> dict[str, dict[str, Array]]:
    from pyarrow import parquet

    tables = {}
    for file in sorted(folder.glob("*.parquet")) if folder.is_dir() else []:
        table = parquet.read_table(file)
        tables[file.stem] = {name: _column(table[name].combine_chunks()) for name in table.column_names}
    return tables


def _column(values: Any) -> Array:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type):
        flat = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(-1, values.type.list_size)  # type: ignore[no-any-return]
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _write_population(folder: Path, people: Population) -> None:
    """Write id, cluster and y in a stream; only the owner may read it: it holds the secret labels."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = [("id", pa.int64()), ("y", pa.bool_() if people.y.dtype == np.bool_ else pa.uint8())]
    if people.clusters is not None:
        schema.insert(1, ("cluster", pa.int64()))
    target = folder / "population.parquet"
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with parquet.ParquetWriter(target, pa.schema(schema), compression="zstd") as writer:
        for low in range(0, people.users, _ROWS):
            high = min(low + _ROWS, people.users)
            ids = np.arange(low, high) if people.ids is None else people.ids[low:high]
            columns = {"id": ids, "y": people.y[low:high]}
            if people.clusters is not None:
                columns["cluster"] = people.clusters.block(low, high).label.astype(np.int64)
            writer.write_table(
                pa.table({name: columns[name] for name, _ in schema}, schema=pa.schema(schema))
            )
    if people.graph is not None and people.graph.order is not None:
        rows = np.repeat(np.arange(people.users), np.diff(people.graph.starts))
        _write(folder / "graph.parquet", {"user": rows, "neighbour": people.graph.order})


def _read_population(path: Path, expected: str | None) -> Population | None:
    from pyarrow import parquet

    file = path / "population.parquet"
    if not file.is_file():
        return None
    table = parquet.read_table(file)
    cluster = _column(table["cluster"].combine_chunks()) if "cluster" in table.column_names else None
    people = Population.from_arrays(y=_column(table["y"].combine_chunks()), cluster=cluster)
    graph = path / "graph.parquet"
    if graph.is_file():
        edges = parquet.read_table(graph)
        pairs = np.column_stack([_column(edges[name].combine_chunks()) for name in ("user", "neighbour")])
        people = people.with_graph(pairs)
    if people.hash != expected:
        raise InputError(
            f"{str(file)!r} is not the population of this run (another hash): restore it, or run again"
        )
    return people


def _stored(people: Population) -> Population:
    """Return what of a population a run directory keeps: labels, clusters and graph, no features."""
    plain = people.x is None and not people.public and not people.secret
    return people if plain else Population(people.y, people.clusters, graph=people.graph, ids=people.ids)


def _program(name: str, parameters: dict[str, Any]) -> Any:
    """Return the protocol of a saved run if it is one of the shipped ones; code named by a file is not run."""
    import importlib

    module, _, owner = name.partition(":")
    if module.partition(".")[0] != "protocols":
        return None
    known = {f"{p.__module__}:{p.__name__}": p for p in importlib.import_module("protocols").ALL}
    return known[name](**parameters) if f"{module}:{owner}" in known else None


def _to_json(value: Any) -> Any:
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and "fraction" in value:
        return Fraction(*value["fraction"])
    return math.inf if value == "inf" else value


def _make_parents(folder: Path) -> list[Path]:
    """Make a folder and those above it; return the new ones, outermost first."""
    made = [parent for parent in [*reversed(folder.parents), folder] if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return made


def _put_in_place(building: Path, path: Path, force: bool) -> None:
    if not path.exists():
        with contextlib.suppress(OSError):  # somebody else may have made it just now
            building.rename(path)
            return
    check_free(path, force)
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    path.rename(old / "run")
    building.rename(path)
    shutil.rmtree(old)
