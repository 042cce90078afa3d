"""The host daemon: one process that serves every session of a host. Wiring and I/O only; what is
decided is decided in core, what touches the system is in adapters.

    __main__.py     start: descriptors from the keeper, event loop, daemon
    daemon.py       what there is: registry of sessions, operators, launcher, keeper link
    custody.py      the daemon's end of the keeper's channel
    starting.py     a `run` request -> a live session
    kept.py         what a new daemon needs to carry a session on
    live.py         one live session: PTY, ring, ledger, view, effects of core.session
    view.py         the lazily fed screen of a session, and its checkpoint
    commands.py     what the session's shell reports, and `exec`
    watching.py     a watched session's state, told on change
    operator.py     one connection: frames in, frames out, never more than its limits
    channels.py     what flows to an operator: output, raw output, a command's output
    registry.py     sessions by name, id and prefix; who may see which
    requests.py     each request -> what it does
    store.py        what is on disk: specs, tombstones, last output
    strays.py       processes of sessions that nobody holds any more
    levels.py       what this host can do, for launch and `hold doctor`
    config.py       config.toml
"""
