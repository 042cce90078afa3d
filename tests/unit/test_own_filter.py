"""The exec gate's filter is found in the images of a checkpoint, whichever version installed it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from holdfast.adapters.criu import own_filter
from holdfast.adapters.criu.protobuf import decode, encode, field, read_image, write_image
from holdfast.adapters.seccomp import filter as seccomp

HEAD = bytes(8)
RETURN_ALLOW = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
# As an older version had it: a call more or less.
OLDER = seccomp.program().replace(
    struct.pack("=I", seccomp.CONNECT), struct.pack("=I", seccomp.PIDFD_GETFD), 1
)


def images(at: Path, programs: list[tuple[bytes, int | None]]) -> int:
    """Filters, each with the one that was in force before it; a task is under the last."""
    listed = []
    for code, before in programs:
        one = [field(1, code), *([] if before is None else [field(2, before)])]
        listed.append(field(1, encode(one)))
    (at / "seccomp.img").write_bytes(write_image(HEAD, [listed]))
    thread = encode([field(11, 2), field(12, len(programs) - 1)])
    (at / "core-2.img").write_bytes(write_image(HEAD, [[field(5, thread)]]))
    return os.open(at, os.O_RDONLY | os.O_DIRECTORY)


def task(at: Path) -> dict[int, object]:
    _, messages = read_image((at / "core-2.img").read_bytes())
    return {each.number: each.value for each in decode(messages[0][0].data)}


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("program", [seccomp.program(), OLDER], ids=["ours", "an older version's"])
def test_the_gates_filter_is_taken_out_and_the_others_stay(tmp_path: Path, program: bytes) -> None:
    own = [(RETURN_ALLOW, None), (program, 0), (RETURN_ALLOW, 1), (OLDER, 2)]
    directory = images(tmp_path, own)
    assert own_filter.remove(directory) == 0, "the task is under a program's own as before"
    _, messages = read_image((tmp_path / "seccomp.img").read_bytes())
    left = [{each.number: each.value for each in decode(one.data)} for one in messages[0]]
    assert [one.get(2) for one in left] == [None, 0, 0, 2] and task(tmp_path)[12] == 3
    os.close(directory)


@pytest.mark.requirement("M2")
def test_alone_it_leaves_no_filter(tmp_path: Path) -> None:
    directory = images(tmp_path, [(OLDER, None)])
    assert own_filter.remove(directory) == 1
    assert not (tmp_path / "seccomp.img").exists()
    assert 11 not in task(tmp_path) and 12 not in task(tmp_path)
    os.close(directory)
