"""One program a system; each runs by itself, in that system's environment."""
