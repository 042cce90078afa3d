"""The lease of a re-homeable session.

machine.py  the lease machine of one host
events.py   its events and effects
table.py    its states and transitions
"""
