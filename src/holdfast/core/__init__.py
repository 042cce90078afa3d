"""Pure machines: an event in, effects out; no clock, randomness, I/O or logging.

lifecycle.py      the phases of an incarnation, as a table
attachment.py     who is attached, whose size counts, whose terminal answers
intake.py         which input is new, which a repeat, which refused
forwards.py       who may have a connection to a port of its programs
events.py         what can happen to a session, and what can come of it
session.py        lifecycle, attachments, authority, turn and intake composed: the one mutator
turn_table.py     the states of the turn and what leads from one to another
turn_events.py    what can be done about the turn, and what can come of it
turn_policy.py    who gets the next turn, and how long a holder may be idle
turn.py           who may write now: the machine over these three
lease_table.py    the states of a lease and what leads from one to another
lease_events.py   what can happen to a lease, and what can come of it
lease.py          which incarnation may be attached to now: the machine over these two
lease_keeping.py  a lease over a daemon's restart
envelope_book.py  which envelopes count for an actor in a session, and their meet
rate.py           how fast an actor may write
authority.py      who may do what, who may change that, and that somebody always can
grants.py         whether a chain of grants counts here and now, and for how much
shown_grants.py   what the grants that connections show come to in a session
invites.py        who may come in by a link, how often, and how fast codes may be tried
waiting.py        kernel evidence -> what the session is doing
typed_lines.py    whose the lines are that a shell reads
keys.py           key names -> bytes, by the terminal's modes
marks.py          where a command's output begins and ends in the stream
exec_output.py    a command's output as a stream, without the marks
handoff.py        two states of a shell -> what changed, for a new turn holder
flood.py          what of a flood of lines the screen need not be shown
vt_boundary.py    where output may be cut without cutting an escape sequence
"""
