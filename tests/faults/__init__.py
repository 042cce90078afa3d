"""What must hold when things break: real keeper, real daemon, real processes, real kills.

hosting.py        a host of the test's own, in its own home, that always ends
crash_points.py   a daemon that dies at a chosen line, or has a chosen fault (mutants)
leftovers.py      what a host left behind that belongs to no live session
numbered.py       the numbered stream and the numbered inputs, and the judge of both
raw_socket.py     a client that need not speak the protocol
"""
