"""Auditing: privacy measured on messages, with a confidence."""
