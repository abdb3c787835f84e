"""``p2p-sim doctor``: whether this installation can do its work, and what to do where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import EXECUTION, Format, Json, flag, wants_json
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Verdict = Literal["ok", "note", "problem"]

_LITTLE_MEMORY, _LITTLE_DISK, _LITTLE_SHARED = 2 << 30, 1 << 30, 256 << 20
_EXTRAS = {
    "torch": "models of neural networks, PATE and FixMatch",
    "dp_accounting": "the epsilon of the DP-SGD baseline",
    "pynndescent": "nearest neighbours of more than 100,000 users",
    "PIL": "CIFAR-10",
    "playwright": "tests of the page in a browser",
}
_INSTALL = {"PIL": "pillow", "torch": "torch", "dp_accounting": "dp-accounting", "pynndescent": "pynndescent"}
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "xdg-open", "open")
_RAY_SECONDS = 120
_AGAIN = "install p2p-sim again: pip install . in a checkout, or pip install the wheel that was made of one"


@dataclass(frozen=True)
class Finding:
    """What was looked at, how it is, and what to do about it: empty where nothing need be done."""

    what: str
    verdict: Verdict
    found: str
    advice: str = ""


@app.command("doctor", cls=UniqueOptionsCommand, epilog="Example: p2p-sim doctor --start-ray")
@dataclass(frozen=True)
class DoctorCommand:
    """Check this installation: packages, memory, disk, data sets, Ray and a browser.  Exit status 1: a problem."""

    start_ray: Annotated[
        bool, flag(EXECUTION, "Also start Ray here, run a protocol on it, and shut it down.", "--start-ray")
    ] = False
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Look, print; 1 if something is wrong."""
        from p2p_sim.progress import Progress

        as_json = wants_json(self.json, self.format)
        with Progress() as progress, terminal.stdout_to_stderr():
            findings: list[Finding] = []
            steps = self._steps()
            for number, (doing, look) in enumerate(steps.items(), 1):
                progress(f"{doing} (step {number} of {len(steps)})", 0, 0)
                findings += look()
        problems = sum(each.verdict == "problem" for each in findings)
        if as_json:
            document = {"problems": problems, "findings": [asdict(each) for each in findings]}
            sys.stdout.write(terminal.as_json(document))
        else:
            sys.stdout.write(_as_text(findings, problems))
        return 1 if problems else 0

    def _steps(self) -> dict[str, Callable[[], Iterable[Finding]]]:
        """Return what is done, in order, and how."""
        return {
            "looking at packages": _packages,
            "looking at memory": _machine,
            "writing files": _places,
            "compiling a loop with numba": _compiled_loops,
            "looking for data sets": _data,
            "starting Ray" if self.start_ray else "looking for Ray": lambda: _ray(self.start_ray),
            "looking for a browser": _browser,
        }


def _as_text(findings: Sequence[Finding], problems: int) -> str:
    """Return a line for each finding, wide ones in several, then what to do."""
    wide = max(len(each.what) for each in findings) + 3
    head = f"{'':10}{'':{wide}}found"
    lines = [f"{each.verdict:<10}{each.what:<{wide}}{terminal.visible(each.found)}" for each in findings]
    found = [part for line in lines for part in terminal.folded(line, head.index("found"))]
    advice = [f"{each.what}: {terminal.visible(each.advice)}" for each in findings if each.advice]
    advice_lines = [part for line in advice for part in terminal.folded(line, 2)]
    ending = f"{problems} problem{'s' if problems > 1 else ''}" if problems else "no problem"
    return "\n".join([head, *found, *(["", *advice_lines] if advice_lines else []), "", ending]) + "\n"


def _packages() -> Iterator[Finding]:
    """Look at Python and at all packages that this one needs, in the versions that it asks for."""
    yield Finding("Python", "ok", f"{sys.version.split()[0]} in {sys.prefix}")
    yield Finding("p2p-sim", "ok", f"{_own_version()}from {Path(__file__).parents[1]}")
    wrong: list[str] = []
    missing: list[str] = []
    try:
        asked = metadata.requires("p2p-sim") or ()
    except metadata.PackageNotFoundError:
        asked = ()
        wrong.append("p2p-sim itself is not installed, only found")
    needed = [each for each in map(_requirement, asked) if each is not None]
    for each in needed:
        try:
            version = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{each.name} is not there")
        else:
            if each.specifier.contains(version, prereleases=True):
                continue
            wrong.append(f"{each.name} {version}, not {each.specifier}")
        missing.append(f"'{each.name}{each.specifier}'")
    yield Finding(
        "packages",
        "problem" if wrong else "ok",
        "; ".join(wrong) if wrong else f"{len(needed)} as they must be",
        f"python -m pip install {' '.join(missing)}" if missing else _AGAIN if wrong else "",
    )
    from importlib.util import find_spec

    for name, what in _EXTRAS.items():
        there = find_spec(name) is not None
        how = f"python -m pip install {_INSTALL[name]}" if name in _INSTALL else ""
        if there:
            yield Finding(name, "ok", f"there, for {what}")
        elif how:
            yield Finding(name, "note", f"not there; it is for {what}", f"if you need {what}: {how}")


