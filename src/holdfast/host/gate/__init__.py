"""The gate of one host: what is judged before it commits, by which policies, and who is behind it.

policy_source.py       a text or a starter -> a prepared policy
policy_store.py        policies in force, on disk
policy_book.py         policies in force, by scope: answers the gate
effect_judge.py        one effect, judged by some policies
policy_requests.py     requests about policies
past_lines.py          effects from the journal, to judge them again
exec_gate.py           one session's execs and write-opens: when they are judged, and how
group_contributors.py  who is behind a process, by its control group
answerer_link.py       the process that answers them, started and told
"""
