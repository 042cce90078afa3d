"""R6, A2: a port of a session looked at in a real browser: in the app, but of another origin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from e2e.browsing import Visitor
from process.commanding import PATIENCE_S
from process.forwarding import server
from process.reaching import Faraway

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame

_MORE_THAN_AT_ONCE = 40  # requests of a page that have a connection: AT_ONCE in port-page.ts


@pytest.fixture(scope="module")
def viewing() -> Iterator[Faraway]:
    """A machine at a relay that has another origin to show pages on."""
    made = Faraway(relay_words=("--view-port", "0"))
    yield made
    made.close()


def visitor_of(browser: Browser, viewing: Faraway, name: str) -> Visitor:
    visitor = Visitor(browser, viewing.relay.url, name=name)
    visitor.join(viewing.link())
    return visitor


def open_port(visitor: Visitor, session: str, port: int) -> None:
    visitor.open(session)
    visitor.at("tab-processes").click()
    visitor.at(f"open-port-{port}").click()


def shown(visitor: Visitor) -> Frame | None:
    """The page of the port, inside the shell, inside the app."""
    found = [frame for frame in visitor.page.frames if frame.url.endswith("/")]
    return next((frame for frame in found if frame.parent_frame is not None), None)


def text_of(visitor: Visitor, selector: str) -> str:
    frame = shown(visitor)
    if frame is None or frame.query_selector(selector) is None:
        return ""
    return frame.inner_text(selector)


def test_a_site_works_as_if_it_were_here(browser: Browser, viewing: Faraway) -> None:
    port = server(viewing.host, "site", "site")
    visitor = visitor_of(browser, viewing, "viewer")
    open_port(visitor, "site", port)
    visitor.until("the site says nothing", lambda: text_of(visitor, "#said").startswith("{"))
    visitor.shot("port")
    assert json.loads(text_of(visitor, "#said")) == {
        "posted": "a question to localhost",
        "named": "the session",
        "moved": "/new 200",
        "big": 4 << 20,
        "heard": ["you said hello", 200000],
        "code": 1000,
        "native": True,
    }
    assert not visitor.complaints
    lines = viewing.host.ok("log", "site", "--json").splitlines()
    entries = [json.loads(line) for line in lines if '"forwarded"' in line]
    assert entries[0]["actor_name"] == "viewer" and entries[0]["body"]["port"] == port
    visitor.close()


def test_answers_without_a_body_use_nothing_up(browser: Browser, viewing: Faraway) -> None:
    port = server(viewing.host, "heads", "site")
    visitor = visitor_of(browser, viewing, "header")
    open_port(visitor, "heads", port)
    visitor.until("the site says nothing", lambda: text_of(visitor, "#said").startswith("{"))
    frame = shown(visitor)
    assert frame is not None
    asked = f"""async () => {{
        for (let at = 0; at < {_MORE_THAN_AT_ONCE}; at++) await fetch('/new', {{ method: 'HEAD' }})
        return (await fetch('/new')).text()
    }}"""
    assert frame.evaluate(asked) == "moved here"
    visitor.close()


@pytest.mark.requirement("S8")
def test_the_session_page_shows_what_the_session_costs(browser: Browser, viewing: Faraway) -> None:
    server(viewing.host, "costly", "site")
    visitor = visitor_of(browser, viewing, "thrifty")
    visitor.open("costly")
    visitor.at("tab-processes").click()
    used = visitor.at("residency").inner_text()
    assert re.fullmatch(
        r"Uses \d.* [kM]B memory, \d+ processes, \d+ descriptors, \d+ kB disk", used
    )
    visitor.close()


def test_a_page_of_a_port_reaches_nothing_of_the_app(browser: Browser, viewing: Faraway) -> None:
    port = server(viewing.host, "alone", "site")
    visitor = visitor_of(browser, viewing, "careful")
    open_port(visitor, "alone", port)
    visitor.until("the site says nothing", lambda: text_of(visitor, "#said").startswith("{"))
    frame = shown(visitor)
    assert frame is not None
    app = visitor.page.evaluate(
        "async () => (await indexedDB.databases()).map((each) => each.name)"
    )
    assert app, "the app keeps its keys in one"
    assert frame.evaluate("() => location.origin") != visitor.page.evaluate("() => location.origin")
    assert (
        frame.evaluate("async () => (await indexedDB.databases()).map((each) => each.name)") == []
    )
    outside = (
        """() => { try { return String(top.location.href) } catch (error) { return error.name } }"""
    )
    assert frame.evaluate(outside) == "SecurityError"
    assert (
        frame.evaluate("""() => { try { top.location = 'about:blank' } catch (e) { return e.name }
        return 'went' }""")
        == "SecurityError"
    ), "it cannot take the app's place"
    # Another port of the same machine is not reached by asking for it.
    other = server(viewing.host, "other", "site")
    asked = f"async () => (await fetch('http://localhost:{other}/cookie')).status"
    assert frame.evaluate(asked) == 502
    visitor.close()


def test_what_the_page_of_one_port_keeps_is_not_for_that_of_another(
    browser: Browser, viewing: Faraway
) -> None:
    ports = [server(viewing.host, name, "site") for name in ("first", "second")]
    visitor = visitor_of(browser, viewing, "keeper")

    def look(session: str, port: int) -> object:
        visitor.overview()
        open_port(visitor, session, port)
        visitor.until("the site says nothing", lambda: text_of(visitor, "#said").startswith("{"))
        frame = shown(visitor)
        assert frame is not None
        found = frame.evaluate("() => localStorage.getItem('kept')")
        frame.evaluate("() => localStorage.setItem('kept', 'by the page')")
        return found

    assert look("first", ports[0]) is None
    assert look("first", ports[0]) == "by the page", "its own is there again"
    assert look("second", ports[1]) is None
    assert look("first", ports[0]) is None
    visitor.close()


def test_what_is_refused_is_said_in_the_frame(browser: Browser, viewing: Faraway) -> None:
    port = server(viewing.host, "gone", "site")
    visitor = visitor_of(browser, viewing, "late")
    visitor.open("gone")
    visitor.at("tab-processes").click()
    visitor.at(f"open-port-{port}").wait_for()
    viewing.host.ok("halt", "gone")
    visitor.at(f"open-port-{port}").click()
    visitor.until("nothing is said", lambda: "(session_halted)" in text_of(visitor, "body"))
    viewing.host.ok("resume", "gone")
    visitor.close()


def test_where_there_is_no_other_origin_the_command_is_shown(
    browser: Browser, box: Faraway
) -> None:
    port = server(box.host, "plain", "echo")
    visitor = Visitor(browser, box.relay.url, name="elsewhere")
    visitor.join(box.link())
    open_port(visitor, "plain", port)
    command = visitor.at("port-command-text")
    command.wait_for(timeout=PATIENCE_S * 1000)
    assert command.input_value().startswith("hold forward ")
    assert command.input_value().endswith(f"/plain {port}")
    visitor.quiet()
    visitor.close()
