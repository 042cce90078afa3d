"""Taking the exec gate's own system call filter out of the images of a checkpoint.

CRIU saves a filter and cannot save its listener: restored, every call that the filter holds would
fail. So ours is taken out, and installed again at the restore, before the first process forks.
Filters that the session's own programs installed stay, in their order.

Ours is found by what it does, since its bytes change between versions: it is the first in its row
that has calls wait for an answer. The kernel allows no second one with a listener above it.
"""

from __future__ import annotations

import os
import struct

from holdfast.adapters.criu.protobuf import Field, decode, encode, field, read_image, write_image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FILTERS = "seccomp.img"
_FILTER, _CODE, _BEFORE = 1, 1, 2  # the list; of one: its bytes, the index of the one before it
_THREAD_CORE = 5  # of a task's or thread's image
_MODE, _INDEX = 11, 12  # in there
_NONE = -1
_INSTRUCTION = struct.Struct("=HBBI")
_RETURN, _USER_NOTIFICATION = 0x06, 0x7FC00000


def remove(directory: int) -> int:
    """From all images in the directory. Gives the number of tasks that were under it."""
    try:
        head, messages = read_image(_read(directory, _FILTERS))
    except FileNotFoundError:
        return 0
    filters = [decode(each.data) for message in messages for each in message]
    ours = {at for at in range(len(filters)) if _is_ours(filters, at)}
    if not ours:
        return 0

    def before(index: int) -> int:
        """The filter that is in force where this one was."""
        while index in ours:
            found = _value(filters[index], _BEFORE)
            index = found if isinstance(found, int) else _NONE
        return index

    kept = [[*_without(each, _BEFORE), *_link(each, before)] for each in filters]
    left = set(range(len(filters))) - ours
    count = 0
    for name in os.listdir(directory):
        if name.startswith("core-") and name.endswith(".img"):
            count += _remove_from_task(directory, name, before)
    if left:
        # In their places: indexes stay what they are. Nothing refers to ours.
        listed = [field(_FILTER, encode(each)) for each in kept]
        _write(directory, _FILTERS, write_image(head, [listed]))
    else:
        os.unlink(_FILTERS, dir_fd=directory)
    return count


def _is_ours(filters: list[list[Field]], at: int) -> bool:
    return _asks(filters[at]) and not any(_asks(filters[other]) for other in _above(filters, at))


def _above(filters: list[list[Field]], at: int) -> Iterator[int]:
    """Those that were in force when it was installed."""
    for _ in filters:  # no row is longer; images that lead in a circle end here
        found = _value(filters[at], _BEFORE)
        if not isinstance(found, int) or not 0 <= found < len(filters):
            return
        at = found
        yield at


def _asks(one: list[Field]) -> bool:
    """Whether it returns that an answer is to be waited for."""
    code = _value(one, _CODE)
    if not isinstance(code, bytes) or len(code) % _INSTRUCTION.size:
        return False
    return any(
        operation == _RETURN and value == _USER_NOTIFICATION
        for operation, _, _, value in _INSTRUCTION.iter_unpack(code)
    )


def _link(one: list[Field], before: Callable[[int], int]) -> list[Field]:
    found = _value(one, _BEFORE)
    index = before(found) if isinstance(found, int) else _NONE
    return [] if index == _NONE else [field(_BEFORE, index)]


def _remove_from_task(directory: int, name: str, before: Callable[[int], int]) -> int:
    head, messages = read_image(_read(directory, name))
    changed = 0
    for message in messages:
        for at, each in enumerate(message):
            if each.number != _THREAD_CORE:
                continue
            core = decode(each.data)
            index = _value(core, _INDEX)
            if not _value(core, _MODE) or (isinstance(index, int) and before(index) == index):
                continue
            core, changed = _without(core, _INDEX), changed + 1
            left = before(index if isinstance(index, int) else 0)
            core = _without(core, _MODE) if left == _NONE else [*core, field(_INDEX, left)]
            message[at] = field(_THREAD_CORE, encode(core))
    if changed:
        _write(directory, name, write_image(head, messages))
    return changed


def _value(message: list[Field], number: int) -> int | bytes | None:
    return next((each.value for each in message if each.number == number), None)


def _without(message: list[Field], number: int) -> list[Field]:
    return [each for each in message if each.number != number]


def _read(directory: int, name: str) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb") as file:
        return file.read()


def _write(directory: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=directory), "wb") as file:
        file.write(data)
