"""What the gate decides without a clock, randomness or I/O.

file_globs.py      which paths a declared glob means
action_effects.py  two looks at a session -> what an action did; against what it declared
action_score.py    one action -> its score; many -> an actor's record
"""
