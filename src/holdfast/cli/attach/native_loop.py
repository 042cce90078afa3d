"""The short way of a key press: the loop in C, loaded where it was built.

`TerminalClient` serves an attachment; this runs the usual part of it without Python on the way
(native/key_loop.c says what is usual). What comes back is put where it belongs before anything else
happens: inputs sent and not taken into `UnackedInputs`, the numbers used into the connection. So at
every moment outside `serve` the client has the whole truth, and without the loop the client
does the same by itself, later by some tens of microseconds per key.

Deliberately does not compile anything: `holdfast.adapters.compiled` does, at installation.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable

from holdfast.model.native_builds import KEY_LOOP, kept_in
from holdfast.sdk.client_core.unacked_inputs import UnackedInputs
from holdfast.sdk.connection import Connection

CHOSEN_BY = "HOLDFAST_KEY_LOOP"  # "python" keeps the loop in C out of the way

# `struct loop` of native/key_loop.c: its fields, then three arrays.
_FIELDS = struct.Struct("4i2Q2I128s5Q5I4x")
_NOTE = struct.Struct("2Q2I")
_NOTES, _NOTED_BYTES, _RECEIVED_BYTES = 64, 16 << 10, 96 << 10
_NOTES_AT = _FIELDS.size
_NOTED_AT = _NOTES_AT + _NOTES * _NOTE.size
_RECEIVED_AT = _NOTED_AT + _NOTED_BYTES
_SIZE = _RECEIVED_AT + _RECEIVED_BYTES
_UNCHANGED = struct.calcsize("4i2Q2I128s")  # of the fields: given to the loop only
_CHANGED = struct.Struct("5Q5I")
_SESSION_BYTES = 128

_LOOK = 1  # its answer when a descriptor has something that Python must see


def find() -> str | None:
    """The compiled loop, if it was built from this very source."""
    if os.environ.get(CHOSEN_BY) == "python":
        return None
    package = os.path.abspath(f"{os.path.dirname(__file__)}/../..")
    try:
        with open(f"{package}/native/{KEY_LOOP.source}", "rb") as source:
            name = KEY_LOOP.file_name(source.read(), os.uname().machine)
    except OSError:
        return None
    for directory in kept_in(sys.prefix, os.environ, os.path.expanduser("~")):
        if os.access(f"{directory}/{name}", os.X_OK):
            return f"{directory}/{name}"
    return None


class KeyLoop:
    """The loop and the memory it shares with us. Until `load`, and where there is none that fits,
    it serves nothing."""

    def __init__(self, prefix: int, window_bytes: int, *, keys_fd: int = 0, screen_fd: int = 1):
        self._prefix = prefix
        self._window_bytes = window_bytes
        self._keys_fd = keys_fd
        self._screen_fd = screen_fd
        self._memory = bytearray()
        self._run: Callable[[], int] | None = None
        self._sought = False
        self.offset = 0  # of the next output byte to show
        self.keys = b""  # typed and not sent: they are not only keys
        self.rest = b""  # received and not looked at

    @property
    def loaded(self) -> bool:
        return self._run is not None

    def load(self) -> None:
        """Once; later calls do nothing."""
        if self._sought:
            return
        self._sought = True
        path = find()
        if path is None:
            return
        import ctypes  # only here: it takes longer to import than some commands take to run

        try:
            library = ctypes.CDLL(path)
            size, run = library.key_loop_size, library.key_loop
        except (OSError, AttributeError):
            return
        size.restype = ctypes.c_uint64
        if size() != _SIZE:
            return
        self._memory = bytearray(_SIZE)
        shared = (ctypes.c_char * _SIZE).from_buffer(self._memory)
        self._run = lambda: int(run(shared))

    def serve(
        self,
        connection: Connection,
        woken: int,
        unacked: UnackedInputs,
        session: str,
        channel: int,
        offset: int,
    ) -> bool:
        """Serve until something is not usual. False: a descriptor has something that the caller
        must see for itself; in any case `offset`, `keys` and `rest` say how far it came."""
        name = session.encode()
        self.offset, self.keys, self.rest = offset, b"", b""
        if self._run is None or len(name) > _SESSION_BYTES:
            return False
        _FIELDS.pack_into(
            self._memory, 0,
            self._keys_fd, self._screen_fd, connection.fileno(), woken,
            channel, self._window_bytes, self._prefix, len(name), name,
            connection.last_id, unacked.last, 0, unacked.bytes, offset,
            0, 0, 0, 0, 0,
        )  # fmt: skip
        handed_over = self._run() != _LOOK
        self._take_back(connection, unacked)
        return handed_over

    def _take_back(self, connection: Connection, unacked: UnackedInputs) -> None:
        memory = self._memory
        (
            connection.last_id, seq, taken, _, self.offset,
            notes, noted, keys, rest_at, rest,
        ) = _CHANGED.unpack_from(memory, _UNCHANGED)  # fmt: skip
        for index in range(notes):
            number, request, at, size = _NOTE.unpack_from(memory, _NOTES_AT + index * _NOTE.size)
            at += _NOTED_AT
            unacked.sent_already(number, request, bytes(memory[at : at + size]))
        unacked.numbered_to(seq)
        unacked.taken(taken)
        noted += _NOTED_AT
        self.keys = bytes(memory[noted : noted + keys])
        rest_at += _RECEIVED_AT
        self.rest = bytes(memory[rest_at : rest_at + rest])
