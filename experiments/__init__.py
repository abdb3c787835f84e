"""One script per figure or table; what they are expected to print is in ``expected/``."""
