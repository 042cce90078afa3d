"""The journal: read, verify, prove, export."""
