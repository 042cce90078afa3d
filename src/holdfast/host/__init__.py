"""The host daemon: one process that serves every session of a host. Wiring and I/O only; what is
decided is decided in core, what touches the system is in adapters.

Its rooms, each with a list of its own files:

    session/     one live session
    connection/  one operator's connection, and requests
    access/      actors, envelopes, admission, devices, revocation
    gate/        what is judged before it commits, measured afterwards, and who is behind it
    reach/       relays, and operators that come through them
    continuity/  what outlives a host: checkpoints

And what belongs to the whole host:

    __main__.py            start: descriptors from the supervisor, event loop, daemon
    daemon.py              the parts, wired together
    daemon_lock.py         one daemon at a time
    supervisor_link.py     the daemon's end of the supervisor's channel
    keeper_link.py         the daemon's end of the keepers: one link for each session
    takeover.py            what a new daemon finds: sessions to carry on, sessions to bury
    session_registry.py    sessions by name, id and prefix; who may see which
    session_store.py       what is on disk: keys, specs, tombstones, last output
    lost_sessions.py       lost sessions: why, what was under way, acknowledged by whom
    near_end.py            what is known of a live session should its host die
    near_end_writer.py     brings that to disk, now and then
    revival.py             a session that follows a lost one
    retention.py           ended sessions, removed from disk after a while
    residency.py           what sessions cost: memory, processes, descriptors, disk
    signatures.py          what the failure modes leave behind, counted
    metrics.py             numbers for Prometheus
    metrics_socket.py      where the own relay asks for them
    json_file.py           a record kept as one JSON file
    clock.py               the host's time, which never goes back
    levels.py              what this host can do, for launch and `hold doctor`
    config.py              config.toml
    coordination_point.py  where leases are kept
"""
