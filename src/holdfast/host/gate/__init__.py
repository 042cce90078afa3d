"""The gate: what is judged before it commits, and measured afterwards.

action_requests.py  requests to carry out a structured action, and for traces and scores
action_runs.py      a session's actions: followed to their end, measured, recorded
action_trace.py     everything the journal says about one action
session_look.py     what a session is made of at one moment, for comparing two
score_book.py       how each actor's actions went, kept on this host
"""
