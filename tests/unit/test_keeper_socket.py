"""A restore takes the socket over that a keeper of the same session leaves at that moment."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from holdfast.adapters.launch import process
from holdfast.model.ids import SessionId

SESSION = SessionId("0" * 26)


def test_a_keeper_that_is_about_to_leave_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.sock"
    with process._listen(str(tmp_path), SESSION):
        with pytest.raises(OSError, match="in use"):
            process._listen(str(tmp_path), SESSION)
        leaving = threading.Timer(0.1, path.unlink)
        leaving.start()
        process._listen_after(str(tmp_path), SESSION).close()
        leaving.join()
        assert path.is_socket()


def test_one_that_stays_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_KEEPER_LEAVES_S", 0.05)
    with process._listen(str(tmp_path), SESSION), pytest.raises(OSError) as refused:
        process._listen_after(str(tmp_path), SESSION)
    assert refused.value.errno == errno.EADDRINUSE
