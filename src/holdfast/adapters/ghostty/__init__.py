"""The terminal emulator: libghostty-vt through pyghostty."""
