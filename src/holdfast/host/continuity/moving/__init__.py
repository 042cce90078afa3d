"""Moving sessions between hosts: what `core/continuity/migration.py` decides is done here.

messages.py        what source and target of one move say to each other
runner.py          one end of one move: events in, kept, effects out in order, time
source.py          the end that the session leaves
target.py          the end that it comes to
handover_lease.py  its lease while it changes hands; the target asks for it at the source
session_files.py   journal and other files of a session, from one host's disk to the other's
move_book.py       what a daemon keeps of moves for the next one
moves.py           all moves of a host
requests.py        `move`, asked for by an operator
"""
