"""Whether the head of a Ray cluster still answers: without it, Ray ends this process without a word after a minute."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

SILENT_SECONDS = 30.0
"""How long a head may not answer; Ray's own limit is 60 (``RAY_gcs_rpc_server_reconnect_timeout_s``)."""

_LOOK_SECONDS = 5.0
_CONNECT_SECONDS = 2.0


@dataclass
class Head:
    """The head of a cluster that this process has joined, at host:port."""

    address: str
    _looked: float = 0.0
    _silent_since: float | None = None
    _lost: str | None = None

    def lost(self) -> str | None:
        """Return that the head is lost, once it has not answered for 30 seconds; it is asked every 5."""
        now = time.monotonic()
        if self._lost is None and now >= self._looked + _LOOK_SECONDS:
            self._looked = now
            if self._answers():
                self._silent_since = None
            elif self._silent_since is None:
                self._silent_since = now
            elif now >= self._silent_since + SILENT_SECONDS:
                self._lost = f"its head at {self.address} has not answered for {SILENT_SECONDS:.0f} s"
        return self._lost

    def _answers(self) -> bool:
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError:
            return False
        return True
