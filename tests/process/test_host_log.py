"""host.log: bounded in size while several processes append to it, and in lines per place."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.log_lines import BURST_LINES, REFILL_S, RepeatFilter
from holdfast.keeper import log_file
from process.commanding import Hold
from process.halt_scenes import soon

_SMALL_BYTES = 64 << 10


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "host.log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield path, fd
    finally:
        os.close(fd)


def test_a_log_that_grew_too_large_becomes_the_old_one(log: tuple[Path, int]) -> None:
    path, fd = log
    old = path.with_name("host.log.1")
    for letter in (b"a", b"b"):
        os.write(fd, letter * (_SMALL_BYTES + 1))
        log_file.bound(fd, _SMALL_BYTES)
        assert old.read_bytes() == letter * (_SMALL_BYTES + 1)
        assert path.read_bytes() == b""
    os.write(fd, b"next\n")
    assert path.read_bytes() == b"next\n"
    assert sorted(os.listdir(path.parent)) == ["host.log", "host.log.1"]
    assert old.stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_small_or_no_file_is_left_alone(log: tuple[Path, int]) -> None:
    path, fd = log
    os.write(fd, b"x" * _SMALL_BYTES)
    log_file.bound(fd, _SMALL_BYTES)
    assert path.stat().st_size == _SMALL_BYTES
    reader, writer = os.pipe()
    log_file.bound(writer, 0)
    os.close(reader)
    os.close(writer)


def test_a_log_that_cannot_be_kept_is_cut_all_the_same(log: tuple[Path, int]) -> None:
    """As on a full disk: the log must not be what fills it."""
    path, fd = log
    path.with_name("host.log.new").mkdir()
    os.write(fd, b"x" * (_SMALL_BYTES + 1))
    log_file.bound(fd, _SMALL_BYTES)
    assert path.stat().st_size == 0


def test_processes_that_share_the_descriptor_write_on_into_a_bounded_file(
    log: tuple[Path, int],
) -> None:
    path, fd = log
    program = (
        "import os\n"
        "from holdfast.keeper import log_file\n"
        "for number in range(4000):\n"
        "    os.write(2, b'%06d' % number + b'x' * 57 + b'\\n')\n"
        f"    log_file.bound(max_bytes={_SMALL_BYTES})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program], stderr=fd) for _ in range(3)]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    total = sum(path.with_name(name).stat().st_size for name in os.listdir(path.parent))
    assert total <= 4 * _SMALL_BYTES
    assert path.read_bytes().count(b"\n") * 64 == path.stat().st_size  # no line is torn


def test_of_many_lines_from_one_place_some_are_written_and_the_rest_counted() -> None:
    now = [0.0]
    filtering = RepeatFilter(lambda: now[0])

    def line(number: int, where: int = 1) -> logging.LogRecord:
        return logging.LogRecord("x", logging.INFO, "x.py", where, "line %d", (number,), None)

    written = [number for number in range(1000) if filtering.filter(line(number))]
    assert written == list(range(BURST_LINES))
    assert filtering.filter(line(0, where=2))  # another place is not affected
    now[0] += REFILL_S
    later = line(1000)
    assert filtering.filter(later)
    left_out = 1000 - BURST_LINES
    assert later.getMessage() == f"line 1000 [{left_out} more like this were left out]"
    assert not filtering.filter(line(1001))


def test_a_host_bounds_its_log_when_it_starts_and_says_on(fresh_home: Hold) -> None:
    path = Path(fresh_home.env["HOLDFAST_HOME"]) / "host.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * (log_file.MAX_BYTES + 1))
    fresh_home.ok("up", "-d")
    soon(lambda: path.stat().st_size < 64 << 10, "the log was not bounded")
    assert path.with_name("host.log.1").stat().st_size > log_file.MAX_BYTES
    fresh_home.ok("daemon", "restart")
    soon(lambda: b"ready" in path.read_bytes(), "nothing is logged")
