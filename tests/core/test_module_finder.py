"""A module of one's own is found in its folder, with what it imports; nothing else of that folder is."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2p_sim import InputError
from p2p_sim.core import module_finder


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    finders, modules = list(sys.meta_path), set(sys.modules)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine_own.py").write_text("import mine_near\nimport numpy, colorsys\nX = mine_near.X\n")
    (tmp_path / "mine_near.py").write_text(
        "X = 1\ndef f():\n    from mine_pack.deep import Y\n    return Y\n"
    )
    (tmp_path / "mine_pack" / "deep").mkdir(parents=True)
    (tmp_path / "mine_pack" / "deep" / "__init__.py").write_text("import mine_far\nY = 2\n")
    (tmp_path / "mine_far.py").write_text("")
    for name in ("numpy", "colorsys", "mine_stray", "scipy"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('a stray module')\n")
    return tmp_path


def test_what_is_imported_and_what_is_not(folder: Path) -> None:
    before = list(sys.path)
    module_finder.find_own("mine_own", folder)
    assert importlib.import_module("mine_own").X == 1
    assert sys.modules["mine_near"].f() == 2
    assert module_finder.opened()[0].names == {"mine_own", "mine_near", "mine_pack", "mine_far"}
    assert importlib.util.find_spec("mine_stray") is None
    assert not str(sys.modules["numpy"].__file__).startswith(str(folder))
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scipy", r"the module is at .*scipy.*another name"),
        ("colorsys", "the module is at .*colorsys.*another name"),
        ("", "is no module"),
        ("..x", "is no module"),
    ],
)
def test_a_name_that_is_taken_is_refused(folder: Path, name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        module_finder.find_own(name, folder)
    assert importlib.util.find_spec("mine_stray") is None


def test_a_builtin_name_is_refused(folder: Path) -> None:
    (folder / "itertools.py").write_text("")
    with pytest.raises(InputError, match="itertools is a module of Python's own"):
        module_finder.find_own("itertools", folder)


def test_a_module_that_is_not_there_is_left_to_python(folder: Path) -> None:
    before = list(sys.meta_path)
    for name in ("email.message", "mine_nowhere"):
        module_finder.find_own(name, folder)
    assert sys.meta_path == before


def test_a_module_of_the_same_name_in_another_folder_takes_its_place(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine_own.py").write_text("X = 5\n")
    for place, value in ((folder, 1), (other, 5), (folder, 1)):
        module_finder.find_own("mine_own", place)
        assert value == importlib.import_module("mine_own").X
    assert len([finder for finder in module_finder.opened() if "mine_own" in finder.names]) == 1


def test_broken_neighbours_are_told_when_they_are_imported(folder: Path) -> None:
    (folder / "mine_near.py").write_text("def (\n")
    module_finder.find_own("mine_own", folder)
    with pytest.raises(SyntaxError):
        importlib.import_module("mine_own")
