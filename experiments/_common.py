"""The frame of all experiments: what one is, what comes out of it, and the command that runs it.

A script has one ``EXPERIMENT``, at module level, and ends with ``sys.exit(main(EXPERIMENT))``.  ``main`` writes
``NAME.csv`` and ``NAME_part.csv`` for its tables, SVG and PNG for its plots, and ``NAME.json`` with its claims; then
it compares the tables with ``expected/``, those of a quick run with ``expected/quick/``.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from experiments import _expected, _made_by, _needs, _plots
from experiments._expected import Held
from experiments._processors import HERE, Processors
from experiments._rows import SUFFIX, CasesFailedError, Kept
from p2p_sim.core.errors import InputError, RunLostError
from p2p_sim.core.number_texts import read_whole
from p2p_sim.report import output_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2p_sim.learning.data_split import Examples

Verdict = Literal["reproduced", "reproduced in shape", "not reproduced", "not comparable"]
VERDICTS: tuple[str, ...] = get_args(Verdict)

_MOST = 100_000
"""Seeds or workers that can be asked for: more would not end."""

OWN = "this project"
"""How the place of a statement begins that is no paper's; these are counted apart."""

DRIFTED, UNUSABLE, INTERRUPTED = 1, 2, 130
"""Exit codes: a value left its tolerance; what was asked for cannot be done; Ctrl-C."""


@dataclass(frozen=True)
class Claim:
    """One statement against what came out; raises InputError where a part is missing."""

    where: str
    """The place in a paper, such as "Clustering 2022, Figure 1".  What no paper says begins with ``OWN``."""
    says: str
    """What is said there, in our own words."""
    found: str
    """What came out; every number is formatted from the rows."""
    verdict: Verdict
    """Decided by code from the rows."""
    why: str
    """Why it differs, or why it can be compared at all: other data, another model, a corrected theorem."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value.strip():
                raise InputError(
                    f"a claim of {self.where!r} has no {name!r}: every claim needs all of its parts"
                )
        if self.verdict not in VERDICTS:
            raise InputError(f"verdict {self.verdict!r}: needs one of {', '.join(VERDICTS)}")


@dataclass(frozen=True)
class Options:
    """What a run was asked for; ``seeds`` None: the script's own number; ``processors``: what computes its cases."""

    quick: bool
    seeds: int | None
    out: Path
    processors: Processors = HERE

    def kept(self, table: str, what: str = "rows") -> Kept:
        """Return the rows of a table that are kept, and computed by these processors; ``what``: plural of a case."""
        return Kept(self.out / f"{table}.csv", what, self.processors)


@dataclass(frozen=True)
class Outcome:
    """What an experiment found: tables and plots by part ("" is the main one), and claims decided from their rows."""

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    claims: Sequence[Claim]
    plots: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper, or a result of our own, and what computes it."""

    name: str
    """Of its script: ``experiments/NAME.py``."""
    title: str
    source: str
    """Paper and figure, or "this project"."""
    takes: str
    """Time of a full run by one process on two cores, measured: "4 minutes"."""
    run: Callable[[Options], Outcome]
    needs: tuple[str, ...] = ()
    """Packages and data sets: "torch", "mnist".  Where one is absent the experiment is skipped, with the reason."""
    keys: tuple[str, ...] = ()
    """Columns that identify a row of the main table."""
    values: Mapping[str, str | float] = field(default_factory=dict)
    """Columns held to ``expected/NAME.csv``: to the column of their standard error, or to an absolute tolerance."""
    parts: Mapping[str, Held] = field(default_factory=dict)
    """The same of other tables, by part, held to ``expected/NAME_part.csv``."""
    seeded: bool = True
    """Whether --seeds changes what is computed; where it does not, it is refused."""
    in_one: str = ""
    """Why it is computed in one process, such as "it takes seconds"; then --workers and --address are refused."""

    def refused(
        self, *, seeds: int | None = None, workers: int | None = None, address: str | None = None
    ) -> str:
        """Say which of these options the script has no use for; "" where it has for all that are given."""
        for name, given in (("workers", workers), ("address", address)):
            if given is not None and self.in_one:
                return f"--{name} {given}: {self.name} is computed in one process, as {self.in_one}; leave --{name} out"
        if seeds is not None and not self.seeded:
            return f"--seeds {seeds}: {self.name} has no number of seeds to choose; leave --seeds out"
        return ""

    def held(self) -> dict[str, Held]:
        """Return what is held to earlier values, by part."""
        return ({"": Held(self.keys, self.values)} if self.values else {}) | dict(self.parts)


def main(experiment: Experiment, arguments: Sequence[str] | None = None) -> int:
    """Run an experiment as its command does and return the exit code: 0, also if skipped, DRIFTED or UNUSABLE."""
    experiment = _importable(experiment)
    parser = _parser(experiment)
    given = parser.parse_args(arguments)
    options = _options(parser, experiment, given)
    place = options.out / f"{experiment.name}.json"
    check(parser, place, options.out / f"{experiment.name}.csv")
    if given.fresh:
        for kept in _kept_by(experiment.name, options.out):
            kept.unlink()
    try:
        return _run(experiment, options, place)
    except (InputError, RunLostError, CasesFailedError) as error:
        print(f"{experiment.name}: {error}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print(
            f"{experiment.name}: ended; the same command goes on with the rows it has kept", file=sys.stderr
        )
        return INTERRUPTED


def _kept_by(name: str, out: Path) -> list[Path]:
    """Return the files of rows of one script's tables, without those of a script whose name only begins alike."""
    longer = [each.stem for each in _made_by.FOLDER.glob(f"{name}_*.py")]
    return [
        file
        for file in out.glob(f"{name}*.csv{SUFFIX}")
        if not any(file.name.startswith(each) for each in longer)
    ]


