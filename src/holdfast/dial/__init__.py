"""Dialling a relay, for hosts and operators alike. No port is ever opened here.

    address.py         a relay's address as people write it
    frame_pipe.py      frames over one end of a socketpair, for code that knows nothing of relays
    carried_socket.py  sockets whose bytes are multiplexed over one shared transport
    backoff.py         how long to wait before the next try
    first_reached.py   several relays: use the first that works
    websocket.py       one WebSocket: TLS, proxies, pings. Imports picows; loaded when needed

The messages are in wire/relay_messages.py; callers send and receive them.
"""
