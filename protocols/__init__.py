"""Protocols, one file each, written as their papers write them."""

from protocols.label_proportions import LabelProportions
from protocols.laplace_label_proportions import LaplaceLabelProportions
from protocols.peer_to_peer import PeerToPeer
from protocols.randomized_response import RandomizedResponse
from protocols.secure_aggregation import SecureAggregation

ALL = (PeerToPeer, RandomizedResponse, LabelProportions, LaplaceLabelProportions, SecureAggregation)
"""Every protocol that the command line knows, by ``command_name()``."""

__all__ = [
    "ALL", "LabelProportions", "LaplaceLabelProportions", "PeerToPeer", "RandomizedResponse", "SecureAggregation",
]  # fmt: skip
