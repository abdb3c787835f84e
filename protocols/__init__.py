"""Protocols, one file each, written as their papers write them; a new one is a line here."""
# ruff: isort: skip_file

from p2p_sim.core import Protocol as _Protocol

# In the order in which lists name them.
from protocols.peer_to_peer import PeerToPeer as PeerToPeer
from protocols.randomized_response import RandomizedResponse as RandomizedResponse
from protocols.prior_response import PriorResponse as PriorResponse
from protocols.multi_stage import MultiStage as MultiStage
from protocols.binned_response import BinnedResponse as BinnedResponse
from protocols.unbiased_response import UnbiasedResponse as UnbiasedResponse
from protocols.interval_response import IntervalResponse as IntervalResponse
from protocols.alibi import Alibi as Alibi
from protocols.cluster_response import ClusterResponse as ClusterResponse
from protocols.dummy_features import DummyFeatures as DummyFeatures
from protocols.double_response import DoubleResponse as DoubleResponse
from protocols.encrypted_shuffle import EncryptedShuffle as EncryptedShuffle
from protocols.peer_permutation import PeerPermutation as PeerPermutation
from protocols.network_shuffle import NetworkShuffle as NetworkShuffle
from protocols.label_proportions import LabelProportions as LabelProportions
from protocols.laplace_label_proportions import LaplaceLabelProportions as LaplaceLabelProportions
from protocols.secure_aggregation import SecureAggregation as SecureAggregation

ALL: tuple[type[_Protocol], ...] = tuple(
    each
    for each in list(vars().values())
    if isinstance(each, type) and issubclass(each, _Protocol) and each is not _Protocol
)
"""Every protocol that the command line knows, by ``command_name()``."""
