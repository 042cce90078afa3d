"""Actors and what they may do, on this host.

actor_book.py       the actors and their envelopes, judged by core.access, kept on disk
admission.py        who is let in: by chains of grants, by invites; kept on disk
rights_file.py      these two files: giving needs the disk, taking away does not
device_book.py      the devices that were admitted, and with which grants
revocation.py       what goes with what is taken back, and the signed list of it
rights_notices.py   a change of rights, passed on to sessions and streams
requests.py         requests about actors, envelopes, invites and devices
"""
