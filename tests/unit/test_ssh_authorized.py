"""Which ssh key acts as which actor: what may be in the list, and who is let in by it."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import limits
from holdfast.model.errors import (
    HoldfastError,
    InvalidArgument,
    LimitReached,
    NoSuchActor,
    NotPermitted,
)
from holdfast.sdk import identity
from holdfast.ssh import authorized
from holdfast.ssh.gateway import Gateway
from holdfast.ssh.login import Login

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    return tmp_path


def ssh_key(number: int = 1) -> authorized.SshKey:
    return authorized.parse_key(line(number))


def line(number: int = 1, kind: str = "ssh-ed25519") -> str:
    import base64

    name = kind.encode()
    parts = (name, number.to_bytes(32, "big"))
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return f"{kind} {base64.b64encode(blob).decode()} someone@somewhere"


def kept(name: str) -> identity.Identity:
    made = identity.make(name)
    identity.keep(made)
    return made


# -- keys ---------------------------------------------------------------------------------------


def test_the_fingerprint_is_the_one_ssh_shows() -> None:
    shown = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB x"
    asyncssh = pytest.importorskip("asyncssh")
    key = authorized.parse_key(shown)
    assert key.fingerprint == asyncssh.import_public_key(shown).get_fingerprint()
    assert key.comment == "x"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 !!!!",
        "ssh-dss AAAAB3NzaC1kc3M=",
        line().replace("ssh-ed25519", "ssh-rsa", 1),  # says one kind, is another
        line()[:-40],
        'command="sh" ' + line(),
        "ssh-ed25519 " + "A" * 100,
    ],
)
def test_what_is_no_whole_public_key_is_refused(bad: str) -> None:
    with pytest.raises(InvalidArgument):
        authorized.parse_key(bad)


def test_a_weak_rsa_key_is_refused() -> None:
    import base64

    for bits, good in ((1024, False), (2048, True)):
        number = b"\0" + ((1 << (bits - 1)) + 1).to_bytes(bits // 8, "big")
        parts = (b"ssh-rsa", b"\1\0\1", number)
        blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        text = f"ssh-rsa {base64.b64encode(blob).decode()}"
        if good:
            assert authorized.parse_key(text).kind == "ssh-rsa"
        else:
            with pytest.raises(InvalidArgument, match="too weak"):
                authorized.parse_key(text)


def test_a_private_key_is_refused_by_name(home: Path) -> None:
    (home / "id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    with pytest.raises(InvalidArgument, match="private key"):
        authorized.read_key(str(home / "id"))


def test_a_comment_cannot_command_a_terminal() -> None:
    key = authorized.parse_key(f"{line()}\x1b[2J\x07")
    assert key.comment == "someone@somewhere?[2J?"


# -- the list -----------------------------------------------------------------------------------


def test_a_key_is_let_in_listed_and_removed(home: Path) -> None:
    bot = kept("bot")
    entry = authorized.authorize(ssh_key(), "bot", 5.0)
    assert (entry.actor, entry.acting, entry.since) == (bot.actor, "bot", 5.0)
    assert authorized.load() == (entry,)
    assert stat.S_IMODE(os.stat(home / "ssh_authorized").st_mode) == 0o600
    assert authorized.authorize(ssh_key(), "bot", 9.0) == entry, "again is no change"
    assert authorized.remove(entry.fingerprint) == entry
    assert authorized.load() == ()
    with pytest.raises(InvalidArgument):
        authorized.remove(entry.fingerprint)


def test_an_actor_whose_key_is_not_here_cannot_be_acted_as() -> None:
    with pytest.raises(NoSuchActor):
        authorized.authorize(ssh_key(), "elsewhere", 0.0)
    assert authorized.load() == ()


def test_a_key_acts_as_one_actor() -> None:
    kept("one")
    kept("other")
    authorized.authorize(ssh_key(), "one", 0.0)
    with pytest.raises(InvalidArgument, match="already acts as one"):
        authorized.authorize(ssh_key(), "other", 0.0)


def test_a_name_with_another_key_behind_it_stands_for_nobody() -> None:
    kept("bot")
    entry = authorized.authorize(ssh_key(), "bot", 0.0)
    authorized.check_actor(entry)
    identity.set_aside("bot")
    with pytest.raises(NoSuchActor):
        authorized.check_actor(entry)
    kept("bot")
    with pytest.raises(NotPermitted, match="another actor"):
        authorized.check_actor(entry)


def test_two_at_once_do_not_lose_each_others_key() -> None:
    kept("bot")
    made = [
        threading.Thread(target=authorized.authorize, args=(ssh_key(number), "bot", 0.0))
        for number in range(1, 13)
    ]
    for each in made:
        each.start()
    for each in made:
        each.join()
    assert len(authorized.load()) == 12


def test_the_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorized, "SSH_AUTHORIZED_MAX", 2)
    kept("bot")
    authorized.authorize(ssh_key(1), "bot", 0.0)
    authorized.authorize(ssh_key(2), "bot", 0.0)
    with pytest.raises(LimitReached):
        authorized.authorize(ssh_key(3), "bot", 0.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"holdfast": "ssh authorized v1"}', "\0", "{"])
def test_a_damaged_list_lets_nobody_in_and_is_not_overwritten(home: Path, text: str) -> None:
    kept("bot")
    (home / "ssh_authorized").write_text(text)
    for attempt in (authorized.load, lambda: authorized.authorize(ssh_key(), "bot", 0.0)):
        with pytest.raises(HoldfastError):
            attempt()
    assert (home / "ssh_authorized").read_text() == text
    assert asyncio.run(_found(ssh_key().blob)) is None


async def _found(blob: str) -> authorized.Authorized | None:
    return Gateway().find(blob)


# -- the proof ----------------------------------------------------------------------------------


class _Connection:
    """What a login uses of a connection before it is let in."""

    def __init__(self) -> None:
        self.aborted = False
        self.username = "build"

    def get_extra_info(self, name: str) -> Any:
        return self.username if name == "username" else None

    def abort(self) -> None:
        self.aborted = True


class _Key:
    def __init__(self, key: authorized.SshKey) -> None:
        self._text = f"{key.kind} {key.blob}".encode()

    def export_public_key(self) -> bytes:
        return self._text


def test_a_key_offered_by_another_step_is_never_taken_for_the_one_that_was_proved() -> None:
    """Should the library one day let an offer come between a proof and its completion, nobody is
    let in: least of all as the owner of the key that was merely offered."""
    kept("bot")
    authorized.authorize(ssh_key(), "bot", 0.0)

    async def scene(same_step: bool) -> tuple[bool, bool]:
        login, connection = Login(Gateway()), _Connection()
        login.connection_made(connection)  # type: ignore[arg-type]

        async def offer() -> bool:
            return login.validate_public_key("build", _Key(ssh_key()))  # type: ignore[arg-type]

        assert await (offer() if same_step else asyncio.create_task(offer()))
        login.auth_completed()
        return login.entry is not None, connection.aborted

    assert asyncio.run(scene(True)) == (True, False)
    assert asyncio.run(scene(False)) == (False, True)


# -- the document -------------------------------------------------------------------------------


def test_the_limits_are_documented_as_they_are() -> None:
    text = (DOCS / "ssh.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| `SSH_")]
    for row in rows:
        names, value = row.split("|")[1:3]
        number = float(value.split(" s ")[0].split()[0]) if value.split()[0].isdigit() else None
        if number is not None:
            assert getattr(limits, names.strip(" `")) == number, row
    beats = limits.SSH_BEAT_S * limits.SSH_BEATS_MISSED
    assert beats == 300 and "5 min" in text
    assert len(rows) == 8
