"""``p2p-sim leakage``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import (
    OUTPUT,
    REQUEST,
    Data,
    Format,
    Json,
    Label,
    Positive,
    comma_list,
    count,
    numbers_of,
    ratio,
    text,
    wants_json,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal

if TYPE_CHECKING:
    from p2p_sim.leakage.estimated_loss import EstimatedLoss, Smoothness
    from p2p_sim.privacy.bounds.bound import Renyi

_KINDS = (".svg", ".png")


@app.command(
    "leakage",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim leakage --data breast-cancer --flip 0.01 --tau 5,6 --out loss.svg",
)
@dataclass(frozen=True)
class LeakageCommand(TableOptions):
    """Say what features and a flipped label together tell of people's labels: the most, and how many lose how much.

    A promise of --at-most and --above that no flip keeps is refused.
    """

    data: Data = None
    label: Label = None
    positive: Positive = None
    flip: Annotated[
        float | None,
        ratio(REQUEST, "The chance that a label is flipped, between 0 and 1/2; default what is found."),
    ] = None
    tau: Annotated[
        str | None, text(REQUEST, "Losses in nats, for how many people lose more; default some.", "A,B")
    ] = None
    at_most: Annotated[
        float | None, ratio(REQUEST, "With --above: find the flip for this share of people, in percent.")
    ] = None
    above: Annotated[
        float | None, ratio(REQUEST, "With --at-most: the loss in nats that so few may exceed.")
    ] = None
    k: Annotated[
        int | None, count(REQUEST, "Nearest neighbours; default one for 200 people, from 50 to 1,000.")
    ] = None
    smoothness: Annotated[
        str | None,
        text(
            REQUEST,
            "How P(y = 1 | x) may change: by C times the share of people in between to the power E; default 1,0: not "
            "at all among neighbours.",
            "E,C",
        ),
    ] = None
    renyi: Annotated[
        str | None,
        text(REQUEST, "Orders above 1 of Rényi divergences of features and flipped label to show.", "A,B"),
    ] = None
    confidence: Annotated[float, ratio(REQUEST, "Of each figure; default 0.99.")] = 0.99
    out: Annotated[
        str | None, text(OUTPUT, "Draw how many lose more than tau into a file.", "FILE.svg|png")
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Estimate, draw, print."""
        from p2p_sim.progress import Progress
        from p2p_sim.report import instance_loss_table

        as_json = wants_json(self.json, self.format)
        smoothness, taus, orders = self._check()
        with Progress() as progress, terminal.stdout_to_stderr():
            document = self._document(smoothness, taus, orders, progress)
            if self.out is not None:
                self._draw(document)
        text = (
            terminal.as_json(document) if as_json else terminal.fitted(instance_loss_table.as_text(document))
        )
        sys.stdout.write(text)
        return 0

    def _check(self) -> tuple[Smoothness, list[float], list[float]]:
        """Check the options before anything is read; return smoothness, taus and orders."""
        from p2p_sim.leakage.estimated_loss import Smoothness
        from p2p_sim.leakage.instance_loss import flip_of
        from p2p_sim.privacy.auditing.confidence_bounds import probability
        from p2p_sim.privacy.bounds.bound import order

        if self.data is None:
            raise InputError("--data is missing: give the name of a data set, or a file")
        if (self.at_most is None) != (self.above is None):
            given, lacks = ("--at-most", "--above") if self.above is None else ("--above", "--at-most")
            raise InputError(
                f"{given} needs {lacks}: together they say how many people may lose more than how much"
            )
        if self.flip is None and self.at_most is None:
            raise InputError(
                "--flip is missing: give the chance of a flip, or find it by --at-most and --above"
            )
        if self.flip is not None:
            flip_of(self.flip)
        if self.at_most is not None and not 0 < self.at_most < 100:
            raise InputError(f"--at-most {self.at_most:g}: must be a percentage above 0 and below 100")
        probability("confidence", self.confidence)
        self.reading()
        if self.out is not None and output_files.check(self.out).suffix.lower() not in _KINDS:
            raise InputError(f"--out {self.out!r}: the name must end in .svg or .png")
        parts = [1.0, 0.0] if self.smoothness is None else numbers_of("--smoothness", self.smoothness)
        if len(parts) != 2:
            raise InputError(
                f"--smoothness {self.smoothness}: give two numbers, exponent and constant, such as 0.5,0.2"
            )
        orders = [] if self.renyi is None else numbers_of("--renyi", self.renyi)
        for each in orders:
            order(each)
        return Smoothness(*parts), [] if self.tau is None else numbers_of("--tau", self.tau), orders

    def _document(
        self, smoothness: Smoothness, taus: list[float], orders: list[float], progress: Any
    ) -> dict[str, Any]:
        from p2p_sim.report import instance_loss_table

        found, about, features = self._estimated(smoothness, orders, progress)
        progress("counting people", 0, 0)
        tuning = self._tuning(found)
        flip = self.flip
        if flip is None:
            assert tuning is not None  # one of the two is asked for
            flip = tuning["flip"]
        document = (
            about
            | instance_loss_table.basis(found)
            | instance_loss_table.document(found, flip, taus)
            | {
                "tuning": tuning,
                "taus_asked": bool(taus),
                "out": self.out,
                "renyi": [instance_loss_table.divergence(each, flip) for each in features],
            }
        )
        return document | {"sentences": instance_loss_table.sentences(document)}

    def _estimated(
        self, smoothness: Smoothness, orders: list[float], progress: Any
    ) -> tuple[EstimatedLoss, dict[str, Any], list[Renyi]]:
        """Read the people, and estimate; return what is known of the data too, and divergences of features."""
        from p2p_sim.leakage import estimated_loss, eta, nearest_neighbours, renyi
        from p2p_sim.learning.data import datasets

        assert self.data is not None
        progress(f"reading {self.data}", 0, 0)
        positive = None if self.positive is None else comma_list(self.positive)
        data = datasets.load(
            self.data, label=self.label, positive=positive, classes=self.declared(), reading=self.reading()
        )
        x, y, notes = data.x, data.y, []
        if data.test is not None:
            x, y = x[~data.test], y[~data.test]
            notes.append(f"{int(data.test.sum()):,} rows of the set's own test part are left out.")
        if data.ids:
            notes.append(eta.note_on_ids(data.ids))
        k = min(max(50, len(y) // 200), 1000, max(1, len(y) - 1)) if self.k is None else self.k
        about = {
            "data": data.name, "source": data.source, "label": data.label, "positive": data.positive,
            "features": x.shape[1], "notes": notes,
        }  # fmt: skip
        del data
        progress("scaling features", 0, 0)
        scaled = nearest_neighbours.scaled(x)
        found = estimated_loss.of_rows(
            scaled, y, k, smoothness=smoothness, confidence=self.confidence, progress=progress
        )
        if orders:
            progress("telling labels apart by features", 0, 0)
        each = 1 - (1 - self.confidence) / max(1, len(orders))
        return found, about, [renyi.of_features(scaled, y, order, confidence=each) for order in orders]

    def _tuning(self, found: EstimatedLoss) -> dict[str, Any] | None:
        if self.at_most is None or self.above is None:
            return None
        flip = found.flip_for(self.at_most / 100, self.above)
        if flip.upper is None:
            seen = (
                f"--flip {flip.estimate:.4g} would: look at it" if flip.estimate is not None else "none would"
            )
            raise InputError(
                f"--at-most {self.at_most:g} --above {self.above:g}: no flip is sure to keep this promise. {flip.why}. "
                f"By the estimated losses alone, {seen}. Allow more people, or a larger loss"
            )
        return {"at_most": self.at_most, "above": self.above, "flip": flip.upper, "estimate": flip.estimate}

    def _draw(self, document: dict[str, Any]) -> None:
        from p2p_sim.report import instance_loss_plot

        assert self.out is not None
        place = output_files.check(self.out)
        plot = instance_loss_plot.draw(document)
        output_files.write(place, plot.png() if place.suffix.lower() == ".png" else plot.svg())
