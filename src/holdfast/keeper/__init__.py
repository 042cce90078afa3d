"""The keeper: the one process a host's sessions depend on, and so the smallest.

It starts the daemon and restarts it when it dies; it is the parent of every session (a child
subreaper), so it learns the true exit status of each; and it holds what a session consists of
besides its processes: PTY master, ring memory, conduits, a small state blob. A new daemon collects
all of that and continues the same incarnation. It also runs the host's own relay when the daemon
asks for one; no session depends on that.

Deliberately absent: any import from outside the standard library, any knowledge of what the
descriptors mean or what is in the blobs, any client, any timer but the restart backoffs and the
deadlines at which a session's tree is frozen unless the daemon extends them, because the daemon
cannot watch itself. When the keeper dies its sessions die, as with the host; so nothing is added
here that can be elsewhere.

    channel.py    one message with descriptors over a SOCK_SEQPACKET socket; both ends use it
    custody.py    the deposits, and the ends of processes without a deposit yet
    deadlines.py  when each tree is frozen if the daemon does not extend it
    boottime.py   the clock of leases, and an alarm
    log_file.py   host.log, bounded
    reaping.py    the true status of a child that ended
    relay_child.py  the relay beside the daemon, restarted when it ends
    __main__.py   the loop
"""
