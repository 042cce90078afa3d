"""A person at a browser: the machine's own Chromium, on a desk or in a hand, at the page that a
real relay gives out.

A visitor keeps what its page complained of, and whom it asked for anything. Neither may be anything
at the end: `quiet` says so. HOLDFAST_SHOTS=DIRECTORY leaves pictures of what was seen there."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bench.pages import BUILT

from process.commanding import PATIENCE_S

if TYPE_CHECKING:  # a machine without it can still collect the tests that it skips
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Locator,
        Page,
        Request,
    )

WEB = Path(BUILT) / "index.html"
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
# One pixel is one pixel: told to emulate finer ones, Chromium gives a canvas the wrong size.
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}
SHOTS = os.environ.get("HOLDFAST_SHOTS", "")

_MS = PATIENCE_S * 1000
_GONE_MS = 3000  # what is not there to be pressed by then is gone
# A browser says so itself, whatever a page does about it.
_OF_THE_MACHINE = (  # of no page's doing
    "GL Driver Message",  # there is no graphics card
    "task queue exceeded allotted deadline",  # others use the processor too
)
# A service worker is not had from a place whose certificate only its user trusts.
_OF_A_CERTIFICATE = "An SSL certificate error occurred when fetching the script"
_OF_A_CUT = re.compile(r"net::ERR_|WebSocket connection to .* failed")

_TERMINAL = "globalThis.__hold?.terminal"
_SHOWN = f"""() => {{
    const terminal = {_TERMINAL}
    if (!terminal) return null
    const buffer = terminal.buffer.active, lines = []
    for (let row = 0; row < terminal.rows; row++)
        lines.push(buffer.getLine(buffer.baseY + row)?.translateToString(true) ?? '')
    return lines.join('\\n')
}}"""
_ALL = f"""() => {{
    const buffer = {_TERMINAL}.buffer.active, lines = []
    for (let row = 0; row < buffer.length; row++) {{
        const line = buffer.getLine(row)
        const text = line.translateToString(true)
        if (line.isWrapped) lines[lines.length - 1] += text
        else lines.push(text)
    }}
    return lines.join('\\n')
}}"""

T = TypeVar("T")


class Visitor:
    """One browser profile with one page open."""

    def __init__(self, browser: Browser, origin: str, *, name: str, **kind: Any) -> None:
        self.origin, self.name = origin, name
        self.context: BrowserContext = browser.new_context(
            locale="en-GB", timezone_id="UTC", permissions=[], **(kind or DESK)
        )
        self.context.set_default_timeout(_MS)
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self._cut = False
        self._trusting = bool(kind.get("ignore_https_errors"))
        self.page = self._watched(self.context.new_page())

    def _watched(self, page: Page) -> Page:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("request", self._asked)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if any(words in message.text for words in _OF_THE_MACHINE):
            return
        if self._trusting and _OF_A_CERTIFICATE in message.text:
            return
        if self._cut and _OF_A_CUT.search(message.text):
            return
        self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request: Request) -> None:
        own = (self.origin, self.origin.replace("http", "ws", 1), "data:", "blob:")
        if not request.url.startswith(own):
            self.strangers.append(request.url)

    # -- going places -------------------------------------------------------------------------

    def at(self, testid: str) -> Locator:
        return self.page.get_by_test_id(testid)

    def go(self, path: str) -> None:
        self.page.goto(f"{self.origin}{path}")

    def join(self, link: str) -> None:
        """By an invite's link, up to what it leads to."""
        self.go(f"/i#{link.partition('#')[2]}")
        self.at("join-name").fill(self.name)
        self.shot("join")
        self.at("join-submit").click()
        self.page.wait_for_url(lambda url: not url.partition("#")[0].endswith("/i"))

    def overview(self) -> None:
        self.go("/")
        self.at("overview").wait_for()

    def card(self, session: str) -> Locator:
        return self.page.locator(f'[data-testid="session-card"][data-session="{session}"]')

    def open(self, session: str) -> None:
        """From the overview, by its card, until it can be read."""
        if not self.at("overview").is_visible():
            self.overview()
        self.card(session).click()
        self.ready()

    def ready(self) -> None:
        """The terminal shows the session."""
        self.page.locator('[data-testid="session"][data-ready="true"]').wait_for()

    def dismiss(self) -> None:
        """What was said for a moment, before it goes by itself: it lies over the screen."""
        self.page.evaluate(
            """() => document.querySelectorAll('[data-testid="toast"] button')
                .forEach((button) => button.click())"""
        )

    def reload(self) -> None:
        self.page.reload()
        self.ready()

    # -- the terminal -------------------------------------------------------------------------

    def screen(self) -> str:
        """What the terminal shows, as text: all renderers paint from the same buffer."""
        return self.page.evaluate(_SHOWN) or ""

    def everything(self) -> str:
        """The lines above it too, with wrapped lines joined."""
        return str(self.page.evaluate(_ALL))

    def until(self, what: str, look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
        """The first true thing `look` gives. The page goes on meanwhile."""
        deadline = time.monotonic() + within_s
        while not (found := look()):
            if time.monotonic() > deadline:
                self.shot("failed")
                raise AssertionError(f"{what}; the screen:\n{self.screen()}\n{self.complaints}")
            self.page.wait_for_timeout(30)
        return found

    def until_shown(self, text: str, within_s: float = PATIENCE_S) -> None:
        self.until(f"{text!r} is not shown", lambda: text in self.screen(), within_s)

    def take_turn(self) -> None:
        """So that keys are taken: asked for if another has it, or nobody."""
        if self.turn() != "mine":
            self.open_ask_sheet()
            self.at("turn-request").click()
        self.until("the turn is not ours", lambda: self.turn() == "mine")

    def open_ask_sheet(self) -> None:
        """Where a phone has what can be done about another's turn; a desk has it in view, and so
        has everybody when the turn is free."""
        from playwright.sync_api import TimeoutError as Gone

        ask, request = self.at("turn-ask"), self.at("turn-request")
        self.until("there is no button", lambda: ask.or_(request).first.is_visible())
        if ask.is_visible():
            with suppress(Gone):  # the turn became free meanwhile
                ask.click(timeout=_GONE_MS)

    def turn(self) -> str:
        return self.at("session").get_attribute("data-turn") or ""

    def type(self, text: str) -> None:
        """Key by key, as a keyboard does it."""
        self.focus()
        self.page.keyboard.type(text)

    def press(self, *keys: str) -> None:
        self.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def focus(self) -> None:
        self.page.evaluate(f"() => {_TERMINAL}.focus()")

    def enter(self, line: str) -> None:
        self.type(line)
        self.press("Enter")

    # -- looking at it afterwards -------------------------------------------------------------

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """While its network is cut: what a browser itself says of that is no complaint."""
        self._cut = True
        yield
        # What is said late of what was then is still of then; the page's own words never pass.

    def quiet(self) -> None:
        """Nothing was complained of, and nobody else was asked."""
        assert not self.complaints, f"{self.name}'s page complained: {self.complaints}"
        assert not self.strangers, f"{self.name}'s page asked {self.strangers}"

    def shot(self, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{SHOTS}/{self.name}-{name}.png")

    def close(self) -> None:
        self.context.close()
