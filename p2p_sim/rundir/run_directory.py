"""Run directories: what a run left, as JSON and Parquet, written whole, and read at once or when parts are needed."""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim import catalogue
from p2p_sim.core import seeds, write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.ledger import Count, Most
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir import (
    code_versions,
    growing_columns,
    integrity,
    manifest,
    parquet_columns,
    parquet_schema,
    permissions,
    population_file,
    public_columns,
    regular_files,
    run_json,
    saved_program,
)
from p2p_sim.rundir.integrity import guarded
from p2p_sim.rundir.outputs_folder import OUTPUTS, StoredOutputs, names_of
from p2p_sim.rundir.population_file import PopulationAttribute, UnreadPopulation
from p2p_sim.rundir.regular_files import RESTORE
from p2p_sim.rundir.run_json import FORMAT, RUN, Fields, agree, from_list, read_run_json, text_of, to_list
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import (
    Array,
    Columns,
    Kept,
    OnDemand,
    Source,
    Stored,
    folder_of,
    of_run,
    source_of,
    stored_of,
)
from p2p_sim.rundir.trace_writer import MESSAGES, Draft, alike, write_columns

_SEEN = ("fault", "kind", "round", "messages")
_WORK = ("role", "round", "operation", "count")
_COMPUTE = ("role", "round", "seconds")
_MOST = ("kind", "round", "sent", "received")
CANARIES = "canaries.parquet"
_AT_ONCE = 1_000_000
"""Users who are read when a run is loaded; of more, no more than is asked for, when it is."""


def save(
    run: RunRecord, path: Path, force: bool, population: bool, draft: Draft | None = None, threads: int = 1
) -> dict[str, str]:  # fmt: skip
    """Write a run directory, and return the SHA-256 of its files by path; see ``Run.save``.

    ``draft``: of this run, begun before it was computed; ``threads``: how many write its parts.
    """
    if population and run.population is not None:
        check_whole(run.population)
    if not population:
        seeds.check_secret(run.seed, run.seed_source, "saving without the population")
    check_free(path, force)
    if draft is not None and draft.beside(path):
        return _finish(run, draft, path, force, population, threads)
    with Draft(path) as building:
        return _finish(run, building, path, force, population, threads)


def _finish(
    run: RunRecord, building: Draft, path: Path, force: bool, population: bool, threads: int
) -> dict[str, str]:
    """Put what else belongs there beside the messages, and the whole in its place; return the SHA-256 of files."""
    folder = building.make()
    outputs_are_there = isinstance(run.outputs, StoredOutputs) and run.outputs.draft is building
    try:
        with write_errors.translated("the run", folder):
            write_messages(folder / MESSAGES, run)
            parts = [] if outputs_are_there else _outputs_to_write(folder / OUTPUTS, run.outputs)
            about, *_ = side_by_side(
                [
                    functools.partial(described, run, population),
                    *parts,
                    *(_people_to_write(folder, run) if population else []),
                ],
                threads,
            )
            sums = integrity.of(folder)
            text = text_of(about | {"sha256": sums})
            permissions.create(folder / RUN, text, private=about["seed"] is not None)
            building.whole()
            _put_in_place(folder, path, force)
        return sums
    except BaseException:
        building.clear(but={OUTPUTS} if outputs_are_there else ())  # the next try finds them
        raise


def _outputs_to_write(folder: Path, outputs: Mapping[str, Mapping[str, Array]]) -> list[Callable[[], Any]]:
    """Return what writes the outputs, or copies them from the folder they are in."""
    if isinstance(outputs, StoredOutputs):
        return [functools.partial(outputs.copy, folder)]
    return _columns_to_write(folder, outputs)


def _people_to_write(folder: Path, run: RunRecord) -> list[Callable[[], Any]]:
    """Return what writes what only the owner may see: labels, and who lied, which would tell of the seed."""
    liars = {name: {"user": users} for name, users in run.faulty.items()}
    parts = _columns_to_write(folder / "faults", liars)
    if run.canaries:  # they are labels
        permissions.create(folder / CANARIES, private=True)
        parts.append(functools.partial(parquet_columns.write, folder / CANARIES, run.canaries))
    if run.population is not None:
        people = population_file.stored(run.population, run.source)
        parts.append(functools.partial(population_file.write, folder, people))
    return parts


