"""Run directories: what a run left, as JSON and Parquet, written whole and then renamed into place."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.ledger import Count, TraceLevel
from p2p_sim.core.message import field_dtype, field_shape
from p2p_sim.core.population import check_seed
from p2p_sim.core.sealing import MODELLED
from p2p_sim.trace import code, people, tables
from p2p_sim.trace.lists import from_list, to_list

Array = npt.NDArray[Any]
FORMAT = 1
_ROWS = 1 << 20
_SEEN = ("fault", "kind", "round", "messages")
_WORK = ("role", "round", "operation", "count")
_COMPUTE = ("role", "round", "seconds")
_MOST = ("kind", "round", "sent", "received")


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
    if population and run.population is not None and run.population.ids is not None:
        raise InputError(
            "a run on a part of a population cannot be saved with it: save with population=False"
        )
    check_free(path, force)
    made = _make_parents(path.parent)
    building = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        building.chmod(0o700)  # with the seed, anybody could undo the noise: only the owner may look
        parts_of = {"outputs": run.outputs, "messages": run._trace}
        if population and run.faulty:  # who lied would tell of the seed
            parts_of["faults"] = {name: {"user": users} for name, users in run.faulty.items()}
        for folder, parts in parts_of.items():
            for name, columns in parts.items():
                if columns:
                    tables.write_apart(building / folder, name, columns)
        if population and run.population is not None:
            people.write(building, run.population)
        (building / "run.json").write_text(
            json.dumps(described(run, population), indent=2, allow_nan=False) + "\n"
        )
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
    if path.is_symlink():
        raise InputError(f"output {str(path)!r} is a link: it is not replaced; choose another name")
    if path.exists() and not force:
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


def described(run: Any, population: bool) -> dict[str, Any]:
    """Return what run.json holds; without the population, nothing from which labels could be recomputed."""
    told = describe(run)
    if not population:
        notes = {name: note for name, note in run.notes.items() if name != "command"}
        told |= {"seed": None, "population_hash": None, "stored_hash": None, "notes": notes}
    return told


def describe(run: Any) -> dict[str, Any]:
    """Return what run.json holds for the owner."""
    costs = [
        {"kind": kind, "round": round, "messages": c.messages, "travelled": c.travelled, "nbytes": c.nbytes}
        for (kind, round), c in sorted(run.counts.items(), key=lambda item: item[0][::-1])
    ]
    whole = run.population
    return {
        "format": FORMAT,
        "protocol": run.protocol,
        "parameters": {name: _to_json(value) for name, value in run.parameters.items()},
        "seed": run.seed,
        "backend": run.backend,
        "trace": run.trace,
        "digest": run.digest,
        "users": run.users,
        "population_hash": None if whole is None else whole.hash,
        "stored_hash": None if whole is None else people.stored(whole).hash,
        "costs": costs,
        "compute": to_list(run.compute, *_COMPUTE),
        "most": None if run.most is None else to_list(run.most, *_MOST),
        "crypto": run.crypto,
        "work": to_list(run.work, *_WORK),
        "faults": [] if run.faults is None else run.faults.texts(),
        "faults_seen": to_list(run.faults_seen, *_SEEN),
        "timings": run.timings,
        "outputs": {role: list(columns) for role, columns in run.outputs.items()},
        "versions": run.versions or code.versions(run.source),
        "notes": run.notes,
    }


def load(path: Path) -> dict[str, Any]:
    """Read a run directory; return what ``Run`` is made of."""
    try:
        return _load(path)
    except InputError:
        raise
    except Exception as error:  # whatever a damaged file provokes, in json, in Arrow or here
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(path)!r} is damaged ({what}): run the protocol again") from error


def _load(path: Path) -> dict[str, Any]:
    manifest = path / "run.json"
    if not manifest.is_file():
        raise InputError(f"{str(path)!r} is not a run directory: it has no run.json")
    told = json.loads(manifest.read_text())
    if told["format"] != FORMAT:
        raise InputError(f"{str(path)!r} has format {told['format']}; this version reads format {FORMAT}")
    outputs: dict[str, dict[str, Array]] = {role: {} for role in told["outputs"]}
    outputs |= tables.read_apart(path / "outputs")
    costs = {
        (c["kind"], c["round"]): Count(c["messages"], c["travelled"], c["nbytes"]) for c in told["costs"]
    }
    parameters = {name: _from_json(value) for name, value in told["parameters"].items()}
    plain = {key: told[key] for key in ("protocol", "seed", "backend", "trace", "digest", "timings", "notes")}
    if told["seed"] is not None:
        check_seed(told["seed"])
    TraceLevel.parse(told["trace"])
    population = people.read(path, told.get("stored_hash"))
    seen = from_list(told.get("faults_seen", []), *_SEEN)
    compute, most = from_list(told.get("compute", []), *_COMPUTE), told.get("most")
    most = None if most is None else from_list(most, *_MOST, values=2)
    work = from_list(told.get("work", []), *_WORK)
    faulty = {name: columns["user"] for name, columns in tables.read_apart(path / "faults").items()}
    trace, program = tables.read_apart(path / "messages"), _program(told["protocol"], parameters)
    return {
        **plain, "parameters": parameters, "counts": costs, "outputs": outputs, "population": population,
        "source": program, "faults": Faults.of(told.get("faults", [])), "faults_seen": seen, "faulty": faulty,
        "users": told.get("users"), "compute": compute, "most": most,
        "crypto": told.get("crypto", MODELLED), "work": work, "versions": told.get("versions", {}), "_trace": trace,
    }  # fmt: skip


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
    if message.sender == message.recipient:
        travels = columns["sender"] != columns["recipient"]
    columns["nbytes"] = np.where(travels, message.nbytes(sizes), 0)
    return columns


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
    plain = value.item() if isinstance(value, np.generic) else value
    return "inf" if isinstance(plain, float) and math.isinf(plain) else plain


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
    try:
        with contextlib.suppress(FileNotFoundError):  # somebody else is replacing it too
            path.rename(old / "run")
        try:
            building.rename(path)
        except OSError as error:
            if not path.exists():
                (old / "run").rename(path)
            raise InputError(f"output {str(path)!r} is being written by another run: try again") from error
    finally:
        shutil.rmtree(old, ignore_errors=True)
