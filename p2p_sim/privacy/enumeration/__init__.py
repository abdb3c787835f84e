"""Laws from programs: every way through the draws of a few users, or of one user by herself."""
