"""The turn: the right to write now, held by one actor at a time.

machine.py  the turn machine
events.py   its steps and outcomes
policy.py   who gets the next turn that is not urgent
table.py    its states and transitions
"""
