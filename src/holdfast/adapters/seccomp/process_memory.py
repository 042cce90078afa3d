"""The arguments of a waiting system call: strings and vectors in the memory of its process.

Another thread of it may change them afterwards: what was read here is what was judged, but not
necessarily what the kernel will read. Deliberately bounded: a program that lies about its memory
costs nothing but its own call.
"""

from __future__ import annotations

import os
import struct

_PAGE = 4096
_STRING_MAX_BYTES = 128 << 10  # the kernel's own limit for one argument
_WORDS_MAX = 1 << 16


class Unreadable(Exception):
    """It is not there, or not as the kernel would take it."""


class ProcessMemory:
    """Read by whole pages, each once: the strings of a call lie close together."""

    def __init__(self, pid: int) -> None:
        try:
            self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unreadable from error
        self._pages: dict[int, bytes] = {}

    def close(self) -> None:
        os.close(self._fd)

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            try:
                page = os.pread(self._fd, _PAGE, number * _PAGE)
            except (OSError, OverflowError) as error:
                raise Unreadable from error
            if len(page) < _PAGE:
                raise Unreadable
            self._pages[number] = page
        return page

    def string(self, address: int) -> bytes:
        number, start = divmod(address, _PAGE)
        pieces: list[bytes] = []
        length = 0
        while length <= _STRING_MAX_BYTES:
            page = self._page(number)
            end = page.find(b"\0", start)
            if end >= 0:
                return b"".join([*pieces, page[start:end]])
            pieces.append(page[start:])
            length += _PAGE - start
            number, start = number + 1, 0
        raise Unreadable

    def read(self, address: int, length: int) -> bytes:
        """So many, as they are."""
        pieces: list[bytes] = []
        while length > 0:
            number, start = divmod(address, _PAGE)
            pieces.append(self._page(number)[start : start + length])
            address, length = address + len(pieces[-1]), length - len(pieces[-1])
        return b"".join(pieces)

    def strings(self, address: int) -> list[bytes]:
        """Those that a vector of pointers, ended by zero, points at. None at all is empty."""
        return [self.string(each) for each in self._words(address)] if address else []

    def _words(self, address: int) -> list[int]:
        found: list[int] = []
        while len(found) < _WORDS_MAX:
            number, start = divmod(address, _PAGE)
            count = (_PAGE - start) // 8
            if not count or address % 8:  # across a page's end: no compiler lays one out so
                raise Unreadable
            for word in struct.unpack_from(f"={count}Q", self._page(number), start):
                if not word:
                    return found
                found.append(word)
            address += count * 8
        raise Unreadable