def _importable(experiment: Experiment) -> Experiment:
    """Return a script's experiment as others import it: a worker does not find the functions of ``__main__``."""
    if experiment.run.__module__ != "__main__":
        return experiment
    found: Experiment = importlib.import_module(f"experiments.{experiment.name}").EXPERIMENT
    return found


def _options(parser: ArgumentParser, experiment: Experiment, given: argparse.Namespace) -> Options:
    """Return what was asked for; ends the program for what is of no use."""
    if refused := experiment.refused(seeds=given.seeds, workers=given.workers, address=given.address):
        parser.error(refused)
    try:
        processors = (
            HERE if experiment.in_one else Processors.asked(given.workers, given.address, quick=given.quick)
        )
    except InputError as error:
        parser.error(str(error))
    return Options(given.quick, given.seeds, given.out, processors)


def _run(experiment: Experiment, options: Options, place: Path) -> int:
    start, worked = time.monotonic(), _processor_seconds()
    missing = _needs.missing(experiment.needs)
    outcome = None if missing else experiment.run(options)
    moved: list[str] = []
    if outcome is not None:
        if not outcome.claims:
            raise InputError(
                f"{experiment.name} claims nothing: an experiment holds a paper to what came out"
            )
        for part, rows in outcome.tables.items():
            write_csv(options.out / f"{_file(experiment, part)}.csv", rows)
        for part, plot in outcome.plots.items():
            _plots.save(plot, options.out / _file(experiment, part))
        moved = drifted(experiment, options, outcome)
    took = {"seconds": time.monotonic() - start, "processor_seconds": _processor_seconds() - worked}
    _write_json(place, _document(experiment, options, outcome, missing, moved, took))
    _say(experiment, outcome, missing, moved)
    return DRIFTED if moved else 0


def drifted(experiment: Experiment, options: Options, outcome: Outcome) -> list[str]:
    """Say which values of a run left their tolerance of earlier ones."""
    said = []
    for part, held in experiment.held().items():
        file = _expected.file(_file(experiment, part), quick=options.quick)
        if file.exists():
            said += _expected.drifted(outcome.tables[part], read_csv(file), held, whole=options.seeds is None)
    return said


