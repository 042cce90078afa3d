"""Pure machines: an event in, effects out; no clock, randomness, I/O or logging.

access/            who may do what: envelopes, grants, invites
turn/              the right to write now
lease/             which incarnation may be attached to now
continuity/        a session's life beyond one host, and beyond the need for it
gate/              what an effect is judged by before it commits, and measured by afterwards
session.py         all of these composed: the one mutator of a session
events.py          what can happen to a session
effects.py         what can come of it, for the host to carry out in order
session_state.py   what a session is at a moment, as a table
input_machine.py   the life of an input: offered, waiting, in custody, or refused
attachments.py     who is attached, whose size counts, whose terminal answers
retention.py       which ended sessions are removed from disk
forwards.py        who may have a connection to a port of its programs
activity.py        kernel evidence -> what the session is doing
line_authors.py    whose the lines are that a shell reads
key_names.py       key names -> bytes, by the terminal's modes
command_output.py  a command's output as a stream, without the marks
shell_changes.py   two states of a shell -> what changed, for a new turn holder
scroll_skip.py     what of a flood of lines the screen need not be shown
vt_boundary.py     where output may be cut without cutting an escape sequence
"""
