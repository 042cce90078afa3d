"""Guessing the echo of a key while the round trip is long."""
