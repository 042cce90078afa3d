"""Verbs about the gate: what is judged before it commits."""
