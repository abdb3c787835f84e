"""Run directories: what a run leaves on disk, how it is written while the run goes on, and how it is read."""
