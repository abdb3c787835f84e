"""How sure an attacker is of each user's label, before and after the messages: who is at risk, not only the average."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.leakage.attack_results import PerUser
from p2p_sim.report import output_files
from p2p_sim.report.curves import COLOURS
from p2p_sim.report.plots import Plot, legend, panels, style

BINS = 100
"""Of probabilities from 0 to 1: users are counted in each, so that a million of them fit into a page."""

SURE = 90
"""Percent from which an attacker counts as sure of a label."""

PLOTS, TABLES = (".svg", ".png"), (".csv", ".parquet")
_HAIR = 1e-9  # a bin begins where its probability does, however that is rounded
_DASHES = ("-", "--", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_PRIOR = "before the messages"


def counted(users: PerUser) -> dict[str, Any]:
    """Return how many users have each probability of the likeliest label, as JSON values.

    ``prior``, ``posterior``: users in each of ``BINS`` bins of the probability before and after the messages;
    ``right``: those in each bin of ``posterior`` of whom the guess is true.
    """
    prior, posterior = _bins(users.prior), _bins(users.posterior)
    return {
        "users": len(users.user),
        "prior": np.bincount(prior, minlength=BINS).tolist(),
        "posterior": np.bincount(posterior, minlength=BINS).tolist(),
        "right": np.bincount(posterior[users.right], minlength=BINS).tolist(),
    }


def _bins(chances: Any) -> Any:
    return np.clip(np.floor(chances * BINS + _HAIR).astype(np.int64), 0, BINS - 1)


def at_least(counts: Sequence[int]) -> list[int]:
    """Return how many users have at least the probability at which each bin begins."""
    found: list[int] = np.cumsum(counts[::-1])[::-1].tolist()
    return found


def sentence(found: Mapping[str, Any]) -> str:
    """Return in words of how many users an attacker is sure, with the messages and without them."""
    after, before = (at_least(found[name])[SURE * BINS // 100] for name in ("posterior", "prior"))
    right = sum(found["right"][SURE * BINS // 100 :])
    text = f"She is at least {SURE} % sure of {after:,} of {found['users']:,} users, and of {before:,} without messages"
    return f"{text}; she is right about {right:,} of these {after:,}." if after else f"{text}."


def plot(name: str, kept: Mapping[str, Mapping[str, Any]]) -> Plot:
    """Draw the share of users of whom each attacker is at least so sure.  ``kept``: what ``counted`` says, by view."""
    with style():
        figure, grid = panels(1, 1, 3.2)
        axes, edges = grid[0, 0], [100 * i / BINS for i in range(BINS)]
        rows: list[list[Any]] = []
        lines = {
            f"{view}, {_PRIOR}" if len(kept) > 1 else _PRIOR: each["prior"] for view, each in kept.items()
        }
        if len({tuple(counts) for counts in lines.values()}) == 1:
            lines = {_PRIOR: next(iter(lines.values()))}
        priors = len(lines)
        lines |= {f"{view}, with them": each["posterior"] for view, each in kept.items()}
        for i, (label, counts) in enumerate(lines.items()):
            shares = [100 * count / max(1, sum(counts)) for count in at_least(counts)]
            look = {"color": "#767676", "linestyle": ":"} if i < priors else {
                "color": COLOURS[(i - priors) % 7], "linestyle": _DASHES[(i - priors) % 6]
            }  # fmt: skip
            axes.step(edges, shares, where="post", label=label, linewidth=1.8, **look)
            rows += [[label, edge, share] for edge, share in zip(edges, shares, strict=True)]
        first = min(next(i for i, count in enumerate(counts) if count) for counts in lines.values())
        axes.set(xlim=(edges[first], 100), ylim=(-2, 102))
        axes.set_xlabel("how sure of the likeliest label, at least, %")
        axes.set_ylabel("users, %")
        axes.grid(True, alpha=0.3)
        legend(figure)
    said = "; ".join(f"{view}: {sentence(each)}" for view, each in kept.items())
    columns = ("attacker", "at_least_percent_sure", "users_percent")
    return Plot(name, figure, f"Users at risk. {said}", columns, rows)


def check(place: str, option: str, endings: Sequence[str]) -> Path:
    """Return the path of an output file; raises InputError for another ending, or an unwritable place."""
    if Path(place).suffix.lower() not in endings:
        raise InputError(f"{option} {place!r}: the name must end in {' or '.join(endings)}")
    return output_files.check(place, option)


def write_plot(place: Path, drawn: Plot) -> None:
    """Write the plot into a file, as its ending says."""
    content = drawn.svg() if place.suffix.lower() == ".svg" else drawn.png()
    output_files.write(place, content)


def write_table(place: Path, kept: Mapping[str, PerUser]) -> None:
    """Write a row for each user and view, as the ending says; only the owner may read it, for it tells of labels."""
    import pandas

    frames = [
        pandas.DataFrame({
            "view": view, "user": each.user, "prior": each.prior, "posterior": each.posterior, "right": each.right,
        })
        for view, each in kept.items()
    ]  # fmt: skip
    whole, out = pandas.concat(frames, ignore_index=True), io.BytesIO()
    if place.suffix.lower() == ".csv":
        whole.to_csv(out, index=False, lineterminator="\n")
    else:
        whole.to_parquet(out, index=False)
    output_files.write(place, out.getvalue(), private=True)
