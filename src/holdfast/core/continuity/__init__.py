"""A session's life across hosts.

migration.py    a move to another host, as its source and as its target see it
move_events.py  what can happen to a move, and what can come of it
move_table.py   its states and transitions; which of the six phases each is in
"""
