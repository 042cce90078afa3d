"""One verb, one file, in the folder of its help group."""
