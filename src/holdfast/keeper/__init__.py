"""The keeper: the one process a host's sessions depend on, and so the smallest.

It starts the daemon and starts it again when it dies; it is the parent of every session (a child
subreaper), so it learns the true end of each; and it holds in custody what a session is made of
besides its processes: PTY master, ring memory, conduits, a small state blob. A new daemon collects
all of that and carries on in the same incarnation.

Deliberately absent: any import from outside the standard library, any knowledge of what the
descriptors mean or what is in the blobs, any client, any timer but the restart backoff. When the
keeper dies its sessions die, as with the host; so nothing goes in here that can live elsewhere.

    channel.py    one message with descriptors over a SOCK_SEQPACKET socket; both ends use it
    custody.py    the deposits, and the ends of processes nobody has claimed yet
    reaping.py    the true status of a child that ended
    __main__.py   the loop
"""
