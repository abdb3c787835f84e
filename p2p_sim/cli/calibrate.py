"""``p2p-sim calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

import protocols
from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal
from p2p_sim.report.options import ASKED, Format, Json, count, ratio, text, wants_json


@app.command(
    "calibrate",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim calibrate peer-to-peer --vary alpha --view learner --cluster-size 1000 --epsilon 1",
)
@dataclass(frozen=True)
class Calibrate:
    """Find the parameter at which a view is (ε, δ)-private, and say what every other view gets there."""

    words: Annotated[
        list[str] | None, typer.Argument(metavar="PROTOCOL", help="Its other parameters are options.")
    ] = None
    vary: Annotated[str, text(ASKED, "The parameter to find, or cluster-size; default alpha.")] = "alpha"
    view: Annotated[str, text(ASKED, "Who looks, such as learner+3*user; default learner.")] = "learner"
    epsilon: Annotated[float | None, ratio(ASKED, "What the view may learn, in nats.")] = None
    delta: Annotated[float, ratio(ASKED, "In [0, 1); default 1e-6.")] = 1e-6
    cluster_size: Annotated[int | None, count(ASKED, "Users in the victim's cluster.")] = None
    channels: Annotated[str, text(ASKED, "What the wire reads; default plain.", "plain|encrypted")] = "plain"
    json: Json = False
    format: Format = "text"

    def work(self, _command: Command) -> int:
        """Solve and tell."""
        from p2p_sim.report import console, parameters
        from p2p_sim.report.progress import Progress

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.own(self.words or [], protocols.ALL)
        kind, named, values = parameters.given(words, offered, "calibrate")
        vary = self.vary.removeprefix("--").replace("-", "_")
        fixed = {p.name: p.default for p in named.values() if p.name != vary} | values
        with Progress() as progress, terminal.stdout_kept():
            progress(f"solving for {vary}", 0, 0)
            told = self._told(kind, vary, fixed)
        sys.stdout.write(console.as_json(told) if as_json else _as_text(told))
        return 0

    def _told(self, kind: Any, vary: str, fixed: dict[str, Any]) -> dict[str, Any]:
        from p2p_sim import privacy
        from p2p_sim.report import figures

        if self.epsilon is None:
            raise InputError("--epsilon is missing: give the target, in nats")
        if "epsilon" in fixed:
            raise InputError(
                f"{kind.command_name()}: here --epsilon is the target; solve with --vary epsilon"
            )

        found = privacy.calibrate(
            kind, vary=vary, view=self.view, cluster_size=self.cluster_size, epsilon=self.epsilon,
            delta=self.delta, channels=self.channels, **fixed,
        )  # fmt: skip
        others = {}
        for name, profile in found.views.items():
            refused = {"refused": profile.why, "basis": "refused"}
            others[name] = refused if profile.law is None else figures.figure(profile, self.delta)
        return {
            "protocol": kind.command_name(), "fixed": fixed, "vary": vary, "value": found.value,
            "cluster_size": found.cluster_size, "view": self.view, "epsilon_target": self.epsilon, "delta": self.delta,
            "channels": self.channels,
            "achieved": dict(zip(("lower", "epsilon", "upper"), found.achieved, strict=True)),
            "slack": found.slack, "views": others,
        }  # fmt: skip


def _as_text(told: Mapping[str, Any]) -> str:
    from p2p_sim.report import console
    from p2p_sim.report.figures import bracket_text

    fixed = ", ".join(f"{name} = {value}" for name, value in told["fixed"].items())
    size = f"; cluster of {told['cluster_size']:,}" if told["cluster_size"] else ""
    value = told["value"]
    exact = f"{int(value):,}" if told["vary"] == "cluster_size" else f"{value:.10g}"
    lines = [
        f"{told['protocol']}: {fixed or 'nothing fixed'}{size}",
        f"{told['vary']} = {exact} keeps {told['view']} at ε <= {told['epsilon_target']:g}, δ = {told['delta']:g}",
        f"achieved ε {bracket_text(told['achieved'])}, {told['slack']:.3g} below the target",
    ]
    rows = [
        [name, "refused", found["refused"]]
        if "refused" in found
        else [name, bracket_text(found), found["basis"]]
        for name, found in told["views"].items()
    ]
    head = ["What other views get", "exact ε", "basis"]
    return "\n".join([*lines, "", console.table(head, rows)]) + "\n"
