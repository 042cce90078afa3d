"""The gate of a session: what would commit something is judged before it does.

session_gate.py       what waits at the gate of one session: asked about, judged, recorded
judge.py              asks the policy, within a bound
contributors.py       who had a part in a line
approval_notices.py   approvals: recorded, announced, and what changed since they were asked
approval_requests.py  requests to list, approve and deny
"""
