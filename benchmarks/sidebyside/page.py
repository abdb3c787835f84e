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

from benchmarks.command import WALL_OF_ONE
from benchmarks.measure import ROOT
from benchmarks.sidebyside import tables
from p2p_sim.plan.run_plan import seconds_to_start

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
        "again": again(scaling, command),
        "further": further(folder),
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
    """Return a table of strong and weak scaling, and of the same shards on more nodes."""
    of = {"contiguous": "consecutive users", "scattered": "scattered users"}
    rows = [
        (
            row["case"], of[row["clusters"]], str(row["workers"]), str(row.get("nodes", 1)), f"{row['users']:,}",
            f"{row['wall_ratio']:.2f}", f"{row['cpu_per_user_ratio']:.2f}",
        )
        for row in result["rows"]
        if "wall_ratio" in row
    ]  # fmt: skip
    head = ("scaling", "clusters of", "workers", "nodes", "users", "time by the clock", "CPU a user")
    return table(head, "llrrrrr", rows) + at_load(result)


UNITS = {
    "start": (1e3, "ms a run"), "user": (1e9, "ns a user"), "worker": (1e3, "ms a further worker"),
    "byte": (1e9, "ns a byte between processes"), "scattered": (1e9, "ns more a user in a scattered cluster"),
    "node": (1e3, "ms a further node"), "byte_between_nodes": (1e9, "ns more a byte between nodes"),
}  # fmt: skip


def model(result: Result) -> str:
    """Say what the models found, how far off they are at the size held out, and what they predict."""
    lines = []
    for row in (row for row in result["rows"] if "coefficients" in row):
        found = [
            f"{each * UNITS[name][0]:,.3g} {UNITS[name][1]}" for name, each in row["coefficients"].items()
        ]
        lines.append(
            f"- **{row['case']}**: {', '.join(found)}. At {row['held_out_users']:,} users, which it has not seen, "
            f"{off_by(row['held_out_errors'])}."
        )
        if nodes := row.get("held_out_nodes"):
            lines.append(
                f"- **{row['case']}, fitted without {nodes} nodes**: at these, {off_by(row['errors_at_these_nodes'])}."
            )
        if each := row.get("predicted_seconds"):
            shards = int(row["predicted_for"].split()[-2])  # "..., 200 shards"
            lines.append(
                f"- **{row['predicted_for']}**: {each['contiguous']:g} s with clusters of consecutive users, "
                f"{each['scattered']:g} s with scattered ones, from shards that have been started. To start Ray and "
                f"{shards} shards is not in it: `--plan` would count {seconds_to_start(shards):.0f} s for that."
            )
    return "\n".join(lines) + "\n"


def off_by(errors: Sequence[float]) -> str:
    """Say how far off a model is."""
    off = [100 * abs(error) for error in errors]
    return (
        f"it is off by {min(off):.0f} to {max(off):.0f} %, in the mean by {sum(off) / len(off):.0f} %"
        f"{one_sided(errors)}"
    )


def one_sided(errors: Sequence[float]) -> str:
    """Say so if the model is too low, or too high, every time."""
    if all(error < 0 for error in errors):
        return ", and too low every time: runs take more CPU than it says"
    return ", and too high every time" if all(error > 0 for error in errors) else ""


