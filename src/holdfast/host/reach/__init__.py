"""Reaching this host from other machines, through relays.

relay_list.py      the relays this host uses
own_relay.py       the relay this host runs itself
relay_presence.py  what is announced to all of them and known from them
uplink.py          the connection to one relay
remote_stream.py   one operator that came through a relay
output_fanout.py   a session's output, encrypted once for all of these
requests.py        requests about relays
"""
