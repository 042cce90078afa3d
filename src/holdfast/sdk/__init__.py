"""The client's side of the protocol, for programs. Blocking and light: every `hold` verb stands on
it, so it imports nothing it does not need.

    client.py      a host as a program sees it: one method per thing that can be asked
    connection.py  connect, greet, ask, listen
    reaching.py    what has become of a host's relays
    reach_thread.py  the thread in which relays are spoken to
    identity.py    whose hand this program is, and the key that proves it
"""
