"""``p2p-sim attack``: of a protocol, which is run for it, or with ``--run`` of a saved run."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.check import quickly, warn_unchecked
from p2p_sim.cli.options import (
    EXECUTION,
    OUTPUT,
    REQUEST,
    SYNTHETIC,
    Address,
    Channels,
    ClusterColumn,
    Clusters,
    Data,
    Fault,
    Format,
    Graph,
    Json,
    Label,
    Positive,
    Test,
    Users,
    Words,
    address_of,
    check_data,
    count,
    faults_of,
    flag,
    numbers_of,
    option,
    ratio,
    set_options,
    text,
    texts,
    wants_json,
)
from p2p_sim.cli.saved_run import program_of, read_as_run
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError, near
from p2p_sim.report import terminal
from p2p_sim.rundir import run_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.leakage.attack_results import LabelInference
    from p2p_sim.run import Run

    Progress = Callable[[str, int, int], None]

ETA = ("knn", "model", "prior", "true")
UTILITIES = ("0/1", "weighted")

_NOT_REPEATED = ("words", "json", "format", "per_user", "plot", "address")  # an address is of that day
_OF_A_RUN = ("seed", "users", "cluster_size", "share", "shares", "features", "fault", "graph")
"""Options of a fresh run alone; --data of a saved one gives its users their features, where it kept none."""


@app.command(
    "attack",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim attack randomized-response --data digits --epsilon 1",
)
@dataclass(frozen=True)
class AttackCommand(TableOptions):
    """Guess labels with what a view sees, and say how many are guessed right with it and without it.

    Exit status 1: an attack does better than the law of its view allows.
    """

    words: Words = None
    run: Annotated[
        str | None, text(REQUEST, "Attack this run directory, and save the result in it.", "RUN")
    ] = None
    view: Annotated[list[str] | None, texts(REQUEST, "Who looks; default learner.  May be repeated.")] = None
    all_views: Annotated[
        bool, flag(REQUEST, "All views of account whose users follow the protocol.", "--all-views")
    ] = False
    eta: Annotated[
        str,
        text(
            REQUEST,
            "What an attacker thinks of labels before she sees a message: by features (knn, model), by "
            "class shares (prior), or as synthetic users are drawn (true); default knn.",
            "knn|model|prior|true",
        ),
    ] = "knn"
    utility: Annotated[
        str,
        text(
            REQUEST,
            "What a right guess is worth: 1, or the more the rarer the label; default 0/1.",
            "0/1|weighted",
        ),
    ] = "0/1"
    attacker: Annotated[
        list[str] | None,
        texts(
            REQUEST,
            "Only this attacker: prior, simple-prediction, optimal, canaries, or one of your own, MODULE:FUNCTION; "
            "default all shipped ones, but canaries only of a run that has some.  May be repeated.",
        ),
    ] = None
    canaries: Annotated[
        float | None,
        ratio(
            REQUEST,
            "Share of the users who are canaries where the protocol runs again for --attacker canaries; default 0.05.",
        ),
    ] = None
    channels: Channels = "plain"
    data: Data = None
    label: Label = None
    positive: Positive = None
    cluster_column: ClusterColumn = None
    clusters: Clusters = None
    test: Test = None
    users: Users = None
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in each cluster; default 1000.")] = None
    share: Annotated[float | None, ratio(SYNTHETIC, "Probability of a positive label; default 0.5.")] = None
    shares: Annotated[
        str | None, text(SYNTHETIC, "Probability of each label, in order; default all alike.", "P,P,...")
    ] = None
    features: Annotated[int | None, count(SYNTHETIC, "Features that carry the label; default none.")] = None
    fault: Fault = None
    graph: Graph = None
    backend: Annotated[
        str, text(EXECUTION, "Where a fresh run takes place; default local.", "local|shards|actors")
    ] = "local"
    shards: Annotated[int | None, count(EXECUTION, "Number of Ray actors.")] = None
    address: Address = None
    confidence: Annotated[float, ratio(EXECUTION, "Confidence of the intervals; default 0.95.")] = 0.95
    seed: Annotated[int | None, count(EXECUTION, "Seed of a fresh run; default 0.")] = None
    attack_seed: Annotated[
        int, count(EXECUTION, "Seed of what attackers draw: of estimates and canaries; default 0.")
    ] = 0
    per_user: Annotated[
        str | None,
        text(
            OUTPUT,
            "Write of each user how sure the optimal attacker is, and if she is right.",
            "FILE.csv|parquet",
        ),
    ] = None
    plot: Annotated[
        str | None, text(OUTPUT, "Draw of how many users an attacker is how sure.", "FILE.svg|png")
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Run or read, attack, print and write; returns 1 if an attack does better than allowed."""
        from p2p_sim.cli import parameters
        from p2p_sim.progress import Progress
        from p2p_sim.report import attack_table, per_user_certainty
        from p2p_sim.report.kept_file import ATTACKS

        as_json = wants_json(self.json, self.format)
        if self.run is None:
            parameters.parse(*parameters.resolve(self.words), "attack")  # a mistyped option is reported first
        self._check()
        table = None if self.per_user is None else per_user_certainty.check(
            self.per_user, "--per-user", per_user_certainty.TABLES
        )  # fmt: skip
        drawn = (
            None
            if self.plot is None
            else per_user_certainty.check(self.plot, "--plot", per_user_certainty.PLOTS)
        )
        with Progress() as progress, terminal.stdout_to_stderr():
            run, held_out, document = self._saved(progress) if self.run is not None else self._fresh(progress)
            try:
                found = self._attacked(run, held_out, document, progress)
            except InputError as error:
                raise InputError(_by_option(str(error))) from error
            kept = attack_table.kept_counts(document["views"])
            if drawn is not None:
                _check_any(kept, "--plot")
                per_user_certainty.write_plot(drawn, per_user_certainty.plot("users-at-risk", kept))
            if table is not None:
                people = {name: each.per_user for name, each in found.items() if each.per_user is not None}
                _check_any(people, "--per-user")
                per_user_certainty.write_table(table, people)
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(attack_table.as_text(document))
        )
        if self.run is not None:
            place = ATTACKS.add(Path(self.run), run, document)
            sys.stdout.write("" if as_json else f"Kept in {terminal.visible(str(place))}\n")
        return int(attack_table.failed(document))

    def _saved(self, progress: Progress) -> tuple[Run, Population | None, dict[str, Any]]:
        """Return the run ``--run``, the people held out of it if its data are given, and the head of its document.

        Raises InputError if nothing can be kept in it.
        """
        from p2p_sim.report.kept_file import ATTACKS
        from p2p_sim.run import load

        assert self.run is not None
        progress(f"reading {self.run}", 0, 0)
        run = load(Path(self.run))
        ATTACKS.check(Path(self.run), run)
        program = program_of(self.words, self.run, run, "attack")
        run.source, held_out = program, None
        if self.data is not None:
            run.population, held_out = self._with_features(run, progress)
        elif self.eta in ("knn", "model") and run.population is not None and run.population.x is None:
            warnings.warn(
                f"this run kept no features of its users, so --eta {self.eta} is of class shares alone; --data NAME "
                "reads the features of a run on data again",
                stacklevel=2,
            )
        return run, held_out, self._head(program, run.notes.get("defaults", ()), run) | {"run": self.run}

    def _with_features(self, run: Run, progress: Progress) -> tuple[Population, Population | None]:
        """Return the users of a saved run with the features of its data, and the people held out of it.

        Raises InputError if the data are of others.
        """
        import numpy as np

        from p2p_sim.cli.users import gathered
        from p2p_sim.learning import planted_canaries

        people, about = run.population, run.notes.get("data") or {}
        assert run.source is not None
        if people is None or run.seed is None:
            raise InputError(f"run {self.run!r} was saved without its population: its labels are not known")
        asked = read_as_run(self, self.run or "", run)
        examples = gathered(asked, run.source, about.get("split_seed", run.seed), progress)
        again, given = examples.population, planted_canaries.as_given(run)
        assert given is not None
        if not np.array_equal(again.y, given.y) or not np.array_equal(again.sizes, people.sizes):
            made = shlex.join(run.notes.get("command", ()))
            raise InputError(
                f"--data {self.data}: these are not the users of run {self.run!r}; give the data, and the options that "
                f"say how they are read and divided, as the run was made: {made}"
            )
        width = 0 if again.x is None else again.x.shape[1]
        if about.get("features", width) != width:
            raise InputError(
                f"--data {self.data}: has {width:,} features, and the users of run {self.run!r} had "
                f"{about['features']:,}; give the data of the run"
            )
        return replace(people, x=again.x), examples.held_out()

    def _fresh(self, progress: Progress) -> tuple[Run, Population | None, dict[str, Any]]:
        """Run a protocol among the users that are asked for.

        Returns the run, the people held out of it, None of synthetic users, and the head of its document.
        """
        from p2p_sim.cli import parameters
        from p2p_sim.cli.users import how_read
        from p2p_sim.learning import experiment, user_graph

        words, offered = parameters.resolve(self.words)
        chosen = parameters.choose(words, offered, "attack")
        protocol = chosen.protocol
        faults_of(self.fault, protocol)
        user_graph.check(protocol, self.graph)
        unchecked = quickly(protocol)
        settings: dict[str, Any] = {
            "seed": self.seed or 0, "trace": "full", "digest": False, "faults": self.fault, "graph": self.graph,
            "model": "none", "progress": progress,
            "backend": self.backend, "shards": self.shards, "address": address_of(self),
        }  # fmt: skip
        held_out = None
        if self.users is not None:
            people = set_options(self, "cluster_size", "share", "features")
            people["shares"] = None if self.shares is None else numbers_of("--shares", self.shares)
            run = experiment.simulate(protocol, self.users, **people, **settings)
        else:
            assert self.data is not None
            choices = how_read(self) | set_options(self, "clusters", "test")
            learned = experiment.learn(protocol, self.data, **choices, **settings)
            run, held_out = learned.run, learned.examples.held_out()
        warn_unchecked(unchecked)
        return run, held_out, self._head(protocol, chosen.defaults, run)

    def _head(self, protocol: Protocol, defaults: Sequence[str], run: Run) -> dict[str, Any]:
        """Return all of the document but what each view shows."""
        values = {name: value for name, value in protocol.parameters().items() if value is not None}
        data = run.notes.get("data")
        return {
            "protocol": protocol.command_name(), "parameters": values, "defaults": list(defaults),
            "data": None if data is None else data["name"], "eta": self.eta, "utility": self.utility,
            "confidence": self.confidence, "seed": run.seed,
            **_with_canaries(run),
            "channels": self.channels, "command": shlex.join(self._repeat_command(protocol)),
        }  # fmt: skip

    def _repeat_command(self, protocol: Protocol) -> list[str]:
        """Return the command that repeats the attack, with the same figures."""
        from p2p_sim.cli import parameters

        own = parameters.custom_name(self.words or [])
        named = parameters.to_words(protocol, self.words or []) if self.run is None else [own] if own else []
        words = ["p2p-sim", "attack", *named]
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in _NOT_REPEATED or value == each.default:
                continue
            several = value if isinstance(value, list) else [value]
            for one in several:
                words += [option(each.name)] if one is True else run_json.option(option(each.name), one)
        return words

    def _attacked(
        self, run: Run, held_out: Population | None, document: dict[str, Any], progress: Progress
    ) -> dict[str, LabelInference]:
        """Put the views into the document, and return what was found of each, by its title."""
        from p2p_sim.privacy.table_rows import curious_first, named_rows, rows
        from p2p_sim.report import attack_table

        assert run.source is not None
        views = (
            rows(run.source)
            if self.all_views
            else curious_first(named_rows(run.source, self.view or [attack_table.LEARNER]))
        )
        found, document["views"] = attack_table.rows_of(
            run, views, progress, must=not self.all_views, eta=self.eta, utility=self.utility,
            attackers=self.attacker, confidence=self.confidence, seed=self.attack_seed, channels=self.channels,
            held_out=held_out, canaries=self.canaries,
        )  # fmt: skip
        return found

    def _check(self) -> None:
        """Check what can be checked before any work; raises InputError."""
        from p2p_sim import backends
        from p2p_sim.coalition import CHANNELS
        from p2p_sim.core.population import check_seed
        from p2p_sim.leakage.advantage import CANARIES
        from p2p_sim.leakage.attack import NAMES
        from p2p_sim.leakage.attacker_names import named
        from p2p_sim.learning import planted_canaries

        if self.all_views and self.view:
            raise InputError("--all-views and --view are both given: give one of them")
        for name, value, allowed in (
            ("eta", self.eta, ETA), ("utility", self.utility, UTILITIES), ("channels", self.channels, CHANNELS),
        ):  # fmt: skip
            if value not in allowed:
                raise InputError(
                    f"{option(name)} {value!r}: must be one of {', '.join(allowed)}{near(value, allowed)}"
                )
        for name in self.attacker or ():
            if ":" in name:
                with terminal.stdout_to_stderr():  # modules that are imported may print
                    named(name)
            elif name not in NAMES:
                own = "one of your own, MODULE:FUNCTION"
                raise InputError(
                    f"--attacker {name!r}: must be one of {', '.join(NAMES)}, or {own}{near(name, NAMES)}"
                )
        if self.canaries is not None and CANARIES not in (self.attacker or ()):
            raise InputError(
                f"--canaries {self.canaries:g}: the share of users for --attacker canaries, which is not asked for: "
                "add that, or leave this out"
            )
        planted_canaries.check(self.canaries, trains=True)
        if self.eta == "true" and self.data is not None and self.run is None:
            raise InputError(
                "--eta true: nobody knows by which P(label | features) the labels of data were drawn; give --eta knn, "
                "model or prior, or synthetic users by --users"
            )
        check_seed(self.seed or 0)
        check_seed(self.attack_seed)
        backends.Settings(self.backend, None, self.shards, self.address)
        elsewhere = () if self.backend == "local" else ("backend",)
        for name in (*set_options(self, *_OF_A_RUN), *elsewhere) if self.run is not None else ():
            raise InputError(f"{option(name)} is for a fresh run, and --run names one: leave one of them out")
        if self.run is None and (self.data is None) == (self.users is None):
            what = "there are no users" if self.data is None else "--data and --users are both given"
            raise InputError(
                f"{what}: give --data NAME_OR_FILE (see p2p-sim data), --users N for synthetic ones, or --run RUN"
            )
        check_data(self)
        without = self.users is None and self.run is None
        for name in set_options(self, "cluster_size", "share", "shares", "features") if without else ():
            raise InputError(f"{option(name)} needs --users, which is missing: leave it out")


def _with_canaries(run: Run) -> dict[str, str]:
    """Say of a run with canaries that its labels are not those of the data."""

    from p2p_sim.learning import planted_canaries

    planted = planted_canaries.of_columns(run.canaries)
    return {} if planted is None else {"canaries": planted.note()}


def _by_option(message: str) -> str:
    """Return what the package says of an argument, with the option's name in place of the argument's."""
    return re.sub(r"^(eta|utility|confidence|canaries) = '?([^':]*)'?:", r"--\1 \2:", message)


def _check_any(found: Collection[Any], option: str) -> None:
    if not found:
        raise InputError(
            f"{option}: no attacker of these views gives a probability for each user, so there is nothing to write: "
            "leave it out"
        )
