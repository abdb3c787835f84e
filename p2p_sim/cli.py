"""The command line, ``p2p-sim``: every verb is a frozen dataclass of its options with a method ``work``.

typer reads the words and makes the dataclass; ``main`` does the work and owns the errors.
Exit status: 0; 1 a check failed; 2 bad usage or input, said on stderr; 130 interrupted; 141 nobody reads on.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import protocols
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
from p2p_sim.core.ledger import TraceLevel
from p2p_sim.core.population import check_seed
from p2p_sim.report import terminal
from p2p_sim.report.options import (
    HOW,
    KEPT,
    REAL,
    SYNTHETIC,
    Format,
    Json,
    comma_list,
    count,
    flag,
    option,
    ratio,
    text,
    wants_json,
)

Command = Sequence[str]
"""The words of the command line, after the program's name."""

app = typer.Typer(
    name="p2p-sim", add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False,
    epilog="Example: p2p-sim run peer-to-peer --data digits",
)  # fmt: skip
BENCHMARKS = ("engine",)
_FOR_DATA = ("label", "positive", "cluster_column", "clusters", "test", "model")
_FOR_USERS = ("cluster_size", "share")
_UsageError: Any = typer.BadParameter.__bases__[0]


class _RunCommand(TyperCommand):
    """Adds the parameters of all protocols to the help, when it is asked for."""

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        return ["PROTOCOL", "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from p2p_sim.report import parameters

        self.epilog = f"{parameters.describe(protocols.ALL)}\n\n{self.epilog}"
        super().format_help(ctx, formatter)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"p2p-sim {version('p2p-sim')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _no_verb(
    ctx: typer.Context,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The lab for private labels: run a label-privacy protocol message by message, see what comes of it."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command(
    "run",
    cls=_RunCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim run peer-to-peer --data digits --alpha 0.1 --theta 0.5 --clusters 12 --seed 7",
)
@dataclass(frozen=True)
class Run:
    """Run a protocol among users with real examples, train a model on what was released, keep the run."""

    words: Annotated[
        list[str] | None, typer.Argument(metavar="PROTOCOL", help="Its parameters are options: see below.")
    ] = None
    data: Annotated[str | None, text(REAL, "A set that p2p-sim data lists, or a file of your own.")] = None
    label: Annotated[str | None, text(REAL, "The column of labels.")] = None
    positive: Annotated[str | None, text(REAL, "The classes that count as 1.", "A,B")] = None
    cluster_column: Annotated[str | None, text(REAL, "A column of cluster numbers.")] = None
    clusters: Annotated[
        int | None, count(REAL, "Instead: clusters by k-means; default one for 150 users, at most 200.")
    ] = None
    test: Annotated[
        float | None, ratio(REAL, "Share of rows that tests; default the set's own test part, else 0.2.")
    ] = None
    model: Annotated[
        str | None, text(REAL, "A scikit-learn classifier, or none; default logistic-regression.")
    ] = None
    users: Annotated[int | None, count(SYNTHETIC, "How many.")] = None
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users a cluster; default 1000.")] = None
    share: Annotated[float | None, ratio(SYNTHETIC, "Probability of a positive label; default 0.5.")] = None
    backend: Annotated[str, text(HOW, "Where; default local.", "local|shards|actors")] = "local"
    shards: Annotated[int | None, count(HOW, "How many Ray actors.")] = None
    blocks: Annotated[int | None, count(HOW, "Into how many blocks users are cut.")] = None
    address: Annotated[str | None, text(HOW, "A Ray cluster; default one of its own.", "HOST:PORT")] = None
    seed: Annotated[int, count(HOW, "Decides every draw, the test rows and k-means; default 0.")] = 0
    trace: Annotated[str, text(KEPT, "Messages kept; default none.", "none|counts|sample=N|full")] = "none"
    out: Annotated[str | None, text(KEPT, "Folder of the run; default a new one in runs/.")] = None
    force: Annotated[bool, flag(KEPT, "Replace the run in --out.", "--force")] = False
    no_population: Annotated[bool, flag(KEPT, "Leave labels out: no replay.", "--no-population")] = False
    no_digest: Annotated[bool, flag(KEPT, "Compute no digest: faster.", "--no-digest")] = False
    json: Json = False
    format: Format = "text"

    def work(self, command: Command) -> int:
        """Run, train, save, tell."""
        from p2p_sim.report import console, directory, memory, parameters
        from p2p_sim.report.progress import Progress

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.own(self.words or [], protocols.ALL)
        chosen = parameters.choose(words, offered)
        self._check()
        name = chosen.protocol.command_name()
        stem = directory.stem(
            name, "synthetic" if self.data is None else Path(self.data).name.partition(".")[0]
        )
        place = directory.place(self.out, stem, self.force)
        with Progress() as progress, terminal.stdout_kept():
            run = self._run(chosen.protocol, progress)
            run.notes |= {"command": ["p2p-sim", *command], "defaults": list(chosen.defaults)}
            progress("writing the run", 0, 0)
            before = time.perf_counter()
            path = place.save(run, population=not self.no_population)
            run.timings["saving"] = time.perf_counter() - before
        told = console.document(run, name, chosen.defaults, path, memory.peak(self.backend))
        sys.stdout.write(console.as_json(told) if as_json else console.as_text(told))
        return 0

    def _run(self, protocol: Any, progress: Any) -> Any:
        from p2p_sim.learning import experiment

        plan = self._given("backend", "shards", "blocks", "address", "seed", "trace")
        plan["digest"] = not self.no_digest
        if self.users is not None:
            sizes = self._given("cluster_size", "share")
            return experiment.simulate(protocol, self.users, **sizes, progress=progress, **plan)
        assert self.data is not None
        positive = None if self.positive is None else comma_list(self.positive)
        choices = self._given("label", "cluster_column", "clusters", "test", "model")
        return experiment.learn(
            protocol, self.data, positive=positive, **choices, progress=progress, **plan
        ).run

    def _check(self) -> None:
        """Check what can be checked before any work; raises InputError."""
        from p2p_sim import backends
        from p2p_sim.backends import address

        if (self.data is None) == (self.users is None):
            what = "nothing to run on" if self.data is None else "--data and --users are both there"
            raise InputError(
                f"{what}: give --data NAME_OR_FILE (see p2p-sim data), or --users N for synthetic ones"
            )
        other, needed = (_FOR_DATA, "--data") if self.data is None else (_FOR_USERS, "--users")
        for name in self._given(*other):
            raise InputError(f"{option(name)} goes with {needed}, which is not there: leave it out")
        if self.cluster_column is not None and self.clusters is not None:
            raise InputError("--cluster-column and --clusters are both there: clusters come from one of them")
        backends.Settings(self.backend, self.blocks, self.shards, self.address)
        TraceLevel.parse(self.trace)
        check_seed(self.seed)
        if self.address is not None:
            address.probe(self.address)

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@app.command("data", epilog="Example: p2p-sim data --json")
@dataclass(frozen=True)
class Data:
    """List the data sets that are known by name, and where each would come from.  Nothing is loaded."""

    json: Json = False
    format: Format = "text"

    def work(self, _command: Command) -> int:
        """List them."""
        from p2p_sim.learning import datasets
        from p2p_sim.report import console

        as_json = wants_json(self.json, self.format)
        rows = [vars(info) for info in datasets.available()]
        head = ("name", "rows", "features", "label", "positive", "where")
        sys.stdout.write(console.as_json(rows) if as_json else console.table_of(head, rows))
        return 0


