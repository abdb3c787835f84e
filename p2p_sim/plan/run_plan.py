"""A plan of a run: what it takes on each machine, from pilot runs of few users, and what cannot fit."""

from __future__ import annotations

import os
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from p2p_sim.backends import shards_of
from p2p_sim.backends.settings import Settings, check_users
from p2p_sim.core import kernels
from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.plan.machines import Machine
from p2p_sim.plan.pilot import Crowd, Growth, grown, messages_of
from p2p_sim.result_summary import Rows, Summary, counted
from p2p_sim.trace.size_estimate import predict

FACTOR = 2
"""Memory, messages, bytes between processes and bytes on disk are planned within this factor; seconds only roughly."""

WORKER_BYTES, NUMBA_BYTES = 80 << 20, 80 << 20
"""Memory of a worker of Ray before it holds a user, and of compiled loops in any process.

70 to 86 MiB and 70 MiB more were measured of shards, 63 MiB of actors, with pages that processes share divided.
"""

STORE_BYTES = (100 << 20, 2 << 30)
_COMPILED = 0.55  # seconds of compiled loops, in those of numpy
_ADDRESS = 4  # bytes of a sender, and of a recipient who is a user, in memory
_HEADER = 16  # bytes of them on the wire
_START, _START_EACH = 7.0, 0.4  # seconds to start Ray, and each shard
_EXCHANGED = 1e9  # bytes a second between processes
_OUTPUT_COPIES = 2  # of what shards return: columns of all blocks, and joined; then as Arrow's


@dataclass(frozen=True)
class Scratch:
    """Bytes that training in batches writes to the folder for temporary files.

    ``labels``: that were released; ``features``: kept if so many times the room of them is free there as ``room`` says,
    so that they are decoded once.
    """

    labels: int = 0
    features: int = 0
    room: int = 1


@dataclass(frozen=True)
class Saved:
    """What a run writes, and where: ``folder`` need not exist yet.

    ``training``: bytes of memory that training takes beside the users; ``scratch``: what it writes for a time.
    """

    folder: Path
    population: bool = True
    training: int = 0
    scratch: Scratch = Scratch()


@dataclass(frozen=True)
class Share:
    """What one machine does: how many shards it holds, and the bytes of memory that this takes.

    ``idle``: those of them that its shards take before they hold a user.
    """

    machine: Machine
    shards: int
    memory: int
    idle: int = 0

    @property
    def fits(self) -> bool:
        """Whether the machine has so much memory."""
        return self.memory <= self.machine.memory

    def misfit(self) -> str:
        """Return in words what it needs and has."""
        text = f"{self.machine.name} needs {size(self.memory)} of memory and has {size(self.machine.memory)}"
        if 2 * self.idle <= self.memory:
            return text
        return f"{text}; {counted(self.shards, 'shard')} take {size(self.idle)} of it before they hold a user"


