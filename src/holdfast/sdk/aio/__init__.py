"""The public Python API, async first: a host and its sessions as objects to await.

What a client does when its host is lost is in `sdk/client_core`; here is how a program awaits it.
Every request can be cancelled, every stream goes on by itself after a lost connection,
and nothing is ever typed twice.

    hold.py         connect(), and a host: its sessions, its events
    session.py      a session: what can be asked of it and done to it
    driver.py       the connection under all of these: `client_core` carried out by asyncio
    command_run.py  a command line on its way, and its result
    watch.py        events of one session or of all, as a stream
    turn.py         the turn, held for as long as a block of code runs
    port_forward.py a port of a session's programs, here, for as long as a block of code runs
    values.py       what is given back: Result, Screen, LiveGraph ...

Not here: any judgement of what may be done (the host's), and how a host is reached
(`sdk/connection.py`, `sdk/reach/remote_host.py`).
"""