def _requirement(text: str) -> Requirement | None:
    """Return a requirement of this package; None for one of an extra, or of another machine."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return found if found.marker is None or found.marker.evaluate({"extra": ""}) else None


def _own_version() -> str:
    try:
        return f"{metadata.version('p2p-sim')}, "
    except metadata.PackageNotFoundError:  # reported below
        return ""


def _machine() -> Iterator[Finding]:
    """Look at processors and memory."""
    from p2p_sim.core.threads import cores
    from p2p_sim.network.room import memory

    yield Finding("processors", "ok", str(cores()))
    size = memory()
    little = size < _LITTLE_MEMORY
    advice = "a million users take about 0.3 GB; Ray takes 1 GB more" if little else ""
    yield Finding("memory", "note" if little else "ok", terminal.nbytes(size), advice)


def _places() -> Iterator[Finding]:
    """Look whether files can be written here."""
    places: dict[str, Callable[[], str | Path]] = {
        "this folder": Path.cwd,
        "temporary files": tempfile.gettempdir,
    }
    for what, find in places.items():
        place: str | Path = ""
        try:
            place = find()
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"0")
            free = shutil.disk_usage(place).free
        except OSError as error:  # also where there is no such folder any more
            why = f"{place}: {error.strerror or error}" if place else f"{error.strerror or error}"
            yield Finding(what, "problem", why, "go to a folder of your own, or give one by --out")
            continue
        little = free < _LITTLE_DISK
        advice = "make room: a run of 1e7 users with all messages takes about 1 GB" if little else ""
        yield Finding(what, "note" if little else "ok", f"{place}, {terminal.nbytes(free)} free", advice)


def _compiled_loops() -> Iterator[Finding]:
    """Look whether numba compiles here, or was switched off."""
    from p2p_sim.core import kernels

    name = "compiled loops"
    without = "results are the same without them: P2P_SIM_NUMBA=0"
    try:
        setting = kernels.numba_setting()
    except InputError as error:
        yield Finding(name, "problem", str(error), without)
        return
    if setting == "0":
        advice = "unset P2P_SIM_NUMBA: results are the same, and large runs faster"
        yield Finding(name, "note", "switched off by P2P_SIM_NUMBA=0", advice)
        return
    cannot = kernels.why_not_compiled()
    if cannot and setting == "1":
        yield Finding(name, "problem", f"P2P_SIM_NUMBA=1, but {cannot}", without)
    elif cannot:
        yield Finding(name, "note", cannot)
    else:
        yield Finding(name, "ok", "numba's, made by the first large run and kept")


def _data() -> Iterator[Finding]:
    """Look at the folder of data sets."""
    from p2p_sim.learning.data import datasets
    from p2p_sim.learning.data.sources import VARIABLE, folder

    try:
        place = folder()
    except InputError as error:
        yield Finding(
            "data sets", "problem", str(error), f"set {VARIABLE} to a folder that is there, or unset it"
        )
        return
    known = datasets.available()
    here = [each.name for each in known if each.where.startswith(("bundled", "folder"))]
    where = f"{VARIABLE} is {place}" if place is not None else f"{VARIABLE} is not set"
    found = f"{len(here)} of {len(known)} are here ({', '.join(here)}); {where}"
    missing = len(here) < len(known)
    advice = f"set {VARIABLE} to a folder that holds them; p2p-sim data says what each is" if missing else ""
    yield Finding("data sets", "note" if missing else "ok", found, advice)


def _ray(start: bool) -> Iterator[Finding]:
    """Look at Ray; ``start``: also run a protocol on it, in a process of its own."""
    address = os.environ.get("RAY_ADDRESS", "")
    if address:
        yield Finding(
            "Ray's cluster",
            "note",
            f"RAY_ADDRESS is {address}",
            "runs on Ray go there; unset it for one here",
        )
    shared = Path("/dev/shm")
    if shared.is_dir():
        size = shutil.disk_usage(shared).total
        little = size < _LITTLE_SHARED
        advice = (
            "Ray will keep its objects on disk, which is slow: give the container more, --shm-size 1g"
            if little
            else ""
        )
        yield Finding("shared memory", "note" if little else "ok", terminal.nbytes(size), advice)
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        yield Finding(
            "Ray", "problem", "it is not there", "python -m pip install ray; runs in one process need none"
        )
        return
    if not start:
        yield Finding("Ray", "ok", f"{version}, not started; --start-ray does")
        return
    words = [
        "run",
        "randomized-response",
        "--users",
        "8",
        "--backend",
        "shards",
        "--shards",
        "1",
        "--seed",
        "1",
    ]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "p2p_sim.cli", *words, "--out", str(Path(folder) / "run")]
        here = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_RAY_SECONDS, check=False, env=here
            )
        except subprocess.TimeoutExpired:
            yield Finding("Ray", "problem", f"no run ended within {_RAY_SECONDS} s", "see docs/failures.md")
            return
    errors = done.stderr.strip().splitlines()
    if done.returncode:
        yield Finding(
            "Ray", "problem", errors[-1] if errors else f"status {done.returncode}", "see docs/failures.md"
        )
    else:
        yield Finding("Ray", "ok", f"{version}, started, ran a protocol, and is shut down")


def _browser() -> Iterator[Finding]:
    """Look for a browser, which `trace serve` and reports are for."""
    found = [name for name in _BROWSERS if shutil.which(name)]
    if found or sys.platform == "win32":
        yield Finding("browser", "ok", found[0] if found else "the system's")
        return
    advice = "reports and `trace serve --export` write files that any browser elsewhere shows"
    yield Finding("browser", "note", "none was found", advice)
