"""A browser for a measure: the machine's own Chromium, with the web app of a relay open in it.

Times are taken inside the page, by its own clock: what lies between this process and the browser is
no part of them."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported when it is used: a machine without it measures the rest
    from playwright.sync_api import Browser, Page, Playwright

CHROMIUM = "/usr/bin/chromium"
BUILT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src/holdfast/relay/web"
)
# Nothing of its own on the network, and no sandbox for root, which has none to give.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name that leads here without being this machine's own: such a page is no secure context.
    "--host-resolver-rules=MAP relay.test 127.0.0.1",
)
_TIMEOUT_MS = 30_000
_READY = '[data-testid="session"][data-ready="true"]'


def launch(playwright: Playwright, *more: str) -> Browser:
    return playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *more])


def absent() -> str:
    """Why no page can be measured here; "": one can."""
    if not os.path.exists(CHROMIUM):
        return "there is no Chromium on this machine"
    if not os.path.exists(f"{BUILT}/index.html"):
        return "the web app is not built"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return ""


@contextlib.contextmanager
def joined(link: str) -> Iterator[Page]:
    """A page at the overview of a device that came in by this link."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_TIMEOUT_MS)
        page.goto(link)
        page.get_by_test_id("join-name").fill("bench")
        page.get_by_test_id("join-submit").click()
        page.get_by_test_id("overview").wait_for()
        yield page
        browser.close()


def card(session: str) -> str:
    return f'[data-testid="session-card"][data-session="{session}"]'


# From the click on a session's card until its terminal has the text, in milliseconds. A frame later
# it is on the screen; who reads it waits for that frame too, so it is waited for here.
_OPEN = """([card, ready, text]) => new Promise((done) => {
    const began = performance.now()
    const look = () => {
        const terminal = globalThis.__hold?.terminal
        if (document.querySelector(ready) && terminal) {
            const buffer = terminal.buffer.active
            for (let row = 0; row < terminal.rows; row++) {
                const line = buffer.getLine(buffer.baseY + row)
                if (line && line.translateToString(true).includes(text))
                    return requestAnimationFrame(() => done(performance.now() - began))
            }
        }
        setTimeout(look, 0)
    }
    document.querySelector(card).click()
    look()
})"""


def open_session(page: Page, session: str, text: str) -> float:
    """Milliseconds until this text can be read."""
    page.locator(card(session)).wait_for()
    return float(page.evaluate(_OPEN, [card(session), _READY, text]))


def leave_session(page: Page) -> None:
    page.go_back()
    page.get_by_test_id("overview").wait_for()


# One key: from the browser's event for it until the terminal has taken what came back, and until
# the frame after that.
_LISTEN = """() => {
    const terminal = globalThis.__hold.terminal
    globalThis.__keys = { pressed: 0, parsed: [], drawn: [] }
    const keys = globalThis.__keys
    addEventListener('keydown', () => { keys.pressed = performance.now() }, { capture: true })
    terminal.onWriteParsed(() => {
        if (!keys.pressed) return
        const began = keys.pressed
        keys.pressed = 0
        keys.parsed.push(performance.now() - began)
        requestAnimationFrame(() => {
            keys.drawn.push(performance.now() - began)
            console.debug('drawn')
        })
    })
    terminal.focus()
}"""


def listen(page: Page) -> None:
    page.evaluate(_LISTEN)


def press(page: Page, key: str, timeout_s: float) -> None:
    """Press it, wait until it was echoed, let it go: nobody is faster. The page is not asked
    meanwhile, which would keep it busy."""
    with page.expect_console_message(lambda said: said.text == "drawn", timeout=timeout_s * 1000):
        page.keyboard.down(key)
    page.keyboard.up(key)


def pressed(page: Page) -> dict[str, list[float]]:
    """By `parsed` and `drawn`, milliseconds."""
    taken: dict[str, Any] = page.evaluate("() => __keys")
    return {name: [float(each) for each in taken[name]] for name in ("parsed", "drawn")}


@dataclass
class Tasks:
    """The longest thing that a page did while it could do nothing else, in milliseconds: by the
    clock, and as far as it had a CPU. Where others work too, only the latter is the page's own."""

    longest: float = 0.0
    longest_cpu: float = 0.0


@contextlib.contextmanager
def tasks_of(page: Page) -> Iterator[Tasks]:
    """What the page's main thread does meanwhile, by the browser's own trace. Filled at the end."""
    found = Tasks()
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    try:
        yield found
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    for event in events:
        if event.get("ph") == "X" and (event["pid"], event["tid"]) in mains:
            found.longest = max(found.longest, event.get("dur", 0) / 1000)
            found.longest_cpu = max(found.longest_cpu, event.get("tdur", 0) / 1000)


_SHOWN = """(text) => {
    const terminal = globalThis.__hold.terminal, buffer = terminal.buffer.active
    for (let row = 0; row < terminal.rows; row++) {
        const line = buffer.getLine(buffer.baseY + row)
        if (line && line.translateToString(true).includes(text)) return true
    }
    return false
}"""


def until_shown(page: Page, text: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not page.evaluate(_SHOWN, text):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the page does not show {text!r}")
        time.sleep(0.02)
