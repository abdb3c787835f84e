"""What the command line writes of saved runs is what is frozen; how values are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import commands, frozen
from tests.golden.tables import computed

pytestmark = pytest.mark.slow

FROZEN = frozen.kept("artefacts")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("golden")
    commands.prepare(found)
    return found


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_artefacts(name: str, folder: Path) -> None:
    found = computed("artefacts", name, folder)
    relative = frozen.LEARNT if name in commands.LEARNT else frozen.RELATIVE
    assert frozen.differences(found, FROZEN[name], relative=relative) == []


def test_the_table_is_whole() -> None:
    assert FROZEN.keys() == commands.COMMANDS.keys()


def test_what_differs_is_said() -> None:
    assert frozen.differences({"a": [1, 0.5]}, {"a": [1, 0.5 + 1e-14]}) == []
    assert frozen.differences({"a": [1, 0.5]}, {"a": [1, 0.5 + 1e-11]}) != []
    assert frozen.differences({"a": 1}, {"a": 1.0}) == ["/a: 1, frozen is 1.0"]
    assert frozen.differences({"a": 1}, {"b": 1}) == [": b is gone", ": a is new"]
    assert frozen.differences([1], [1, 2]) == [": [1], frozen is [1, 2]"]
    assert frozen.differences(0.0, 1e-300) != []
