"""Pure machines: an event in, effects out; no clock, randomness, I/O or logging.

lifecycle.py    the phases of an incarnation, as a table
attachment.py   who is attached, whose size counts, whose terminal answers
intake.py       which input is new, which a repeat, which refused
session.py      the three composed: the one mutator of a session
waiting.py      kernel evidence -> what the session is doing
keys.py         key names -> bytes, by the terminal's modes
marks.py        where a command's output begins and ends in the stream
exec_output.py  a command's output as a stream, without the marks
flood.py        what of a flood of lines the screen need not be shown
vt_boundary.py  where output may be cut without cutting an escape sequence
"""
