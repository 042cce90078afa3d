"""CRIU: finding or installing one that works, dump and restore."""
