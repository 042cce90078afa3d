"""What keeps sessions when everything else is gone: one keeper for each, and the supervisor that
starts daemon and relay again.

A keeper is a tiny C program (native/hold_keeper.c): the parent of one session, which learns its
true exit status, and holds what the session consists of besides its processes: PTY master, ring
memory, conduits, a small state blob. A new daemon collects all of that and continues the same
incarnation. When a keeper dies its session is lost, and no other; no other process of ours takes a
session with it.

Deliberately absent: any import from outside the standard library, any knowledge of what the
descriptors mean or what is in the blobs, any client. Nothing is added to the keeper that can be
elsewhere.

    protocol.py     the messages between a daemon and a keeper
    supervisor.py   the loop that starts the daemon, and starts it again; owns the listening socket
    log_file.py     host.log, bounded
    relay_child.py  the relay beside the daemon, restarted when it ends
    channel.py      one message between supervisor and daemon; both ends use it
    boottime.py     the clock of leases, and an alarm
    oom.py          what the kernel ends first when memory runs out: not these
"""
