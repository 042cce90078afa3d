"""CRIU: finding one that works here, or installing one."""
