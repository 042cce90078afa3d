"""The host daemon: one process that serves every session of a host. Wiring and I/O only; what is
decided is decided in core, what touches the system is in adapters.

The whole:

    __main__.py     start: descriptors from the keeper, event loop, daemon
    daemon.py       what there is: registry of sessions, operators, launcher, keeper link
    custody.py      the daemon's end of the keeper's channel
    inheriting.py   what a new daemon finds: sessions to carry on, sessions to bury
    registry.py     sessions by name, id and prefix; who may see which
    actors.py       the actors and their envelopes, judged by core.authority, kept on disk
    admission.py    who is let in: by chains of grants, by invites; kept on disk
    devices.py      who came in, and with what
    revoking.py     who may take back what, and what goes with it
    revocation_list.py  what this host has taken back, signed
    record_files.py a record kept as one JSON file
    store.py        what is on disk: keys, specs, tombstones, last output
    clock.py        the host's time, which never goes back
    strays.py       processes of sessions that nobody holds any more
    levels.py       what this host can do, for launch and `hold doctor`
    config.py       config.toml
    coordinating.py the coordination point, where leases are kept

From elsewhere:

    relays.py       at which relays to be;  own_relay.py  the one this host runs itself
    reach.py        being there: what is announced and known, over all of them
    uplink.py       one relay that was dialled
    remote.py       one operator who came through it
    fanout.py       a session's output for all of these at once

One connection:

    operator.py     frames in, frames out, never more than its limits
    requests.py     each request -> what it does
    authority_requests.py   the same for actors, envelopes, turn, halt and journal
    reach_requests.py       the same for relays
    admission_requests.py   the same for invites and devices
    forwarding.py   connections to ports of sessions: who may, to where, on whose record
    forwarded.py    how their bytes flow
    channels.py     what flows to an operator: output, raw output, a command's output

One session:

    starting.py     a `run` request -> a live session
    live.py         the shell around core.session: events in, effects carried out
    kept.py         what a new daemon needs to carry it on
    output.py       PTY -> ring -> readers; nowhere in a blind turn
    typist.py       an input that was allowed -> journal -> custody -> PTY
    key_way.py      the same for a key press and its echo, at once
    journaling.py   what is recorded, and when it is on disk
    backlog.py      what happened and could not be recorded yet
    left_undone.py  what the daemon before left undone in its journal
    refusals.py     what was refused, told once for many
    turning.py      what becomes of the turn: recorded, kept, told
    halts.py        stopping the tree, or what one actor started in it
    leasing.py      a re-homeable session's lease, and what follows when it is lost
    tenure.py       that lease, run: a clock and a coordination point for core.lease
    token.py        the fencing token, for the session's programs
    hangup.py       signals for what runs in it
    handoffs.py     what a new turn holder must know, since which point
    commands.py     what the session's shell reports
    typed.py        whose the line is that it reads;  typed_before.py  before this daemon
    executing.py    `exec`: command lines that somebody waits for, remembered by key
    view.py         the lazily fed screen, and its checkpoint
    watching.py     a watched session's state, told on change
    describing.py   the session in the words of model.info
    records.py      its journal as it is read: pieces, judgements, proofs
    blame.py        whose command made each line of the scrollback
    discontinuity.py    a journal that cannot go on: the statement, and the successor
"""
