"""The lease of a re-homeable session.

machine.py   the lease machine of one host
events.py    its events and effects
snapshot.py  what a new daemon needs to carry it on
table.py     its states and transitions
"""
