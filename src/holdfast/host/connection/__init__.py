"""One operator's connection: frames, requests, and what flows to it.

operator_connection.py  frames in, frames out, never more than its limits
from_inside.py          the session that a connection comes from, and the actors behind it
operators.py            everybody who is connected, and who reads and watches which session
request_table.py        the one table of requests: what each needs, and its handler
host_requests.py        requests about the host itself
output_channels.py      what flows to an operator: the screen, then output; raw output
exec_channel.py         a command's output
forwarding.py           connections to ports of sessions: to where, on whose record, how they flow
"""