@app.command("bench", epilog="Example: p2p-sim bench engine --users 1e6 --cases local,digest --json")
@dataclass(frozen=True)
class Bench:
    """Measure performance as ratios within one call.  Needs a checkout of the repository."""

    name: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(BENCHMARKS)}.")]
    users: Annotated[int, count(HOW, "How many; default 1e7.")] = 10_000_000
    cases: Annotated[str | None, text(HOW, "Which rows; default all.", "A,B")] = None
    repeat: Annotated[int, count(HOW, "Medians of how many repeats; default 5.")] = 5
    json: Json = False
    format: Format = "text"

    def work(self, _command: Command) -> int:
        """Measure and tell."""
        from p2p_sim.report import console
        from p2p_sim.report.progress import Progress

        as_json = wants_json(self.json, self.format)
        module = benchmark(self.name)
        cases = module.CASES if self.cases is None else tuple(comma_list(self.cases))
        with Progress() as progress, terminal.stdout_kept():
            result = module.main(self.users, cases, self.repeat, progress)
        sys.stdout.write(console.as_json(result) if as_json else console.measured(result))
        return 0


def benchmark(name: str) -> ModuleType:
    """Import a benchmark from the checkout this package lies in; raises InputError if there is none."""
    if name not in BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}; known benchmarks: {', '.join(BENCHMARKS)}")
    root = Path(__file__).resolve().parents[1]
    if not (root / "benchmarks" / f"{name}.py").is_file():
        raise InputError(
            f"no benchmarks beside {root / 'p2p_sim'}: run from a checkout, installed with pip install -e ."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(f"benchmarks.{name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    terminal.ready()
    try:
        with terminal.warnings_as_lines():
            verb = app(words, prog_name="p2p-sim", standalone_mode=False)
            status = int(verb.work(words) if hasattr(verb, "work") else verb or 0)
        sys.stdout.flush()
    except (InputError, ProtocolError, RunLostError) as error:
        return _refused(str(error))
    except _UsageError as error:
        where = getattr(error.ctx, "command_path", "p2p-sim")
        message = error.format_message().replace("Value error, ", "")  # pydantic's word for ours
        return _refused(f"{message} (see {where} --help)")
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return 130
    except (MemoryError, UnicodeError) as error:
        return _refused(f"{type(error).__name__}: {error}; use a smaller size or a plain name")
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # or Python complains when it closes stdout
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _refused(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    return status


def _refused(message: str) -> int:
    if sys.stderr is not None:
        print("error: " + " ".join(message.split()), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
