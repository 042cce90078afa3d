"""The web app under a finger: a phone held either way, and a tablet."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway

TYPE_CHECKING = False
if TYPE_CHECKING:
    from playwright.sync_api import Locator

LANDSCAPE: dict[str, Any] = {**PHONE, "viewport": {"width": 844, "height": 390}}
TABLET: dict[str, Any] = {**PHONE, "viewport": {"width": 1024, "height": 768}}

_SMALL_TARGETS = """() => [...document.querySelectorAll('button, a, [role=tab], summary')]
    .filter((one) => one.checkVisibility() && !one.closest('.xterm'))
    .map((one) => [one.ariaLabel || one.innerText, one.getBoundingClientRect()])
    .filter(([, box]) => box.width < 44 || box.height < 44)
    .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""


def test_the_key_bar_follows_the_pointer_and_not_the_width(box: Faraway, visit: Visit) -> None:
    box.host.shell("pointer")
    for name, kind in (("upright", PHONE), ("landscape", LANDSCAPE), ("tablet", TABLET)):
        visitor = visit(f"pointer-{name}", **kind)
        visitor.open("pointer")
        visitor.at("key-bar").wait_for()
        visitor.shot("keys")
        visitor.close()
    narrow = visit("pointer-narrow", viewport={"width": 400, "height": 800})
    narrow.open("pointer")
    assert not narrow.at("key-bar").is_visible(), "a mouse in a narrow window has a keyboard"
    desk = visit("pointer-desk", **DESK)
    desk.open("pointer")
    assert not desk.at("key-bar").is_visible()


