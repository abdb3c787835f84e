"""A page that shows a run: an overview, the messages of a cluster in lanes, and what somebody reads of them."""
