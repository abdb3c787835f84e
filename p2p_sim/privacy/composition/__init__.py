"""Composition: what several runs on the same labels show together."""
