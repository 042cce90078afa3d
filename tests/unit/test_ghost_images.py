"""Images of a process whose memory a ghost holds, completed; and how that memory is cut."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.criu import ghosts
from holdfast.adapters.criu.ghost_images import GhostPages, same_pages, within, without
from holdfast.adapters.criu.ghosts import Ghost
from holdfast.adapters.criu.protobuf import Field, encode, field, read_image, write_image
from holdfast.host.continuity.image_cutting import Window, pieces_of_memory
from holdfast.model.spec import Place
from holdfast.ports.launch import NOTHING_MORE

PAGE = 4096
HEAD = b"\x16\x06\x09\x54\x76\x13\x00\x00"
PID = 7
PRIVATE_ANONYMOUS = 0x22
WINDOW = 128 << 10


def spans(*pairs: tuple[int, int]) -> Iterator[tuple[int, int]]:
    return iter(pairs)


def test_spans_are_cut_where_what_allows_them_ends() -> None:
    assert list(within(spans((0, 10), (20, 30)), [(2, 4), (4, 22), (29, 40)])) == [
        *((2, 4), (4, 10), (20, 22), (29, 30)),
    ]
    assert list(within(spans((0, 10)), [])) == []


def test_of_spans_what_is_taken_is_left_out() -> None:
    assert list(without(spans((0, 10), (20, 30)), [(0, 2), (4, 5), (8, 25)])) == [
        *((2, 4), (5, 8), (25, 30)),
    ]
    assert list(without(spans((0, 10)), [(10, 12)])) == [(0, 10)]


class Scene:
    """This very process, as if it were a ghost, with one mapping; CRIU wrote some of it."""

    def __init__(self, directory: Path) -> None:
        self.memory = mmap.mmap(-1, 4 * WINDOW, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._directory = directory
        self._own: list[tuple[int, bytes]] = []

    def write(self, page: int, count: int = 1) -> bytes:
        data = os.urandom(count * PAGE)
        self.memory[page * PAGE : (page + count) * PAGE] = data
        return data

    def criu_wrote(self, page: int, data: bytes) -> None:
        self._own.append((self.start + page * PAGE, data))

    def pages(self) -> GhostPages:
        mapping = [field(1, self.start), field(2, self.start + len(self.memory))]
        mapping += [field(6, PRIVATE_ANONYMOUS)]
        self._write(f"mm-{PID}.img", [[field(14, encode(mapping))]])
        entries = [
            [field(1, at), field(2, len(data) // PAGE), field(4, 6)] for at, data in self._own
        ]
        self._write(f"pagemap-{PID}.img", [[field(1, 3)], *entries])
        (self._directory / "pages-3.img").write_bytes(b"".join(data for _, data in self._own))
        memory, pagemap = (
            os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("mem", "pagemap")
        )
        try:
            return GhostPages(str(self._directory), Ghost(PID, memory, pagemap))
        except OSError as error:
            pytest.skip(f"this kernel has no PAGEMAP_SCAN: {error}")

    def _write(self, name: str, messages: list[list[Field]]) -> None:
        (self._directory / name).write_bytes(write_image(HEAD, messages))

    def pagemap(self) -> list[tuple[int, int]]:
        """Which pages it says there are: the first, and how many."""
        _, (_, *entries) = read_image((self._directory / f"pagemap-{PID}.img").read_bytes())
        found = [{each.number: int(each.value) for each in entry} for entry in entries]
        return [((each[1] - self.start) // PAGE, each[2]) for each in found]


def content(pages: GhostPages) -> bytes:
    pieces = pieces_of_memory(pages)
    return b"".join(each if isinstance(each, bytes) else each.read() for each in pieces)


def test_no_ghost_is_made_where_memory_could_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = ghosts.LargeProcess(PID, "python", 1 << 45)
    monkeypatch.setattr(ghosts, "large_processes", lambda _place: [huge])
    taken = ghosts.Ghosts(Place(pid=1, shell_pid=2, tty="/dev/pts/0", cgroup="/nowhere", mounts=()))
    taken.prepare()
    try:
        assert taken.extra == NOTHING_MORE
        taken.collect()
        (why,) = taken.copied_at_once()
        assert why.startswith("python (7): a copy on write could need 33554432 MiB")
    finally:
        taken.close()


def test_the_image_is_what_criu_wrote_and_the_ghosts_pages_by_address(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first, third = scene.write(1, 2), scene.write(9)
    scene.write(4, 2)  # later than CRIU looked: what it wrote counts
    second = os.urandom(2 * PAGE)
    scene.criu_wrote(4, second)
    pages = scene.pages()
    assert scene.pagemap() == [(1, 2), (4, 2), (9, 1)]
    assert content(pages) == first + second + third
    assert (pages.name, pages.size) == ("pages-3.img", 5 * PAGE)


def test_a_ghosts_memory_is_cut_at_fixed_addresses(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    written = scene.write(0, 3 * WINDOW // PAGE) + scene.write(3 * WINDOW // PAGE + 5)
    pieces = list(pieces_of_memory(scene.pages()))
    assert b"".join(each.read() for each in pieces if isinstance(each, Window)) == written
    for each in pieces:
        assert isinstance(each, Window)
        windows = {at // WINDOW for at, _ in each.spans}
        assert len(windows) == 1 and all(size <= WINDOW for _, size in each.spans)


def test_a_page_that_was_written_since_the_fork_is_another_one(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may see which physical page is where")
    scene = Scene(tmp_path)
    scene.write(0, 8)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        then = os.open(f"/proc/{child}/pagemap", os.O_RDONLY)
        now = os.open("/proc/self/pagemap", os.O_RDONLY)
        assert same_pages(then, now, scene.start, 8 * PAGE)
        scene.memory[3 * PAGE] = scene.memory[3 * PAGE]  # written, though with the same
        assert not same_pages(then, now, scene.start, 8 * PAGE)
        assert same_pages(then, now, scene.start, 3 * PAGE)
        assert same_pages(then, now, scene.start + 4 * PAGE, 4 * PAGE)
        assert not same_pages(then, now, scene.start + 8 * PAGE, PAGE), "there is none"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