@dataclass(frozen=True, repr=False)
class RunPlan(Summary):
    """What a run will take.

    ``messages``: delivered; ``message_bytes``: as they travel in the simulated protocol; ``exchanged``: bytes between
    processes of this program; ``network``: those of them between machines; ``disk``: bytes of trace, outputs and
    population; ``free``: bytes free there; ``seconds``: of wall time, roughly, without a graph,
    training and accounting.  ``scratch``: what training writes for a time to ``scratch_folder``, which
    then has ``scratch_free``.
    """

    users: int
    backend: str
    messages: int
    message_bytes: int
    shards: int
    shares: tuple[Share, ...]
    exchanged: int
    network: int
    disk: Mapping[str, int]
    free: int
    folder: str
    seconds: float
    scratch: Scratch = Scratch()
    scratch_free: int = 0
    scratch_folder: str = ""

    def __repr__(self) -> str:
        return f"<RunPlan of {self.users:,} users on {self.backend}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what ``--plan`` prints."""
        spent = f"about {self.seconds:,.0f} s" if self.seconds >= 1 else "less than a second"
        rows = [
            ("Messages", f"{self.messages:,}, {size(self.message_bytes)} in the simulated network"),
            ("Shards", counted(self.shards, "shard") if self.shards else "none: all in this process"),
            *(
                (
                    f"Memory, {share.machine.name}",
                    f"{size(share.memory)} of {size(share.machine.memory)}"
                    + (f", {counted(share.shards, 'shard')}" if self.shards else ""),
                )
                for share in self.shares
            ),
            ("Between processes", f"{size(self.exchanged)}, of which {size(self.network)} over the network"),
            (
                "Disk",
                f"{', '.join(f'{part} {size(each)}' for part, each in self.disk.items())}; "
                f"{size(self.free)} free in {self.folder!r}",
            ),
            *([("For training", self._scratch_text())] if self.scratch.labels else []),
            ("Time", f"{spent}; a graph, training and privacy accounting take theirs beside"),
        ]
        return f"Plan for {counted(self.users, 'user')}, backend {self.backend}", rows

    @property
    def keeps_features(self) -> bool:
        """Whether training keeps features on disk; otherwise each pass reads or draws them anew."""
        return self.scratch_free - self.scratch.labels >= self.scratch.room * self.scratch.features

    def _scratch_text(self) -> str:
        parts, rest = [f"labels {size(self.scratch.labels)}"], ""
        if self.keeps_features:
            parts.append(f"features {size(self.scratch.features)}")
        else:
            needed = size(self.scratch.room * self.scratch.features)
            rest = f"; features, for which {needed} would have to be free, are not kept: each pass makes them anew"
        return f"{', '.join(parts)}; {size(self.scratch_free)} free in {self.scratch_folder!r}{rest}"

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON values; memory, network and disk in bytes."""
        kept = self.scratch.features if self.keeps_features else 0
        scratch = {"labels": self.scratch.labels, "features": kept}
        return {
            "users": self.users, "backend": self.backend, "messages": self.messages,
            "message_bytes": self.message_bytes, "shards": self.shards,
            "machines": [
                {
                    "name": share.machine.name, "cpus": share.machine.cpus, "shards": share.shards,
                    "memory": share.memory, "has": share.machine.memory,
                }
                for share in self.shares
            ],
            "exchanged": self.exchanged, "network": self.network, "disk": dict(self.disk), "free": self.free,
            "folder": self.folder, "scratch": scratch, "scratch_free": self.scratch_free,
            "scratch_folder": self.scratch_folder, "seconds": self.seconds, "factor": FACTOR,
            "fits": not self.misfits(),
        }  # fmt: skip

    def misfits(self) -> list[str]:
        """Return in words what the machines do not have; nothing if the run fits."""
        found = [share.misfit() for share in self.shares if not share.fits]
        if (needed := sum(self.disk.values())) > self.free:
            found.append(f"{self.folder!r} needs {size(needed)} of disk and has {size(self.free)} free")
        if self.scratch.labels > self.scratch_free:
            found.append(
                f"{self.scratch_folder!r}, the folder for temporary files (TMPDIR), needs "
                f"{size(self.scratch.labels)} of disk for training and has {size(self.scratch_free)} free"
            )
        return found

    def _advice(self) -> str:
        """Return what helps; first against what takes the most memory."""
        short = [share for share in self.shares if not share.fits]
        disk = sum(self.disk.values()) > self.free
        scratch = self.scratch.labels > self.scratch_free
        if scratch and not short and not disk:
            return "name another folder for temporary files by the variable TMPDIR, or take fewer users"
        shards = self.backend == "shards" and any(2 * share.idle > share.memory for share in short)
        actors = self.backend == "actors"  # one for each user
        users = disk or scratch or actors or all(share.idle <= share.machine.memory for share in short)
        helps = {
            "fewer --shards": shards,
            "fewer users": users,
            "a lower --trace": disk and "trace" in self.disk,
            "--no-population": disk and "population" in self.disk,
            "another --out": disk,
            "another TMPDIR": scratch,
            "more machines (--backend shards --address)": bool(short),
        }
        *others, last = [what for what, does in helps.items() if does]
        return f"take {', '.join(others)} or {last}" if others else f"take {last}"

    def check(self) -> None:
        """Raise InputError with the numbers if the run cannot fit."""
        if misfits := self.misfits():
            parts = ", ".join(f"{part} {size(each)}" for part, each in self.disk.items())
            raise InputError(
                f"this run cannot fit: {'; '.join(misfits)} ({self.users:,} users, {self.messages:,} messages, on disk "
                f"{parts}): {self._advice()}"
            )


def plan_of(
    protocol: Protocol,
    crowd: Crowd,
    settings: Settings,
    here: Sequence[Machine],
    saved: Saved,
    trace: str = "none",
) -> RunPlan:
    """Return what a run of all users of a crowd takes; about 0.5 seconds, more for slow protocols.

    ``here``: the machines, see ``machines``.  Raises what a run would raise.
    """
    if settings.backend == "actors":
        check_users(crowd.users)
    protocol.check_sizes(*crowd.sizes())
    how = {"digest": settings.digest, "faults": settings.faults, "crypto": settings.crypto}
    growth = grown(protocol, crowd, how, saved.population)
    counts = growth.counts()
    shards = shards_of(settings, crowd.users, sum(machine.cpus for machine in here))
    exchanged = _exchanged(protocol, counts, crowd, shards)
    computing = growth.of("seconds")
    compiled = kernels.compiles(crowd.users, None if shards else computing)
    workers = shards or settings.threads_for(crowd.users)
    if not shards:  # what a server returns is there in parts, and joined
        whole = growth.of("memory") + growth.of("outputs") + saved.training
        memory = [whole + _now() + NUMBA_BYTES * compiled]
        at_work, empty = [0], 0
    else:
        at_work = _divided(shards, here)
        driver = _now() + _driver_bytes(protocol, counts, growth, crowd) + saved.training
        empty = _worker_bytes(settings, compiled)
        each = empty + growth.of("memory") / shards
        store = min(max(STORE_BYTES[0], sum(exchanged.values()) / len(here)), STORE_BYTES[1])
        memory = [
            number * each + (driver if _first(here, machine) else 0) + store
            for number, machine in zip(at_work, here, strict=True)
        ]
    shares = tuple(
        Share(machine, number, round(nbytes), number * empty)
        for machine, number, nbytes in zip(here, at_work, memory, strict=True)
    )
    between = round(sum(exchanged.values()))
    disk = {
        **_traced(protocol, crowd, growth, settings, trace),
        "outputs": round(growth.of("outputs_on_disk")),
        "population": round(growth.of("population_on_disk")),
    }
    disk = {part: each for part, each in disk.items() if each}
    free, folder = _free(saved.folder)
    return RunPlan(
        crowd.users, settings.backend, sum(count.messages for count in counts.values()),
        sum(count.nbytes for count in counts.values()), shards, shares, between,
        round(between * (1 - 1 / len(here))), disk, free, folder,
        _seconds(computing, shards, workers, between, compiled), saved.scratch, *_scratch(folder, sum(disk.values())),
    )  # fmt: skip


def size(octets: float) -> str:
    """Return a number of bytes in words: ``2.31 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if octets < 1000:
            return f"{octets:.3g} {unit}"
        octets /= 1000
    return f"{octets:,.3g} TB" if octets < 1000 else f"{octets:,.0f} TB"


