"""``python -m p2p_sim.cli`` is ``p2p-sim``."""

import sys

from p2p_sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
