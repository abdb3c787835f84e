"""The table and the plot of what was measured side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PEERSIM = 1.55e6
"""Messages a second on one core of PeerSim 1.0.5, cycle mode, a million users: measured once, on such a machine."""


def markdown(result: dict[str, Any]) -> str:
    """Return two tables: speeds by size; and for each system the largest size that it reached, and why no larger."""
    return f"{speeds(result)}\n{largest(result)}"


def speeds(result: dict[str, Any]) -> str:
    """Return a table of messages a CPU second, a line for each system and a column for each size."""
    by = by_system(result)
    sizes = sorted({row["users"] for rows in by.values() for row in done(rows)})
    lines = [
        "| messages a CPU second | " + " | ".join(f"{power(size)} users" for size in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    for system, rows in by.items():
        found = {row["users"]: f"{row['messages_per_cpu_second']:,}" for row in done(rows)}
        lines.append(f"| {system} | " + " | ".join(found.get(size, "") for size in sizes) + " |")
    return "\n".join(lines) + "\n"


def largest(result: dict[str, Any]) -> str:
    """Return a table of the largest size that each system reached, and why it went no further."""
    lines = [
        "| system | largest, users | wall, s | start, CPU s | peak, MiB | runs equal | ended by |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for system, rows in by_system(result).items():
        why = next((f"{power(row['users'])}: {row['failed']}" for row in rows if "failed" in row), "")
        if not done(rows):
            lines.append(f"| {system} | | | | | | {why} |")
            continue
        last = done(rows)[-1]
        same = all(row["identical"] for row in done(rows))
        lines.append(
            f"| {system} | {power(last['users'])} | {last['wall_seconds']:.2f} | {last['start_cpu_seconds']:.1f} "
            f"| {last['peak_bytes'] / 2**20:,.0f} | {'yes' if same else '**no**'} | {why} |"
        )
    return "\n".join(lines) + "\n"


def power(users: int) -> str:
    """Return a number of users as the field writes it: ``1e6``."""
    return f"{users:.0e}".replace("e+0", "e").replace("e+", "e")


def plot(result: dict[str, Any], place: Path) -> None:
    """Draw messages a CPU second against users, one line a system."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "side by side"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for number, (system, rows) in enumerate(by_system(result).items()):
        users = [row["users"] for row in done(rows)]
        speed = [row["messages_per_cpu_second"] for row in done(rows)]
        axes.plot(users, speed, marker="osD^v<>pP*Xh"[number % 12], label=system)
    axes.axhline(PEERSIM, color="grey", linestyle=":", label="PeerSim, 1e6 users, as measured before")
    axes.set(xscale="log", yscale="log", xlim=(600, 1.7e8), xlabel="users", ylabel="messages a CPU second")
    axes.legend(fontsize="small", bbox_to_anchor=(1.0, 1.0), loc="upper left")
    figure.savefig(place, metadata={"Date": None})
    plt.close(figure)


def by_system(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each system, in their order; one that has only a server says so."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in result["rows"]:
        found.setdefault(row["system"], []).append(row)
    server = " (users have a server alone)"
    return {
        name if all(row.get("peers", True) for row in rows) else name + server: rows
        for name, rows in found.items()
    }


def done(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of sizes that were reached."""
    return [row for row in rows if "failed" not in row]
