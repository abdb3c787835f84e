"""The table and the plot of what was measured side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PEERSIM = 1.55e6
"""Messages a second on one core of PeerSim 1.0.5, cycle mode, a million users: measured once, on such a machine."""


def markdown(result: dict[str, Any]) -> str:
    """Return a table: for each system the largest size that it reached, and why it went no further."""
    lines = [
        "| system | users | messages a CPU second | wall, s | start, CPU s | peak, MiB | two runs equal | ended by |",
        "|---|---:|---:|---:|---:|---:|---|---|",
    ]
    for system, rows in _by_system(result).items():
        done = [row for row in rows if "failed" not in row]
        why = next((f"{row['users']:.0e} users: {row['failed']}" for row in rows if "failed" in row), "")
        if not done:
            lines.append(f"| {system} | | | | | | | {why} |")
            continue
        last = done[-1]
        best = max(row["messages_per_cpu_second"] for row in done)
        name = system if last["peers"] else f"{system} (to a server alone)"
        lines.append(
            f"| {name} | {last['users']:.0e} | {last['messages_per_cpu_second']:,} (best {best:,}) "
            f"| {last['wall_seconds']:.2f} | {last['start_cpu_seconds']:.1f} | {last['peak_bytes'] / 2**20:,.0f} "
            f"| {'yes' if last['identical'] else '**no**'} | {why} |"
        )
    return "\n".join(lines) + "\n"


def plot(result: dict[str, Any], place: Path) -> None:
    """Draw messages a CPU second against users, one line a system."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "side by side"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for number, (system, rows) in enumerate(_by_system(result).items()):
        done = [row for row in rows if "failed" not in row]
        users, speed = [row["users"] for row in done], [row["messages_per_cpu_second"] for row in done]
        axes.plot(users, speed, marker="osD^v<>pP*X"[number % 11], label=system)
    axes.axhline(PEERSIM, color="grey", linestyle=":", label="PeerSim, 1e6 users, as measured before")
    axes.set(xscale="log", yscale="log", xlim=(600, 1.7e8), xlabel="users", ylabel="messages a CPU second")
    axes.legend(fontsize="small", bbox_to_anchor=(1.0, 1.0), loc="upper left")
    figure.savefig(place, metadata={"Date": None})
    plt.close(figure)


def _by_system(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in result["rows"]:
        found.setdefault(row["system"], []).append(row)
    return found
