"""Coming in by an invite: a link becomes a machine that this user can reach.

The code in the link is never sent to anybody: it is what the handshake is made with, so only the
host whose key is in the link can answer, and only to somebody who has the link.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TypeVar

from holdfast.dial.address import relay_address
from holdfast.dial.relay_link import RelayLink
from holdfast.dial.secure_channel import DeviceKeys, dial
from holdfast.model.errors import (
    HandshakeFailed,
    HoldfastError,
    HostLost,
    InviteInvalid,
    NoSuchActor,
    from_code,
)
from holdfast.sdk import identity
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine
from holdfast.sdk.reach.relay_thread import wait_for
from holdfast.wire.base64url import encoded
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.frames import decode, encode
from holdfast.wire.invites import InviteLink, invite_prologue, parse_link, proof_of, psk_of
from holdfast.wire.messages.admission import InviteSeen, Join, Joined, SeeInvite
from holdfast.wire.messages.session import Failed, Message
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.stream_opening import HOST_EPOCH, Opening, host_channel

_ANSWER_S = 20.0

Answered = TypeVar("Answered", Joined, InviteSeen)


def join(link: str, *, device: str = "", name: str = "", machine: str = "") -> Machine:
    """Come in by this link, with this key (made if there is none), under this name; the machine is
    kept and given back."""
    parsed = parse_link(link)
    device = device or os.environ.get(identity.VARIABLE, "") or identity.DEVICE
    wanted = name or socket.gethostname().split(".")[0]
    seed = bytes.fromhex(_identity(device).private)
    joined = wait_for(_ask(parsed, DeviceKeys(seed), Join(1, wanted), Joined), _ANSWER_S)
    relays = tuple(dict.fromkeys((parsed.address, *joined.relays)))
    return machines.add(
        Machine(
            machine or _machine_name(joined.host_name),
            parsed.host_key.hex(),
            relays,
            device,
            encoded(joined.chain),
            joined.host_name,
            time.time(),
        )
    )


def see_invite(link: str, *, device: str = "") -> InviteSeen:
    """Who invites to what by this link. Nothing is used up, and no key is made."""
    device = device or os.environ.get(identity.VARIABLE, "") or identity.DEVICE
    try:
        seed = bytes.fromhex(identity.load(device).private)
    except NoSuchActor:
        seed = os.urandom(32)
    asked = _ask(parse_link(link), DeviceKeys(seed), SeeInvite(1), InviteSeen)
    return wait_for(asked, _ANSWER_S)


def _identity(name: str) -> identity.Identity:
    try:
        return identity.load(name)
    except NoSuchActor:
        if "/" in name:
            raise
    made = identity.make(name)
    identity.keep(made)
    return made


def _machine_name(host: str) -> str:
    usable = "".join(letter for letter in host.split(".")[0] if letter.isalnum() or letter in "_-")
    return usable.lstrip("_-")[:40] or "machine"


async def _ask(
    link: InviteLink, device: DeviceKeys, request: Join | SeeInvite, wanted: type[Answered]
) -> Answered:
    """The only request on the channel of this invite."""
    answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def said(opened: OpenedRecord) -> None:
        if opened.kind == RecordKind.MESSAGE and not answered.done():
            try:
                answered.set_result(decode(opened.body))
            except HoldfastError as error:
                answered.set_exception(error)

    def ended(error: HoldfastError) -> None:
        if not answered.done():
            answered.set_exception(error)

    relay = RelayLink(relay_address(link.address))
    try:
        await relay.start()
        stream = await relay.open(link.host_key, None)
        psk = psk_of(proof_of(link.id, link.code), link.host_key)
        try:
            channel = await dial(
                stream, Opening(invite=link.id), host_channel(link.host_key), device,
                EpochFloor(HOST_EPOCH), ended,
                psk=psk, before=invite_prologue(link.id, link.host_key),
            )  # fmt: skip
        except HandshakeFailed as error:
            raise InviteInvalid(
                "the host does not take this invite: it was used, revoked, has expired, or the "
                "link is not whole",
                hint="ask for a new one",
            ) from error
        channel.on_said = said
        channel.send(encode(request)[4:], signed=False)
        answer = await answered
        if isinstance(answer, Failed):
            raise from_code(answer.code, answer.message, answer.hint)
        if not isinstance(answer, wanted):
            raise HostLost(f"the host answered {answer.tag} instead of {wanted.tag}")
        channel.close()
        return answer
    finally:
        asyncio.get_running_loop().call_later(0.2, relay.close)
