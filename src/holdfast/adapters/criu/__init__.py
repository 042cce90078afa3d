"""CRIU: finding one that works here, or installing one; dumping with it, large memory included."""
