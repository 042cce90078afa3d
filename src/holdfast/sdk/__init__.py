"""The client's side of the protocol, for programs (docs/sdk.md).

The public API is async, in `aio/`: its docstring has the files. Beside it:

    events.py      what happens to sessions, as events
    blocking/      the same API for programs without async, in front of the async one

What a client does when its host is lost, and how it waits, is written once, in `client_core/`.
Every `hold` verb is built on these, which import nothing they do not need:

    client.py      a host as a program sees it: one method per thing that can be asked
    connection.py  connect, greet, ask, listen: one connection
    host_start.py  what is done when no host listens
    reach/         hosts on other machines: relays, channels, joined machines, sessions by id
    forward.py     ports of a session's programs, on this machine
    prediction/    what a key will show, before its echo is here
    plain_text.py  the text in a stream of terminal output
    settled_text.py  the same as it reads afterwards: no progress, no full-screen drawing
    identity.py    the actor this program acts as, and the key that proves it
"""
