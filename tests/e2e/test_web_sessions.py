"""A session in a browser: the same execution that everybody else sees, at the size it has, through
reloads, with the programs people run."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from holdfast.model.size import Size
from process.acting import files_with
from process.reaching import Faraway
from process.terminals import Terminal

_SIZES = "() => [__hold.terminal.cols, __hold.terminal.rows]"
_CURSOR = "() => { const b = __hold.terminal.buffer.active; return [b.cursorX, b.cursorY] }"


@pytest.mark.requirement("S5", "A3", "R6")
def test_two_browsers_and_a_terminal_share_one_session_at_the_size_it_has(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("shared")
    with closing(Terminal(box.client, "attach", "box/shared", size=Size(101, 31))) as terminal:
        terminal.until_shown("$")
        desk, phone = visit("shared-desk", **DESK), visit("shared-phone", **PHONE)
        for visitor in (desk, phone):
            visitor.open("shared")
        terminal.type(b"stty size\r")
        terminal.until_shown("31 101")
        for visitor in (desk, phone):
            visitor.until_shown("31 101")
            assert visitor.page.evaluate(_SIZES) == [101, 31]
            assert visitor.at("session").get_attribute("data-size") == "101x31"
        # Who writes next does so at that size: looking at it on a phone changes nothing.
        box.host.ok("turn", "shared", "revoke")
        phone.enter("stty size; echo from-the-$((1))-phone")
        for visitor in (desk, phone):
            visitor.until_shown("from-the-1-phone")
            assert visitor.page.evaluate(_SIZES) == [101, 31]
        terminal.until_shown("from-the-1-phone")
        assert box.host.ok("screen", "shared").count("31 101") == 2
        desk.at("tab-operators").click()
        here = desk.page.locator('[data-testid="operator-row"][data-attached="true"]')
        desk.until("not all are named", lambda: here.count() == 3)
        named = [here.nth(at).get_attribute("data-actor") for at in range(3)]
        assert named[1:] == ["shared-desk", "shared-phone"], "first come first"
        assert named[0] not in named[1:], "who came before the page did is named, too"
        desk.shot("shared")
        phone.shot("shared")
        desk.until("they differ", lambda: desk.screen() == phone.screen())


@pytest.mark.requirement("S4", "M1")
def test_a_reload_amid_a_command_comes_back_to_the_same_command(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    box.host.shell("reloaded")
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    visitor = visit("reloading")
    visitor.open("reloaded")
    visitor.enter(
        f"echo $$ >> {ran}; echo begun-$((1)); until [ -e {gate} ]; do sleep 0.1; done; "
        "echo over-$((2))"
    )
    visitor.until_shown("begun-1")
    visitor.reload()
    visitor.until_shown("begun-1")
    assert "over-2" not in visitor.screen()
    gate.touch()
    visitor.until_shown("over-2")
    assert len(ran.read_text().splitlines()) == 1, "it ran once"
    visitor.enter("echo still-$((3))-typing")
    visitor.until_shown("still-3-typing")


_WIDE = (
    "日本語 かな",
    "한국어",
    "🙂🚀",
    "é ñ ü",
    "e\u0301",
    "ｱｲｳ",
    "👍🏽",
    "🇩🇪",
    "❤️",
    "👩‍👩‍👧",
    "क्षि",
)
_SHOW = r"""stty -echo; while read -r line; do printf '\033[2J\033[H%s' "$line"; done"""


def test_wide_characters_take_the_room_that_the_session_gives_them(
    box: Faraway, visit: Visit
) -> None:
    """The cursor stands where it stands for everybody; otherwise every line editor goes wrong."""
    box.host.ok("run", "-d", "--name", "wide", "--", "bash", "-c", _SHOW)
    visitor = visit("wide")
    visitor.open("wide")
    wrong = {}
    for text in _WIDE:
        box.host.ok("send", "wide", "--enter", text)
        visitor.until_shown(text)
        shown = box.host.json("screen", "wide")
        at = visitor.page.evaluate(_CURSOR)
        if at != [shown["cursor_col"], shown["cursor_row"]]:
            wrong[text] = (at[0], shown["cursor_col"])
    visitor.shot("wide")
    assert wrong == {}


def test_typed_wide_characters_arrive_as_they_are(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    box.host.shell("typed-wide")
    taken = tmp_path / "taken"
    visitor = visit("typing-wide")
    visitor.open("typed-wide")
    visitor.focus()
    visitor.page.keyboard.insert_text(f"printf %s '日本語🙂é' > {taken}; echo kept-$((7))")
    visitor.press("Enter")
    visitor.until_shown("kept-7")
    assert taken.read_text() == "日本語🙂é"


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
def test_a_file_is_written_in_vim(box: Faraway, visit: Visit, tmp_path: Path) -> None:
    box.host.shell("editor")
    file = tmp_path / "letter"
    visitor = visit("editing")
    visitor.open("editor")
    visitor.enter(f"vim -u NONE -N {file}")
    visitor.until_shown("~")
    visitor.type("iDear reader,")
    visitor.press("Enter")
    visitor.type("line twoo")
    visitor.press("Backspace", "ArrowUp", "Home")
    visitor.type("> ")
    visitor.until_shown("> Dear reader,")
    visitor.shot("vim")
    visitor.reload()
    visitor.until_shown("> Dear reader,")
    visitor.press("Escape")
    visitor.type(":wq")
    visitor.press("Enter")
    visitor.until_shown("$ ")
    assert file.read_text() == "> Dear reader,\nline two\n"
    assert "Dear reader" not in visitor.screen(), "the screen from before is back"


_FULL = Path(__file__).with_name("full_screen.py")


def test_a_program_on_the_full_screen_is_shown_and_takes_keys(box: Faraway, visit: Visit) -> None:
    """Colours, boxes, a cursor that jumps about, redrawn ten times a second."""
    box.host.ok("run", "-d", "--name", "full", "--", "python3", str(_FULL))
    desk, phone = visit("full-desk", **DESK), visit("full-phone", **PHONE)
    for visitor in (desk, phone):
        visitor.open("full")
        visitor.until_shown("key: none")
    desk.press("ArrowRight", "ArrowDown")
    for visitor in (desk, phone):
        visitor.until_shown("key: down")
        visitor.shot("full-screen")
    assert "┌" in desk.screen() or "+" in desk.screen()
    desk.type("q")
    desk.until("the page does not say that it ended", lambda: ended(desk))


def ended(visitor: Visitor) -> bool:
    return visitor.at("session").get_attribute("data-link") == "ended"


@pytest.mark.requirement("A9")
def test_a_session_that_ends_leaves_its_last_screen_and_its_true_status(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("ending")
    visitor = visit("mourning")
    visitor.open("ending")
    visitor.enter("echo last-$((9))-words; exit 7")
    banner = visitor.page.locator('[data-testid="session-banner"][data-code="ended"]')
    banner.wait_for()
    assert "7" in banner.inner_text()
    visitor.until_shown("last-9-words")
    visitor.shot("ended")
    visitor.page.reload()
    page = visitor.page.locator('[data-testid="error-page"][data-code="ended"]')
    page.wait_for()
    visitor.until("its last screen", lambda: "last-9-words" in page.inner_text())
    assert "7" in page.inner_text() and visitor.at("error-hint").inner_text()
    # Nothing of it lives any more that could sum it up: the timeline is from its journal.
    command = visitor.at("timeline-entry").first
    command.wait_for()
    assert "last-$((9))-words" in command.inner_text()
    visitor.shot("ended-page")


@pytest.mark.requirement("R3")
def test_a_device_that_is_shut_out_is_told_so_at_once_and_after_a_reload(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("shut")
    visitor = visit("shut-out")
    visitor.open("shut")
    box.host.ok("device", "revoke", "shut-out")
    page = visitor.page.locator('[data-testid="error-page"][data-code="revoked"]')
    page.wait_for()
    assert visitor.at("error-title").inner_text() and visitor.at("error-hint").inner_text()
    axe.check(visitor, "revoked")
    visitor.page.reload()
    page.wait_for()


@pytest.mark.requirement("A5")
def test_the_turn_is_seized_by_a_press_that_is_held_and_not_by_a_short_one(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("seized")
    phone = visit("seizing", **PHONE)
    phone.open("seized")
    box.host.ok("turn", "seized", "request")
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    phone.open_ask_sheet()
    button = phone.at("turn-seize")
    button.click()
    button.focus()
    phone.page.keyboard.press("Enter")
    phone.page.wait_for_timeout(1500)  # longer than a press would have had to be
    assert phone.turn() == "other", "a slip of the hand takes nothing from anybody"
    phone.shot("before-seizing")
    button.click(delay=1500)
    phone.until("the turn is ours", lambda: phone.turn() == "mine")
    phone.shot("seized")
    phone.enter("echo mine-$((1))-now")
    phone.until_shown("mine-1-now")
    assert box.host.json("turn", "seized")["seized"] is True


@pytest.mark.requirement("A5")
def test_the_turn_is_seized_with_a_key_that_is_held(box: Faraway, visit: Visit) -> None:
    box.host.shell("seized-by-key")
    desk = visit("seizing-by-key")
    desk.open("seized-by-key")
    box.host.ok("turn", "seized-by-key", "request")
    desk.until("another holds the turn", lambda: desk.turn() == "other")
    desk.at("turn-seize").focus()
    desk.page.keyboard.down("Enter")
    desk.until("the turn is ours", lambda: desk.turn() == "mine")
    desk.page.keyboard.up("Enter")


@pytest.mark.requirement("A5")
def test_with_a_key_it_may_also_be_pressed_and_then_confirmed(box: Faraway, visit: Visit) -> None:
    box.host.shell("confirmed")
    desk = visit("confirming")
    desk.open("confirmed")
    box.host.ok("turn", "confirmed", "request")
    desk.until("another holds the turn", lambda: desk.turn() == "other")
    desk.at("turn-seize").focus()
    desk.page.keyboard.press("Enter")
    desk.at("toast").filter(has_text="Press Enter again to confirm").wait_for()
    assert desk.turn() == "other"
    desk.page.keyboard.press("Tab")  # whoever goes elsewhere has not confirmed
    desk.at("turn-seize").focus()
    desk.page.keyboard.press("Enter")
    desk.page.keyboard.press("Enter")
    desk.until("the turn is ours", lambda: desk.turn() == "mine")


@pytest.mark.requirement("A4")
def test_who_types_without_the_turn_asks_for_it_and_gets_it_when_it_is_given(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("asked")
    holder, other = visit("holding"), visit("asking")
    for visitor in (holder, other):
        visitor.open("asked")
    holder.enter("echo held-$((1))")
    holder.until("the turn is not held", lambda: holder.turn() == "mine")
    other.until("another holds it", lambda: other.turn() == "other")
    other.type("x")
    give = holder.page.locator('[data-testid="turn-grant"][data-actor="asking"]').first
    give.wait_for()
    asked = holder.page.locator(".happening", has_text="asked for the turn").first
    asked.wait_for()
    assert asked.inner_text().startswith("asking asked for the turn")
    assert not holder.at("toast").filter(has_text="asks for the turn").count(), "told twice"
    holder.shot("asked")
    other.shot("asking")
    other.press("Enter")  # ends the dropped line: the next one is sent from its first key on
    give.click()
    other.until("the turn was not given", lambda: other.turn() == "mine")
    other.enter("echo given-$((2))")
    holder.until_shown("given-2")


@pytest.mark.requirement("S7")
def test_a_question_is_answered_from_its_card(box: Faraway, visit: Visit) -> None:
    box.host.shell("asks")
    phone = visit("answering", **PHONE)
    phone.open("asks")
    phone.enter("read -p 'Go on? [y/n] ' word; echo said-$word-$((5))")
    phone.at("prompt-card").wait_for()
    assert "Go on?" in phone.at("prompt-text").inner_text()
    phone.shot("prompt")
    phone.at("prompt-answer-y").click()
    phone.until_shown("said-y-5")
    phone.enter("read -p 'Go where? [y/n] ' word; echo said-$word-$((6))")
    phone.at("prompt-type").click()
    phone.at("prompt-input").fill("elsewhere")
    phone.at("prompt-send").click()
    phone.until_shown("said-elsewhere-6")


_SECRET = "tr0ub4dor-and-3"


@pytest.mark.requirement("S7")
def test_a_secret_entered_in_its_field_arrives_and_is_kept_nowhere(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    box.host.shell("hush")
    taken = tmp_path / "taken"
    visitor = visit("whispering")
    visitor.open("hush")
    visitor.enter(f'read -sp "Password: " word; printf %s "$word" > {taken}; unset word; echo; ')
    visitor.at("secret-card").wait_for()
    visitor.at("secret-input").fill(_SECRET)
    visitor.shot("secret")
    visitor.at("secret-send").click()
    box.host.ok("wait", "hush", "--for", "prompt", "--timeout", "20")
    assert taken.read_text() == _SECRET, "it did arrive"
    for view in (
        box.host.ok("tail", "hush"),
        box.host.ok("screen", "hush", "--scrollback"),
        box.host.ok("log", "hush"),
        box.host.ok("log", "hush", "--json"),
        box.host.ok("catchup", "hush", "--since", "1"),
        visitor.everything(),
        visitor.page.content(),
        str(visitor.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")),
    ):
        assert _SECRET not in view
        assert _SECRET.encode().hex() not in view
    assert files_with(box.host, _SECRET) == []
    box.host.ok("end", "hush")
    assert files_with(box.host, _SECRET) == []


# All at one instant: what is said for a moment is gone after another.
_EDGES = """(below) => {
    const edges = (which) => document.querySelector(which)?.getBoundingClientRect()
    const toast = edges('[data-testid=toast]')
    return toast && {
        top: toast.top, bottom: toast.bottom, turn: edges('.turn-bar').bottom,
        below: edges(`[data-testid=${below}]`).top,
    }
}"""


def test_what_is_said_for_a_moment_lies_over_nothing_that_is_pressed_or_read_with_it(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("moment")
    for kind, name in ((PHONE, "moment-phone"), (DESK, "moment-desk")):
        visitor = visit(name, **kind)
        visitor.open("moment")
        visitor.enter(f"echo {name}-$((1))")
        visitor.until_shown(f"{name}-1")
        box.host.ok("turn", "moment", "revoke")
        below = "key-bar" if kind is PHONE else "lens-fit"
        edges = visitor.page.wait_for_function(_EDGES, arg=below).json_value()
        assert edges["turn"] <= edges["top"] and edges["bottom"] <= edges["below"]
        visitor.shot("moment")


def test_find_counts_its_matches_and_processes_are_the_programs_of_the_session(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("findable")
    visitor = visit("finding")
    visitor.open("findable")
    visitor.enter("for n in 1 2 3; do echo needle~$n; done; sleep 300")
    visitor.until_shown("needle~3")
    visitor.press("Control+Shift+F")
    visitor.at("find").fill("needle~1")
    count = visitor.at("find-count")
    visitor.until("it is not counted", lambda: count.inner_text() == "1 of 1")
    visitor.at("find").fill("needle~")
    visitor.until("nor are these", lambda: count.inner_text() == "2 of 4")
    visitor.page.get_by_label("Previous match").click()
    visitor.until("which one", lambda: count.inner_text() == "1 of 4")
    visitor.at("tab-processes").click()
    rows = visitor.at("process-row")
    visitor.until("its program", lambda: rows.count() == 2)
    shown = [rows.nth(at).locator(".process-text").inner_text() for at in range(2)]
    assert shown == ["bash --norc", "sleep 300"]
    visitor.shot("found")
    visitor.at("find").fill("no-such-text")
    visitor.until("not there", lambda: count.inner_text() == "not found")


def test_a_key_typed_while_looking_back_leads_to_where_it_is_echoed(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("back")
    visitor = visit("looking-back")
    visitor.open("back")
    visitor.enter("seq 1 200; echo all-$((200))")
    visitor.until("no prompt", lambda: visitor.screen().rstrip().endswith("all-200\n$"))
    behind = "() => { const b = __hold.terminal.buffer.active; return b.baseY - b.viewportY }"
    visitor.page.evaluate("() => { __hold.terminal.scrollLines(-50); __hold.terminal.selectAll() }")
    assert visitor.page.evaluate(behind) == 50
    visitor.type("echo Typed~$((1))")
    visitor.until("not at the end", lambda: visitor.page.evaluate(behind) == 0)
    assert not visitor.page.evaluate("() => __hold.terminal.hasSelection()")
    visitor.press("Enter")
    visitor.until_shown("Typed~1")


_PRETEND_A_CARD = """
const told = WebGL2RenderingContext.prototype.getParameter
WebGL2RenderingContext.prototype.getParameter = function (what) {
    return what === 0x9246 ? 'a graphics card' : told.call(this, what)
}"""


def test_a_graphics_card_draws_where_there_is_one_and_elements_where_there_is_none(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("drawn")
    plain, carded = visit("plain"), visit("carded", join=False)
    carded.context.add_init_script(_PRETEND_A_CARD)
    carded.join(box.link())
    for visitor, way in ((plain, "elements"), (carded, "webgl")):
        visitor.open("drawn")
        visitor.page.locator(f'[data-drawn-by="{way}"]').wait_for()
    plain.enter(r"printf '\033[31mred \033[1;44mbold on blue\033[0m done-%d\n' 1")
    for visitor in (plain, carded):
        visitor.until_shown("red bold on blue done-1")
        visitor.shot("drawn")