def _worker_bytes(settings: Settings, compiled: bool) -> int:
    """Return the memory of a worker before it holds a user."""
    return WORKER_BYTES + NUMBA_BYTES * (compiled and settings.backend != "actors")


def _divided(shards: int, here: Sequence[Machine]) -> list[int]:
    """Return how many shards each machine holds: in turn, where a processor is free; beyond, evenly."""
    cpus = [machine.cpus for machine in here]
    bound = min if shards <= sum(cpus) else max
    level = (
        bisect_right(range(shards + 1), shards, key=lambda each: sum(bound(cpu, each) for cpu in cpus)) - 1
    )
    found = [bound(cpu, level) for cpu in cpus]
    following = [place for place, cpu in enumerate(cpus) if bound(cpu, level + 1) > found[place]]
    for place in following[: shards - sum(found)]:
        found[place] += 1
    return found


def _first(here: Sequence[Machine], machine: Machine) -> bool:
    """Whether the calling process runs on a machine; on the first where none of them is known to be its own."""
    own = next((each for each in here if each.here), here[0])
    return machine is own


def _exchanged(
    protocol: Protocol, counts: Mapping[tuple[str, int], Count], crowd: Crowd, shards: int
) -> dict[tuple[str, int], float]:
    """Return the bytes that go from process to process, by kind and round: columns of addresses and fields."""
    if not shards:
        return {}
    found = {}
    for (kind, round_), count in counts.items():
        message = protocol.messages()[kind]
        users = message.sender == message.recipient == USER
        addresses = _ADDRESS * (2 if message.recipient == USER else 1)
        width = count.nbytes / count.travelled - _HEADER + addresses if count.travelled else 0.0
        found[kind, round_] = (_crossing(protocol, crowd, shards) if users else 1.0) * width * count.travelled
    return found


def _crossing(protocol: Protocol, crowd: Crowd, shards: int) -> float:
    """Return the share of messages between users that goes to another shard.

    A cluster in a row of ids, of c users among shards of s, is cut with probability c / s, and then a third of its
    pairs are cut.
    """
    everywhere = 1 - 1 / shards
    if not (protocol.in_clusters() and crowd.together):
        return everywhere
    return min(everywhere, crowd.cluster * shards / crowd.users / 3)


