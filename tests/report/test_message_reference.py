"""The page of protocols and messages is what the declarations say, whatever they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import protocols
from p2p_sim.core import Bytes, FixedPoint, Label, Message, Protocol, Vector
from p2p_sim.report import message_reference

PAGE = Path(__file__).parents[2] / "docs/api/messages.md"


def test_the_page_of_the_docs_is_what_is_declared(tmp_path: Path) -> None:
    out = tmp_path / "messages.md"
    assert message_reference.main([str(out)]) == 0
    again = "write it again: python -m p2p_sim.report.message_reference docs/api/messages.md"
    assert out.read_text() == PAGE.read_text(), again


def test_every_shipped_protocol_and_message_has_its_place() -> None:
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert [section.split("\n")[0] for section in sections] == [kind.command_name() for kind in protocols.ALL]
    for section, kind in zip(sections, protocols.ALL, strict=True):
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(kind.messages())


@dataclass(frozen=True)
class Made(Protocol):
    """Users say ``much`` | [more].

    *Source:* nobody.
    """

    dim: int = 3

    plain = Message("user", "learner", "no fields")
    every = Message(
        "user", "first", "all | kinds", sealed_for="learner", layers=("first", "second"),
        y=Label(), n=int, v=Vector(np.uint64, "dim"), w=Vector(np.uint8, 4), b=Bytes(32),
        f=FixedPoint(resolution=0.5, low=-8, high=8),
    )  # fmt: skip


def test_a_field_of_every_type() -> None:
    text = message_reference.page([Made])
    assert "Users say `much` \\| \\[more\\].\n\n*Source:* nobody.\n" in text
    assert "| `plain` | user to learner | no fields | nothing |" in text
    assert (
        "| `every` | user to first | all \\| kinds | `y`: label, `n`: int64, `v`: `dim` × uint64, "
        "`w`: 4 × uint8, `b`: 32 bytes, "
        "`f`: numbers from -8 to 8 in steps of 0.5; sealed for learner, in layers for first, second |"
    ) in text
