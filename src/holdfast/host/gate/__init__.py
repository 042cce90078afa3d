"""The gate of one host: what is judged before it commits, and who is behind it.

exec_gate.py         one session's execs and write-opens: when they are judged, and how
group_contributors.py who is behind a process, by its control group
answerer_link.py     the process that answers them, started and told
no_policy.py         while no policy is set: nothing is in force
"""
