"""Reaching this host from other machines, through relays.

relay_list.py      the relays this host uses
own_relay.py       the relay this host runs itself
relay_presence.py  what is announced to all of them and known from them
uplink.py          the connection to one relay
remote_stream.py   one operator that came through a relay
host_links.py      links to other hosts: dialled, or answered
host_link.py       one end of such a link
dialled_channel.py its channel, at the host that dialled
answered_channel.py  and at the one that was dialled
local_stream.py    links between two hosts of one machine
tickets.py         which other host may bring which session here
output_fanout.py   a session's output, encrypted once for all of these
requests.py        requests about relays
"""
