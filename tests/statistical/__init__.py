"""Laws of the draws and protocols by chi-square, each with a broken twin that must be rejected."""
