"""Cryptographic primitives, for simulated parties only: import the module you need; nothing is loaded here.

keys (simulation key pairs), seal (HPKE) and envelopes (a message in its layers), agree (X25519), prg (masks),
pairs (keys and masks, real or modelled), field and shamir (secret sharing), encode (fields to bytes), pool (worker
processes), rates (seconds an operation).
"""
