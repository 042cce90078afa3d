"""Actors and what they may do, on this host.

actor_book.py       the actors and their envelopes, judged by core.access, kept on disk
admission.py        who is let in: by chains of grants, by invites; kept on disk
device_book.py      the devices that were admitted, and with which grants
revocation.py       who may take back what, and what goes with it
revocation_list.py  what this host has taken back, signed
requests.py         requests for invites and devices
"""
