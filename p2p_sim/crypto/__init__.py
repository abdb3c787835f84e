"""Cryptographic primitives, for simulated parties only: import the module you need; nothing is loaded here.

keys (simulation key pairs), seal and layers (HPKE), agree (X25519), lock (AEAD under an agreed key), prg (masks),
field and shamir (secret sharing), encode (fields to bytes), pool (worker processes), rates (seconds an operation).
"""
