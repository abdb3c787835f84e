"""Kinds of labels, by name: two of them, k of them, or numbers in a public range."""

BINARY, CLASSES, NUMERIC = "binary", "k", "numeric"

LABEL_KINDS = (BINARY, CLASSES, NUMERIC)
