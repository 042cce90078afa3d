"""What a page cannot do, whatever gets into it: the browser keeps to the headers it came with. And
that a page's complaint is noticed at all, on which every other test here relies."""

from __future__ import annotations

import pytest

from e2e.browsing import Visitor
from e2e.conftest import Visit
from process.reaching import Faraway
from process.relaying import RelayProcess

_INLINE = """() => {
    const script = document.createElement('script')
    script.textContent = 'globalThis.ran = true'
    document.body.append(script)
    document.body.insertAdjacentHTML('beforeend', '<img src="/none.png" onerror="ran = true">')
    setTimeout('globalThis.ran = true', 0)
    return new Promise((done) => setTimeout(() => done(globalThis.ran === true), 300))
}"""
_FETCH = "(url) => fetch(url, { mode: 'no-cors' }).then(() => 'sent', () => 'refused')"
_SOCKET = """(url) => new Promise((done) => {
    try {
        const socket = new WebSocket(url)
        socket.onopen = () => done('open')
        socket.onerror = () => done('refused')
    } catch { done('refused') }
})"""


def refused(visitor: Visitor, words: str) -> None:
    """The browser said so; that it did is then no complaint."""
    visitor.until("the browser did not refuse it", lambda: words in str(visitor.complaints))
    visitor.complaints.clear()


@pytest.mark.requirement("R4")
def test_text_that_got_into_the_page_does_not_become_a_program(box: Faraway, visit: Visit) -> None:
    visitor = visit("injected")
    assert visitor.page.evaluate(_INLINE) is False
    visitor.until("no picture was asked for", lambda: "404" in str(visitor.complaints))
    refused(visitor, "Content Security Policy")


@pytest.mark.requirement("R4")
def test_the_page_can_ask_nobody_but_its_relay(box: Faraway, visit: Visit) -> None:
    visitor = visit("asking-others")
    with RelayProcess() as other:
        assert visitor.page.evaluate(_FETCH, f"{other.url}/healthz") == "refused"
        socket = other.url.replace("http", "ws") + "/v1/operator"
        assert visitor.page.evaluate(_SOCKET, socket) == "refused"
    own = box.relay.url.replace("http", "ws") + "/v1/operator"
    assert visitor.page.evaluate(_SOCKET, own) == "open"
    refused(visitor, "Content Security Policy")
    visitor.strangers.clear()


@pytest.mark.requirement("R4")
def test_a_page_of_somebody_else_cannot_dial_the_relay_or_frame_the_app(
    box: Faraway, visit: Visit
) -> None:
    """A page without any policy of its own, at another origin."""
    visitor = visit("of-another", join=False)
    with RelayProcess() as other:
        visitor.origin = other.url
        visitor.go("/healthz")
        own = box.relay.url.replace("http", "ws") + "/v1/operator"
        assert visitor.page.evaluate(_SOCKET, own) == "refused"
        visitor.page.evaluate(
            "(url) => document.body.append(Object.assign(document.createElement('iframe'), "
            "{ src: url }))",
            box.relay.url,
        )
        refused(visitor, "frame")
    visitor.strangers.clear()


def test_what_a_page_complains_of_is_noticed(box: Faraway, visit: Visit) -> None:
    visitor = visit("complaining")
    visitor.quiet()
    visitor.page.evaluate("console.error('it hurts')")
    visitor.page.evaluate("setTimeout(() => { throw new Error('much') }, 0)")
    visitor.until("nothing was heard", lambda: len(visitor.complaints) == 2)
    with pytest.raises(AssertionError, match=r"it hurts.*much"):
        visitor.quiet()
    visitor.complaints.clear()
