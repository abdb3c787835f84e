"""A page on which one sees a run: an overview, the messages of a cluster in lanes, and what somebody can read of them."""
