"""What a row or an outcome is of: the code that its script imports, and no other."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments import _made_by, _proportions, _theorem3_beyond, errata, release_figure4, theorem3

ROOT = Path(_made_by.__file__).parents[1]
BEYOND = next(iter(_theorem3_beyond.cases(quick=True)))[1]


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A function that appends a comment to a file of this repository, as it is read."""
    read = Path.read_bytes

    def edit(file: str) -> None:
        place = ROOT / file
        assert place.is_file()
        monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path == place))
        _made_by._hash.cache_clear()

    yield edit
    _made_by._hash.cache_clear()


def by_ast(file: Path) -> set[str]:
    """Return what a source imports, by Python's own parser."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import, which is not followed"
            found |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return {".".join(name.split(".")[:count]) for name in found for count in range(1, name.count(".") + 2)}


def test_imports_are_found_as_the_parser_finds_them() -> None:
    for package in _made_by.PACKAGES.values():
        for file in package.rglob("*.py"):
            assert by_ast(file) <= set(_made_by.modules(file.read_text())), file


@pytest.mark.parametrize(
    "file",
    [
        "p2p_sim/privacy/accountant.py",
        "p2p_sim/core/draw.py",
        "p2p_sim/privacy/mechanisms/peer_to_peer/cluster_reports.py",  # imported in a function alone
        "protocols/peer_to_peer.py",
        "experiments/_theorem3_beyond.py",
        "experiments/_theorem3_mixed.py",
        "experiments/_rows.py",
    ],
)
def test_rows_are_of_all_code_that_computes_them(file: str, edited: Callable[[str], None]) -> None:
    before = _made_by.of(BEYOND), _made_by.code("theorem3")
    edited(file)
    assert _made_by.of(BEYOND) != before[0]
    assert not _made_by.same(before[1])
    assert _made_by.same(_made_by.code("theorem3"))


@pytest.mark.parametrize(
    "file",
    [
        "experiments/clustering_table1.py",
        "experiments/_neighbours.py",
        "experiments/_gallery.py",
        "p2p_sim/cli/run.py",
        "p2p_sim/render/web/page.py",
    ],
)
def test_other_code_leaves_them_alone(file: str, edited: Callable[[str], None]) -> None:
    before = _made_by.of(BEYOND), _made_by.code("theorem3")
    edited(file)
    assert _made_by.of(BEYOND) == before[0]
    assert _made_by.same(before[1])


def test_a_script_s_claims_are_not_code_of_rows_that_a_module_of_its_own_computes(
    edited: Callable[[str], None],
) -> None:
    """The outcome is of them, though."""
    audited, before = next(iter(theorem3.cases((100,), (1.0,), 10)))[1], _made_by.of(BEYOND)
    own, outcome = _made_by.of(audited), _made_by.code("theorem3")
    edited("experiments/theorem3.py")
    assert _made_by.of(BEYOND) == before
    assert _made_by.of(audited) != own
    assert not _made_by.same(outcome)


@dataclass(frozen=True)
class Setting:
    scale: float
    script: Any = None

    def rows(self) -> list[dict[str, Any]]:
        return [{"scale": self.scale}]


def compute(setting: Setting, count: int = 0) -> list[dict[str, Any]]:
    return [{"scale": setting.scale, "count": count}]


def test_what_is_inside_of_objects_counts_and_plain_arguments_do_not() -> None:
    """Settings name those; an object is made by code that may lie anywhere."""
    one = _made_by.of(partial(compute, Setting(1.0)))
    assert _made_by.of(partial(compute, Setting(1.0), 7)) == one
    assert _made_by.of(partial(compute, Setting(2.0))) != one
    laplace = [_made_by.of(partial(_proportions._rows, _proportions.laplace(4, e, 1.0))) for e in (1.0, 2.0)]
    assert laplace[0] != laplace[1]


@pytest.mark.parametrize("how", ["argument", "method", "list", "closure", "field"])
def test_functions_that_are_handed_over_are_code_too(how: str, edited: Callable[[str], None]) -> None:
    given = errata.run

    def closed() -> Any:
        return given

    computes: dict[str, Any] = {
        "argument": partial(compute, given),
        "method": Setting(1.0, given).rows,
        "list": partial(compute, [given]),
        "closure": closed,
        "field": partial(compute, Setting(1.0, given)),
    }
    before, other = _made_by.of(computes[how]), _made_by.of(release_figure4.run)
    edited("experiments/errata.py")
    assert _made_by.of(computes[how]) != before
    assert _made_by.of(release_figure4.run) == other
