"""What a page says of a session and its machine is so: killed, lost, halted, read only, and a
machine that is hung or down."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e import axe
from e2e.browsing import Visitor
from e2e.conftest import Visit
from process.reaching import Faraway, pid_of_daemon

AT_ONCE_S = 2.0  # a reload, and one answer of the host


def said(visitor: Visitor) -> str:
    return visitor.at("turn-holder").inner_text().replace("\n", " / ")


def until_said(visitor: Visitor, words: str, within_s: float = 30) -> None:
    visitor.until(f"{words!r} is not said", lambda: re.search(words, said(visitor)), within_s)


@contextmanager
def hung(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.requirement("A9", "M6")
@pytest.mark.parametrize(
    ("whom", "words"), [("pid", "Killed by SIGKILL"), ("keeper_pid", "Lost: its keeper died")]
)
def test_a_killed_session_is_said_to_be_killed_at_once_after_a_reload(
    box: Faraway, visit: Visit, whom: str, words: str
) -> None:
    name = f"killed-{whom.partition('_')[0]}"
    box.host.shell(name)
    visitor = visit(f"seeing-{name}")
    visitor.open(name)
    visitor.enter("sleep 500")
    until_said(visitor, "You run sleep 500 / for .* you hold the turn")
    visitor.shot("running")
    os.kill(box.host.json("show", name)[whom], signal.SIGKILL)
    until_said(visitor, words)
    visitor.page.reload()
    until_said(visitor, words, AT_ONCE_S)
    if whom == "keeper_pid":
        known = visitor.page.locator(".facts")
        known.wait_for()
        for word in ("Survived", "Gone", "Unknown", "sleep 500"):
            assert word in known.inner_text()
        axe.check(visitor, "lost")
    visitor.shot("killed")


def test_a_halt_is_said_with_who_asked_for_it_and_the_notice_goes_when_it_is_resumed(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("halted")
    visitor = visit("halting")
    visitor.open("halted")
    visitor.at("session-halt").click()
    until_said(visitor, "Halted by you / .* nobody can type; you may resume it")
    visitor.at("receipt").wait_for()
    visitor.type("x")
    visitor.at("typing-hint").wait_for()
    visitor.shot("halted")
    visitor.page.reload()
    until_said(visitor, "Halted by you")
    box.host.ok("resume", "halted")
    until_said(visitor, "At the prompt .* the turn is free: the first to type takes it")
    visitor.page.reload()
    for what in ("resumed", "halted"):
        visitor.page.locator(".happening", has_text=f"{what} the session").wait_for()
    visitor.ready()
    visitor.at("session-halt").click()
    until_said(visitor, "Halted by you")
    visitor.at("receipt").wait_for()
    visitor.type("x")
    visitor.at("typing-hint").wait_for()
    box.host.ok("resume", "halted")
    visitor.at("receipt").wait_for(state="detached")
    visitor.at("typing-hint").wait_for(state="detached")


def test_a_view_that_may_only_read_is_told_so_and_not_that_the_turn_is_there_to_take(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("read-only")
    visitor = visit("reading", join=False)
    visitor.join(box.link(role="read"))
    visitor.open("read-only")
    until_said(visitor, "At the prompt .* your access does not include typing")
    assert "first to type" not in said(visitor)
    visitor.shot("read-only")


def test_a_machine_that_is_hung_or_down_is_said_to_be_with_what_still_works(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("away")
    visitor = visit("far-away")
    visitor.open("away")
    visitor.enter("echo here-$((3))")
    visitor.until_shown("here-3")
    banner = visitor.page.locator('[data-testid="session-banner"][data-code="offline"]')
    with hung(pid_of_daemon(box.host)):
        until_said(visitor, "does not answer / since .* last known", 60)
        assert "hold daemon restart" in banner.inner_text()
        assert "read, search and copy" in banner.inner_text()
        visitor.until_shown("here-3")
        axe.check(visitor, "hung")
        visitor.page.reload()
        until_said(visitor, "does not answer", 60)
        visitor.shot("hung-reloaded")
    until_said(visitor, "At the prompt", 60)
    box.host.ok("down")
    until_said(visitor, "is not connected", 60)
    assert "hold up" in banner.inner_text()
    visitor.shot("down")
    visitor.page.get_by_label("Back to the overview").click()
    visitor.card("away").wait_for()
    axe.check(visitor, "last-known")  # what an old list says is paler, and still read
    visitor.overview()
    visitor.page.locator('[data-testid="machine-why"][data-code="down"]').wait_for()
    assert visitor.at("link-state").get_attribute("data-state") == "offline"
    axe.check(visitor, "down")
    box.host.ok("up", "-d", "--no-relay")
    visitor.card("away").wait_for()


@pytest.mark.requirement("A6")
def test_a_shell_that_reports_no_more_is_said_in_the_state_line_with_who_shaped_it(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("unhooked")
    visitor = visit("unhooking")
    visitor.open("unhooked")
    until_said(visitor, "At the prompt")
    assert "does not report" not in said(visitor)
    visitor.enter("PROMPT_COMMAND=()")
    visitor.enter("true")
    until_said(visitor, "the shell does not report; shaped by unhooking")
    visitor.page.reload()
    until_said(visitor, "the shell does not report; shaped by unhooking")
    visitor.shot("unhooked")
