"""What stays of a session that was on its way here, and did not come: what there was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host.session_store import HandedTo, SessionStore, Stored
from holdfast.model.ids import SessionId
from holdfast.model.state import Ending, SessionState
from unit.scripted_io import INFO

KEY = b"k" * 32


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(str(tmp_path))


def buried(store: SessionStore, ending: Ending, handed_to: HandedTo | None = None) -> SessionId:
    session = store.create()
    info = INFO.replace(id=session, ending=ending, state=SessionState.ENDED)
    store.bury(Stored(info, 0, handed_to=handed_to), b"", "")
    return session


def key_of(store: SessionStore, session: SessionId) -> Path:
    return Path(store.directory(session), "session.key")


def test_of_one_that_was_never_here_nothing(store: SessionStore) -> None:
    session = SessionId("0" * 26)
    store.begin_arrival(session, KEY)
    assert key_of(store, session).exists()
    store.forget_arrival(session)
    assert not Path(store.directory(session)).exists()


def test_of_one_that_had_left_its_record_without_its_key(store: SessionStore) -> None:
    session = buried(store, Ending(moved_to="second"))
    key_of(store, session).unlink()  # as when it left
    store.begin_arrival(session, KEY)
    store.forget_arrival(session)
    assert not key_of(store, session).exists() and store.tombstone(session) is not None


def test_of_one_that_may_be_given_back_all_that_is_needed_for_it(store: SessionStore) -> None:
    asleep = Ending(checkpoint="ck-" + "0" * 16)
    handed = HandedTo("00", "second", 2, asleep, SessionState.ASLEEP)
    session = buried(store, Ending(moved_to="second"), handed)
    store.begin_arrival(session, KEY)
    store.forget_arrival(session)
    assert key_of(store, session).exists()
