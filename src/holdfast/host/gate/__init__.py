"""The gate: by what effects are judged before they commit, and what waits there.

session_gate.py       what waits at the gate of one session: asked about, judged, recorded
judge.py              asks the policy, within a bound
contributors.py       who had a part in a line
approval_notices.py   approvals: recorded, announced, and what changed since they were asked
approval_requests.py  requests to list, approve and deny
policy_source.py      a text or a starter -> a prepared policy
policy_store.py       policies in force, on disk
policy_book.py        policies in force, by scope: answers the gate
effect_judge.py       one effect, judged by some policies
policy_requests.py    requests about policies
past_lines.py         effects from the journal, to judge them again
"""
