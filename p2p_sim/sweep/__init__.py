"""Sweeps: a grid of runs over the processes of this machine, or of a Ray cluster, each made once, in one table."""

from p2p_sim.sweep.sweeping import sweep

__all__ = ["sweep"]
