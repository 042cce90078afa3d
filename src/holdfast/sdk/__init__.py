"""The client's side of the protocol, for programs (docs/sdk.md).

The public API is async, in `aio/`: its docstring has the files. Beside it:

    events.py      what is told of sessions without being asked
    blocking/      the same API for programs without async, in front of the async one

What every `hold` verb stands on is blocking and light, and imports nothing it does not need:

    client.py      a host as a program sees it: one method per thing that can be asked
    connection.py  connect, greet, ask, listen
    reach/           hosts on other machines: relays, channels, joined machines, sessions by id
    forwarding.py  ports of a session's programs, on this machine;  forward_way.py  the way there
    prediction/machine.py  what a key will show, before its echo is here
    prediction/round_trip.py  whether the way to a host is long
    plain_text.py  the text in a stream of terminal output
    identity.py    whose hand this program is, and the key that proves it
"""
