"""Labels of diagrams and exports: names, field values and sizes, safe on one line of any format."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER

LONGEST = 60
"""The maximum length of a label."""

VECTOR = 24
"""Letters of a vector that are shown."""


def clean(text: Any, longest: int = LONGEST) -> str:
    """Return text on one line, shortened, without characters that XML cannot hold or a terminal interprets."""
    words = " ".join(str(text).split())
    safe = words if words.isprintable() else "".join(c if c.isprintable() else "�" for c in words)
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def party(role: str, number: int) -> str:
    """Return a party's name: ``user:17``, or a server's role."""
    return f"{USER}:{number}" if role == USER else clean(role)


def value(entry: Any, letters: int = VECTOR) -> str:
    """Return one field of one message: a bit, a whole number, octets, or the first of several numbers.

    ``letters``: the maximum length of bytes and of several numbers.
    """
    if isinstance(entry, np.ndarray) and entry.ndim and entry.dtype == np.uint8:
        return _octets(entry, letters)
    if isinstance(entry, list) or (isinstance(entry, np.ndarray) and entry.ndim):
        return _several(entry, letters)
    plain = entry.item() if isinstance(entry, np.generic) else entry
    return str(plain).lower() if isinstance(plain, bool) else clean(plain)


def _octets(entry: npt.NDArray[np.uint8], letters: int) -> str:
    text = entry.tobytes().hex()
    return f"0x{text}" if len(text) <= letters else f"0x{text[: letters // 3]}… {len(entry):,} bytes"


def _several(entry: npt.NDArray[Any] | list[Any], letters: int) -> str:
    texts = [value(one) for one in entry[:letters]]
    while len(", ".join(texts)) > letters and len(texts) > 1:
        texts.pop()
    rest = f", … {len(entry):,} values" if len(texts) < len(entry) else ""
    return f"[{', '.join(texts)}{rest}]"


def counted(number: int, one: str) -> str:
    """Return ``1 message`` or ``1,200 messages``."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def size(nbytes: int) -> str:
    """Return a number of bytes with a suitable unit: ``900 B``, ``1.2 MB``."""
    if nbytes < 1000:
        return f"{nbytes} B"
    power = min((len(str(nbytes)) - 1) // 3, 5)
    return f"{nbytes / 1000**power:.3g} {'kMGTP'[power - 1]}B"
