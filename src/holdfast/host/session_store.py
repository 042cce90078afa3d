"""What a host keeps on disk: per session its key, its spec, and at the end its tombstone and last
output. Everything is written beside and renamed, so a crash leaves the old or the new, never half.

    STATE/sessions/<id>/session.key     the private key the id is derived from
    STATE/sessions/<id>/spec.json       what was asked for
    STATE/sessions/<id>/tombstone.json  how it ended; its presence means the id never lives again,
                                        unless it says that the session is asleep, or was lost
    STATE/sessions/<id>/unacknowledged  it is asleep, or was lost and nobody has acknowledged that;
                                        empty
    STATE/sessions/<id>/arriving        another host is bringing it here; empty
    STATE/sessions/<id>/output          the output held at the end, from tombstone.held_from on
    STATE/sessions/<id>/screen          the last screen as text
    STATE/sessions/<id>/launch          what it was started with, its environment too; sealed
    STATE/sessions/<id>/near-end        while it lives, and once lost: how it last was; sealed
    STATE/sessions/<id>/journal-*.seg   what was done to it and by whom (adapters.segments)
    STATE/sessions/<id>/pruned.json     in place of journal, output and key, of one that was removed
    STATE/host.key                      the private key this host signs journals with
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from typing import BinaryIO, Protocol, TypeVar

import msgpack

from holdfast.adapters import atomic_file, sealed_file, signing
from holdfast.host.near_end import NearEnd
from holdfast.journal.pruned import PrunedJournal
from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.errors import SessionPruned, StorageFailed, why_not
from holdfast.model.ids import SessionId
from holdfast.model.info import InFlight, SessionInfo
from holdfast.model.record import Malformed, Record
from holdfast.model.state import Ending, SessionState
from holdfast.wire.messages.session import Run

R = TypeVar("R", bound=Record)

_PRUNED = "pruned.json"
_UNACKNOWLEDGED = "unacknowledged"
_LAUNCH, _NEAR_END = "launch", "near-end"
_KEY, _ARRIVING = "session.key", "arriving"


class HandedTo(Record):
    """Another host has the session, or everything of it: this one gave it away."""

    host: str  # its public key, in hexadecimal
    name: str  # what people call it
    epoch: int  # at least so far it came there
    ending: Ending  # how the session was here before: asleep, or lost
    state: SessionState


class CameFrom(Record):
    """Another host gave the session to this one, where it was not restored yet."""

    host: str  # its public key, in hexadecimal
    name: str  # what people call it
    actor_there: str  # of whoever had it brought: the actor at that host
    actor_here: str  # and at this one


class Stored(Record):
    """A session's directory: what is known without the session being alive."""

    info: SessionInfo
    uid: int
    boot_id: str = ""  # the boot of the machine in which it was started
    returns_for: str = ""  # it is asleep for a shutdown, and restored for this actor at the start
    wakes: bool = False  # it is asleep because nobody used it, and wakes when somebody does
    handed_to: HandedTo | None = None
    came_from: CameFrom | None = None
    # another host had it up to this epoch, and is dead on somebody's word: a later one begins here
    attested_epoch: int = 0

    @property
    def is_lost(self) -> bool:
        ending = self.info.ending
        return ending is not None and ending.lost is not None

    @property
    def is_asleep(self) -> bool:
        """Nothing of it runs, and its checkpoint has it."""
        return self.info.ending is not None and bool(self.info.ending.checkpoint)

    @property
    def successor(self) -> str:
        """Id of the session that follows a lost one; empty: none does."""
        return self.info.ending.successor if self.info.ending is not None else ""

    @property
    def is_unacknowledged(self) -> bool:
        """It was lost, and nobody has acknowledged that."""
        return self.is_lost and self.info.acknowledged_at is None

    @property
    def stays_listed(self) -> bool:
        """However many others ended since: somebody has to decide what becomes of it, or looks
        for it."""
        return self.is_unacknowledged or self.is_asleep or self.handed_to is not None

    @property
    def has_moved_away(self) -> bool:
        """It lives, or lived, at another host, and this one keeps nothing but its record."""
        ending = self.info.ending
        return ending is not None and bool(ending.moved_to) and self.handed_to is None

    @property
    def may_come_back(self) -> bool:
        """From a checkpoint, or in a successor: what was said of it for it alone is kept."""
        return self.is_asleep or self.can_be_followed

    @property
    def can_be_followed(self) -> bool:
        """It was lost, and nothing follows it yet."""
        return self.is_lost and not self.successor and self.info.pruned_at is None

    def lost(self, ending: Ending, in_flight: InFlight | None) -> Stored:
        """As of now, when nobody can know how it ended."""
        gone = {"state": SessionState.LOST, "pid": 0, "ended_at": time.time()}
        return self.replace(info=self.info.replace(**gone, ending=ending, in_flight=in_flight))

    def given_back(self) -> Stored:
        """As it was before it was handed to another host; the same if it was not."""
        handed = self.handed_to
        if handed is None:
            return self
        info = self.info.replace(ending=handed.ending, state=handed.state)
        return self.replace(info=info, handed_to=None)

    def for_other_host(self) -> Stored:
        """Without what is only about this one."""
        return self.replace(returns_for="", wakes=False, attested_epoch=0, came_from=None)

    def up_to_date(self) -> Stored:
        """A lost session as older versions recorded it is one for this version too."""
        ending = self.info.ending
        if ending is None or ending.lost is None:
            return self
        info = self.info.replace(state=SessionState.LOST, ending=ending.typed())
        return self.replace(info=info)


