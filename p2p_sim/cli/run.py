"""``p2p-sim run``."""

from __future__ import annotations

import functools
import shlex
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim import costing
from p2p_sim.cli import interrupted_run, population_option
from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.check import quickly, warn_unchecked
from p2p_sim.cli.interrupted_run import InterruptedRun
from p2p_sim.cli.options import (
    EXECUTION,
    OUTPUT,
    REAL_DATA,
    SYNTHETIC,
    Address,
    Clusters,
    Crypto,
    Data,
    Delta,
    Fault,
    Format,
    Graph,
    Json,
    Label,
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
    wants_json,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.core.sealing import MODELLED
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.learning.data import sources
from p2p_sim.report import terminal
from p2p_sim.report.delta import DELTA, check_delta
from p2p_sim.rundir import run_json, under_way

if TYPE_CHECKING:
    from p2p_sim.cli.run_folders import RunFolder
    from p2p_sim.cli.run_log import RunLog
    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.protocol_parameters import Chosen
    from p2p_sim.run import Run
    from p2p_sim.rundir.trace_writer import Draft

_NOT_REPEATED = (
    "words", "out", "force", "verbose", "json", "format", "resume", "plan", "log",
    "address",  # is of that day
)  # fmt: skip

_MAIN_JOB = ("peer-to-peer", "--data", "digits")


@app.command(
    "run",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim run peer-to-peer --data digits --alpha 0.1 --theta 0.5 --clusters 12 --seed 7",
)
@dataclass(frozen=True)
class RunCommand(TableOptions):
    """Run a protocol among users with real examples, train a model on the released labels, and save the run.

    Without a protocol and without users: peer-to-peer --data digits.
    """

    words: Words = None
    data: Data = None
    label: Label = None
    positive: Annotated[
        str | None, text(REAL_DATA, "The classes that count as 1, of --data or --population.", "A,B")
    ] = None
    classes: Annotated[
        str | None,
        text(
            REAL_DATA,
            "Every value that a label of --data or --population can have, in the order of their numbers; default those "
            "that occur, with --population bool or 0, 1, ...",
            "A,B",
        ),
    ] = None
    cluster_column: Annotated[
        str | None,
        text(
            REAL_DATA,
            "A column of clusters: numbers, or text; with --population integers by which rows are sorted.",
        ),
    ] = None
    clusters: Clusters = None
    test: Annotated[
        float | None,
        ratio(
            REAL_DATA,
            "Share of the rows that are test rows, not users; default the set's own test part, else 0.2; with "
            "--population none.",
        ),
    ] = None
    model: Annotated[
        str | None,
        text(
            REAL_DATA,
            "A scikit-learn classifier, default logistic-regression; for numbers a regressor, default ridge; or none.",
        ),
    ] = None
    canaries: Annotated[
        float | None,
        ratio(
            REAL_DATA,
            "Share of the users whose label a coin may flip before the run, for an attack on the trained model; "
            "default none.",
        ),
    ] = None
    users: Users = None
    population: Annotated[
        str | None,
        text(
            REAL_DATA,
            "Users in Parquet files sorted by cluster; each shard reads its own. A shared path, or s3://... "
            "With --label (default y), --positive, --classes, --cluster-column, --test, --split-seed as for --data. A "
            "--model is trained on the other columns (--drop), in batches.",
            "PLACE",
        ),
    ] = None
    test_population: Annotated[
        str | None,
        text(
            REAL_DATA,
            "Further rows like those of --population, which test its --model, instead of --test.",
            "PLACE",
        ),
    ] = None
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in each cluster; default 1000.")] = None
    share: Annotated[float | None, ratio(SYNTHETIC, "Probability of a positive label; default 0.5.")] = None
    shares: Annotated[
        str | None, text(SYNTHETIC, "Probability of each label, in order; default all alike.", "P,P,...")
    ] = None
    features: Annotated[
        int | None,
        count(SYNTHETIC, "Features that carry the label, to train a model on; default none."),
    ] = None
    backend: Annotated[
        str, text(EXECUTION, "Where the protocol runs; default local.", "local|shards|actors")
    ] = "local"
    shards: Annotated[int | None, count(EXECUTION, "Number of Ray actors.")] = None
    blocks: Annotated[int | None, count(EXECUTION, "Number of blocks of users.")] = None
    threads: Annotated[
        int | None,
        count(EXECUTION, "Number of threads of backend local; default one a core, one for few users."),
    ] = None
    address: Address = None
    plan: Annotated[
        bool,
        flag(EXECUTION, "Say what the run will take, and whether it fits; start nothing.", "--plan"),
    ] = False
    fault: Fault = None
    graph: Graph = None
    channel: Annotated[
        str,
        text(EXECUTION, "Each user's link, for simulated time; default 20ms,10Mbit.", "LATENCY,BANDWIDTH"),
    ] = costing.USERS
    server_channel: Annotated[
        str, text(EXECUTION, "Each server's link; default 1ms,1Gbit.", "LATENCY,BANDWIDTH")
    ] = costing.SERVERS
    crypto: Crypto = MODELLED
    delta: Delta = DELTA
    seed: Annotated[
        int | None,
        count(
            EXECUTION,
            "Seed of all draws, the test rows and k-means; by default a fresh one, which is printed.",
        ),
    ] = None
    split_seed: Annotated[
        int | None,
        count(
            REAL_DATA, "Seed of the test rows and k-means alone, kept while --seed varies; default --seed."
        ),
    ] = None
    trace: Annotated[
        str, text(OUTPUT, "Which messages to keep; default none.", "none|counts|sample=N|full")
    ] = "none"
    out: Annotated[
        str | None,
        text(OUTPUT, "Folder of the run; default a new one in runs/.  runs/latest links to it."),
    ] = None
    force: Annotated[bool, flag(OUTPUT, "Replace the run in --out.", "--force")] = False
    resume: Annotated[
        str | None,
        text(
            OUTPUT,
            "Go on with a run that was cut off, with the same bits; other options may only say where it runs now.",
            "RUN",
        ),
    ] = None
    no_population: Annotated[
        bool,
        flag(OUTPUT, "Do not save labels and seed; then nothing can be replayed.", "--no-population"),
    ] = False
    attack: Annotated[
        bool,
        flag(
            OUTPUT,
            "Also guess the labels with what the learner sees, as p2p-sim attack does, and keep that.",
            "--attack",
        ),
    ] = False
    no_digest: Annotated[bool, flag(OUTPUT, "Do not compute the digest, which is faster.", "--no-digest")] = (
        False
    )
    log: Annotated[
        str | None,
        text(OUTPUT, "Append what happens to a file, for programs: one JSON object a line.", "FILE"),
    ] = None
    verbose: Annotated[
        bool, flag(OUTPUT, "Print every table, note and source, not one screen of them.", "--verbose")
    ] = False
    json: Json = False
    format: Format = "text"

    def execute(self, command: Command) -> int:
        """Draw a seed if none was given, or go on with a run that was cut off; run, train, save and print."""
        if self.resume is not None:
            if self.plan:
                raise InputError(
                    "--plan starts nothing, and --resume goes on with a run: leave one of them out"
                )
            cut = InterruptedRun.at(self.resume)
            resumed = cut.command(self, command)
            address_of(resumed)  # it says where a cluster is not used
            return resumed._work(cut)
        seed = seeds.chosen(self.seed)
        split = None if self.split_seed == seed else self.split_seed  # the same run, whose seed is shown once
        meant = self._main_job() if self._names_nothing() else self
        return replace(meant, seed=seed, split_seed=split, address=address_of(self))._work()

    def _names_nothing(self) -> bool:
        """Whether neither a protocol nor users are named."""
        from p2p_sim.cli import parameters

        users = set_options(self, "data", "users", "population")
        return not users and not parameters.protocol_name(self.words or [])

    def _main_job(self) -> RunCommand:
        """Return the command that a command means that names nothing."""
        print(f"nothing is named: this is p2p-sim run {' '.join(_MAIN_JOB)}", file=sys.stderr, flush=True)
        protocol, _, data = _MAIN_JOB
        return replace(self, words=[protocol, *(self.words or [])], data=data)

    def _work(self, cut: InterruptedRun | None = None) -> int:
        from importlib.metadata import version

        from p2p_sim.cli import parameters, plan_option, run_folders, run_log
        from p2p_sim.learning import user_graph
        from p2p_sim.progress import Progress
        from p2p_sim.report import run_screen, run_summary

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.resolve(self.words)
        chosen = parameters.choose(words, offered)
        self._check(chosen.protocol)
        faults_of(self.fault, chosen.protocol)
        user_graph.check(chosen.protocol, self.graph)
        name = chosen.protocol.command_name()
        stem = run_folders.stem(
            name,
            "synthetic"
            if self.users is not None
            else Path(self.data or self.population or "").name.partition(".")[0],
        )
        place = run_folders.choose(self.out, stem, self.force) if cut is None else cut.place(self.force)
        if self.plan:
            return plan_option.say(self, chosen.protocol, as_json)
        with nullcontext() if cut is None else cut.begun_elsewhere():
            stored = population_option.contents(self)  # before a row is read
        asked = self._asked(chosen.protocol, stored)
        if cut is not None:
            cut.check(asked)
        with terminal.stdout_to_stderr():
            unchecked = quickly(chosen.protocol)
        with (
            place.claimed(),
            place.draft(self._announce) as draft,
            Progress() as progress,
            terminal.stdout_to_stderr(),
            plan_option.cluster(self),
            run_log.opened(self.log) as log,
        ):
            command = run_json.without_seed(self._repeat_command(chosen.protocol))
            log("started", {"command": command, "backend": self.backend, "version": version("p2p-sim")})
            draft.ask(asked) if cut is None else draft.go_on(cut.folder, cut.asked)
            draft.check_at_the_end(functools.partial(population_option.check_unchanged, self, stored))
            with population_option.unchanged(self, stored):
                run, held_out = self._run(chosen.protocol, progress, draft, log)
                warn_unchecked(unchecked)
                self._account(run, chosen, progress, log)
                guessed = self._attacked(run, chosen.protocol, held_out, progress)
                path = self._save(run, place, guessed, progress, log)
        result = run_summary.document(run, name, chosen.defaults, path, run_folders.peak_memory(self.backend))
        result |= {} if guessed is None else {"label_inference": guessed["views"]}
        as_text = run_summary.as_text if self.verbose else run_screen.as_text
        sys.stdout.write(terminal.as_json(result) if as_json else terminal.fitted(as_text(result)))
        return 0

    def _account(self, run: Run, chosen: Chosen, progress: Any, log: RunLog) -> None:
        """Note of a run how it is repeated, what it cost, and what every party learns."""
        from p2p_sim.report import privacy_table, run_summary

        run.notes |= {"command": self._repeat_command(chosen.protocol), "defaults": list(chosen.defaults)}
        run.notes["costs"] = run_summary.costs_document(
            run.costs(self.channel, servers=self.server_channel, protocol=chosen.protocol)
        )
        before = time.perf_counter()
        progress("accounting", 0, 0)
        log("phase", {"phase": "accounting"})
        assert run.population is not None  # who ran just now
        run.notes["privacy"] = privacy_table.privacy_of(
            chosen.protocol, run.population, run.faults, self.delta
        )
        run.timings["privacy"] = time.perf_counter() - before

    def _save(
        self, run: Run, place: RunFolder, guessed: dict[str, Any] | None, progress: Any, log: RunLog
    ) -> Path:
        """Write the run's folder, and return it."""
        from p2p_sim.report.kept_file import ATTACKS

        progress("writing the run", 0, 0)
        log("phase", {"phase": "writing the run"})
        before = time.perf_counter()
        path = place.save(run, population=not self.no_population)
        run.timings["saving"] = time.perf_counter() - before
        if guessed is not None:
            ATTACKS.add(path, run, guessed)
        details = {"folder": str(path), "users": run.users, "seconds": run.timings}
        log("finished", details | {"messages": sum(each.messages for each in run.counts.values())})
        return path

    def _asked(self, protocol: Protocol, stored: dict[str, str]) -> dict[str, Any]:
        """Return what is asked of the run, which is noted so that it can go on; ``stored``: users' files."""
        assert self.seed is not None  # chosen by now
        files = interrupted_run.files_of(self, protocol)
        origin, variables = seeds.source(self.seed), (sources.VARIABLE,)
        return under_way.asked(protocol, interrupted_run.options_of(self), origin, files, variables, stored)

    def _attacked(
        self, run: Run, protocol: Protocol, held_out: Population | None, progress: Any
    ) -> dict[str, Any] | None:
        """Return what the learner guesses of the labels, as p2p-sim attack does; None where that is not asked for."""
        if not self.attack:
            return None
        from p2p_sim.privacy.table_rows import named_rows
        from p2p_sim.report import attack_table

        before = time.perf_counter()
        learner = named_rows(protocol, [attack_table.LEARNER])
        _, rows = attack_table.rows_of(run, learner, progress, must=False, held_out=held_out)
        run.timings["attack"] = time.perf_counter() - before
        command = shlex.join(run.notes["command"])
        return {"channels": "plain", "eta": attack_table.ETA, "command": command, "views": rows}

    def _repeat_command(self, protocol: Protocol) -> list[str]:
        """Return the command that repeats the run in a new folder, with every parameter and the seed."""
        from p2p_sim.cli import parameters

        words = ["p2p-sim", "run", *parameters.to_words(protocol, self.words or [])]
        for each in fields(self):
            name, value = each.name, getattr(self, each.name)
            if name in _NOT_REPEATED or value == each.default:
                continue
            if value is True:
                words.append(option(name))
            else:
                several = value if isinstance(value, list) else [value]
                words += [word for one in several for word in run_json.option(option(name), one)]
        return words

    def _announce(self, protocol: Protocol, level: str, population: Population) -> None:
        """Print on stderr how much each trace level will keep, of a run that keeps one; check that it fits."""
        from p2p_sim.cli import plan_option, run_folders
        from p2p_sim.plan import Crowd

        if self.data is not None:  # others were looked at before they were made
            features = 0 if population.x is None else population.x.shape[1]
            plan_option.check(self, protocol, Crowd.of(population, protocol), features)
        if level != "none":
            print(run_folders.size_line(protocol, population, level, self.fault), file=sys.stderr, flush=True)

    def _run(
        self, protocol: Protocol, progress: Any, draft: Draft, log: RunLog
    ) -> tuple[Run, Population | None]:
        """Run, and return the run with the people who were held out to test."""
        from p2p_sim.cli import plan_option
        from p2p_sim.cli.users import how_read
        from p2p_sim.learning import experiment
        from p2p_sim.plan import Crowd

        how = set_options(
            self, "backend", "shards", "blocks", "threads", "address", "seed", "trace", "crypto"
        )
        how |= {"digest": not self.no_digest, "faults": self.fault, "costs": True, "graph": self.graph}
        how |= {"out": draft, "log": None if self.log is None else log} | set_options(self, "canaries")
        if self.users is not None:
            people = set_options(self, "cluster_size", "share", "features", "model")
            people |= {"shares": self.label_shares(), "keep_features": self.attack}
            crowd = plan_option.synthetic(self, protocol)
            if crowd is not None:
                plan_option.check(self, protocol, crowd, self.features or 0)
            return experiment.simulate(protocol, self.users, **people, progress=progress, **how), None
        if self.population is not None:
            stored = population_option.users(self)
            trained = population_option.examples(self, protocol)
            plan_option.check(self, protocol, Crowd.stored(stored), 0, trained)
            return experiment.among(
                protocol, stored, self.population, progress=progress, **trained, **how
            ), None
        assert self.data is not None
        choices = how_read(self) | set_options(self, "clusters", "test", "model", "split_seed")
        found = experiment.learn(protocol, self.data, **choices, progress=progress, **how)
        return found.run, found.examples.held_out() if self.attack else None

    def label_shares(self) -> list[float] | None:
        """Return the probability of each label of synthetic users; None where it is not said."""
        return None if self.shares is None else numbers_of("--shares", self.shares)

    def _check(self, protocol: Protocol) -> None:
        """Check what can be checked before any work; raises InputError."""
        from p2p_sim import backends
        from p2p_sim.backends import ray_probe
        from p2p_sim.network import channels

        given = [option(name) for name in set_options(self, "data", "users", "population")]
        if len(given) != 1:
            what = f"{' and '.join(given)} are both given" if given else "there are no users"
            raise InputError(
                f"{what}: give --data NAME_OR_FILE (see p2p-sim data), --users N for synthetic ones, or --population "
                "PLACE for many in Parquet files"
            )
        check_delta(self.delta)
        check_data(self, ("split_seed",))
        for name in (
            set_options(self, "cluster_size", "share", "shares", "features") if self.users is None else ()
        ):
            raise InputError(f"{option(name)} needs --users, which is missing: leave it out")
        if self.model is not None and self.data is None and self.population is None and not self.features:
            raise InputError(
                "--model needs --data, --population, or --users with --features: leave it out, or give one of these"
            )
        population_option.check(self, protocol)
        if self.shares is not None:
            numbers_of("--shares", self.shares)
        self._check_model(protocol)
        backends.Settings(
            self.backend, self.blocks, self.shards, self.address, crypto=self.crypto, threads=self.threads
        )
        TraceLevel.parse(self.trace)
        if self.no_population and self.attack:
            raise InputError(
                "--attack tells of the labels, and --no-population leaves them out: leave one of them out"
            )
        if self.no_population:
            seeds.check_secret(self.seed, None, option("no_population"))
        for channel in (self.channel, self.server_channel):
            channels.parse(channel)
        if self.address is not None:
            ray_probe.probe(self.address)

    def _check_model(self, protocol: Protocol) -> None:
        """Check a model of one's own, and that canaries are a share of the users with a model to tell of them.

        What that model imports is then found, and noted for a run that goes on.
        """
        from p2p_sim.learning import planted_canaries
        from p2p_sim.learning.training import models

        if self.model is not None and ":" in self.model:
            with terminal.stdout_to_stderr():  # modules that are imported may print
                models.model_for(protocol, self.model)
        has_features = self.data is not None or bool(self.features)  # those of --population come in batches
        planted_canaries.check(self.canaries, has_features and self.model != models.NO_MODEL)
