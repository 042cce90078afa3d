"""Start, list, attach to and end sessions."""
