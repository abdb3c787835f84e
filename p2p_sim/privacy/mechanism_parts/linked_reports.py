"""Whose noisy label a report carries, where labels go from user to user: what traffic tells of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.observed_view import View

Ints = npt.NDArray[np.int64]

UNKNOWN_SOURCE = -1


def linked(view: View, kind: str, reporters: npt.NDArray[Any]) -> Ints:
    """Return the id of whom each reporter (m,) had her label from, ``UNKNOWN_SOURCE`` where the view cannot tell.

    ``kind``: of the messages that hand labels from user to user.  Of whom one user was sent several by different
    users, which happens where messages were lost or late, nobody knows which she used.  Whoever watches all traffic
    and saw nobody write to a reporter knows that she drew herself.
    """
    handed = view.messages[kind]
    to, first, which = np.unique(handed["recipient"], return_index=True, return_inverse=True)
    sender = handed["sender"][first]
    sender[which.reshape(-1)[handed["sender"] != sender[which.reshape(-1)]]] = UNKNOWN_SOURCE
    place = np.minimum(np.searchsorted(to, reporters), max(0, len(to) - 1))
    seen = to[place] == reporters if len(to) else np.zeros(len(reporters), np.bool_)
    otherwise = reporters if view.coalition.wire else np.full(len(reporters), UNKNOWN_SOURCE)
    return np.asarray(np.where(seen, sender[place], otherwise) if len(to) else otherwise, np.int64)
