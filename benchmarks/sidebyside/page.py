"""``python -m benchmarks.sidebyside.page``: puts what was measured into docs/side-by-side.md.

Reads side-by-side.json, scaling.json and command.json in docs/figures, draws the plot beside them, and replaces what
stands between the marks of the page (``<!-- speeds -->`` ... ``<!-- end -->``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT
from benchmarks.sidebyside import tables

PAGE = ROOT / "docs" / "side-by-side.md"
FIGURES = ROOT / "docs" / "figures"
OURS, TRACED = "p2p-sim, one thread", "p2p-sim, full trace"
AIMS = {OURS: 20, TRACED: 8}
"""How many times PeerSim's messages a second on one core."""

FLOWER_AIM = 1000
LARGE = 10**6
"""Users from which sizes are compared with PeerSim, which was measured at this one."""

Row = dict[str, Any]
Result = dict[str, Any]


def main() -> None:
    """Write the page and the plot."""
    PAGE.write_text(filled(PAGE.read_text(), FIGURES))
    tables.plot(json.loads((FIGURES / "side-by-side.json").read_text()), FIGURES / "side-by-side.svg")


def filled(text: str, folder: Path) -> str:
    """Return the page with all that stands between marks made anew from the JSON in a folder."""
    exchange, scaling, command = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("side-by-side", "scaling", "command")
    )
    parts = {
        "machine": machine(exchange),
        "aims": aims(exchange),
        "speeds": tables.speeds(exchange),
        "largest": tables.largest(exchange),
        "faster": faster(exchange),
        "workers": workers(scaling),
        "model": model(scaling),
        "command": commands(command),
    }
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = marked.subn(lambda at, part=part: f"{at[1]}\n{part}\n{at[2]}", text)
        if found != 1:
            raise ValueError(f"{PAGE.name} has {found} parts '<!-- {name} -->' where it needs one")
    return text


def machine(result: Result) -> str:
    """Say what it was measured on, and how busy that was."""
    on = result["machine"]
    loads = [row["load"] for row in result["rows"] if "load" in row]
    versions = ", ".join(f"{name} {on[name]}" for name in ("python", "numpy", "numba", "ray"))
    return (
        f"Measured on {on['cores']} cores of an {on['cpu']} with {on['memory_gib']:g} GiB; {versions}. "
        f"Other programs were at work meanwhile: the load average was {min(loads):g} to {max(loads):g}.\n"
    )


def aims(result: Result) -> str:
    """Say how often the aims of the project were reached: multiples of PeerSim and of Flower."""
    by = {name.partition(" (")[0]: tables.done(rows) for name, rows in tables.by_system(result).items()}
    lines = [over_peersim(system, aim, by[system]) for system, aim in AIMS.items()]
    if by.get("Flower"):
        lines.append(over_flower(by["Flower"][-1], by[OURS]))
    return "\n".join(lines) + "\n"


def over_peersim(system: str, aim: float, rows: list[Row]) -> str:
    """Say how many times PeerSim's messages one of our systems carries, at best and by size."""
    best = max(rows, key=speed)
    times = {
        row["users"]: f"{speed(row) / tables.PEERSIM:.1f} times" for row in rows if row["users"] >= LARGE
    }
    by_size = ", ".join(f"{each} at {tables.power(users)}" for users, each in times.items())
    return (
        f"- **{system}**: at best {speed(best) / 1e6:.1f} million messages a CPU second, at "
        f"{tables.power(best['users'])} users, {speed(best) / tables.PEERSIM:.1f} times PeerSim's "
        f"{tables.PEERSIM / 1e6:g} million. The aim is {aim} times: "
        f"{reached(speed(best) / tables.PEERSIM >= aim)}. By size: {by_size}."
    )


def over_flower(flower: Row, ours: list[Row]) -> str:
    """Say how many times Flower's messages one of our threads carries, among as many users and at best."""
    same = next(speed(row) for row in ours if row["users"] == flower["users"]) / speed(flower)
    most = max(map(speed, ours)) / speed(flower)
    return (
        f"- **Flower**: {speed(flower):,} messages a CPU second at {tables.power(flower['users'])} users, its "
        f"largest size here. One thread of p2p-sim carries {same:,.0f} times as many among as many users, and "
        f"{most:,.0f} times as many at its own best size. The aim is {FLOWER_AIM:,} times: "
        f"{reached(same >= FLOWER_AIM)} among as many users, {reached(most >= FLOWER_AIM)} at its best size."
    )


