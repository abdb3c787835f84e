"""Message columns put together."""

from __future__ import annotations

import numpy as np

from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.errors import ProtocolError


def beside(one: PerMessage, other: PerMessage) -> PerMessage:
    """Return the messages of two columns of one block: of each holder first those of ``one``.

    Raises ProtocolError for columns of other types, or sealed for others.
    """
    first, second = one.layout, other.layout
    if one.sealed_for != other.sealed_for or one._data.dtype != other._data.dtype:
        raise ProtocolError("beside: the columns have different types, or are sealed for different roles")
    if first.parties != second.parties:
        raise ProtocolError(f"beside: columns of {first.parties} and of {second.parties} parties meet")
    starts = first.starts + second.starts
    data = np.empty((first.size + second.size, *one._data.shape[1:]), one._data.dtype)
    data[starts[:-1][first.holder] + first.rank] = one._data
    data[(starts[:-1] + first.count)[second.holder] + second.rank] = other._data
    return PerMessage(data, Layout(starts), one.sealed_for)
