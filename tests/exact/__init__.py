"""Bit for bit: words, kernels, samplers and whole protocols against slow code written from the contract."""
