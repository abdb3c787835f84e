"""Run directories: what a run left, as JSON and Parquet, written whole and then renamed into place."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.sealing import MODELLED
from p2p_sim.trace import code, command, manifest, people, sums, tables
from p2p_sim.trace.draft import MESSAGES, Draft
from p2p_sim.trace.lists import from_list, to_list
from p2p_sim.trace.stored import OnDemand, Stored, of_run
from p2p_sim.trace.writer import write_columns

FORMAT = 2
RUN = "run.json"
_SEEN = ("fault", "kind", "round", "messages")
_WORK = ("role", "round", "operation", "count")
_COMPUTE = ("role", "round", "seconds")
_Part = TypeVar("_Part")
_MOST = ("kind", "round", "sent", "received")


def save(run: Any, path: Path, force: bool, population: bool) -> Path:
    """Write a run directory; see ``Run.save``."""
    if population and run.population is not None:
        check_whole(run.population)
    check_free(path, force)
    draft = run._trace.draft if isinstance(run._trace, OnDemand) else None
    if draft is not None and draft.beside(path):
        _finish(run, draft, path, force, population)
    else:
        with Draft(path) as building:
            _finish(run, building, path, force, population)
    if isinstance(run._trace, OnDemand):
        run._trace = OnDemand(Stored(path / MESSAGES))
    return path


def _finish(run: Any, building: Draft, path: Path, force: bool, population: bool) -> None:
    """Put what else belongs there beside the messages, and the whole in its place."""
    try:
        write_messages(building.make() / MESSAGES, run)
        parts_of = {"outputs": run.outputs}
        if population and run.faulty:  # who lied would tell of the seed
            parts_of["faults"] = {name: {"user": users} for name, users in run.faulty.items()}
        for folder, parts in parts_of.items():
            for name, columns in parts.items():
                if columns:
                    tables.write_apart(building.make() / folder, name, columns)
        if population and run.population is not None:
            people.write(building.make(), run.population)
        about = described(run, population) | {"sha256": sums.of(building.make())}
        (building.make() / RUN).write_text(json.dumps(about, indent=2, allow_nan=False) + "\n")
        _put_in_place(building.make(), path, force)
    except BaseException:
        building.clear()
        raise


def write_messages(folder: Path, run: Any) -> None:
    """Write the messages of a run, unless they are there already; nothing for trace level none."""
    if isinstance(run._trace, OnDemand):
        if run._trace.stored.folder != folder:
            shutil.copytree(run._trace.stored.folder, folder)
        return
    if run.trace == "none":
        return
    if run.source is None:
        raise InputError(
            f"{run.protocol} is not a shipped protocol, and an earlier version wrote the messages of this run: copy "
            "its folder instead"
        )
    folder.mkdir()
    begun = manifest.begun(run.source, run.trace, run.users, "")
    manifest.write(folder, manifest.ended(begun, run.counts, write_columns(folder, run._trace)))


def check_whole(people: Population) -> None:
    """Check that a population can be saved; raises InputError for a part of one."""
    if people.ids is not None:
        raise InputError(
            "a run on a part of a population cannot be saved with it: save with population=False"
        )


def check_free(path: Path, force: bool) -> None:
    """Check that a run can be written to a folder; raises InputError if something is there and ``force`` is not set."""
    if path.is_symlink():
        raise InputError(f"output {str(path)!r} is a link: it is not replaced; choose another name")
    if path.exists() and not force:
        raise InputError(
            f"output {str(path)!r} exists already: choose another name, or replace it with --force (force=True)"
        )
    if path.exists() and not (path / RUN).is_file() and any(path.iterdir() if path.is_dir() else [path]):
        raise InputError(
            f"output {str(path)!r} is not a run directory: it is not replaced; choose another name"
        )


def described(run: Any, population: bool) -> dict[str, Any]:
    """Return what run.json holds; without the population, nothing from which labels could be recomputed."""
    told = describe(run)
    if not population:
        notes = dict(run.notes)
        if "command" in notes:
            notes["command"] = command.without_seed(notes["command"])
        told |= {"seed": None, "population_hash": None, "stored_hash": None, "notes": notes}
    return told


def describe(run: Any) -> dict[str, Any]:
    """Return what run.json holds for the owner."""
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
        "costs": manifest.counts_as_rows(run.counts),
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
    return light(path) | guarded(path, lambda: {name: read(path) for name, read in HEAVY.items()})


def light(path: Path) -> dict[str, Any]:
    """Read of a run directory what is small: all but what ``HEAVY`` reads."""
    return guarded(path / RUN, lambda: _light(path))


def guarded(path: Path, read: Callable[[], _Part]) -> _Part:
    """Return what ``read`` does; raises InputError naming the run directory if a file is damaged."""
    try:
        return read()
    except InputError:
        raise
    except Exception as error:  # whatever a damaged file provokes, in json, in Arrow or here
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(path)!r} is damaged ({what}): run the protocol again") from error


def told_of(path: Path) -> dict[str, Any]:
    """Read run.json; raises InputError if there is none, or a newer version wrote it."""
    file = path / RUN
    if not file.is_file():
        raise InputError(f"{str(path)!r} is not a run directory: {_why_none(path)}")
    told: dict[str, Any] = json.loads(file.read_text())
    if told["format"] not in (1, FORMAT):
        raise InputError(
            f"{str(path)!r} has format {told['format']}; this version reads formats 1 and {FORMAT}: read it with the "
            "version that wrote it"
        )
    return told


def _why_none(path: Path) -> str:
    """Say why a folder is no run directory, and what to do."""
    if path.is_symlink() and not path.exists():
        return f"it links to {str(path.readlink())!r}, which is gone; name another run"
    if not path.exists():
        return "there is no such folder; p2p-sim run makes one and says where it is"
    if path.is_file():
        return "it is a file; name the folder that p2p-sim run made"
    if (path / MESSAGES).is_dir():
        return f"it has no {RUN}; its trace can be opened, it is that of a run that was cut off"
    inside = sorted(file.parent.name for file in path.glob(f"*/{RUN}"))
    return f"it has no {RUN}" + (
        f"; it holds {len(inside):,}, such as {str(path / inside[0])!r}" if inside else ""
    )


def _outputs(path: Path) -> dict[str, dict[str, Any]]:
    told = told_of(path)
    sums.check(path, told.get("sha256", {}), "outputs")
    outputs: dict[str, dict[str, Any]] = {role: {} for role in told["outputs"]}
    return outputs | tables.read_apart(path / "outputs")


def _population(path: Path) -> Population | None:
    expected = told_of(path).get("stored_hash")
    return guarded(path / "population.parquet", lambda: people.read(path, expected))


def _faulty(path: Path) -> dict[str, Any]:
    sums.check(path, told_of(path).get("sha256", {}), "faults")
    return {name: columns["user"] for name, columns in tables.read_apart(path / "faults").items()}


HEAVY: dict[str, Callable[[Path], Any]] = {
    "outputs": _outputs, "population": _population, "faulty": _faulty
}  # fmt: skip
"""What reads the large parts of a run directory, by the name of the part."""


def _light(path: Path) -> dict[str, Any]:
    told = told_of(path)
    parameters = {name: _from_json(value) for name, value in told["parameters"].items()}
    plain = {key: told[key] for key in ("protocol", "seed", "backend", "trace", "digest", "timings", "notes")}
    if told["seed"] is not None:
        check_seed(told["seed"])
    TraceLevel.parse(told["trace"])
    seen = from_list(told.get("faults_seen", []), *_SEEN)
    compute, most = from_list(told.get("compute", []), *_COMPUTE), told.get("most")
    most = None if most is None else from_list(most, *_MOST, values=2)
    work = from_list(told.get("work", []), *_WORK)
    program = _program(told["protocol"], parameters)
    trace: Mapping[str, Any] = {}
    if (path / MESSAGES / manifest.NAME).is_file():
        trace = OnDemand(of_run(path, told))
    elif told["format"] == 1:
        trace = tables.read_apart(path / MESSAGES)
    elif TraceLevel.parse(told["trace"]).keeps:
        raise InputError(f"{str(path / MESSAGES)!r} holds no trace: restore it, or run the protocol again")
    return {
        **plain, "parameters": parameters, "counts": manifest.rows_as_counts(told["costs"]),
        "source": program, "faults": Faults.of(told.get("faults", [])), "faults_seen": seen,
        "users": told.get("users"), "compute": compute, "most": most,
        "crypto": told.get("crypto", MODELLED), "work": work, "versions": told.get("versions", {}), "_trace": trace,
    }  # fmt: skip


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
