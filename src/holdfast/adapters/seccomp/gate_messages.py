"""What the daemon and the answerer of the exec gate say to each other: one msgpack map in each
SEQPACKET datagram, descriptors beside it.

Both come from one installation, but an answerer may serve a newer daemon for a while: fields are
only ever added.
"""

from __future__ import annotations

import array
import socket
from typing import Any

import msgpack

from holdfast.model.gate import EffectKind
from holdfast.model.record import Record

MESSAGE_MAX_BYTES = 160 << 10
_FDS_MAX = 2
ARGUMENTS_MAX_BYTES = 64 << 10  # of one command, and of its environment, that are told


class Serve(Record):
    """To the answerer: a session whose calls it answers from now on, with the listener and the
    page. When this is repeated, it asks again about what it has no answer for."""

    session: str
    main_pid: int  # whose first environment others are compared with
    own_files: tuple[
        str, ...
    ] = ()  # of the session's host: that its shell writes them is no effect
    cgroup: str = ""  # the directory of the session's control group


class WordChanged(Record):
    """To the answerer: the page's word has changed."""

    session: str


class Leave(Record):
    """To the answerer: the session is over."""

    session: str


class NamedFile(Record):
    """A file."""

    path: str
    device: int
    inode: int


class Wrote(Record):
    """To the daemon: a process has a file open for writing, or is about to."""

    session: str
    membership: str
    file: NamedFile
    adds: bool  # what was in it before may stay


class Read(Record):
    """To the daemon: a process is about to read, or execute, a file that it did not write."""

    session: str
    membership: str
    device: int
    inode: int


class Learns(Record):
    """To the daemon: processes of one control group are about to get what those of another one
    say, by a socket, a pipe or a file that is open."""

    session: str
    membership: str
    of: str


class AskWritten(Record):
    """To the daemon: the writers of which files are known?"""

    session: str


class KnownFiles(Record):
    """To the answerer: some of those."""

    session: str
    files: tuple[NamedFile, ...]


class CallQuestion(Record):
    """To the daemon: may this call go on?"""

    session: str
    id: int  # the kernel's number for the call
    word: int  # the page's, by which it is asked
    kind: EffectKind
    pid: int  # of the thread, in the host's numbering
    membership: str  # its control group, as the kernel writes it
    path: str  # of the program or the file, without links
    device: int  # where the file is; zeros: it does not exist yet
    inode: int
    cwd: str = ""
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()  # what differs from the main program's first
    cut: bool = False  # arguments or environment are too long to be told whole
    target: str = ""  # of a call that reaches into another process: its control group
    first: bool = False  # that process is the session's init or main program
    before: str = ""  # of a file that gets this name: the one that it has, to be judged as well
    # that arguments name: what a program is to read as code; and links and directories on the way
    # there, to which somebody gave their names
    files: tuple[NamedFile, ...] = ()
    also: EffectKind | None = None  # what else it is, to be judged as well
    destination: str = ""  # of a connection: host:port


class Gone(Record):
    """To the daemon: what was asked about was interrupted or ended."""

    session: str
    id: int


class CallAnswer(Record):
    """To the answerer."""

    session: str
    id: int
    word: int  # as it was asked; if the page has another by now, it is asked again
    allow: bool
    # it counts for every call of this kind from the same control group; else for what is the same
    whole_group: bool = False
    once: bool = False  # it counts for this very call only


_KINDS: dict[str, type[Record]] = {
    each.__name__: each
    for each in (
        *(Serve, WordChanged, Leave, CallAnswer, KnownFiles),
        *(CallQuestion, Wrote, Read, Learns, AskWritten, Gone),
    )
}


# One for all messages: each is taken apart before the next is read, and a new one would be memory
# that the kernel has to clear for every call.
_buffer = bytearray(MESSAGE_MAX_BYTES)


def send(sock: socket.socket, message: Record, fds: tuple[int, ...] = ()) -> None:
    """Raises BlockingIOError when there is no room."""
    data: bytes = msgpack.packb(
        [type(message).__name__, message.pack()], unicode_errors="surrogateescape"
    )
    if fds:
        socket.send_fds(sock, [data], list(fds))
    else:
        sock.send(data)


def receive(sock: socket.socket) -> tuple[Record, list[int]] | None:
    """None: the other end is gone."""
    fds = array.array("i")
    room = socket.CMSG_SPACE(_FDS_MAX * fds.itemsize)
    size, passed, _, _ = sock.recvmsg_into([_buffer], room, socket.MSG_CMSG_CLOEXEC)
    if not size:
        return None
    for level, kind, data in passed:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    name, fields = msgpack.unpackb(memoryview(_buffer)[:size], unicode_errors="surrogateescape")
    known: dict[str, Any] = fields
    return _KINDS[name].unpack(known), list(fds)
