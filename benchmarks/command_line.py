"""The command line that all benchmarks have: ``python -m benchmarks.NAME``, which writes JSON."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

import p2p_sim
from benchmarks import measure


def command_line(module: ModuleType, size: int, option: str = "users") -> None:
    """Read size, cases and repeats; call the module's ``main``; write its result.

    ``option``: what the size is called, ``size`` its default.  The module has CASES, too.
    """
    spec, about = module.__spec__, (module.__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog=f"python -m {spec.name if spec else ''}", description=about)
    parser.add_argument(f"--{option}", dest="size", metavar="N", type=_size, default=size)
    parser.add_argument("--cases", default=",".join(module.CASES), help="which rows, separated by commas")
    parser.add_argument("--repeat", type=int, default=5, help="interleaved pairs a ratio is the median of")
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    given = parser.parse_args()
    asked = f"{parser.prog} --{option} {given.size} --cases {given.cases} --repeat {given.repeat}"

    def progress(what: str, done: int, total: int) -> None:
        print(f"{what}: {done} of {total}", file=sys.stderr)

    with measure.json_only() as write:
        try:
            result = module.main(given.size, tuple(given.cases.split(",")), given.repeat, progress)
        except p2p_sim.InputError as error:
            parser.error(str(error))
        write(measure.as_text({**result, "command": asked}))


def _size(text: str) -> int:
    """Return a whole number, of text such as 1000 or 1e6."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, such as 1000 or 1e6") from None
