"""Continuity: whether and how a session goes on elsewhere."""