def _columns_to_write(folder: Path, parts: Mapping[str, Mapping[str, Array]]) -> list[Callable[[], Any]]:
    """Return what writes the columns of each part that has any."""
    return [
        functools.partial(growing_columns.write_apart, folder, name, columns)
        for name, columns in parts.items()
        if columns
    ]


def side_by_side(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Do some tasks and return their results; raises the first error in order, when what was begun has ended.

    The calling thread is one of the threads, and begins with the last.  Ctrl-C waits for what was begun, too, unlike
    that of ``core.threads``: else it would write on to a folder that is removed.
    """
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    pool = ThreadPoolExecutor(min(threads, len(tasks)) - 1)
    try:
        results = [pool.submit(task) for task in tasks]
        for place, task in reversed(list(enumerate(tasks))):
            if results[place].cancel():  # nobody has begun it
                results[place] = Future()
                try:
                    results[place].set_result(task())
                except Exception as error:  # raised below, if none before it is
                    results[place].set_exception(error)
        return [result.result() for result in results]
    finally:
        pool.shutdown(cancel_futures=True)


def write_messages(folder: Path, run: RunRecord) -> None:
    """Write the messages of a run, unless they are there already; nothing for trace level none."""
    stored = stored_of(run)
    if stored is not None:
        if stored.folder != folder:
            stored.verify()
            if manifest.read(stored.folder) != stored.manifest:
                raise InputError(
                    f"{str(stored.folder)!r} was replaced after the run was loaded: load it again"
                )
            shutil.copytree(stored.folder, folder, copy_function=_copied)
        return
    if run.trace == "none":
        return
    if run.source is None:
        raise InputError(
            f"{run.protocol} is not a shipped protocol: the messages of this run are saved where it was computed"
        )
    folder.mkdir()
    begun = manifest.begun(run.source, run.trace, run.users, "", run.seed_source)
    files = alike(folder, write_columns(folder, run.kept_messages, begun["kinds"]))
    manifest.write(folder, manifest.ended(begun, run.counts, files))
    integrity.forget(folder)


def _copied(source: str, target: str) -> str:
    """Copy a file; raises StorageError, where ``copytree`` would go on, and list all errors without their numbers."""
    with write_errors.translated("messages", Path(target).parent):
        return str(shutil.copy2(source, target))


def check_whole(people: Population) -> None:
    """Check that a population can be saved; raises InputError for a part of one, and for columns of other types."""
    if people.ids is not None:
        raise InputError(
            "a run on a part of a population cannot be saved with it: save with population=False"
        )
    public_columns.check(people.public)


def check_free(path: Path, force: bool) -> None:
    """Check that a run can be written to a folder; raises InputError if something is there and ``force`` is not set."""
    parquet_columns.check_name(path)
    if path.is_symlink():
        raise InputError(f"output {str(path)!r} is a link: it is not replaced; choose another name")
    if not path.exists():
        return
    if not (is_run(path) or (path.is_dir() and not any(path.iterdir()))):
        raise InputError(
            f"output {str(path)!r} is not a run directory: it is not replaced; choose another name"
        )
    if not force:
        raise InputError(
            f"output {str(path)!r} exists already: choose another name, or replace it with --force (force=True)"
        )
    if os.path.ismount(path):
        raise InputError(
            f"output {str(path)!r} is where a disk is mounted: it is not replaced; name a folder in it"
        )


OWN_FILES = (RUN, CANARIES, "population.parquet", "graph.parquet", "attack.json", "audit.json")
OWN_FOLDERS = ("outputs", "faults", "messages")
"""What a run directory may hold; anything else was put there by somebody else."""


def run_that_owns(path: Path) -> Path | None:
    """Return the run directory of which a file is a part, whether it is there or not; None for any other file.

    A report, or anything else that somebody put beside a run's files, is no part of it.
    """
    real = Path(os.path.realpath(path))
    if real.name in OWN_FILES and is_run(real.parent):
        return real.parent
    owners = (folder.parent for folder in real.parents if folder.name in OWN_FOLDERS)
    return next((folder for folder in owners if is_run(folder)), None)


def is_run(path: Path) -> bool:
    """Whether a folder holds a run of some version; other programs have files called run.json, too."""
    try:
        content = regular_files.json_of(path, RUN)
    except InputError:
        return False
    return content is not None and {"format", "protocol"} <= set(content)


def described(run: RunRecord, population: bool) -> dict[str, Any]:
    """Return what run.json holds; without the population, nothing from which labels could be recomputed."""
    content = describe(run)
    if population:
        content |= _hashes(run)
    else:
        notes = dict(run.notes)
        if "command" in notes:
            words = notes["command"]
            all_words = isinstance(words, list) and all(isinstance(word, str) for word in words)
            notes["command"] = run_json.without_seed(words) if all_words else None
        content |= {"seed": None, "notes": notes}
    return content


def _hashes(run: RunRecord) -> dict[str, str | None]:
    """Return the hashes of a run's population; of many users they take as long as a tenth of the run."""
    whole = run.population
    if whole is None:
        return {}
    return {"population_hash": whole.hash, "stored_hash": population_file.stored(whole, run.source).hash}


def describe(run: RunRecord) -> dict[str, Any]:
    """Return what run.json holds for the owner, without the hashes of the population."""
    return {
        "format": FORMAT,
        "protocol": run.protocol,
        "parameters": {name: to_json(value) for name, value in run.parameters.items()},
        "seed": run.seed,
        "seed_source": run.seed_source,
        "backend": run.backend,
        "trace": run.trace,
        "digest": run.digest,
        "users": run.users,
        "population_hash": None,
        "stored_hash": None,
        "costs": manifest.counts_as_rows(run.counts),
        "compute": to_list(run.compute, *_COMPUTE),
        "most": None if run.most is None else to_list(run.most, *_MOST),
        "crypto": run.crypto,
        "work": to_list(run.work, *_WORK),
        "faults": [] if run.faults is None else run.faults.texts(),
        "faults_seen": to_list(run.faults_seen, *_SEEN),
        "timings": run.timings,
        "outputs": names_of(run.outputs),
        "versions": run.versions or code_versions.versions(run.source),
        "notes": run.notes,
    }


def load(path: Path) -> dict[str, Any]:
    """Read a run directory; return what ``Run`` is made of."""
    found = light(path) | guarded(path, lambda: {name: read(path) for name, read in HEAVY.items()})
    people, users = found["population"], found["users"]
    if people is not None and not (users is not None and users > _AT_ONCE and people.proven):
        found["population"] = people.whole()
    return found


def light(path: Path) -> dict[str, Any]:
    """Read of a run directory what is small: all but what ``HEAVY`` reads, and the population."""
    return guarded(path / RUN, lambda: _light(path))


def _outputs(path: Path) -> dict[str, Columns]:
    content = read_run_json(path)
    integrity.check(path, content["sha256"], "outputs")
    outputs: dict[str, dict[str, Any]] = {role: {} for role in content["outputs"]}
    found = parquet_columns.read_apart(path, "outputs")
    named = {role: names for role, names in content["outputs"].items() if names}
    for role, columns in found.items():  # columns of unequal lengths lie in files of their own, in no order
        order = {name: place for place, name in enumerate(named.get(role, ()))}
        found[role] = dict(sorted(columns.items(), key=lambda item: order.get(item[0], len(order))))
    agree(path, "outputs", named, "outputs", {role: list(columns) for role, columns in found.items()})
    return outputs | found


def _faulty(path: Path) -> dict[str, Array]:
    integrity.check(path, read_run_json(path)["sha256"], "faults")
    found = {}
    for name, columns in parquet_columns.read_apart(path, "faults").items():
        users = columns.get("user")
        if users is None or users.dtype.kind not in "iu" or (len(users) and int(users.min()) < 0):
            raise InputError(
                f"{str(path / 'faults')!r} is damaged: {name} holds no ids in a column 'user'; {RESTORE}"
            )
        found[name] = users
    return found


def _canaries(path: Path) -> Columns:
    integrity.check(path, read_run_json(path)["sha256"], CANARIES)
    file = regular_files.find(path, CANARIES)
    if file is None:
        return {}
    schema = parquet_schema.footer(file).schema.to_arrow_schema()
    whole = parquet_schema.exactly(np.int64)
    wanted = {"user": whole, "label": whole, "other": whole, "flipped": parquet_schema.exactly(np.bool_)}
    parquet_schema.check_types(file, schema, wanted, more=parquet_schema.VALUES)
    return parquet_columns.read(file)


HEAVY: dict[str, Callable[[Path], Any]] = {"outputs": _outputs, "faulty": _faulty, "canaries": _canaries}
"""What reads the large parts of a run directory, by the name of the part."""


def _light(path: Path) -> dict[str, Any]:
    content = read_run_json(path)
    plain = {key: content[key] for key in ("protocol", "backend", "trace", "digest", "timings", "notes")}
    read = Fields(path, content)
    seed, level = read("seed", _seed), read("trace", TraceLevel.parse)
    counts, faults = read("costs", manifest.rows_as_counts), read("faults", Faults.of)
    seen = read("faults_seen", lambda rows: from_list(rows, *_SEEN))
    compute = read("compute", lambda rows: from_list(rows, *_COMPUTE))
    most = read("most", lambda rows: None if rows is None else from_list(rows, *_MOST, values=2))
    work = read("work", lambda rows: from_list(rows, *_WORK))
    parameters = read("parameters", lambda each: {name: from_json(value) for name, value in each.items()})
    kind = catalogue.of_run(content["protocol"])  # code named by a file is not run
    program = None if kind is None else saved_program.remade(kind, parameters, path, content["versions"])
    trace: Mapping[str, Any] = {}
    if folder_of(path) is not None:
        stored = of_run(path, content)
        if program is not None:
            saved_program.check_kinds(program, stored.manifest["kinds"], path, content["versions"])
        trace = OnDemand(stored)
        for name in ("protocol", "users"):
            agree(path, name, content[name], f"{MESSAGES}/{manifest.NAME}", stored.manifest[name])
        agree(path, "trace", content["trace"], f"{MESSAGES}/{manifest.NAME}", stored.manifest["level"])
        if stored.complete:
            agree(path, "costs", counts, f"{MESSAGES}/{manifest.NAME}", stored.counts)
    elif level.name != "none":
        raise InputError(f"{str(path / MESSAGES)!r} holds no trace: restore it, or run the protocol again")
    kept = population_file.was_kept(path, content["stored_hash"])
    return {
        **plain, "seed": seed, "seed_source": content["seed_source"], "parameters": parameters, "counts": counts,
        "source": program, "faults": faults, "faults_seen": seen,
        "population": UnreadPopulation(path, content) if kept else None,
        "users": content["users"], "compute": compute, "most": most,
        "crypto": content["crypto"], "work": work, "versions": content["versions"], "_trace": trace,
    }  # fmt: skip


def _seed(value: int | None) -> int | None:
    return None if value is None else check_seed(value)


def to_json(value: Any) -> Any:
    """Return a parameter of a protocol as a JSON value; see ``core.protocol.check_kept``."""
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    plain = value.item() if isinstance(value, np.generic) else value
    return "inf" if isinstance(plain, float) and math.isinf(plain) else plain


def from_json(value: Any) -> Any:
    """Return the parameter that ``to_json`` wrote."""
    if isinstance(value, dict) and "fraction" in value:
        return Fraction(*value["fraction"])
    if isinstance(value, list):  # it was a tuple: a parameter cannot be a list
        return tuple(from_json(part) for part in value)
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
        building.rename(path)
    except BaseException as error:
        if (old / "run").exists() and not os.path.lexists(path):
            (old / "run").rename(path)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise InputError(f"output {str(path)!r} is being written by another run: try again") from error
        raise
    finally:
        if os.path.lexists(path) or not (old / "run").exists():  # otherwise the old run is all there is
            shutil.rmtree(old, ignore_errors=True)


class LazyRun:
    """The record of a run directory, see ``RunRecord``: what is large in it is read when it is first asked for.

    Also of a run that was cut off, of which there is nothing but messages.  Raises InputError for a folder that is no
    run, and, when a part is read, if it is damaged.  ``cut_off``: whether there are only messages.
    """

    protocol: str
    parameters: dict[str, Any]
    seed: int | None
    seed_source: str | None
    backend: str
    trace: str
    digest: str | None
    counts: dict[tuple[str, int], Count]
    timings: dict[str, float]
    source: Protocol | None
    notes: dict[str, Any]
    faults: Faults | None
    faults_seen: dict[tuple[str, str, int], int]
    versions: dict[str, str]
    crypto: str
    users: int | None
    compute: dict[tuple[str, int], float]
    work: dict[tuple[str, int, str], int]
    most: Most | None
    population = PopulationAttribute()
    _trace: Mapping[str, Columns]

    def __init__(self, path: Path):
        self._path = path
        cut_off = guarded(path, lambda: _cut_off(path))
        self.cut_off = cut_off is not None
        self.__dict__.update(light(path) if cut_off is None else _of_messages(cut_off))

    @functools.cached_property
    def outputs(self) -> dict[str, Columns]:
        """What each role returned, columns by role."""
        return guarded(self._path, lambda: _outputs(self._path))

    @functools.cached_property
    def faulty(self) -> dict[str, Array]:
        """Ids of the users who "dropped" out and who "lied", ascending."""
        return guarded(self._path, lambda: _faulty(self._path))

    @functools.cached_property
    def canaries(self) -> Columns:
        """Users whose label a coin flipped or not before the run, as columns; empty of a run without."""
        return guarded(self._path, lambda: _canaries(self._path))

    @property
    def kept_messages(self) -> Mapping[str, Columns]:
        """The messages of the trace by kind, read when asked for."""
        return self._trace

    def messages_source(self, protocol: Protocol | None = None) -> Source:
        """Return where the messages are read from; see ``RunRecord.messages_source``."""
        return source_of(self, protocol)

    @property
    def folder(self) -> Path:
        """Where the run directory is."""
        return self._path

    @property
    def has_population(self) -> bool:
        """Whether the population was kept; reading it may still find that its file is gone."""
        return vars(self)["population"] is not None


def opened(run: RunRecord | str | Path) -> RunRecord:
    """Return the record of a run, or of the run directory at a path."""
    if isinstance(run, (str, Path)):
        return LazyRun(Path(run))
    if not hasattr(run, "messages_source"):
        raise InputError(f"run = {run!r}: must be a Run, or the path of a run directory")
    return run


def whole_or_cut_off(path: Path, load: Callable[[Path], RunRecord]) -> RunRecord:
    """Return what ``load`` reads of a run directory, or what there is of a run that was cut off."""
    return load(path) if guarded(path, lambda: _cut_off(path)) is None else LazyRun(path)


def _cut_off(path: Path) -> Path | None:
    """Return the folder of the messages of a run that was cut off, which left nothing else; None of any other."""
    here = folder_of(path) or path
    left = not os.path.lexists(path / run_json.RUN) and (here / manifest.NAME).is_file()
    return here if left else None


def _of_messages(folder: Path) -> dict[str, Any]:
    """Return what is known of a run that was cut off."""
    stored = Stored(folder)
    content = stored.manifest
    nothing = dict.fromkeys(("seed", "digest", "faults", "population", "source"))
    return {
        **nothing, "seed_source": _origin(content),
        "protocol": content["protocol"], "trace": content["level"], "users": content["users"],
        "parameters": {}, "timings": {}, "compute": {}, "work": {}, "most": None, "counts": {},
        "outputs": {}, "faulty": {}, "canaries": {}, "faults_seen": {}, "versions": {}, "notes": {},
        "backend": "unknown", "crypto": MODELLED, "_trace": OnDemand(stored),
    }  # fmt: skip


def _origin(content: Mapping[str, Any]) -> str | None:
    """Return "fresh" or None: whether a given seed can be guessed is not known where it is not kept."""
    return seeds.FRESH if content.get("seed_source") == seeds.FRESH else None


__all__ = ["Kept", "Source", "Stored", "open_trace", "source"]


def open_trace(path: str | Path) -> Source:
    """Open the trace of a run directory, or a folder ``messages``, also of a run that was cut off.

    Raises InputError if there is none, it is damaged, or a newer version wrote it.
    """
    return guarded(Path(path), lambda: _opened(Path(path)))


def _opened(folder: Path) -> Source:
    here = folder_of(folder)
    if os.path.lexists(folder / run_json.RUN):
        content = run_json.read_run_json(folder)
        if here is not None:
            return of_run(folder, content)
    for place in (here, folder):
        if place is not None and os.path.lexists(place / manifest.NAME):
            return Stored(place)
    load(folder)  # all of it is checked
    return LazyRun(folder).messages_source()


def source(run: RunRecord | str | Path) -> Source:
    """Return the trace of a run: of a ``Run``, or of a run directory by its path."""
    if isinstance(run, (str, Path)):
        return open_trace(run)
    return run.messages_source()
