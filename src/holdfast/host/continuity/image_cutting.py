"""Where the bytes of images are cut into chunks, so that what two checkpoints share is stored once.

CRIU writes the pages of a process one after the other. A page that the program touched for the
first time moves all pages behind it, so chunks of a fixed size share nothing between two
checkpoints: measured on a Python heap of 120 MB of which a third changed, 39 MB were stored for
each, whatever the size. A cut is therefore made where the content of a page says so: the second
checkpoint then stored 17 MB. Chunks average 190 kB; smaller ones find little more (75 kB: 16 MB),
and each costs a file or a request.

A longer run of zeros, as of memory that was never written to, is cut out: such a chunk is neither
digested nor stored, and a session's output buffer consists of little else.

The memory that a ghost holds is cut at fixed addresses instead: a page touched for the first time
moves nothing there, and a chunk in which no page was written is known to be the same one without
being read. Windows of 128 KiB: a page written alone stores 32, and a gigabyte has 8,192 of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from holdfast.adapters.criu.ghost_images import GhostPages, PageRun

PAGE_BYTES = 4096
_CHUNK_MIN_PAGES = 16
_CHUNK_MAX_PAGES = 256
_CUT_MASK = 31  # a page in 32 ends a chunk that is long enough
CHUNK_MAX_BYTES = _CHUNK_MAX_PAGES * PAGE_BYTES
_READ_BYTES = 8 * CHUNK_MAX_BYTES
_ZEROS = bytes(_CHUNK_MIN_PAGES * PAGE_BYTES)  # a shorter run is not worth a chunk
_ZERO_PAGE_CRC = zlib.crc32(bytes(PAGE_BYTES))
_WINDOW_BYTES = 128 << 10


class Readable(Protocol):
    """A file, or a part of one."""

    def read(self, size: int, /) -> bytes: ...


def chunks_of(file: Readable) -> Iterator[bytes]:
    """All of a file. It is read a few megabytes at a time."""
    held = b""
    while read := file.read(_READ_BYTES):
        held += read
        at = 0
        while len(held) - at >= CHUNK_MAX_BYTES:
            size = _cut(memoryview(held)[at : at + CHUNK_MAX_BYTES])
            yield held[at : at + size]
            at += size
        held = held[at:]
    while held:
        size = _cut(memoryview(held))
        yield held[:size]
        held = held[size:]


def _cut(window: memoryview) -> int:
    """The size of the chunk at the start of this."""
    if zeros := _zeros(window):
        return zeros
    end = min(_CHUNK_MIN_PAGES * PAGE_BYTES, len(window))
    while end < len(window):
        crc = zlib.crc32(window[end - PAGE_BYTES : end])
        if not crc & _CUT_MASK:
            break
        if crc == _ZERO_PAGE_CRC and _zeros(window[end - PAGE_BYTES :]):
            return end - PAGE_BYTES
        end += PAGE_BYTES
    return min(end, len(window))


def _zeros(window: memoryview) -> int:
    """How many bytes of zeros it starts with, in whole steps; 0 when those are few."""
    at, step = 0, len(_ZEROS)
    while at + step <= len(window) and window[at : at + step].tobytes() == _ZEROS:
        at += step
    return at


def pieces_of(data: bytes) -> Iterator[bytes]:
    """Of what is in memory, and not worth looking for a good place to cut."""
    for at in range(0, len(data), CHUNK_MAX_BYTES):
        yield data[at : at + CHUNK_MAX_BYTES]


class WindowPlace(NamedTuple):
    """Which pages of a process a window has."""

    pid: int
    spans: tuple[tuple[int, int], ...]  # address and size of each piece


class Window(NamedTuple):
    """The pages of a ghost in one window of addresses: a chunk that was not read yet."""

    pages: GhostPages
    spans: tuple[tuple[int, int], ...]

    @property
    def place(self) -> WindowPlace:
        return WindowPlace(self.pages.pid, self.spans)

    def read(self) -> bytes:
        """Raises CheckpointFailed."""
        return b"".join(self.pages.read_ghost(*span) for span in self.spans)


def pieces_of_memory(pages: GhostPages) -> Iterator[bytes | Window]:
    """All of a process's memory: what CRIU wrote, cut as any file, and the ghost's windows."""
    for is_ghosts, parts in pages.runs():
        if is_ghosts:
            yield from _windows(pages, parts)
        else:
            yield from chunks_of(_Own(pages, parts))


class _Own:
    """Of the memory of a process, adjacent parts that CRIU wrote."""

    def __init__(self, pages: GhostPages, parts: list[PageRun]) -> None:
        self._pages, self._at = pages, parts[0].own_at
        self._end = parts[-1].own_at + parts[-1].size

    def read(self, size: int, /) -> bytes:
        size = min(size, self._end - self._at)
        self._at += size
        return self._pages.read_own(self._at - size, size)


def _windows(pages: GhostPages, parts: list[PageRun]) -> Iterator[Window]:
    spans: list[tuple[int, int]] = []
    for part in parts:
        at, end = part.address, part.address + part.size
        while at < end:
            stop = min(end, (at // _WINDOW_BYTES + 1) * _WINDOW_BYTES)
            if spans and spans[-1][0] // _WINDOW_BYTES != at // _WINDOW_BYTES:
                yield Window(pages, tuple(spans))
                spans = []
            spans.append((at, stop - at))
            at = stop
    if spans:
        yield Window(pages, tuple(spans))
