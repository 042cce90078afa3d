"""The gate of one host: by what effects are judged before they commit.

policy_source.py    a text or a starter -> a prepared policy
policy_store.py     policies in force, on disk
policy_book.py      policies in force, by scope: answers the gate
effect_judge.py     one effect, judged by some policies
policy_requests.py  requests about policies
past_lines.py       effects from the journal, to judge them again
"""
