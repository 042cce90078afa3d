"""What is set in config.toml, and for one session by an option, is so of what runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from process.acting import connected
from process.commanding import PATIENCE_S, Hold


@pytest.fixture(scope="module")
def host_home() -> Iterator[Hold]:
    """A host with settings of its own."""
    with Hold() as hold:
        Path(hold.home, "config.toml").write_text(
            'ring_bytes = 65536\nscrollback_lines = 0\nshell = "/bin/sh"\n'
        )
        hold.ok("up", "-d")
        yield hold


def test_the_shell_of_the_settings_is_started_where_no_command_is_named(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "shell")
    assert host_home.json("show", "shell")["argv"] == ["/bin/sh"]


def test_output_and_scrollback_are_held_as_the_settings_say(host_home: Hold) -> None:
    with connected(host_home) as host:
        session = host.run(["sh", "-c", "seq 30000; exec cat"]).id
        larger = host.run(["sh", "-c", "seq 30000; exec cat"], ring_bytes=1 << 20).id
        for each in (session, larger):
            host_home.ok("wait", each, "--for", "text:^30000$", "--timeout", "20")
        held = host.show(session)
        assert held.held_from > 0 and held.output_offset - held.held_from <= 65536
        assert host.show(larger).held_from == 0
        seen = host.screen(session, scrollback=True).text
        assert seen == host.screen(session).text and "30000" in seen


def test_root_runs_a_session_as_another_user(host_home: Hold) -> None:
    if os.geteuid() != 0:
        host_home.fails("not_permitted", "run", "-d", "--user", "nobody", "--", "id", "-un")
        return
    words = ("--user", "nobody", "--cwd", "/", "--name", "theirs", "--", "sh", "-c", "id -un; cat")
    host_home.ok("run", "-d", *words)
    host_home.ok("wait", "theirs", "--for", "text:^nobody$", "--timeout", "20")
    assert host_home.json("show", "theirs")["user"] == "nobody"


def test_the_cpu_time_of_a_busy_process_grows_in_the_graph(host_home: Hold) -> None:
    with connected(host_home) as host:
        session = host.run(["sh", "-c", "while :; do :; done"]).id

        def spent_s() -> float:
            return max(process.cpu_seconds for process in host.graph(session).processes)

        before, deadline = spent_s(), time.monotonic() + PATIENCE_S
        while spent_s() <= before:
            assert time.monotonic() < deadline, "it is busy, and no time goes by"
        host.end(session)
