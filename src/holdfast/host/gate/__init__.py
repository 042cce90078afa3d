"""The gate of one host: by what effects are judged before they commit, and measured afterwards.

policy_source.py    a text or a starter -> a prepared policy
policy_store.py     policies in force, on disk
policy_book.py      policies in force, by scope: answers the gate
effect_judge.py     one effect, judged by some policies
policy_requests.py  requests about policies
past_lines.py       effects from the journal, to judge them again
action_requests.py  requests to carry out a structured action, and for traces and scores
action_runs.py      a session's actions: followed to their end, measured, recorded
action_trace.py     everything the journal says about one action
session_look.py     what a session is made of at one moment, for comparing two
score_book.py       how each actor's actions went, kept on this host
"""
