"""Journals read by verbs, from a host or from files."""
