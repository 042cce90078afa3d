"""Where a client goes whose session has moved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.sdk.moving import aim_at


def test_a_home_of_this_machine_is_followed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ON", "")
    monkeypatch.setenv("HOLDFAST_HOME", "/before")
    assert aim_at(str(tmp_path))
    assert os.environ["HOLDFAST_HOME"] == str(tmp_path)


@pytest.mark.parametrize(("on", "name"), [("buildbox", ""), ("", "hold.sock")])
def test_a_path_of_another_machine_or_of_no_home_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, name: str
) -> None:
    monkeypatch.setenv("HOLDFAST_ON", on)
    monkeypatch.setenv("HOLDFAST_HOME", "/before")
    assert not aim_at(str(tmp_path / name))
    assert (os.environ["HOLDFAST_HOME"], os.environ["HOLDFAST_ON"]) == ("/before", on)
