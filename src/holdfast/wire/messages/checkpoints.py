"""Checkpoints: made, listed, restored; and how far that is."""

from __future__ import annotations

from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import CheckpointInfo
from holdfast.model.ids import SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.restore import RestoreReport
from holdfast.wire.messages.base import Answer, Message, Request


class MakeCheckpoint(Request, tag="checkpoint"):
    """Checkpoint a session: it stands still for a moment, then runs on. Input that comes meanwhile
    waits. Needs the right `checkpoint`. Answered by CheckpointMade, or by `failed` with
    `checkpoint_failed`: then the session runs on as before."""

    session: str
    # end the session with it, which needs the right to end it: the session is asleep until it is
    # restored
    end: bool = False
    note: str = ""  # what it is for, for people; cut to `CHECKPOINT_NOTE_MAX_CHARS`


class ListCheckpoints(Request, tag="checkpoints"):
    """The checkpoints of one session, or of all that the asker may see. Answered by
    CheckpointList."""

    session: str = ""  # a name, an id, or 6 or more characters of an id; empty is all


class DeleteCheckpoint(Request, tag="delete_checkpoint"):
    """Delete a checkpoint, and what of its memory no other one has. Needs the right `checkpoint` in
    its session. Refused while the session is asleep in it. Answered by CheckpointDeleted."""

    target: str  # id of the checkpoint


class Restore(Request, tag="restore"):
    """Restore a session that is asleep or was lost, under the same id, in its next epoch. Needs the
    right `checkpoint` there. Answered by Restored, or by `failed`: then everything is as it was.
    Not to be repeated after a lost connection without a look at the session."""

    target: str  # id of a checkpoint; or name or id of a session, whose latest one is taken
    # start its command again instead, as `revive` does: a new session that follows it. The old one
    # is closed for good
    cold: bool = False
    # the actor attests that no other host has the session, whatever the record of its lease says.
    # Needs the right `grant` there too; journal and record keep who said so
    host_is_dead: bool = False
    # what becomes of captured files that differ from those on disk; `ask` may fail with
    # `files_changed`
    files: RestoreFiles = RestoreFiles.ASK
    # restore it on another host, which gave this ticket (`get_ticket`). Needs the right `move` too
    ticket: str = ""
    on: str = ""  # with a ticket: what people call that host, for messages


class CheckpointMade(Answer, tag="checkpoint_made"):
    """It is safely stored."""

    checkpoint: CheckpointInfo  # the new one


class CheckpointList(Answer, tag="checkpoint_list"):
    """Newest first."""

    checkpoints: tuple[CheckpointInfo, ...]  # of sessions that the asker may see


class CheckpointDeleted(Answer, tag="checkpoint_deleted"):
    """It is gone."""

    checkpoint: CheckpointInfo  # the one that was
    used_bytes: int  # what all checkpoints of the host still use


class Restored(Answer, tag="restored"):
    """The session runs."""

    info: SessionInfo  # of the session that runs now, as its host says it
    report: RestoreReport  # what was restored, and what could not be


class ProgressEvent(Message, tag="progress", capability="progress"):
    """How far something is that takes longer than `PROGRESS_AFTER_S`: sent to whoever waits for it,
    watches the session or is attached there, and announced the capability `progress`."""

    session: SessionId  # id of the session
    name: str  # its name
    work: str  # what is being done: `checkpoint` or `restore`; a later version may add some
    # which part of it. Of a checkpoint: `freeze` or, where its program is asked, `ask`; `store`. Of
    # a restore: `check`, `load`, `start`. A later version may add some
    phase: str
    done: int  # bytes of this phase
    total: int  # how many they will be, as far as is known; 0 when it is not known
    at: float  # when this was sent, seconds since 1970
    # nothing more comes of it. Whether it succeeded is said elsewhere
    over: bool = False
