"""SQLite: coordination on one machine."""
