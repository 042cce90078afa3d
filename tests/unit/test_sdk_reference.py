"""The public names exist, the blocking face has every call, and the reference is today's."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Generator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import assert_type

import pytest

import holdfast
from holdfast import Piece, Result, blocking
from holdfast.model.info import SessionInfo
from holdfast.model.state import Ending
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.hold import Hold
from holdfast.sdk.aio.port_forward import PortForward
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.turn import Turn

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = SourceFileLoader("api_reference", str(ROOT / "scripts" / "api-reference"))
    spec = importlib.util.spec_from_loader("api_reference", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_document_has_the_reference_of_today(script: ModuleType) -> None:
    text = script.DOCUMENT.read_text(encoding="utf-8")
    assert text == script.rewritten(text), "run `make reference`"


def test_a_document_without_its_marks_is_an_error_not_a_silent_pass(script: ModuleType) -> None:
    with pytest.raises(SystemExit):
        script.rewritten("no reference here")


@pytest.mark.parametrize("kind", [Hold, Session, Running, Turn, PortForward])
def test_every_public_call_has_its_blocking_twin_and_a_docstring(kind: type) -> None:
    hidden = {"begun", "check", "given", "lose", "loss"}
    twin = getattr(blocking, kind.__name__)
    for name, member in vars(kind).items():
        if name.startswith("_") or name in hidden or not callable(member):
            continue
        assert inspect.getdoc(member), f"{kind.__name__}.{name}"
        theirs, ours = inspect.signature(getattr(twin, name)), inspect.signature(member)
        if name != "wait_for":  # overloaded: its signatures are below
            assert list(theirs.parameters) == list(ours.parameters), name
        assert inspect.getdoc(getattr(twin, name)), f"blocking {kind.__name__}.{name}"


def _types_of_the_blocking_face(hold: blocking.Hold) -> None:
    """Read by mypy, not run: arguments and results are typed as those of the async calls."""
    session = assert_type(hold.session("build"), blocking.Session)
    assert_type(hold.run(["sh"], name="x", size=(80, 24)), blocking.Session)
    assert_type(hold.sessions(ended=True), tuple[SessionInfo, ...])
    assert_type(session.submit("make", timeout=1.0), Result)
    assert_type(session.start("make", key="k"), blocking.Running)
    assert_type(session.start("make").result(1.0), Result)
    assert_type(session.output(since=0), Generator[Piece, None, None])
    assert_type(session.keys("C-c", "Up"), int)
    assert_type(session.wait_for(text="x", since=1), str)
    assert_type(session.wait_for(ended=True), Ending)
    session.info(1)  # type: ignore[call-arg]
    session.submit("make", timeout="long")  # type: ignore[arg-type]
    hold.nothing()  # type: ignore[attr-defined]


def test_every_public_name_leads_somewhere() -> None:
    for name in holdfast._PUBLIC:
        assert getattr(holdfast, name) is not None
    assert set(holdfast._PUBLIC) <= set(dir(holdfast))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = holdfast.nothing  # type: ignore[attr-defined]
