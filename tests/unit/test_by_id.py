"""A relay that is asked for a session by its id alone is believed only what the session's own key
vouches for; and what `ID@RELAY-URL` means before anybody is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.dial.address import relay_address
from holdfast.dial.relay_link import HostStream, RelayLink
from holdfast.model.errors import (
    BadSignature,
    HoldfastError,
    InvalidArgument,
    NoSuchActor,
    NoSuchSession,
)
from holdfast.model.ids import SessionId
from holdfast.sdk import identity
from holdfast.sdk.reach import locate_session as by_id
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine
from holdfast.wire import relay_messages as r
from holdfast.wire.key_agreement import channel_key, device_of
from holdfast.wire.messages.base import Message, Request

SESSION_KEY, HOST, OTHER = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
SESSION = SessionId.of_key(SESSION_KEY.public)
RELAY = "http://127.0.0.1:7420"


def opened(
    host: SigningKey = HOST, vouching: SigningKey = SESSION_KEY, epoch: int = 3
) -> r.StreamOpened:
    """An honest answer: the session's key, or what stands in its place, vouches for the host."""
    device = device_of(host.public, channel_key(host.seed), host.sign)
    vouched = vouching.sign(r.session_text(SESSION, host.public, epoch))
    return r.StreamOpened(
        1, 7, device.key, epoch, device.static, device.signature, vouching.public, vouched
    )


def asked(answer: r.StreamOpened) -> HostStream:
    """What a client makes of this answer, when it knows nothing but the id."""

    async def story() -> HostStream:
        link = RelayLink(relay_address(RELAY))

        async def answered(request: Callable[[int], Request]) -> Message:
            said = request(1)
            assert isinstance(said, r.Open) and (said.host, said.session) == (b"", SESSION)
            return answer

        link._ask = answered  # type: ignore[method-assign]
        return await link.open(b"", SESSION)

    return asyncio.run(story())


@pytest.mark.requirement("R4", "S2")
def test_the_host_that_the_sessions_key_vouches_for_is_the_one() -> None:
    stream = asked(opened())
    assert (stream.host.key, stream.epoch) == (HOST.public, 3)


@pytest.mark.requirement("R4", "S2")
@pytest.mark.parametrize(
    "answer",
    [
        opened(vouching=OTHER),
        opened().replace(session_key=OTHER.public),
        opened().replace(vouched=opened(host=OTHER).vouched),
        opened(host=OTHER).replace(vouched=opened().vouched),
        opened().replace(epoch=4),
        opened().replace(session_key=b"", vouched=b""),
    ],
    ids=["another session's", "another key", "for another host", "another host", "epoch", "none"],
)
def test_a_relay_cannot_put_another_host_or_epoch_in_its_place(answer: r.StreamOpened) -> None:
    with pytest.raises(BadSignature):
        asked(answer)


@pytest.mark.requirement("R4")
def test_nor_another_device_of_the_host() -> None:
    lied = opened().replace(static=opened(host=OTHER).static)
    with pytest.raises(HoldfastError):
        asked(lied)


def test_an_address_is_a_whole_id_and_a_relay() -> None:
    pinned = f"https://relay.example:7443#sha256:{'0' * 64}"
    assert machines.find(f"{SESSION}@{RELAY}") == by_id.parse_address(f"{SESSION}@{RELAY}")
    found = by_id.parse_address(f"{SESSION}@{pinned}")
    assert (found.session, found.relays, found.key) == (SESSION, (pinned,), b"")
    for text in (f"{SESSION[:8]}@{RELAY}", f"build@{RELAY}", f"{SESSION}@", f"{SESSION}@box"):
        with pytest.raises(InvalidArgument):
            by_id.parse_address(text)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    for name in ("HOLDFAST_AS", "HOLDFAST_GRANT", "HOLDFAST_ON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(by_id, "_last", {})
    return tmp_path


def found_at(monkeypatch: pytest.MonkeyPatch, host: SigningKey | None) -> None:
    """What every relay says from now on; None: it knows no such session."""

    async def find(relay: str, session: SessionId) -> bytes:
        if host is None:
            raise NoSuchSession("no host here has it")
        return host.public

    monkeypatch.setattr(by_id, "_find", find)


@pytest.mark.requirement("R3")
def test_the_key_is_the_one_asked_for_or_that_joined_or_the_devices(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_at(monkeypatch, HOST)
    sought = by_id.parse_address(f"{SESSION}@{RELAY}")
    with pytest.raises(NoSuchActor):
        by_id.locate(sought)
    for name in ("device", "bot", "joiner"):
        identity.keep(identity.make(name))
    assert by_id.locate(sought).identity == "device"
    machines.add(Machine("box", HOST.public.hex(), (RELAY,), "joiner"))
    assert by_id.locate(sought).identity == "joiner"
    found_at(monkeypatch, OTHER)
    assert by_id.locate(sought).identity == "device", "that host was not joined"
    monkeypatch.setenv("HOLDFAST_AS", "bot")
    assert by_id.locate(sought).identity == "bot"


def test_a_session_that_was_found_is_asked_for_at_its_host_when_the_relay_forgot_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity.keep(identity.make("device"))
    sought = by_id.parse_address(f"{SESSION}@{RELAY}")
    found_at(monkeypatch, None)
    with pytest.raises(NoSuchSession):
        by_id.locate(sought)
    found_at(monkeypatch, HOST)
    by_id.locate(sought)
    found_at(monkeypatch, None)
    assert by_id.locate(sought).key == HOST.public
