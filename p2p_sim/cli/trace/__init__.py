"""``p2p-sim trace``: verbs that look at the messages of a run."""

from p2p_sim.cli.trace import cone, diagram, export, serve, show, stats  # each adds its verb
from p2p_sim.cli.trace.group import trace

__all__ = ["cone", "diagram", "export", "serve", "show", "stats", "trace"]
