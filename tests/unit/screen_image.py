"""The whole state of a screen in the library's own format: equal images, equal terminals."""

from __future__ import annotations

from holdfast.adapters.ghostty.abi import ffi, lib
from holdfast.adapters.ghostty.screen import GhosttyScreen


def image(screen: GhosttyScreen) -> bytes:
    data, length = ffi.new("uint8_t**"), ffi.new("size_t*")
    pointer = screen._terminal().pointer
    assert lib.ghostty_snapshot_encode_alloc(pointer, ffi.NULL, data, length) == 0
    try:
        return bytes(ffi.buffer(data[0], length[0]))
    finally:
        lib.ghostty_free(ffi.NULL, data[0], length[0])
