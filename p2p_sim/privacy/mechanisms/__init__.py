"""One file or folder for each mechanism: its law, faults, theorems, audit statistic and noise, registered at its end.

A room has the name of its protocol's file, and is imported when that protocol is first asked of.  A new one needs two
lines here; ``tests/house/test_one_room.py`` says so where they are missing.
"""

from __future__ import annotations

from types import ModuleType


def open_room(name: str) -> ModuleType | None:
    """Import a room, which registers its protocol; ``name``: of the protocol's file, and of the room."""
    match name:
        case "alibi":
            from p2p_sim.privacy.mechanisms import alibi

            return alibi
        case "binned_response":
            from p2p_sim.privacy.mechanisms import binned_response

            return binned_response
        case "cluster_response":
            from p2p_sim.privacy.mechanisms import cluster_response

            return cluster_response
        case "double_response":
            from p2p_sim.privacy.mechanisms import double_response

            return double_response
        case "dummy_features":
            from p2p_sim.privacy.mechanisms import dummy_features

            return dummy_features
        case "encrypted_shuffle":
            from p2p_sim.privacy.mechanisms import encrypted_shuffle

            return encrypted_shuffle
        case "interval_response":
            from p2p_sim.privacy.mechanisms import interval_response

            return interval_response
        case "label_proportions":
            from p2p_sim.privacy.mechanisms import label_proportions

            return label_proportions
        case "laplace_label_proportions":
            from p2p_sim.privacy.mechanisms import laplace_label_proportions

            return laplace_label_proportions
        case "multi_stage":
            from p2p_sim.privacy.mechanisms import multi_stage

            return multi_stage
        case "network_shuffle":
            from p2p_sim.privacy.mechanisms import network_shuffle

            return network_shuffle
        case "peer_permutation":
            from p2p_sim.privacy.mechanisms import peer_permutation

            return peer_permutation
        case "peer_to_peer":
            from p2p_sim.privacy.mechanisms import peer_to_peer

            return peer_to_peer
        case "prior_response":
            from p2p_sim.privacy.mechanisms import prior_response

            return prior_response
        case "randomized_response":
            from p2p_sim.privacy.mechanisms import randomized_response

            return randomized_response
        case "secure_aggregation":
            from p2p_sim.privacy.mechanisms import secure_aggregation

            return secure_aggregation
        case "unbiased_response":
            from p2p_sim.privacy.mechanisms import unbiased_response

            return unbiased_response
        case _:
            return None
