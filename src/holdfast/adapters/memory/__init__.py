"""In-memory twins of the stores behind a port, verified by the same contract tests."""
