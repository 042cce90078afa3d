"""What is decided at the gate: an effect is judged before it commits.

commit_bytes.py   where an input begins to commit something
gated_input.py    one input that was cut there, and how far it has come
approvals.py      effects that wait until enough others approve
"""
