"""Checkpoints of sessions, and restoring from them."""