def speed(row: Row) -> int:
    """Return a row's messages a CPU second."""
    return int(row["messages_per_cpu_second"])


def reached(yes: bool) -> str:
    """Say whether an aim is."""
    return "reached" if yes else "**not reached**"


def faster(result: Result) -> str:
    """List the sizes at which another system took less CPU time than one thread of ours, the start left out."""
    by = tables.by_system(result)
    ours = {row["users"]: speed(row) for row in tables.done(by[OURS])}
    lines = []
    for system, rows in by.items():
        ahead = {
            row["users"]: speed(row) / ours[row["users"]]
            for row in tables.done(rows)
            if not system.startswith("p2p-sim") and speed(row) > ours.get(row["users"], float("inf"))
        }
        if ahead:
            sizes = ", ".join(f"{times:.1f} times at {tables.power(users)}" for users, times in ahead.items())
            lines.append(f"- {system}: {sizes} users.")
    return "\n".join(lines or ["- Nowhere."]) + "\n"


def workers(result: Result) -> str:
    """Return a table of strong and weak scaling."""
    of = {"contiguous": "consecutive users", "scattered": "scattered users"}
    rows = [
        (
            row["case"], of[row["clusters"]], str(row["workers"]), f"{row['users']:,}",
            f"{row['wall_ratio']:.2f}", f"{row['cpu_per_user_ratio']:.2f}",
        )
        for row in result["rows"]
        if "wall_ratio" in row
    ]  # fmt: skip
    head = ("scaling", "clusters of", "workers", "users", "time by the clock", "CPU a user")
    return table(head, "llrrrr", rows) + at_load(result)


UNITS = {
    "start": (1e3, "ms a run"), "user": (1e9, "ns a user"), "worker": (1e3, "ms a further worker"),
    "byte": (1e9, "ns a byte between processes"), "scattered": (1e9, "ns more a user in a scattered cluster"),
}  # fmt: skip


def model(result: Result) -> str:
    """Say what the models found, how far off they are at the size held out, and what they predict."""
    lines = []
    for row in (row for row in result["rows"] if "coefficients" in row):
        found = [
            f"{each * UNITS[name][0]:,.3g} {UNITS[name][1]}" for name, each in row["coefficients"].items()
        ]
        off = [100 * abs(error) for error in row["held_out_errors"]]
        lines.append(
            f"- **{row['case']}**: {', '.join(found)}. At {row['held_out_users']:,} users, which it has not seen, "
            f"it is off by {min(off):.0f} to {max(off):.0f} %, in the mean by {sum(off) / len(off):.0f} %."
        )
        if each := row.get("predicted_seconds"):
            lines.append(
                f"- **{row['predicted_for']}**: {each['contiguous']:g} s with clusters of consecutive users, "
                f"{each['scattered']:g} s with scattered ones."
            )
    return "\n".join(lines) + "\n"


def commands(result: Result) -> str:
    """Return a table of whole commands beside their floors."""
    run = "`p2p-sim run peer-to-peer`"
    names = {"import": "`import p2p_sim`", "alone": "`p2p-sim`", "help": "`p2p-sim --help`"}
    names |= {"thousand": run, "run": run}
    rows = [
        (
            names[row["case"]], f"{row['users']:,}", f"{row['cpu']:.2f}", f"{row['wall']:.2f}",
            f"{row['floor_cpu']:.2f}", f"{row['floor_wall']:.2f}", f"{row['target']['cpu']:g}", reached(row["reached"]),
        )
        for row in result["rows"]
        if row["case"] in names
    ]  # fmt: skip
    head = (
        "command",
        "users",
        "CPU, s",
        "clock, s",
        "floor: CPU, s",
        "floor: clock, s",
        "CPU at most, s",
        "",
    )
    threads = [
        f"\nTwo threads took {row['wall_of_one']:.2f} of one thread's time by the clock, and {row['cpu_of_one']:.2f} "
        f"of its CPU, at {row['users']:,} users; digests {'were equal' if row['digest_equal'] else '**differed**'}.\n"
        for row in result["rows"]
        if row["case"] == "threads"
    ]
    return table(head, "lrrrrrrl", rows) + "".join(threads) + at_load(result)


def table(head: Sequence[str], sides: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; ``sides``: l or r for each column."""
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def at_load(result: Result) -> str:
    """Say how busy the machine was."""
    return f"\nThe load average at the end was {result['machine']['load']:g}.\n"


if __name__ == "__main__":
    main()
