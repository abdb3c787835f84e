"""Laws derived from programs: enumeration of all draws of a few users, or of one user alone."""
