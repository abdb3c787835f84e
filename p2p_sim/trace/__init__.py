"""Traces: what travelled, recorded, and one user replayed."""
