"""A mistyped name never becomes another session, and an id means one session only."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.errors import NoSuchSession
from holdfast.model.ids import SessionId
from holdfast.model.limits import TOMBSTONES_LISTED
from holdfast.sdk import blocking
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from process.commanding import Hold
from process.own_relay import Relayed

WRITING = [
    ("send", "{}", "text"),
    ("keys", "{}", "Enter"),
    ("exec", "{}", "--", "true"),
    ("end", "{}"),
    ("rename", "{}", "another"),
    ("detach", "{}"),
    ("signal", "{}", "TERM"),
    ("resize", "{}", "100x30"),
    ("grant", "someone", "read", "{}"),
    ("revoke", "someone", "{}"),
    ("turn", "{}", "request"),
    ("turn", "{}", "request", "--wait", "5"),
    ("turn", "{}", "yield"),
    ("seize", "{}"),
    ("halt", "{}"),
    ("resume", "{}"),
    ("forward", "{}", "80"),
    ("run", "-d", "--after", "{}", "--", "cat"),
]
READING = [
    ("show", "{}"),
    ("screen", "{}"),
    ("graph", "{}"),
    ("tail", "{}"),
    ("log", "{}"),
    ("turn", "{}"),
    ("verify", "{}"),
    ("catchup", "{}"),
]


@pytest.fixture(scope="module")
def named(host_home: Hold) -> str:
    host_home.ok("actor", "add", "someone", "--kind", "agent")
    return host_home.shell("the-named-one")


def filled(words: tuple[str, ...], session: str) -> list[str]:
    return [word.format(session) for word in words]


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_verb_that_writes_takes_no_part_of_an_id(
    host_home: Hold, named: str, words: tuple[str, ...]
) -> None:
    said = host_home.fails("no_such_session", *filled(words, named[:8]))
    assert f"`hold show {named[:8]}`" in said
    assert host_home.json("show", named)["state"] == "prompt"


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_verb_that_reads_takes_six_characters_of_an_id(
    host_home: Hold, named: str, words: tuple[str, ...]
) -> None:
    host_home.ok(*filled(words, named[:6]))
    said = host_home.fails("no_such_session", *filled(words, named[:5]))
    assert "at least 6 characters" in said


@pytest.mark.requirement("S2")
def test_only_an_observer_attaches_by_a_part_of_an_id(host_home: Hold, named: str) -> None:
    with Host(path=f"{host_home.home}/run/hold.sock") as client:
        with pytest.raises(NoSuchSession):
            client.ask(m.Attach(0, named[:8], 1), m.Attached)
        attached = client.ask(m.Attach(0, named[:8], 1, observe=True), m.Attached)
        assert attached.info.id == named


@pytest.mark.requirement("S2")
def test_a_handle_of_the_sdk_takes_no_part_of_an_id(host_home: Hold, named: str) -> None:
    with blocking.connect(f"{host_home.home}/run/hold.sock") as hold:
        assert hold.session(named).id == hold.session("the-named-one").id == named
        with pytest.raises(NoSuchSession):
            hold.session(named[:8])


@pytest.mark.requirement("S2")
def test_a_name_that_could_be_an_id_is_refused(host_home: Hold, named: str) -> None:
    ended = host_home.ok("run", "-d", "--name", "ends", "--", "cat").strip()
    host_home.ok("end", "ends")
    for session in (named, ended):
        for name in (session[:6], session[:8], session[:-1], session):
            said = host_home.fails("invalid_argument", "run", "-d", "--name", name, "--", "cat")
            assert "mistaken for the id of a session" in said and "choose another name" in said
    host_home.fails("invalid_argument", "run", "-d", "--name", "0" * 26, "--", "cat")
    # Words, and what is too short to be a part of an id, are names.
    for name in ("server", ended[:5]):
        host_home.ok("run", "-d", "--name", name, "--", "cat")
        host_home.ok("end", name)


@pytest.mark.requirement("S2", "A9")
def test_a_part_of_the_id_of_a_session_that_ended_long_ago_is_no_name_either(
    host_home: Hold, named: str
) -> None:
    # A directory of the store is all that such a session is, once others have ended after it.
    long_ago = [SessionId.of_key(bytes([number]) * 32) for number in range(TOMBSTONES_LISTED + 20)]
    for session in long_ago:
        Path(host_home.home, "sessions", session).mkdir()
    for session in (long_ago[0], long_ago[-1]):
        for words in (("run", "-d", "--name", session[:6], "--", "cat"), ("rename", named)):
            last = () if words[0] == "run" else (session[:6],)
            said = host_home.fails("invalid_argument", *words, *last)
            assert "mistaken for the id of a session" in said
    assert host_home.json("show", named)["name"] == "the-named-one"


@pytest.mark.requirement("S2", "A9")
def test_the_id_of_an_ended_session_means_that_session_whatever_lives(host_home: Hold) -> None:
    ended = host_home.ok("run", "-d", "--name", "first", "--", "cat").strip()
    host_home.ok("end", "first")
    for name in ("first", f"{ended}-2", f"{ended[:8]}-2", ended[:5]):
        host_home.ok("run", "-d", "--name", name, "--", "cat")
    for address in (ended, ended[:8], ended[:6]):
        assert host_home.json("show", address)["id"] == ended
    for words in (("send", ended, "text"), ("end", ended), ("exec", ended, "--", "true")):
        host_home.fails("session_ended", *words)
    assert host_home.json("show", "first")["state"] != "ended"


@pytest.mark.requirement("S2", "A9")
def test_an_id_is_found_long_after_the_end(host_home: Hold) -> None:
    first = host_home.ok("run", "-d", "--", "cat").strip()
    host_home.ok("end", first)
    with Host(path=f"{host_home.home}/run/hold.sock") as client:
        for _ in range(TOMBSTONES_LISTED):
            client.end(client.run(["cat"]).id)
        listed = {info.id for info in client.sessions(ended=True)}
        assert SessionId(first) not in listed
        shown = client.show(first)
    assert shown.id == first and shown.ending is not None


@pytest.mark.requirement("S2")
def test_from_another_machine_a_verb_that_writes_takes_no_part_of_an_id_either() -> None:
    host, elsewhere = Relayed(), Hold()
    try:
        host.up()
        elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
        session = host.shell("work")
        elsewhere.ok("screen", f"box/{session[:8]}")
        elsewhere.ok("wait", f"box/{session[:8]}", "--for", "prompt", "--timeout", "20")
        elsewhere.fails("no_such_session", "send", f"box/{session[:8]}", "text")
        elsewhere.ok("send", f"box/{session}", "text")
    finally:
        elsewhere.close()
        host.close()


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_verb_that_reads_takes_the_beginning_of_one_name(
    host_home: Hold, named: str, words: tuple[str, ...]
) -> None:
    host_home.ok(*filled(words, "the-nam"))


@pytest.mark.requirement("S2")
def test_the_beginning_of_two_names_is_neither_and_they_are_named(
    host_home: Hold, named: str
) -> None:
    for name in ("twin-a", "twin-b"):
        host_home.ok("run", "-d", "--name", name, "--", "cat")
    assert "twin-a, twin-b" in host_home.fails("ambiguous_name", "show", "twin")


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("typed", ["the-nam", "the-namde-one"])
def test_a_verb_that_writes_says_which_name_was_meant(
    host_home: Hold, named: str, typed: str
) -> None:
    said = host_home.fails("no_such_session", "end", typed)
    assert "did you mean 'the-named-one'?" in said
