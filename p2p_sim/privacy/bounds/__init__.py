"""What the papers promise: one file a paper, one function a theorem, each saying whether it holds and on what basis."""

from p2p_sim.privacy.bounds import attacks2023, clustering2022, release2023, shuffle, unified2023
from p2p_sim.privacy.bounds.bound import Bound, Figure, Renyi

__all__ = [
    "Bound",
    "Figure",
    "Renyi",
    "attacks2023",
    "clustering2022",
    "release2023",
    "shuffle",
    "unified2023",
]
