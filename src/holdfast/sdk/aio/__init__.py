"""The public Python API, async first: a host and its sessions as objects to await.

It speaks the same messages as everything else of `sdk`; what is new here is only how they are
waited for. Every request can be cancelled, every stream goes on by itself after a lost connection,
and nothing is ever typed twice.

    hold.py      connect(), and a host: its sessions, its events
    session.py   a session: what can be asked of it and done to it
    link.py      the connection under all of these, and getting back when it is lost
    carrier.py   one connection: whole frames out, answers, channels and events in
    inputs.py    inputs to one session, numbered, one after another
    prompt.py    a command line for a shell that is about to be at its prompt
    running.py   a command line on its way, and its result
    output.py    what a session prints, as a stream that resumes by offset
    watch.py     events of one session or of all, as a stream
    waiting.py   until a session does what is waited for
    turn.py      the turn, held for as long as a block of code runs
    values.py    what is given back: Result, Screen, Piece, LiveGraph ...

Not here: any judgement of what may be done (the host's), and how a host is reached
(`sdk/connection.py`, `sdk/reach/remote_host.py`).
"""
