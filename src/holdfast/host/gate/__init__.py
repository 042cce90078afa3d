"""The gate of one host: policies judge effects before they commit; what they hold waits for
approval. Also who is behind an effect, and what was measured afterwards.

session_gate.py         what waits at the gate of one session: asked about, judged, recorded
judge.py                asks the policy, within a bound
judged_entry.py         an effect and its verdict, for the journal
start_judge.py          a session is judged before it is started
approval_notices.py     approvals: recorded, announced, and what changed since they were asked
approval_requests.py    requests to list, approve and deny
policy_source.py        a text or a starter -> a prepared policy
policy_store.py         policies in force, on disk
policy_book.py          policies in force, by scope: answers the gate
effect_judge.py         one effect, judged by some policies
policy_requests.py      requests about policies
past_lines.py           effects from the journal, to judge them again
exec_gate.py            one session's execs and write-opens: when they are judged, and how
held_calls.py           those of them that wait for approval
group_contributors.py   who is behind a process, by its control group, and behind a file
answerer_link.py        the link to the process that answers them, which it also starts
action_requests.py      requests to carry out a structured action, and for traces and scores
action_runs.py          a session's actions: followed to their end, measured, recorded
action_trace.py         everything the journal says about one action
session_look.py         what a session is made of at one moment, for comparing two
score_book.py           how each actor's actions went, kept on this host
contributors.py         who had a part in a line
provenance.py           who is behind the shell's state, its commands, and a line at its prompt
command_book.py         the commands of one session, each with everybody that had a part in it
file_originators.py     who wrote which file, as far as the kernel said
why.py                  who is behind a process, port, file, variable, line: the chain of commands
provenance_requests.py  requests for that
"""