def _driver_bytes(
    protocol: Protocol, counts: Mapping[tuple[str, int], Count], growth: Growth, crowd: Crowd
) -> float:
    """Return the memory of the calling process that grows: users, what servers read, and outputs.

    Where shards make or read the users themselves, that of the actor of the servers instead.
    """
    population = WORKER_BYTES if crowd.apart else 0.0 if crowd.held else growth.of("population")
    to_servers = sum(
        count.nbytes - _HEADER * count.travelled + _ADDRESS * count.messages
        for (kind, _), count in counts.items()
        if protocol.messages()[kind].recipient != USER
    )
    return population + to_servers + (1 + _OUTPUT_COPIES) * growth.of("outputs")


def _traced(
    protocol: Protocol, crowd: Crowd, growth: Growth, settings: Settings, trace: str
) -> dict[str, int]:
    """Return the bytes of the trace on disk: those of the larger pilot, grown."""
    level = TraceLevel.parse(trace)
    if not level.keeps:
        return {}
    some = crowd.make(growth.large.users)
    if level.sample:
        few = max(1, round(min(1.0, level.sample / crowd.users) * some.users))
        level = replace(level, sample=few)
    text = f"sample={level.sample}" if level.sample else level.name
    (found,) = predict(protocol, some, text, faults=settings.faults)
    return {"trace": round(found.nbytes * growth.ratio)}


def _seconds(computing: float, shards: int, workers: int, exchanged: float, compiled: bool) -> float:
    """Return seconds of wall time, roughly: of computing, of starting Ray, and of handing bytes over.

    ``computing``: CPU seconds by numpy; ``workers``: shards or threads among whom that is divided.
    """
    seconds = computing * (_COMPILED if compiled else 1.0) / workers
    return seconds + (seconds_to_start(shards) + exchanged / _EXCHANGED / shards if shards else 0.0)


def seconds_to_start(shards: int) -> float:
    """Return the seconds of wall time, roughly, that Ray and so many shards take to start."""
    return _START + _START_EACH * shards


def _now() -> int:
    """Return the bytes of memory that this process holds."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return 150 << 20
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _free(folder: Path) -> tuple[int, str]:
    """Return the bytes free where a folder will be, and the folder above it that exists."""
    above = (folder.absolute(), *folder.absolute().parents)
    there = next(each for each in above if each.exists())
    here = not folder.is_absolute() and there == Path.cwd()
    return shutil.disk_usage(there).free, "." if here else str(there)


def _scratch(folder: str, saved: int) -> tuple[int, str]:
    """Return the bytes free in the folder for temporary files, when so many were saved in a folder; and its name."""
    there = tempfile.gettempdir()
    free = shutil.disk_usage(there).free
    return (max(0, free - saved) if Path(there).stat().st_dev == Path(folder).stat().st_dev else free), there


_A_USER, _A_MESSAGE = 400, 60
"""Bytes of memory: more than any run takes that was measured."""

_ON_DISK = 40  # bytes a user on disk, without a trace: more than measured
_FEW = 5_000  # users of whom everybody may write to everybody


def is_in_doubt(
    protocol: Protocol,
    crowd: Crowd,
    settings: Settings,
    here: Sequence[Machine],
    saved: Saved,
    trace: str = "none",
) -> bool:
    """Return whether a run might not fit, by a look of some milliseconds; then a plan tells.

    What a trace takes is not seen so quickly.  Raises InputError for too many users of backend "actors".
    """
    if settings.backend == "actors":
        check_users(crowd.users)
    memory, users = min(machine.memory for machine in here), crowd.users
    shards = shards_of(settings, users, sum(machine.cpus for machine in here))
    if any(
        number * _worker_bytes(settings, compiled=True) > machine.memory
        for number, machine in zip(_divided(shards, here), here, strict=True)
    ):
        return True
    if users > _FEW and TraceLevel.parse(trace).keeps:
        return True
    free, folder = _free(saved.folder)
    if saved.scratch.labels > _scratch(folder, 0)[0]:
        return True
    if users * _ON_DISK > free or users * _A_USER + saved.training > memory:
        return True
    return users > _FEW and messages_of(protocol, crowd, {"faults": settings.faults}) * _A_MESSAGE > memory


def most_bytes(protocol: Protocol, crowd: Crowd, how: dict[str, Any]) -> float:
    """Return more bytes of memory than a run takes beside an idle process, by a look of some milliseconds.

    ``how``: as ``p2p_sim.run`` takes it.  Among few users everybody is taken to write to everybody, without a look.
    Raises what a run would raise.
    """
    users = crowd.users
    messages = users**2 if users <= _FEW else messages_of(protocol, crowd, how)
    return users * _A_USER + messages * _A_MESSAGE