class _Identified(Protocol):
    @property
    def id(self) -> SessionId: ...


class _OpenJournal(Protocol):
    @property
    def seq(self) -> int: ...

    def flush(self) -> None: ...


class JournaledSession(Protocol):
    """A live session, as far as its journal is read."""

    @property
    def spec(self) -> _Identified: ...

    @property
    def journal(self) -> _OpenJournal: ...


def journal_of(found: JournaledSession | Stored) -> tuple[SessionId, int | None]:
    """Whose journal is to be read, and up to which entry: with all that happened until now; None:
    to its end. Raises SessionPruned."""
    if not isinstance(found, Stored):
        found.journal.flush()
        return found.spec.id, found.journal.seq
    if found.info.pruned_at is not None:
        raise SessionPruned(
            f"the journal of {found.info.name} was removed from disk",
            hint=f"`hold verify {found.info.id}` shows what can still be proven",
        )
    return found.info.id, None


class SessionStore:
    """The state directory of one host."""

    def __init__(self, state: str) -> None:
        self._root = f"{state}/sessions"
        try:
            os.makedirs(self._root, mode=0o700, exist_ok=True)
            os.chmod(state, 0o700)
            self.host_key = signing.SigningKey.load_or_create(f"{state}/host.key")
        except OSError as error:
            raise storage_failed(error) from error

    def create(self) -> SessionId:
        """A new identity: a key pair, its directory, nothing else yet."""
        private = os.urandom(signing.KEY_BYTES)
        session = SessionId.of_key(signing.SigningKey(private).public)
        try:
            os.mkdir(self.directory(session), 0o700)
            self._write(session, _KEY, private)
        except OSError as error:
            self.forget(session)
            raise storage_failed(error) from error
        return session

    def session_key(self, session: SessionId) -> signing.SigningKey:
        """The key the session's id is derived from."""
        return signing.SigningKey(self._bytes(session, _KEY))

    def begin_arrival(self, session: SessionId, key: bytes) -> None:
        """Another host is bringing this session: keep its key. What is here of it already stays."""
        try:
            os.makedirs(self.directory(session), mode=0o700, exist_ok=True)
            if not self.is_known(session):
                self._write(session, _ARRIVING, b"")
            self._write(session, _KEY, key)
        except OSError as error:
            raise storage_failed(error) from error

    def forget_arrival(self, session: SessionId) -> None:
        """It does not come, after all. Its key came already; of one that left this host there was
        none here before."""
        stored = self.tombstone(session)
        if not self.is_known(session):
            self.forget(session)
        elif stored is not None and stored.has_moved_away:
            self._remove(session, _KEY)

    def is_known(self, session: SessionId) -> bool:
        """Whether it lives or lived here."""
        names = ("spec.json", "tombstone.json")
        return any(os.path.exists(f"{self.directory(session)}/{name}") for name in names)

    def forget(self, session: SessionId) -> None:
        """A session that never began leaves nothing behind."""
        shutil.rmtree(self.directory(session), ignore_errors=True)

    def save_spec(self, stored: Stored) -> None:
        try:
            self._write_json(stored.info.id, "spec.json", stored)
        except OSError as error:
            raise storage_failed(error) from error

    def bury(self, stored: Stored, output: bytes, screen: str) -> None:
        """The tombstone, last; with it the identity is dead forever."""
        session = stored.info.id
        try:
            os.makedirs(self.directory(session), mode=0o700, exist_ok=True)
            with contextlib.suppress(OSError):  # the end itself matters more than its last words
                self._write(session, "output", output)
                self._write(session, "screen", screen.encode())
            if stored.stays_listed:  # before it: what is forgotten is found by this
                self._write(session, _UNACKNOWLEDGED, b"")
            self._write_json(session, "tombstone.json", stored)
            if not (stored.is_lost or stored.is_asleep):  # no successor will need them
                for name in (_LAUNCH, _NEAR_END):
                    self._remove(session, name)
        except OSError as error:
            raise storage_failed(error) from error

    def rise(self, session: SessionId) -> None:
        """It lives again: what was written when its last incarnation was over goes. Where that
        fails, or this daemon dies before it, the next one does it: who is in custody lives."""
        names = ("tombstone.json", _UNACKNOWLEDGED, "output", "screen")
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(f"{self.directory(session)}/{name}")

    def save_launch(self, session: SessionId, run: Run) -> None:
        """What it is started with, for a successor should it be lost. Raises StorageFailed."""
        self._seal(session, _LAUNCH, run)

    def launch(self, session: SessionId) -> Run | None:
        """None: an older version started it, or the file is damaged."""
        return self._unseal(session, _LAUNCH, Run)

    def save_near_end(self, session: SessionId, near: NearEnd) -> None:
        """Raises StorageFailed."""
        self._seal(session, _NEAR_END, near)

    def near_end(self, session: SessionId) -> NearEnd | None:
        """How a session last was before its host died; None: nothing was written."""
        return self._unseal(session, _NEAR_END, NearEnd)

    def forget_near_end(self, session: SessionId) -> None:
        self._remove(session, _NEAR_END)

    def bury_discontinued(
        self,
        session: SessionId,
        successor: SessionId,
        reason: str,
        cause: DiscontinuityCause | None,
    ) -> Stored | None:
        """The tombstone of an identity whose processes go on under another."""
        stored = self._read(session, "spec.json")
        if stored is None:
            return None
        self.save_spec(stored.replace(info=stored.info.replace(id=successor)))
        ended = stored.lost(Ending(lost=reason, cause=cause, successor=successor).typed(), None)
        self.bury(ended, b"", "")
        return ended

    def unburied(self) -> Iterator[Stored]:
        """Sessions begun and never ended: alive in custody, or lost with the host."""
        for session in self._sessions():
            if not os.path.exists(f"{self.directory(session)}/tombstone.json"):
                stored = self._read(session, "spec.json")
                if stored is not None:
                    yield stored

    def forget_cut_off(self) -> list[SessionId]:
        """Starts that were cut off before their spec was written: nothing of them stays."""
        cut_off = [
            session
            for session in self._sessions()
            if not self.is_known(session)
            and not os.path.exists(f"{self.directory(session)}/{_ARRIVING}")
        ]
        for session in cut_off:
            self.forget(session)
        return cut_off

    def tombstones(self, limit: int) -> list[Stored]:
        """The latest ends, newest first."""
        dated = []
        for session in self._sessions():
            with contextlib.suppress(OSError):
                path = f"{self.directory(session)}/tombstone.json"
                dated.append((os.stat(path).st_mtime, session))
        dated.sort(reverse=True)
        found = (self._read(session, "tombstone.json") for _, session in dated[:limit])
        return [stored for stored in found if stored is not None]

    def unacknowledged(self) -> list[Stored]:
        """Sessions that are asleep, and lost ones that nobody has acknowledged, newest first."""
        marked = (
            self._read(session, "tombstone.json")
            for session in self._sessions()
            if os.path.exists(f"{self.directory(session)}/{_UNACKNOWLEDGED}")
        )
        found = [stored for stored in marked if stored is not None and stored.stays_listed]
        return sorted(found, key=lambda stored: stored.info.ended_at or 0.0, reverse=True)

    def rewrite_tombstone(self, stored: Stored) -> None:
        """More became known of a session that is over."""
        session = stored.info.id
        path = f"{self.directory(session)}/tombstone.json"
        try:
            ended = os.stat(path)  # by its time the latest ends are found
            self._write_json(session, "tombstone.json", stored)
            os.utime(path, ns=(ended.st_atime_ns, ended.st_mtime_ns))
            if not stored.stays_listed:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.directory(session)}/{_UNACKNOWLEDGED}")
        except OSError as error:
            raise storage_failed(error) from error

    def has_id_like(self, beginning: str) -> bool:
        """Whether the id of any session begins so, live, ended or pruned."""
        try:
            return any(name.startswith(beginning) for name in os.listdir(self._root))
        except OSError as error:
            raise storage_failed(error) from error

    def tombstone(self, session: SessionId) -> Stored | None:
        """How this one ended, however long ago."""
        return self._read(session, "tombstone.json")

    def all_tombstones(self) -> Iterator[Stored]:
        for session in self._sessions():
            stored = self._read(session, "tombstone.json")
            if stored is not None:
                yield stored

    def disk_bytes(self, session: SessionId) -> int:
        """What its directory uses of the disk."""
        used = 0
        with contextlib.suppress(OSError), os.scandir(self.directory(session)) as found:
            for each in found:
                with contextlib.suppress(OSError):
                    used += each.stat(follow_symlinks=False).st_blocks * 512
        return used

    def prune(self, stored: Stored, statement: PrunedJournal) -> None:
        """Remove all of an ended session but its tombstone and what the host says of it. The
        statement is on disk before anything is removed, and what a crash leaves is removed the next
        time: only the tombstone, which is marked last, says that it is done."""
        session, directory = stored.info.id, self.directory(stored.info.id)
        self._write(session, _PRUNED, statement.text().encode())
        atomic_file.sync_directory(directory)
        for name in os.listdir(directory):
            if name not in (_PRUNED, "tombstone.json"):
                os.unlink(f"{directory}/{name}")
        self.rewrite_tombstone(stored)

    def pruned(self, session: SessionId) -> PrunedJournal | None:
        """What is left of one that was removed."""
        text = self._bytes(session, _PRUNED)
        return PrunedJournal.of_text(text.decode()) if text else None

    def open_output(self, session: SessionId) -> BinaryIO:
        """To be read in pieces: it may be as large as a ring."""
        try:
            return open(f"{self.directory(session)}/output", "rb")
        except OSError:
            return io.BytesIO()

    def screen(self, session: SessionId) -> str:
        return self._bytes(session, "screen").decode(errors="replace")

    # -- files --------------------------------------------------------------------------------

    def directory(self, session: SessionId) -> str:
        """Where everything about it is; the journal's place too."""
        return f"{self._root}/{session}"

    def _sessions(self) -> list[SessionId]:
        found = []
        for name in os.listdir(self._root):
            with contextlib.suppress(ValueError):
                found.append(SessionId(name))
        return found

    def _bytes(self, session: SessionId, name: str) -> bytes:
        try:
            with open(f"{self.directory(session)}/{name}", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _read(self, session: SessionId, name: str) -> Stored | None:
        try:
            return Stored.unpack(json.loads(self._bytes(session, name))).up_to_date()
        except (ValueError, Malformed, OSError):
            return None

    def _remove(self, session: SessionId, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory(session)}/{name}")

    def _seal(self, session: SessionId, name: str, value: Record) -> None:
        try:
            key = self._bytes(session, _KEY)
            packed = msgpack.packb(value.pack())
            sealed_file.write(f"{self.directory(session)}/{name}", key, packed)
        except OSError as error:
            raise storage_failed(error) from error

    def _unseal(self, session: SessionId, name: str, kind: type[R]) -> R | None:
        key = self._bytes(session, _KEY)
        data = sealed_file.read(f"{self.directory(session)}/{name}", key)
        if data is None:
            return None
        try:
            return kind.unpack(msgpack.unpackb(data))
        except (ValueError, msgpack.UnpackException):
            return None

    def _write_json(self, session: SessionId, name: str, value: Record) -> None:
        self._write(session, name, json.dumps(value.pack(), indent=1).encode())

    def _write(self, session: SessionId, name: str, data: bytes) -> None:
        atomic_file.replace(f"{self.directory(session)}/{name}", data)


def storage_failed(error: OSError) -> StorageFailed:
    return StorageFailed(
        f"cannot write the state directory: {why_not(error)} ({error.filename or 'sessions'})",
        hint="free space or make it writable; `hold doctor` shows where it is",
    )
