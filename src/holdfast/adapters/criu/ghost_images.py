"""CRIU's images of a process that has a ghost (ghosts.py): completed, so that they are as if CRIU
had copied all of its memory itself. Nothing in a restore knows of ghosts.

A process's memory is in two files: `pagemap-PID.img` says which pages there are, and
`pages-N.img` has them, one after the other. CRIU wrote both for what the ghost does not hold. The
first is written anew here. The second is never: whoever stores the images reads the ghost's pages
from its memory, in the order in which they belong.
"""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.adapters.criu.ghosts import Ghost
from holdfast.adapters.criu.protobuf import Field, decode, field, read_image, write_image
from holdfast.model.errors import CheckpointFailed

PAGE_BYTES = 4096

_PAGES_ID = 1  # in the head of a pagemap
_ADDRESS, _COUNT_32, _IN_PARENT, _FLAGS, _COUNT = 1, 2, 3, 4, 5  # in each of its entries
_PRESENT = 4  # a flag: its pages are in the image
_MAPPINGS = 14  # in mm-PID.img
_START, _END, _MAP_FLAGS = 1, 2, 6  # in each of them
_PRIVATE_ANONYMOUS = 0x22


class PageRun(NamedTuple):
    """Adjacent pages of one origin."""

    address: int
    size: int
    own_at: int  # where they are in what CRIU wrote; -1: they are the ghost's


class GhostPages:
    """The pages of one process. Usable until it is closed, or the ghosts are."""

    def __init__(self, images: str, ghost: Ghost, before: Ghost | None = None) -> None:
        """Completes the pagemap among these images. `before`: an earlier ghost of the process."""
        self.pid, self._memory = ghost.pid, ghost.memory
        self._pagemap, self._before = ghost.pagemap, before
        path = f"{images}/pagemap-{ghost.pid}.img"
        with open(path, "rb") as file:
            head, (first, *entries) = read_image(file.read())
        self.name = f"pages-{_number(first, _PAGES_ID)}.img"
        own, at = [], 0
        for entry in entries:
            size = _size(entry)
            if not _number(entry, _FLAGS, _PRESENT) & _PRESENT or _number(entry, _IN_PARENT):
                raise CheckpointFailed(f"{path} has pages of a kind that is not known")
            own.append((PageRun(_number(entry, _ADDRESS), size, at), entry))
            at += size
        with open(f"{images}/mm-{ghost.pid}.img", "rb") as file:
            _, (memory, *_) = read_image(file.read())
        mappings = [decode(each.data) for each in memory if each.number == _MAPPINGS]
        held = sorted(
            (_number(each, _START), _number(each, _END))
            for each in mappings
            if _number(each, _MAP_FLAGS) & _PRIVATE_ANONYMOUS == _PRIVATE_ANONYMOUS
        )
        written = sorted((part.address, part.address + part.size) for part, _ in own)
        found = without(within(pages_of(ghost.pagemap), held), written)
        taken = [(PageRun(start, end - start, -1), _entry(start, end)) for start, end in found]
        both = sorted((*own, *taken), key=lambda each: each[0].address)
        self.parts = [part for part, _ in both]
        self.size = sum(part.size for part in self.parts)
        with open(path, "wb") as file:
            file.write(write_image(head, [first, *(entry for _, entry in both)]))
        self._own = os.open(f"{images}/{self.name}", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._own)

    def runs(self) -> Iterator[tuple[bool, list[PageRun]]]:
        """The parts, by where their pages are: whether the ghost has them."""
        for own, parts in itertools.groupby(self.parts, key=lambda part: part.own_at >= 0):
            yield not own, list(parts)

    def is_unchanged(self, spans: Iterable[tuple[int, int]]) -> bool:
        """Whether these pages, by address and size, are the earlier ghost's."""
        if self._before is None:
            return False
        return all(same_pages(self._before.pagemap, self._pagemap, *span) for span in spans)

    def read_own(self, at: int, size: int) -> bytes:
        """Of what CRIU wrote."""
        return _read(self._own, at, size)

    def read_ghost(self, address: int, size: int) -> bytes:
        """Raises CheckpointFailed."""
        try:
            return _read(self._memory, address, size)
        except OSError as error:
            raise CheckpointFailed(
                f"the copy of its memory is gone: {error.strerror}",
                hint="the kernel ends hold-ghosts when memory runs out; try again",
            ) from error


