"""Files of a session: copied with a checkpoint, and put back with a restore.

capture.py      which files, and their bytes
put_back.py     how they differ from those on disk; putting them back, and undoing that
file_copy.py    the bytes of one file, shared with the original where the disk can do that
as_user.py      acting on files with the rights of a unix user
"""
