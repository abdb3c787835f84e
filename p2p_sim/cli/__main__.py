"""``python -m p2p_sim.cli`` is ``p2p-sim``."""

from p2p_sim.cli import command

if __name__ == "__main__":
    command()
