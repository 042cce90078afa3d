"""Much at once: output that nobody looks at, a paste that is too large for one message, and output
faster than it can be drawn."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from bench.pages import tasks_of

from e2e.conftest import Visit
from process.reaching import Faraway

LONGEST_MS = 200.0  # as far as it had a CPU: how long it waited for one is not the page's doing
_PASTE = """(text) => {
    const data = new DataTransfer()
    data.setData('text/plain', text)
    const about = { clipboardData: data, bubbles: true, cancelable: true }
    globalThis.__hold.terminal.textarea.dispatchEvent(new ClipboardEvent('paste', about))
}"""

# It may be over before anybody else has looked.
_WATCH_PROGRESS = """() => {
    const look = () => {
        if (document.querySelector('[data-testid=paste-progress]')) window.progressWasShown = true
    }
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
}"""


@pytest.mark.timeout(240)
def test_ten_megabytes_while_the_tab_is_in_the_background_are_behind_it_when_it_is_back(
    box: Faraway, visit: Visit
) -> None:
    """A browser stops what is in the background altogether; so does this."""
    box.host.shell("background")
    visitor = visit("background")
    visitor.open("background")
    visitor.take_turn()
    visitor.enter("echo begun-$((1))")
    visitor.until_shown("begun-1")
    lifecycle = visitor.context.new_cdp_session(visitor.page)
    front = visitor.context.new_page()
    front.bring_to_front()
    lifecycle.send("Page.setWebLifecycleState", {"state": "frozen"})
    before = box.host.json("show", "background")["output_offset"]
    box.host.ok("seize", "background")
    box.host.ok("send", "background", "--enter", "seq 1 1400000; echo the-end-$((6 * 7))")
    box.host.ok("wait", "background", "--for", "prompt", "--timeout", "60")
    assert box.host.json("show", "background")["output_offset"] - before > 10_000_000
    lifecycle.send("Page.setWebLifecycleState", {"state": "active"})
    visitor.page.bring_to_front()
    visitor.until_shown("the-end-42")
    front.close()
    shown = box.host.ok("screen", "background").rstrip()
    visitor.until(f"it is not\n{shown}\n", lambda: visitor.screen().rstrip() == shown)
    box.host.ok("turn", "background", "yield")
    visitor.enter("echo here-$((3))-again")
    visitor.until_shown("here-3-again")


@pytest.mark.timeout(240)
def test_a_paste_of_a_megabyte_arrives_whole_and_once(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    box.host.shell("paste")
    taken = tmp_path / "taken"
    visitor = visit("pasting")
    visitor.open("paste")
    visitor.enter(f"stty -echo; echo ready-$((1)); cat > {taken}; stty echo")
    visitor.until_shown("ready-1")
    text = "".join(f"{number:06} {'é日本' * 8} line of text\n" for number in range(12_000))
    assert len(text.encode()) > 1_000_000
    visitor.page.evaluate(_PASTE, text)
    visitor.page.evaluate(_WATCH_PROGRESS)
    visitor.at("paste-confirm").click()
    visitor.page.wait_for_function("() => window.progressWasShown")
    visitor.shot("pasting")
    visitor.until(
        "it did not all arrive",
        lambda: taken.exists() and taken.stat().st_size >= len(text.encode()),
        within_s=120,
    )
    visitor.at("paste-progress").wait_for(state="detached")
    visitor.press("Control+d")
    box.host.ok("wait", "paste", "--for", "prompt", "--timeout", "20")
    assert hashlib.sha256(taken.read_bytes()).digest() == hashlib.sha256(text.encode()).digest()
    visitor.enter("echo usable-$((2))")
    visitor.until_shown("usable-2")


@pytest.mark.timeout(240)
def test_fifty_megabytes_do_not_freeze_the_page(box: Faraway, visit: Visit) -> None:
    """And afterwards it shows the end, and takes a key."""
    box.host.shell("flood")
    visitor = visit("flooded")
    visitor.open("flood")
    with tasks_of(visitor.page) as tasks:
        visitor.enter("seq 1 6400000; echo the-end-$((6 * 7))")
        visitor.until_shown("the-end-42", within_s=150)
    assert 0 < tasks.longest_cpu < LONGEST_MS
    visitor.enter("echo alive-$((3))")
    visitor.until_shown("alive-3")
