"""All experiments, one after another, each in a process of its own; and the gallery of what came out.

``python -m experiments --all`` makes full runs and writes docs/gallery.md; ended and called again it goes on where it
was.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import _made_by
from experiments._common import INTERRUPTED, UNUSABLE, Experiment, add_options, read_outcome
from experiments._gallery import KEPT, Published, experiments
from p2p_sim.core.errors import InputError

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None, published: Published | None = None) -> int:
    """Run what is asked for and write the gallery; return 1 if an experiment failed, 2 for bad usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    published = published or Published()
    try:
        scripts = {name: experiment for name, (experiment, _) in experiments().items()}
        unknown = [name for name in options.only or () if name not in scripts]
        if unknown:
            raise InputError(f"--only {unknown[0]}: known are {', '.join(scripts)}")
        chosen = options.only or (list(scripts) if options.all else [])
        if not chosen and not options.gallery:
            raise InputError("nothing to do: give --all, --only NAME or --gallery")
        failed = _run_all([scripts[name] for name in chosen], options, published)
        print(*published.write(), sep="\n")
        for each in published.of_other_code():
            print(f"experiments: {each}", file=sys.stderr)
    except InputError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("experiments: ended; the same command goes on where it was", file=sys.stderr)
        return INTERRUPTED
    for name in failed:
        print(f"experiments: failed: {name}", file=sys.stderr)
    return 1 if failed else 0


def _run_all(chosen: Sequence[Experiment], options: argparse.Namespace, published: Published) -> list[str]:
    """Run experiments that are not there yet, and publish what they found; return what failed, and how."""
    failed, took, start = [], dict[str, float](), time.monotonic()
    for number, experiment in enumerate(chosen, 1):
        name = experiment.name
        about = f"[{time.monotonic() - start:5.0f} s] {number}/{len(chosen)} {name}"
        mine = _of_use(experiment, options)
        found = None if options.fresh else _finished(name, mine)
        if found is None:
            takes = "a quick run" if options.quick else f"takes {experiment.takes}"
            print(f"{about}: {takes}", file=sys.stderr, flush=True)
            code = subprocess.run(_command(name, mine), cwd=ROOT, check=False).returncode
            if code == INTERRUPTED:
                raise KeyboardInterrupt
            if code:
                failed.append(f"{name} (exit code {code})")
                continue
            found = _read(name, options)
        else:
            print(f"{about}: was there already", file=sys.stderr, flush=True)
        if found is not None and not found["skipped"] and found["seeds"] is None:
            published.take(name, found, options.out)
            took[name] = found["processor_seconds"]
    whole = options.all and options.fresh and options.address is None and len(took) == len(chosen)
    if whole and options.quick:  # nothing was there, and all of it was computed on this machine
        published.took(took)
    if chosen:
        print(f"[{time.monotonic() - start:5.0f} s] {len(chosen) - len(failed)} done", file=sys.stderr)
    return failed


def _of_use(experiment: Experiment, options: argparse.Namespace) -> argparse.Namespace:
    """Return the options without those that the script refuses, and say so: other scripts may have a use for them."""
    mine = argparse.Namespace(**vars(options))
    for name in ("seeds", "workers", "address"):
        if refused := experiment.refused(**{name: getattr(options, name)}):
            print(f"experiments: {refused.partition(';')[0]}: run without it", file=sys.stderr)
            setattr(mine, name, None)
    return mine


def _finished(name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the outcome of an earlier run with the same settings and code; None: there is none, or it failed."""
    found = _read(name, options)
    if found is None or found["skipped"] or found["drifted"]:
        return None
    asked = (found["quick"], found["seeds"]) == (options.quick, options.seeds)
    return found if asked and _made_by.same(found["code"]) else None


def _read(name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    return read_outcome(options.out / f"{name}.json", (*KEPT, "skipped", "seeds"))


def _command(name: str, options: argparse.Namespace) -> list[str]:
    words = [sys.executable, "-m", f"experiments.{name}", "--out", str(options.out.absolute())]
    words += [word for word, given in (("--quick", options.quick), ("--fresh", options.fresh)) if given]
    for option in ("seeds", "workers", "address"):
        value = getattr(options, option)
        words += [] if value is None else [f"--{option}", str(value)]
    return words


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("experiments", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run every experiment")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these alone")
    parser.add_argument(
        "--gallery", action="store_true", help="write docs/gallery.md and docs/errata.md, without a run"
    )
    add_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