@pytest.mark.parametrize("kind", [PHONE, LANDSCAPE], ids=["upright", "landscape"])
def test_nothing_that_a_finger_presses_is_smaller_than_44_pixels(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    name = f"targets-{kind['viewport']['width']}"
    box.host.shell(name)
    phone = visit(name, **kind)
    phone.open(name)
    assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.at("panel-toggle").click()
    for tab in ("timeline", "processes", "operators", "inbox"):
        phone.at(f"tab-{tab}").click()
        phone.shot(tab)
        assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.page.get_by_label("Close the panel").click()
    phone.at("session-menu").click()
    assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.shot("menu")


def test_halt_has_its_word_on_a_phone_and_a_short_tap_on_seize_says_how(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("tapped")
    phone = visit("tapping", **PHONE)
    phone.open("tapped")
    box.host.ok("turn", "tapped", "request")
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    assert phone.at("session-halt").inner_text().strip() == "Halt"
    phone.dismiss()
    bar = phone.page.locator(".turn-bar").bounding_box()
    assert bar and bar["height"] <= 66, "the state line is one row"
    phone.at("turn-ask").tap()
    phone.at("turn-seize").tap()
    hint = phone.at("toast").filter(has_text="press and hold for a second")
    hint.wait_for()
    phone.shot("short-tap")
    box_of, sheet = hint.bounding_box(), phone.at("ask-sheet").bounding_box()
    assert box_of and sheet and box_of["y"] + box_of["height"] <= sheet["y"] + sheet["height"], (
        "it is said in the sheet, and not below it"
    )
    assert phone.turn() == "other"
    assert phone.page.evaluate(_SMALL_TARGETS) == []
    # The whole bar fits: no word is cut and nothing lies beside the page.
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") == 390


def middle_of(button: Locator) -> float:
    """Where it is; it is a little smaller while it is pressed."""
    box = button.bounding_box()
    assert box is not None
    return box["y"] + box["height"] / 2


@pytest.mark.requirement("A5")
def test_a_notice_that_comes_or_goes_ends_no_press_and_moves_nothing_under_the_finger(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("pressed")
    phone = visit("pressing", **PHONE)
    phone.open("pressed")
    box.host.ok("turn", "pressed", "request")
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    phone.dismiss()
    phone.at("turn-ask").tap()
    button = phone.at("turn-seize")
    button.hover()  # which waits until the sheet has come to rest
    before = middle_of(button)
    phone.page.mouse.down()
    phone.page.mouse.up()  # too short, which is said over the sheet
    phone.at("toast").filter(has_text="press and hold for a second").wait_for()
    assert abs(middle_of(button) - before) < 2
    phone.page.mouse.down()
    phone.dismiss()
    phone.at("toast").wait_for(state="detached")
    assert abs(middle_of(button) - before) < 2
    phone.until("the turn is ours", lambda: phone.turn() == "mine")
    phone.page.mouse.up()


@pytest.mark.requirement("A5")
def test_a_press_that_slides_off_the_button_takes_nothing(box: Faraway, visit: Visit) -> None:
    box.host.shell("slid-off")
    desk = visit("sliding", **DESK)
    desk.open("slid-off")
    box.host.ok("turn", "slid-off", "request")
    desk.until("another holds the turn", lambda: desk.turn() == "other")
    button = desk.at("turn-seize")
    button.hover()
    desk.page.mouse.down()
    pressing = desk.page.locator('[data-testid="turn-seize"].is-pressing')
    pressing.wait_for()
    desk.page.mouse.move(40, 400)
    pressing.wait_for(state="detached")
    desk.page.wait_for_timeout(1500)  # longer than a press would have had to be
    desk.page.mouse.up()
    assert desk.turn() == "other"


def test_who_asks_for_the_turn_on_a_phone_says_what_for(box: Faraway, visit: Visit) -> None:
    box.host.shell("wanted")
    phone = visit("wanting", **PHONE)
    phone.open("wanted")
    box.host.ok("turn", "wanted", "request")
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    phone.at("turn-ask").tap()
    phone.page.get_by_label("What for?").fill("to restart the tail")
    phone.at("turn-request").tap()
    phone.at("turn-ask").filter(has_text="Asked").wait_for()
    assert "to restart the tail" in box.host.ok("turn", "wanted")
    phone.at("turn-ask").tap()
    phone.at("turn-withdraw").wait_for()
    phone.shot("asked")
    box.host.ok("turn", "wanted", "yield")
    phone.until("it has it", lambda: phone.turn() == "mine")
    phone.at("ask-sheet").wait_for(state="detached")  # there is nothing to ask for any longer


_SHARED = """() => {
    globalThis.shared = []
    Object.defineProperty(Navigator.prototype, 'share', {
        configurable: true,
        value: async (what) => void globalThis.shared.push(what.url),
    })
}"""


def test_an_invite_is_shared_by_the_system_where_the_browser_can(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("passed-on")
    phone = visit("sharing", join=False, **PHONE)
    phone.context.add_init_script(f"({_SHARED})()")
    phone.join(box.link())
    phone.open("passed-on")
    phone.at("session-menu").click()
    phone.at("invite-open").click()
    phone.at("invite-make").click()
    link = phone.at("invite-link").input_value()
    phone.page.get_by_role("button", name="Share…").click()
    phone.until("nothing was shared", lambda: phone.page.evaluate("() => shared"))
    assert phone.page.evaluate("() => shared") == [link]
    phone.shot("invite")


# The middle of a cell of the screen, in pixels of the page: the column, and the row with this text.
# The lens follows the cursor in the next frame: what is measured before that is no longer there.
_PLACE = """async ([text, column]) => {
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
    const term = __hold.terminal, { viewportY } = term.buffer.active
    const drawn = document.querySelector('.xterm-screen').getBoundingClientRect()
    for (let row = 0; row < term.rows; row++) {
        const line = term.buffer.active.getLine(viewportY + row).translateToString(true)
        if (!line.startsWith(text)) continue
        return {
            x: drawn.left + (column + 0.5) * drawn.width / term.cols,
            y: drawn.top + (row + 0.5) * drawn.height / term.rows,
        }
    }
}"""


class Finger:
    """One finger on the page, moved as a browser's own touch screen does it."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._wire = visitor.context.new_cdp_session(visitor.page)

    def place(self, line: str, column: int) -> dict[str, float]:
        found = self._visitor.page.evaluate(_PLACE, [line, column])
        assert found, f"no line begins with {line!r}:\n{self._visitor.screen()}"
        return dict(found)

    def down(self, at: dict[str, float]) -> None:
        self._send("touchStart", at)

    def move(self, at: dict[str, float]) -> None:
        self._send("touchMove", at)

    def up(self) -> None:
        self._send("touchEnd")

    def _send(self, kind: str, *points: dict[str, float]) -> None:
        self._wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})


_CLIPBOARD = """() => {
    globalThis.copied = []
    Object.defineProperty(navigator, 'clipboard', {
        configurable: true,
        value: {
            writeText: async (text) => void copied.push(text),
            readText: async () => {
                if (globalThis.clipboardText === undefined) throw new Error('not allowed')
                return globalThis.clipboardText
            },
        },
    })
}"""


def _with_clipboard(box: Faraway, visit: Visit, name: str) -> Visitor:
    box.host.shell(name)
    phone = visit(f"{name}-phone", join=False, **PHONE)
    phone.context.add_init_script(f"({_CLIPBOARD})()")
    phone.join(box.link())
    phone.open(name)
    phone.dismiss()
    return phone


def test_a_long_press_selects_a_word_that_a_finger_extends_and_copies(
    box: Faraway, visit: Visit
) -> None:
    phone = _with_clipboard(box, visit, "select")
    phone.enter("clear; echo first/word second; echo third line")
    phone.until_shown("\nthird line")  # printed, and not only typed
    finger = Finger(phone)
    finger.down(finger.place("first/word", 2))
    phone.at("selection-bar").wait_for()
    selected = "() => __hold.terminal.getSelection()"
    assert phone.page.evaluate(selected) == "first/word"
    finger.move(finger.place("first/word", 13))
    phone.until("not extended", lambda: phone.page.evaluate(selected) == "first/word sec")
    finger.up()
    phone.shot("selected")
    # By its handle, which hangs below the last cell.
    end = finger.place("first/word", 14)
    grabbed = {"x": end["x"], "y": end["y"] + 10}
    finger.down(grabbed)
    below = finger.place("third", 4)
    finger.move({"x": below["x"] + 7, "y": below["y"] + 10})
    finger.up()
    phone.until(
        "the handle does not move the end",
        lambda: phone.page.evaluate(selected) == "first/word second\nthird",
    )
    phone.at("select-lines").tap()
    phone.at("select-copy").tap()
    phone.until(
        "not copied",
        lambda: phone.page.evaluate("() => copied") == ["first/word second\nthird line"],
    )
    phone.at("selection-bar").wait_for(state="hidden")
    assert phone.page.evaluate(selected) == ""


def test_a_tapped_link_shows_its_address_and_opens_on_request(box: Faraway, visit: Visit) -> None:
    phone = _with_clipboard(box, visit, "links")
    hidden = r"printf '\033]8;;https://holdfast.invalid/hidden\033\\docs\033]8;;\033\\\n'"
    phone.enter(f"clear; echo https://holdfast.invalid/shown; {hidden}; echo plain")
    phone.until_shown("\nplain")
    finger = Finger(phone)
    for line, address in (("https:", "shown"), ("docs", "hidden"), ("https:", "shown")):
        finger.down(finger.place(line, 2))
        finger.up()
        opens = phone.page.locator(f'a[href="https://holdfast.invalid/{address}"]')
        opens.wait_for()
        assert opens.get_attribute("target") == "_blank"
        assert "noopener" in (opens.get_attribute("rel") or "")
    phone.shot("link")
    finger.down(finger.place("plain", 2))
    finger.up()
    phone.at("link-bar").wait_for(state="hidden")


def test_a_paste_of_several_lines_is_read_in_a_sheet_before_it_goes_in(
    box: Faraway, visit: Visit
) -> None:
    phone = _with_clipboard(box, visit, "pasting")
    phone.page.evaluate(
        "() => { globalThis.clipboardText = 'echo one-$((1))\\necho two-$((2))\\n' }"
    )
    phone.at("key-paste").tap()
    phone.at("paste-sheet").wait_for()
    assert phone.at("paste-text").input_value() == "echo one-$((1))\necho two-$((2))\n"
    assert "one-1" not in phone.screen()
    phone.shot("sheet")
    phone.at("paste-text").fill("echo three-$((3))")
    phone.at("paste-send").tap()
    phone.press("Enter")
    phone.until_shown("three-3")
    assert "one-1" not in phone.screen()
    # One line needs no second look.
    phone.page.evaluate("() => { globalThis.clipboardText = 'echo four-$((4))' }")
    phone.at("key-paste").tap()
    phone.until_shown("echo four-$((4))")
    # A browser that keeps its clipboard to itself: there is a field to paste into.
    phone.page.evaluate("() => { globalThis.clipboardText = undefined }")
    phone.at("key-paste").tap()
    assert phone.at("paste-text").input_value() == ""


def test_away_from_the_end_a_button_counts_the_new_lines_and_leads_back(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("latest")
    phone = visit("latest-phone", **PHONE)
    phone.open("latest")
    phone.dismiss()
    box.host.ok("exec", "latest", "seq 1 200; echo all-$((200))")
    phone.until_shown("all-200")
    assert not phone.at("jump-latest").is_visible()
    phone.page.evaluate("() => __hold.terminal.scrollLines(-100)")
    phone.at("jump-latest").wait_for()
    box.host.ok("exec", "latest", "seq 1 7")
    phone.at("jump-latest").filter(has_text="new lines").wait_for()
    phone.shot("away")
    phone.at("jump-latest").tap()
    phone.at("jump-latest").wait_for(state="hidden")
    behind = "() => { const b = __hold.terminal.buffer.active; return b.baseY - b.viewportY }"
    assert phone.page.evaluate(behind) == 0


def test_a_pinch_is_for_the_session_it_was_made_in(box: Faraway, visit: Visit) -> None:
    box.host.shell("near")
    box.host.shell("far")
    phone = visit("pinching", **PHONE)
    phone.open("near")
    font = "() => __hold.terminal.options.fontSize"
    first = phone.page.evaluate(font)
    wire = phone.context.new_cdp_session(phone.page)

    def touch(kind: str, *xs: int) -> None:
        points = [{"x": x, "y": 400, "id": number} for number, x in enumerate(xs)]
        wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 150, 250)
    touch("touchMove", 100, 300)
    touch("touchEnd")
    phone.until("not larger", lambda: phone.page.evaluate(font) > first)
    phone.open("far")
    assert phone.page.evaluate(font) == first
    phone.open("near")
    assert phone.page.evaluate(font) == first


_GAP = """() => {
    const term = __hold.terminal, { cursorY } = term.buffer.active
    const drawn = document.querySelector('.xterm-screen').getBoundingClientRect()
    const bottom = drawn.top + (cursorY + 1) * drawn.height / term.rows
    return document.querySelector('.prompt-card').getBoundingClientRect().top - bottom
}"""


@pytest.mark.parametrize("kind", [PHONE, LANDSCAPE], ids=["upright", "landscape"])
def test_a_question_and_its_answers_touch_and_are_said_twice_only_where_the_line_is_cut(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    name = f"touches-{kind['viewport']['width']}"
    box.host.shell(name)
    phone = visit(name, **kind)
    phone.open(name)
    repeated = phone.page.locator(".prompt-text.cut")
    phone.enter('clear; read -p "Go on? [y/n] " x')
    phone.at("prompt-card").wait_for()
    phone.until("the line is elsewhere", lambda: 0 <= phone.page.evaluate(_GAP) < 12)
    assert repeated.count() == 0, "it is in the terminal, directly above"
    phone.shot("whole")
    phone.at("prompt-answer-n").tap()
    phone.at("prompt-card").wait_for(state="detached")
    phone.enter(f'read -p "Really {"very " * 40}sure? [y/n] " x')
    phone.at("prompt-card").wait_for()
    if kind is PHONE:
        repeated.wait_for()
    phone.until("the line is elsewhere", lambda: 0 <= phone.page.evaluate(_GAP) < 12)
    phone.shot("cut")
    phone.at("prompt-answer-n").tap()


_QUESTION = """() => {
    const term = __hold.terminal, { cursorY } = term.buffer.active
    const drawn = document.querySelector('.xterm-screen').getBoundingClientRect()
    const height = drawn.height / term.rows
    const line = { top: drawn.top + cursorY * height, bottom: drawn.top + (cursorY + 1) * height }
    const over = [...document.querySelectorAll('.card, .toast, .prompt-card, .dock-bar, .hint')]
        .filter((one) => one.checkVisibility())
        .map((one) => one.getBoundingClientRect())
        .filter((card) => card.top < line.bottom - 1 && card.bottom > line.top + 1).length
    const pane = document.querySelector('.pane').getBoundingClientRect()
    return { over, seen: line.top >= pane.top - 1 && line.bottom <= pane.bottom + 1 }
}"""


@pytest.mark.parametrize(
    "kind", [PHONE, LANDSCAPE, TABLET, DESK], ids=["upright", "landscape", "tablet", "desk"]
)
@pytest.mark.parametrize("lines", [0, 60], ids=["top", "bottom"])
def test_no_card_ever_covers_the_question(
    box: Faraway, visit: Visit, kind: dict[str, Any], lines: int
) -> None:
    name = f"asks-{kind['viewport']['width']}-{lines}"
    box.host.shell(name)
    phone = visit(name, **kind)
    phone.open(name)
    ask = f'clear; seq 1 {lines}; sleep 0.1; read -p "Deploy to production? [y/N] " x'
    box.host.ok("exec", name, "true")
    phone.take_turn()
    phone.enter(ask)
    phone.at("prompt-card").wait_for()
    phone.at("session-halt").click()
    phone.at("receipt").wait_for()
    phone.shot("question")
    phone.until("not seen whole", lambda: phone.page.evaluate(_QUESTION)["seen"])
    assert phone.page.evaluate(_QUESTION)["over"] == 0
    phone.at("session-resume").click()
    phone.at("prompt-card").wait_for()
    phone.until(
        "not seen whole", lambda: phone.page.evaluate(_QUESTION) == {"over": 0, "seen": True}
    )
    phone.at("prompt-answer-n").click()
    phone.at("prompt-card").wait_for(state="hidden")
