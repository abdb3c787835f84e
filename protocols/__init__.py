"""Protocols, one file each, written as their papers write them."""

from protocols.encrypted_shuffle import EncryptedShuffle
from protocols.label_proportions import LabelProportions
from protocols.laplace_label_proportions import LaplaceLabelProportions
from protocols.network_shuffle import NetworkShuffle
from protocols.peer_permutation import PeerPermutation
from protocols.peer_to_peer import PeerToPeer
from protocols.randomized_response import RandomizedResponse
from protocols.secure_aggregation import SecureAggregation

ALL = (
    PeerToPeer, RandomizedResponse, EncryptedShuffle, PeerPermutation, NetworkShuffle,
    LabelProportions, LaplaceLabelProportions, SecureAggregation,
)  # fmt: skip
"""Every protocol that the command line knows, by ``command_name()``."""

__all__ = [
    "ALL", "EncryptedShuffle", "LabelProportions", "LaplaceLabelProportions", "NetworkShuffle", "PeerPermutation",
    "PeerToPeer", "RandomizedResponse", "SecureAggregation",
]  # fmt: skip
