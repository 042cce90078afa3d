"""The journal on disk: append-only segments."""
