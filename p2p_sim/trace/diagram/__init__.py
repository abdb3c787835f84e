"""Sequence diagrams: who sent what to whom, lane by lane and round by round; one file a format."""
