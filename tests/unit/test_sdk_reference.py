"""The public names exist, and the blocking face and the reference are today's."""

from __future__ import annotations

import importlib.util
import inspect
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from holdfast import blocking
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.hold import Hold
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


def test_the_blocking_face_is_written_from_todays_async_one(script: ModuleType) -> None:
    written = script.BLOCKING.read_text(encoding="utf-8")
    assert written == script.blocking_face(), "run `make reference`"


def test_the_document_has_the_reference_of_today(script: ModuleType) -> None:
    text = script.DOCUMENT.read_text(encoding="utf-8")
    assert text == script.rewritten(text), "run `make reference`"


def test_a_document_without_its_marks_is_an_error_not_a_silent_pass(script: ModuleType) -> None:
    with pytest.raises(SystemExit):
        script.rewritten("no reference here")


@pytest.mark.parametrize("kind", [Hold, Session, Running, Turn])
def test_every_public_call_has_its_blocking_twin_and_a_docstring(kind: type) -> None:
    hidden = {"begun", "check", "given", "lose", "loss"}
    twin = getattr(blocking, kind.__name__)
    for name, member in vars(kind).items():
        if name.startswith("_") or name in hidden or not callable(member):
            continue
        assert inspect.getdoc(member), f"{kind.__name__}.{name}"
        theirs, ours = inspect.signature(getattr(twin, name)), inspect.signature(member)
        assert list(theirs.parameters) == list(ours.parameters), name


def test_every_public_name_leads_somewhere() -> None:
    for name in holdfast._PUBLIC:
        assert getattr(holdfast, name) is not None
    assert set(holdfast._PUBLIC) <= set(dir(holdfast))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = holdfast.nothing  # type: ignore[attr-defined]
