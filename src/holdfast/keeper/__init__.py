"""The keeper: the one process a host's sessions depend on, and so the smallest.

It starts the daemon and starts it again when it dies; it is the parent of every session (a child
subreaper), so it learns the true end of each; and it holds in custody what a session is made of
besides its processes: PTY master, ring memory, conduits, a small state blob. A new daemon collects
all of that and carries on in the same incarnation. Beside the daemon it runs the host's own relay
when the daemon asks for one; no session depends on that.

Deliberately absent: any import from outside the standard library, any knowledge of what the
descriptors mean or what is in the blobs, any client, any timer but the restart backoffs and the
moments at which a session's tree is frozen unless the daemon puts them off: who watches the daemon
cannot be the daemon. When the keeper dies its sessions die, as with the host; so nothing goes in
here that can live elsewhere.

    channel.py    one message with descriptors over a SOCK_SEQPACKET socket; both ends use it
    custody.py    the deposits, and the ends of processes nobody has claimed yet
    deadlines.py  which tree is frozen when, if the daemon says nothing
    boottime.py   the clock that leases run by, and an alarm by it
    reaping.py    the true status of a child that ended
    relay_child.py  the relay beside the daemon, started and started again
    __main__.py   the loop
"""
