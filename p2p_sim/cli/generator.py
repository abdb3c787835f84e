"""``p2p-sim generator``: fits a generator of features given a label, and writes its table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import OUTPUT, REQUEST, Label, Positive, comma_list, count, text
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError, near
from p2p_sim.report import output_files, terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.learning.training.feature_generators import FeatureTable

KINDS = {"kernel": ("bandwidth", "rows"), "mixture": ("components", "seed"), "gan": ("rows", "steps", "seed")}
"""The kinds of generators, and the options that each has."""


@app.command(
    "generator",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim generator public.csv --label ill --kind mixture --out rows.csv",
)
@dataclass(frozen=True)
class GeneratorCommand(TableOptions):
    """Fit a generator of features given a label to public examples; write its table, which --generator reads.

    Nothing is hidden of the examples: they must be public, and none of those whose labels are protected.
    """

    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file of public examples, or the name of a data set.")
    ] = ""
    kind: Annotated[
        str, text(REQUEST, "Kernel density (default), Gaussian mixture, or GAN.", "kernel|mixture|gan")
    ] = "kernel"
    out: Annotated[str, text(OUTPUT, "The .csv file of the table; default generator.csv.", "FILE")] = (
        "generator.csv"
    )
    label: Label = None
    positive: Positive = None
    labels: Annotated[
        int, count(REQUEST, "How many labels the protocol has; default 2, one of them positive.")
    ] = 2
    bandwidth: Annotated[
        str | None,
        text(
            REQUEST, "For kernels: in deviations of a feature, or a rule; default scott.", "P|scott|silverman"
        ),
    ] = None
    components: Annotated[int | None, count(REQUEST, "For a mixture: for each label; default 5.")] = None
    rows: Annotated[
        int | None,
        count(REQUEST, "Rows for each label: for kernels at most, default 1000; for a GAN, default 200."),
    ] = None
    steps: Annotated[int | None, count(REQUEST, "For a GAN: steps of training; default 2000.")] = None
    seed: Annotated[int | None, count(REQUEST, "For a mixture or a GAN; default 0.")] = None

    def execute(self, _command: Command) -> int:
        """Fit and write."""
        from p2p_sim.progress import Progress

        if not self.data:
            raise InputError(
                "DATA is missing: give a file of public examples, or the name of a data set (see p2p-sim data)"
            )
        if self.positive is not None and self.labels > 2:
            raise InputError(
                f"--positive {self.positive} makes two labels, and --labels {self.labels} keeps all: give one of them"
            )
        if self.kind not in KINDS:
            raise InputError(f"--kind {self.kind!r}: give {', '.join(KINDS)}{near(self.kind, KINDS)}")
        place = output_files.check(self.out)
        if not self.out.endswith(".csv"):
            raise InputError(f"--out {self.out!r}: give a name that ends in .csv, as --generator reads it")
        options = self._options_of_kind()
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("reading public examples", 0, 0)
            examples = self._examples()
            progress(f"fitting, {self.kind}", 0, 0)
            table = self._fit(examples, options)
        output_files.write(place, table.csv(examples.features))
        each = ", ".join(
            f"{int((table.label == y).sum()):,} of {terminal.visible(name)}"
            for y, name in enumerate(examples.classes)
        )
        sys.stdout.write(
            f"{self.out}: {len(table.rows):,} rows of {table.rows.shape[1]:,} features ({each}), fitted to "
            f"{len(examples.y):,} examples\nGive it as --generator {self.out}\n"
        )
        return 0

    def _options_of_kind(self) -> dict[str, Any]:
        """Return the options of this kind that were given; raises InputError for those of another kind."""
        names = dict.fromkeys(name for names in KINDS.values() for name in names)
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        for name in options:
            if name not in KINDS[self.kind]:
                kinds = " or ".join(kind for kind, names in KINDS.items() if name in names)
                raise InputError(f"--{name} goes with --kind {kinds}: leave it out")
        return options

    def _examples(self) -> Dataset:
        from p2p_sim.learning.data import datasets

        return datasets.load(
            self.data,
            label=self.label,
            positive=None if self.positive is None else comma_list(self.positive),
            multiclass=self.labels > 2,
            classes=self.declared(),
            reading=self.reading(),
        )

    def _fit(self, examples: Dataset, options: dict[str, Any]) -> FeatureTable:
        from p2p_sim.core.number_texts import read_number
        from p2p_sim.learning.training import conditional_gan, feature_generators

        fits: dict[str, Callable[..., FeatureTable]] = {
            "kernel": feature_generators.kernel_density,
            "mixture": feature_generators.gaussian_mixture,
            "gan": conditional_gan.conditional_gan,
        }
        if "bandwidth" in options and options["bandwidth"] not in feature_generators.RULES:
            try:
                options["bandwidth"] = read_number(options["bandwidth"])
            except ValueError as error:
                raise InputError(
                    f"--bandwidth {options['bandwidth']!r}: {error}, scott or silverman"
                ) from None
        return fits[self.kind](examples.x, examples.y, labels=self.labels, **options)
