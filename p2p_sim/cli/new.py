"""``p2p-sim new``: a protocol of one's own to begin with, its law and its tests."""

from __future__ import annotations

import keyword
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import OUTPUT, Format, Json, text, wants_json
from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal

_LONGEST = 60
_OF_TOOLS = ("conftest", "setup", "test")
_IMPORTED = ("Message", "Party", "Protocol", "Rounds")
"""Names in the file that is written."""


@app.command("new", cls=UniqueOptionsCommand, epilog="Example: p2p-sim new my_protocol")
@dataclass(frozen=True)
class NewCommand:
    """Write a small protocol that works, with its law and its tests, to be changed into your own."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The module's name, such as my_protocol; the class is MyProtocol."
        ),
    ]
    out: Annotated[str | None, text(OUTPUT, "Folder of both files; default the current one.", "DIR")] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Write both files, and say what can be done with them."""
        as_json = wants_json(self.json, self.format)
        names = _names(self.name)
        folder = Path("." if self.out is None else self.out)
        files = {
            folder / f"{names['module']}.py": _PROTOCOL,
            folder / f"test_{names['module']}.py": _TESTS,
        }
        _check_free(folder, list(files))
        places = {output_files.check(str(place)): template for place, template in files.items()}
        for place, template in places.items():
            content = template
            for key, value in names.items():
                content = content.replace(f"<{key}>", value)
            output_files.write(place, content)
        commands = [line.replace("<it>", f"{names['module']}:{names['class']}") for line in _COMMANDS]
        commands[-1] = f"python -m pytest test_{names['module']}.py"
        if as_json:
            document = {
                "files": [str(place) for place in files],
                "class": names["class"],
                "commands": commands,
            }
            sys.stdout.write(terminal.as_json(document))
        else:
            where = "" if self.out is None else f"In {terminal.visible(self.out)}:\n"
            written = "".join(f"{terminal.visible(str(place))}\n" for place in files)
            sys.stdout.write(f"{written}\n{where}" + "".join(f"  {line}\n" for line in commands))
        return 0


def _names(given: str) -> dict[str, str]:
    """Return the names of the module, the class and the command; raises InputError for one that cannot be used."""
    parts = given.split("_")
    plain = given.isascii() and given.isidentifier() and given == given.lower() and all(parts)
    named = "".join(part.capitalize() for part in parts)
    if not plain or len(given) > _LONGEST or keyword.iskeyword(given) or keyword.iskeyword(named):
        raise InputError(
            f"NAME = {given[: 2 * _LONGEST]!r}: must be a module's name of at most {_LONGEST} small letters, digits "
            "and single underscores between them, and no word of Python's: such as my_protocol"
        )
    if given.startswith("test_") or given.endswith("_test") or given in _OF_TOOLS or named in _IMPORTED:
        raise InputError(
            f"NAME = {given!r}: pytest, an installer or the protocol's own imports take it for something else: choose "
            "another name"
        )
    if find_spec(given) is not None:
        raise InputError(f"NAME = {given!r}: there is a module of that name already: choose another name")
    return {
        "module": given,
        "class": named,
        "command": given.replace("_", "-"),
    }


def _check_free(folder: Path, places: list[Path]) -> None:
    if not folder.is_dir():
        raise InputError(f"--out {str(folder)!r}: is no folder; make it first")
    for place in places:
        if place.exists() or place.is_symlink():
            raise InputError(
                f"{str(place)!r} is there already, and is not replaced: choose another name or --out"
            )


_COMMANDS = [
    "p2p-sim account <it> --alpha 0.25       # who learns how much",
    "p2p-sim calibrate <it> --epsilon 1 --delta 0       # at which alpha a promise is kept",
    "p2p-sim run <it> --alpha 0.25 --users 1000       # a run, and what it showed",
    "p2p-sim check <it> --alpha 0.25       # the same bits, however it runs",
    "",
]
"""What can be done next; the last one runs the tests."""

_PROTOCOL = '''"""<class>: say in a sentence what it does."""

from __future__ import annotations

from dataclasses import dataclass

from p2p_sim import privacy
from p2p_sim.core import Message, Party, Protocol, Rounds, check_flip


@dataclass(frozen=True)
class <class>(Protocol):
    """Users report their label, which each of them flips with probability alpha.

    ``alpha``: in [0, 1/2].  The learner returns columns ``sender`` and ``y`` (bool).  Raises InputError for parameters
    out of range.

    *Source:* yours; this one is Warner's randomized response, 1965.
    *Assumes:* users follow the protocol; nobody else need be trusted.
    """

    alpha: float
    report = Message("user", "learner", "hands the learner a noisy label", y=bool)

    def __post_init__(self) -> None:
        check_flip("alpha", self.alpha)

    def user(self, me: Party) -> Rounds:
        """Flip a coin, and report.  ``me.y`` has the labels of many users at once: compute with it entry by entry."""
        flip = me.draw.bernoulli("flip", self.alpha)
        yield self.report(y=me.y ^ flip)

    def learner(self, me: Party) -> Rounds:
        """Receive all reports."""
        reports = yield self.report.receive()
        return reports.columns()


def law(protocol: <class>, setting: privacy.Setting) -> privacy.PrivacyProfile:
    """Return what a view learns of one label; without it the law is found on the program, where that can be done."""
    alpha = protocol.alpha
    if setting.learner or (setting.view.wire and not setting.encrypted):
        return privacy.building_blocks.randomization_matrix([[1 - alpha, alpha], [alpha, 1 - alpha]])
    return privacy.PrivacyProfile(setting.text, "exact", "nothing is read", law=privacy.Nothing())


# Nobody's message depends on another user's label, so that audits can run the victim alone.
privacy.register(<class>, privacy.Accounting(law=law, others_matter=False))
'''

_TESTS = '''"""The contract of every protocol, and the law of <class> against a figure computed by hand."""

from __future__ import annotations

import math

import pytest
from p2p_sim import privacy, testing

from <module> import <class>


@pytest.mark.parametrize("check", testing.CHECKS, ids=testing.name_of)
def test_the_contract(check):
    testing.keeps(check, <class>(alpha=0.25))


def test_the_learners_epsilon_is_that_of_the_odds_of_the_truth():
    found = privacy.profile(<class>(alpha=0.25), "learner", cluster_size=10)
    assert found.basis == "exact"
    assert math.isclose(found.epsilon(0.0), math.log(0.75 / 0.25))
'''
