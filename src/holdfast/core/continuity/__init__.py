"""A session's life across hosts.

movability.py   whether a session could be moved now, and what stands in the way
"""
