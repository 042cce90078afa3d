"""A session's life beyond one host, and beyond the need for it.

changed_files.py  which captured files a restore puts back
idle.py         which sessions nobody uses, and what becomes of them
migration.py    a move to another host, as its source and as its target see it
movability.py   whether a session could be moved now, and what stands in the way
move_events.py  what can happen to a move, and what can come of it
move_table.py   its states and transitions; which of the six phases each is in
"""