def _document(
    experiment: Experiment, options: Options, outcome: Outcome | None, missing: str, moved: list[str],
    took: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    """Return what NAME.json says."""
    return {
        "name": experiment.name,
        "quick": options.quick,
        "seeds": options.seeds,
        **{name: round(seconds, 1) for name, seconds in took.items()},
        "skipped": missing,
        "drifted": moved,
        "claims": [asdict(claim) for claim in outcome.claims] if outcome else [],
        "plots": [_file(experiment, part) for part in outcome.plots] if outcome else [],
        "tables": [_file(experiment, part) for part in outcome.tables] if outcome else [],
        "code": _made_by.code(experiment.name),
    }


def _processor_seconds() -> float:
    """Return the seconds of all processors that this process and those it has ended have taken."""
    return sum(os.times()[:4])


def _say(experiment: Experiment, outcome: Outcome | None, missing: str, moved: list[str]) -> None:
    if outcome is None:
        print(f"{experiment.name}: skipped: {missing}", file=sys.stderr)
        return
    for claim in outcome.claims:
        print(f"{claim.verdict}: {claim.where}: {claim.says}\n    {claim.found}\n    {claim.why}")
    for each in moved:
        print(f"{experiment.name}: {each}", file=sys.stderr)


def _file(experiment: Experiment, part: str) -> str:
    return f"{experiment.name}_{part}" if part else experiment.name


def _write_json(place: Path, content: Mapping[str, Any]) -> None:
    output_files.write(place, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _parser(experiment: Experiment) -> ArgumentParser:
    parser = ArgumentParser(
        f"experiments.{experiment.name}",
        description=f"{experiment.title} ({experiment.source}); a full run takes {experiment.takes}.",
    )
    add_options(parser)
    return parser


def add_options(parser: ArgumentParser) -> None:
    """Add the options that every experiment has."""
    parser.add_argument("--quick", action="store_true", help="less of everything, in 15 seconds or so")
    parser.add_argument(
        "--seeds",
        type=_count,
        help="runs of each setting; default: the script's own number; refused where it changes nothing",
    )
    parser.add_argument(
        "--workers",
        type=_count,
        help="processes that compute at the same time; default: one for each processor; with --quick this one alone",
    )
    parser.add_argument(
        "--address",
        help="host:port of a Ray cluster, whose processors compute instead; default: RAY_ADDRESS, unless --quick or "
        "--workers is given",
    )
    parser.add_argument(
        "--out", type=folder_named, default=Path("results"), help="folder of results; default: results"
    )
    parser.add_argument("--fresh", action="store_true", help="compute again what is there already")


def _count(text: str) -> int:
    """Return how many of something are asked for, as ``p2p-sim`` reads numbers; argparse names the option."""
    try:
        found = read_whole(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} {error}") from None
    if not 1 <= found <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r:.60} needs at least 1, at most {_MOST:,}")
    return found


def folder_named(text: str) -> Path:
    """Return a folder that an option names; argparse names the option of an empty one."""
    if not text:  # an unset variable of a shell: the folder that one is in is not asked for
        raise argparse.ArgumentTypeError("'' is no folder: give its path, or . for the one that you are in")
    return Path(text)


def check(parser: argparse.ArgumentParser, *places: Path) -> None:
    """Make the folders of results, and check that these can be written there; ends the program if not.

    For before any work: results of an hour need a place.
    """
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            output_files.check(str(place))
        except InputError as error:
            parser.error(str(error))
        except OSError as error:
            parser.error(f"{str(place.parent)!r} cannot be a folder ({error.strerror}): choose another --out")


def read_outcome(file: Path, keys: Sequence[str]) -> dict[str, Any] | None:
    """Return what a script wrote of its run; None if there is none.  Raises InputError for what has not these keys."""
    try:
        found = json.loads(file.read_text())
        if type(found) is not dict or (missing := [key for key in keys if key not in found]):
            raise ValueError(f"it has no {missing[0]!r}" if type(found) is dict else "it holds no object")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{str(file)!r} is no outcome of an experiment ({error}): remove it") from error
    return dict(found)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with one head, whole or not at all; raises InputError."""
    if not rows:
        raise InputError(f"{path.name} has no rows: a table needs at least one")
    path.parent.mkdir(parents=True, exist_ok=True)
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    output_files.write(path, page.getvalue())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read rows back, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def accuracy(examples: Examples, rows: Any, y: Any) -> float:
    """Train logistic regression on some users' features with labels ``y``; return its share of right test rows."""
    from p2p_sim.learning.training import models
    from p2p_sim.learning.training.models import one_thread

    x = examples.population.x
    assert x is not None
    with one_thread():
        predicted = models.make().fit(x[rows], y).predict(examples.x_test)
    return float((predicted == examples.y_test).mean())