def commands(result: Result) -> str:
    """Return a table of whole commands beside their floors, and what threads gain and users cost."""
    run = "`p2p-sim run peer-to-peer`"
    names = {"import": "`import p2p_sim`", "alone": "`p2p-sim`", "help": "`p2p-sim --help`"}
    names |= {"thousand": run, "run": run}
    told = {"threads": two_threads, "growth": growth}
    rows = [
        (
            names[row["case"]], f"{row['users']:,}", f"{row['cpu']:.2f}", f"{row['wall']:.2f}",
            f"{row['floor_cpu']:.2f}", f"{row['floor_wall']:.2f}", f"{row['target']['cpu']:g}", reached(row["reached"]),
        )
        for row in result["rows"]
        if row["case"] not in told
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
    more = [f"\n{told[row['case']](row)}\n" for row in result["rows"] if row["case"] in told]
    return table(head, "lrrrrrrl", rows) + "".join(more) + at_load(result)


def two_threads(row: Row) -> str:
    """Say what two threads take of one thread's time, the start of the command included."""
    most = row["target"]
    wall = most.get("wall_of_one", WALL_OF_ONE)
    return (
        f"Two threads took {row['wall_of_one']:.2f} of one thread's time by the clock (at most {wall:g}: "
        f"{reached(row['wall_of_one'] <= wall)}), and {row['cpu_of_one']:.2f} of its CPU (at most "
        f"{most['cpu_of_one']:g}: {reached(row['cpu_of_one'] <= most['cpu_of_one'])}), at {row['users']:,} users, "
        f"start and writing included; digests {'were equal' if row['digest_equal'] else '**differed**'}."
    )


def growth(row: Row) -> str:
    """Say how CPU grows with users, the start of the command included and without it."""
    users, most = row["users"], row["target"]
    parts = [
        f"{row[name]:.2f} times that of {of} (at most {most[name]:g}: {reached(row[name] <= most[name])})"
        for name, of in (("times_a_hundredth", "a hundredth"), ("times_a_tenth", "a tenth"))
    ]
    work = row["work_times_a_tenth"]
    return (
        f"Growth: {users // 100:,} users took {row['cpu_of_a_hundredth']:.2f} CPU s, {users // 10:,} "
        f"{row['cpu_of_a_tenth']:.2f}, and {users:,} {row['cpu']:.2f}, {' and '.join(parts)}. Without the start, "
        f"which is the command among 10 users, it is {work:.2f} times that of a tenth "
        f"(at most {most['work_times_a_tenth']:g}: {reached(work <= most['work_times_a_tenth'])})."
    )


def again(scaling: Result, command: Result) -> str:
    """Return the commands that make the JSON, as they were given; of old JSON, as its rows tell."""
    largest = [row for row in scaling["rows"] if "cpu" in row][-1]
    given = {
        "scaling": f"--users {largest['users']} --repeat {len(largest['cpu'])}",
        "command": f"--users {max((row['users'] for row in command['rows']), default=0)}",
    }
    lines = [
        f"{result.get('command', f'python -m benchmarks.{name} {given[name]}')} > docs/figures/{name}.json"
        for name, result in (("scaling", scaling), ("command", command))
    ]
    first, last = (f"python -m benchmarks.sidebyside{words}" for words in (" --out docs/figures", ".page"))
    return "\n".join(["```bash", first, *lines, last, "```", ""])


FURTHER = {
    "large": ("whole commands among 1e8 and 1e9 users: time, memory, and that the number of blocks changes nothing",
              "[engine.md](engine.md#memory)"),
    "sweep": ("small runs of a sweep, and one that is killed", "[sweeps.md](sweeps.md#how-fast-it-is)"),
    "faults": ("nodes, shards and runs that are killed", "[failures.md](failures.md#how-it-was-tried)"),
    "hosts": ("a cluster of three hosts on one machine (needs root)",
              "[deployment-tried.md](deployment-tried.md#hosts-of-a-network)"),
}  # fmt: skip
"""Benchmarks whose figures are on other pages: what they measure, and where that is told."""


def further(folder: Path) -> str:
    """Return a table of the other benchmarks, with their JSON where it is kept."""
    rows = [
        (f"`{name}`", what, where, f"`{name}.json`" if (folder / f"{name}.json").exists() else "")
        for name, (what, where) in FURTHER.items()
    ]
    return table(("`python -m benchmarks.`", "measures", "told in", "JSON"), "llll", rows)


def table(head: Sequence[str], sides: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; ``sides``: l or r for each column."""
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def at_load(result: Result) -> str:
    """Say how busy the machine was."""
    return f"\nThe load average at the end was {result['machine']['load']:g}.\n"


if __name__ == "__main__":
    main()
