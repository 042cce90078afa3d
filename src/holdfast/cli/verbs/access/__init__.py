"""Actors, envelopes, the turn and the halt."""
