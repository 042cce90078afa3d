"""Dialling a relay, and a host through it, for hosts and operators alike. No port is ever opened
here.

    address.py         a relay's address as people write it
    frame_pipe.py      frames over one end of a socketpair, for code that knows nothing of relays
    carried_socket.py  sockets whose bytes are multiplexed over one shared transport
    backoff.py         how long to wait before the next try
    first_reached.py   several relays: use the first that works
    websocket.py       one WebSocket: TLS, proxies, pings. Imports picows; loaded when needed
    relay_link.py      a connection to a relay, greeted, with streams to hosts in it
    secure_channel.py  one end-to-end channel to a host, over such a stream

The messages are in wire/relay_messages.py; what is said in a channel is the caller's.
"""
