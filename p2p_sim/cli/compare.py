"""``p2p-sim compare``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import (
    EXECUTION,
    OUTPUT,
    REAL_DATA,
    REQUEST,
    SYNTHETIC,
    ClusterColumn,
    Clusters,
    Data,
    Format,
    Json,
    Label,
    Positive,
    Test,
    Users,
    comma_list,
    count,
    numbers_of,
    ratio,
    set_options,
    text,
    texts,
    wants_json,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.reading_options import PLAIN, Reading
from p2p_sim.report import terminal


@app.command(
    "compare",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim compare --data breast-cancer --target epsilon=1 --out comparisons/first",
)
@dataclass(frozen=True)
class CompareCommand(TableOptions):
    """Calibrate every protocol that takes your labels to one promise, run them, and recommend one, with doubts.

    Exit status 1: nothing is recommended.
    """

    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CONSTRAINT]...", help='Further constraints, such as "user<=2".'),
    ] = None
    target: Annotated[
        str | None,
        text(
            REQUEST,
            "What one view may learn; view=learner and delta=1e-6 by default.",
            "view=V,epsilon=E,delta=D",
        ),
    ] = None
    constraint: Annotated[
        list[str] | None,
        texts(
            REQUEST,
            'What another view may learn, such as "user<=2" or "coalition(3)<=4".  Several may follow.',
        ),
    ] = None
    protocols: Annotated[
        str | None, text(REQUEST, "Only these, or of your own, MODULE:CLASS; default all.", "A,B")
    ] = None
    range: Annotated[
        str | None,
        text(REAL_DATA, "Labels are numbers, by public knowledge from LOW to HIGH.", "LOW,HIGH"),
    ] = None
    data: Data = None
    label: Label = None
    positive: Positive = None
    cluster_column: ClusterColumn = None
    clusters: Clusters = None
    test: Test = None
    model: Annotated[str | None, text(EXECUTION, "The classifier; default logistic-regression.", "NAME")] = (
        None
    )
    users: Users = None
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in each cluster; default 1000.")] = None
    share: Annotated[float | None, ratio(SYNTHETIC, "Probability of a positive label; default 0.5.")] = None
    shares: Annotated[
        str | None, text(SYNTHETIC, "Probability of each label, in order; default all alike.", "P,P,...")
    ] = None
    features: Annotated[int | None, count(SYNTHETIC, "Features that carry the label; default none.")] = None
    seeds: Annotated[int, count(EXECUTION, "How many seeds, from 0 on; default 5.")] = 5
    budget: Annotated[
        str | None, text(EXECUTION, "Time, such as 90s, 10m, 1h; default as long as it takes.", "TIME")
    ] = None
    workers: Annotated[
        int | None, count(EXECUTION, "Processes at the same time; default all processors.")
    ] = None
    address: Annotated[
        str | None,
        text(
            EXECUTION,
            "A Ray cluster, whose processors do the work; default RAY_ADDRESS, unless --workers is given.",
            "HOST:PORT",
        ),
    ] = None
    out: Annotated[
        str | None,
        text(
            OUTPUT,
            "Folder, with report.html; given again, it goes on.  Default comparisons/NAME, no report.",
            "FOLDER",
        ),
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Compare and print; 1 if nothing is recommended."""
        from p2p_sim import comparison
        from p2p_sim.progress import Progress

        as_json = wants_json(self.json, self.format)
        if self.target is None:
            raise InputError(
                "--target is missing: say what a view may learn, such as p2p-sim compare --data FILE.csv "
                "--label COLUMN --positive VALUE --target view=learner,epsilon=1,delta=1e-6 "
                "--constraint 'user<=2' --out FOLDER"
            )
        how: dict[str, Any] = {
            "target": self.target,
            "constraints": [*(self.constraint or ()), *(self.more or ())],
            "protocols": None if self.protocols is None else comma_list(self.protocols),
            "range": None if self.range is None else numbers_of("--range", self.range),
            **{name: getattr(self, name) for name in ("seeds", "budget", "out", "workers", "address")},
        }
        try:
            with Progress() as progress, terminal.stdout_to_stderr():
                found = comparison.compare(progress=progress, **how, **self._people())
        except KeyboardInterrupt:
            print("what was made is kept: give the same command again to go on", file=sys.stderr)
            raise
        sys.stdout.write(found.as_json() if as_json else terminal.fitted(str(found)))
        if not as_json:
            sys.stdout.write(f"Kept in {terminal.visible(str(found.path))}\n")
        return int(found.recommendation.protocol is None)

    def _people(self) -> dict[str, Any]:
        """Return what the options say of the people, by the names of a sweep."""
        among = ("clusters", "cluster_column", "test", "cluster_size", "share", "features")
        names = ("data", "label", "users", "model", *among)
        found = set_options(self, *names)
        for name in ("positive", "classes"):
            if getattr(self, name) is not None:
                found[name] = comma_list(getattr(self, name))
        if self.shares is not None:
            found["shares"] = numbers_of("--shares", self.shares)
        reading = self.reading()
        return found | {each.name: _listed(getattr(reading, each.name)) for each in _not_by_default(reading)}


def _not_by_default(reading: Reading) -> list[Any]:
    return [each for each in fields(Reading) if getattr(reading, each.name) != getattr(PLAIN, each.name)]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
