"""What is decided at the gate, before an effect commits: pure parts, without clock or I/O.

originators.py      who is behind each piece of a shell's state
line_reading.py     what a command line may use of that state
authority_meet.py   an effect has the authority that all of its contributors have
"""
