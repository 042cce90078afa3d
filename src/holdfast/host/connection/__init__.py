"""One operator's connection: frames, requests, and what flows to it.

operator_connection.py  frames in, frames out, never more than its limits
requests.py             each request -> what it does
authority_requests.py   the same for actors, envelopes, turn, halt and journal
output_channels.py      what flows to an operator: output, raw output, a command's output
forwarding.py           connections to ports of sessions: who may, to where, on whose record
forwarded.py            how their bytes flow
"""
