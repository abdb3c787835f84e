"""Protocols, one file each, written as their papers write them."""

from protocols.peer_to_peer import PeerToPeer
from protocols.randomized_response import RandomizedResponse

ALL = (PeerToPeer, RandomizedResponse)
"""Every protocol that the command line knows, by ``command_name()``."""

__all__ = ["ALL", "PeerToPeer", "RandomizedResponse"]
