"""p2p-sim."""
