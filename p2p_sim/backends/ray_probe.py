"""Checks whether Ray answers at an address, before ``ray.init``, which would wait for minutes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from p2p_sim.core.errors import InputError
from p2p_sim.core.number_texts import read_digits

PROBE_SECONDS = 3.0
ANSWER_SECONDS = 14.0
_LAST_PORT = 65_535


def probe(address: str) -> None:
    """Check that Ray answers at host:port; raises InputError within 20 seconds if it does not."""
    host, _, port = str(address).rpartition(":")
    by = "RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") == address else "address"
    number = read_digits(port)
    if not host or number is None or not 0 < number <= _LAST_PORT or "/" in address:
        ports = "" if number is None else f" (ports are 1 to {_LAST_PORT:,})"
        raise InputError(
            f"{by} = {address!r}: give host:port of the Ray head, for example 10.0.0.5:6379{ports}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"{by} = {address!r}: nothing answers there ({error}); start it with `ray start --head`"
        ) from error
    # -P: not with what lies in the current folder
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{by} = {address!r}: something answers, but not as Ray within {ANSWER_SECONDS:.0f} s; give the "
            "address that `ray start --head` printed"
        ) from error
    if answer.returncode:
        raise InputError(
            f"{by} = {address!r}: Ray's health check failed there; give the head's host:port, and if the cluster "
            "asks for a token (it does if its machine had ~/.ray/auth_token when it started), set RAY_AUTH_MODE=token"
        )
