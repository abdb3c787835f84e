"""Small tests of the engine, one rule each."""
