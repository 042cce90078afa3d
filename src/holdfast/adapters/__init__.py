"""What touches the system, one technology per file. An adapter decides nothing about sessions.

ring.py, ledger.py, burst.py   a session's memory in the keeper's custody: output, which inputs
                               were taken, keys not yet in the journal's file
segments.py, journal_writer.py the journal's files: reading, writing, the reserve
signing.py, files.py           keys of ours; files replaced as a whole
pty.py, echo.py                terminals; the echo of a key, looked for and sent on
launcher*.py, namespaces.py, native.py   starting a session
cgroup.py, stopping.py         a tree frozen, or stopped one by one; halting.py chooses
proc*.py, sock_diag.py         the kernel's word on what a session is and does
shell*.py                      shells that report: started so, their reports, their state
ghostty*.py                    screens, by libghostty-vt
criu*.py                       checkpoint and restore
coordination_*.py              the coordination point: in one file (SQLite), on a NATS cluster, and
                               in memory as their twin; nats_server.py starts NATS nodes here
relay_bus_*.py, nats_client.py the bus between relays: NATS, and its twin in memory
lan_address.py                 by which address others of the same network get here
level.py, linux.py             the best level here; system calls Python does not offer
"""
