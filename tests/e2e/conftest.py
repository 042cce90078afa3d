"""Browsers for tests that look at the web app, and a machine for them to look at."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from bench.pages import CHROMIUM, launch

from e2e.browsing import WEB, Visitor
from e2e.requiring import REQUIRED, missing
from process.reaching import Faraway

if TYPE_CHECKING:
    from playwright.sync_api import Browser


class Visit(Protocol):
    """Makes a visitor; it is let go of at the test's end, and must have been quiet."""

    def __call__(
        self, name: str, *, origin: str = "", join: bool = True, **kind: Any
    ) -> Visitor: ...


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file that is skipped as a whole: an extra is not installed."""
    report = yield
    if REQUIRED and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}: but all of it is required here"
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    if not os.path.exists(CHROMIUM):
        missing("there is no Chromium on this machine")
    if not WEB.is_file():
        missing("the web app is not built (scripts/web-build says why)")
    with sync_playwright() as playwright:
        made = launch(playwright)
        yield made
        made.close()


@pytest.fixture(scope="module")
def box() -> Iterator[Faraway]:
    """A host called box at a relay, and a command line elsewhere that has joined it."""
    made = Faraway()
    yield made
    made.close()


@pytest.fixture
def visit(browser: Browser, box: Faraway) -> Iterator[Visit]:
    visitors: list[Visitor] = []

    def come(name: str, *, origin: str = "", join: bool = True, **kind: Any) -> Visitor:
        visitor = Visitor(browser, origin or box.relay.url, name=name, **kind)
        visitors.append(visitor)
        if join:
            visitor.join(box.link())
        return visitor

    yield come
    for visitor in visitors:
        visitor.close()
    for visitor in visitors:
        visitor.quiet()
