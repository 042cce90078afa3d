"""Sessions that outlive their incarnation: checkpointed, ended with that, restored.

checkpoint.py          a live session -> a checkpoint; it runs on, or is asleep in it
restore.py             a checkpoint -> the same session, alive, in the next epoch
checkpoint_files.py    checkpoints on disk: made beside, checked before they are used
session_continuity.py  these, for whoever in the host asks
requests.py            requests for these
"""