def _read(fd: int, at: int, size: int) -> bytes:
    data = os.pread(fd, size, at)
    while len(data) < size:
        more = os.pread(fd, size - len(data), at + len(data))
        if not more:
            raise OSError(0, "it ends too early")
        data += more
    return data


# Of each page, eight bytes in a pagemap.
_ENTRY_BYTES = 8
_PRESENT_BIT = 1 << 63
_FRAME = (1 << 55) - 1  # the physical page; 0 for who may not see it
_SAME = _PRESENT_BIT | _FRAME


def same_pages(old: int, new: int, address: int, size: int) -> bool:
    """Whether two address spaces have the same physical pages there. The kernel may move a page,
    between one look and another: so the old ones are looked at again."""
    count, at = size // PAGE_BYTES, address // PAGE_BYTES * _ENTRY_BYTES
    mask = int.from_bytes(_SAME.to_bytes(_ENTRY_BYTES, "little") * count, "little")
    present = int.from_bytes(_PRESENT_BIT.to_bytes(_ENTRY_BYTES, "little") * count, "little")

    def look(pagemap: int) -> int:
        return int.from_bytes(os.pread(pagemap, count * _ENTRY_BYTES, at), "little") & mask

    first, there, again = look(old), look(new), look(old)
    return first == there == again and there & present == present and bool(there & _FRAME)


def _number(message: list[Field], number: int, default: int = 0) -> int:
    for each in message:
        if each.number == number and isinstance(each.value, int):
            return each.value
    return default


def _size(entry: list[Field]) -> int:
    """An older CRIU has a count of 32 bits only."""
    return (_number(entry, _COUNT) or _number(entry, _COUNT_32)) * PAGE_BYTES


def _entry(start: int, end: int) -> list[Field]:
    count = (end - start) // PAGE_BYTES
    return [
        field(_ADDRESS, start),
        field(_COUNT_32, count),
        field(_FLAGS, _PRESENT),
        field(_COUNT, count),
    ]


# -- which pages there are ------------------------------------------------------------------------

Span = tuple[int, int]  # of addresses: the first, and the one behind the last

_SCAN = struct.Struct("12Q")  # struct pm_scan_arg of linux/fs.h
_PAGEMAP_SCAN = 0xC0606610
_IS_FILE, _IS_PRESENT, _IS_SWAPPED, _IS_ZERO = 1 << 2, 1 << 3, 1 << 4, 1 << 5
_ADDRESS_END = 0x7FFF_FFFF_F000
_AT_ONCE = 4096


def pages_of(pagemap: int) -> Iterator[Span]:
    """The process's own, that is neither a file's nor never written."""
    regions = (ctypes.c_uint64 * (3 * _AT_ONCE))()
    start = 0
    while start < _ADDRESS_END:
        scan = bytearray(
            _SCAN.pack(
                *(_SCAN.size, 0, start, _ADDRESS_END, 0),
                *(ctypes.addressof(regions), _AT_ONCE, 0),
                *(_IS_ZERO | _IS_FILE, _IS_ZERO | _IS_FILE),
                *(_IS_PRESENT | _IS_SWAPPED, _IS_PRESENT),
            )
        )
        count = fcntl.ioctl(pagemap, _PAGEMAP_SCAN, scan)
        for at in range(0, 3 * count, 3):
            yield regions[at], regions[at + 1]
        start = _SCAN.unpack(scan)[4]


def within(spans: Iterator[Span], allowed: list[Span]) -> Iterator[Span]:
    """What of the one is in the other, both in the order of addresses; cut at each of its ends."""
    at = 0
    for start, end in spans:
        while at < len(allowed) and allowed[at][1] <= start:
            at += 1
        here = at
        while here < len(allowed) and allowed[here][0] < end:
            yield max(start, allowed[here][0]), min(end, allowed[here][1])
            here += 1


def without(spans: Iterator[Span], taken: list[Span]) -> Iterator[Span]:
    """What of the one is not in the other, both in the order of addresses."""
    at = 0
    for start, end in spans:
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        here = at
        while here < len(taken) and taken[here][0] < end:
            if taken[here][0] > start:
                yield start, taken[here][0]
            start = max(start, taken[here][1])
            here += 1
        if start < end:
            yield start, end
