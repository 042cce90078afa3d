"""What outlives a host, and an incarnation: checkpoints.

session_continuity.py  checkpointing and restoring, for the rest of the host
own_state.py           the same for the state that a program provides itself
checkpoint.py          a live session -> a checkpoint; it runs on, or is asleep in it
restore.py             a checkpoint -> the same session, alive, in the next epoch
restore_facts.py       what a checkpoint has besides CRIU's images
arrived_journal.py     the journal that came from another host, judged
workspace_files.py     files of a session: captured with a checkpoint, put back with a restore
requests.py            requests for these
image_store.py         checkpoints kept in a place: saved, listed, loaded, deleted
image_writer.py        a directory of images, stored in chunks
image_reader.py        the same directory, checked and given out
image_manifest.py      what is stored of a checkpoint besides its chunks
image_cutting.py       where images are cut into chunks
image_cipher.py        how chunks are named and encrypted
image_transfer.py      a checkpoint on its way to another host, or from one
image_census.py        which chunks there are, and the quota
progress.py             how far a checkpoint or restore is, for whoever waits for it
kept_ghosts.py         copies of memory kept until the next checkpoint, to find what changed
image_job.py           one save or load in threads: progress, and stopping it
eviction.py            idle sessions out of memory, and back when they are needed
periodic.py            checkpoints that nobody asks for: now and then, and before the host stops
preflight.py           whether a session could be moved now
reaper.py              sessions that nobody uses: warned of, evicted or ended
checkpoint_book.py     which checkpoint of each session was the last
moving/                a live session goes to another host
"""
