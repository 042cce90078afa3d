"""A session's life beyond one host, and beyond the need for it.

idle.py         which sessions nobody uses, and what becomes of them
movability.py   whether a session could be moved now, and what stands in the way
"""
