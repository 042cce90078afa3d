"""Dialling a relay, for hosts and operators alike. No port is opened here, ever.

    address.py    a relay's address as people write it
    frame_pipe.py frames over one end of a socketpair, for who must not know of relays
    carried_socket.py   sockets whose bytes are carried over a way that they share
    backoff.py    how long to wait before the next try
    first_reached.py      several relays: the first that works
    websocket.py  one WebSocket to it: TLS, proxies, pings. Imports picows; loaded when needed

What is said over it is in wire/relay_messages.py; who says it is the caller.
"""
