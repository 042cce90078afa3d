"""Invites: who comes in by a link, how often, and what a link gives away (R3)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgpack
import pytest

from holdfast.adapters.signing import check
from holdfast.core.access.invites import InviteBook, Redeemed
from holdfast.model.envelope import Right, rights_of
from holdfast.model.errors import (
    GrantInvalid,
    HandshakeFailed,
    HoldfastError,
    InvalidArgument,
    InviteExpired,
    InviteInvalid,
    InviteUsed,
    LimitReached,
    RateLimited,
)
from holdfast.model.grant import Reach
from holdfast.model.invite import Invite
from holdfast.model.limits import (
    GRANT_LIFE_MAX_S,
    INVITE_GUESSES_PER_S,
    INVITE_LINK_MAX_CHARS,
    INVITE_USES_MAX,
    INVITE_WRONG_MAX,
    INVITES_MAX,
)
from holdfast.wire import grants
from holdfast.wire.invites import (
    InviteLink,
    invite_prologue,
    parse_link,
    proof_of,
    psk_of,
)
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.noise import IK_PSK1, Handshake
from unit.granting import ADA, AGENT, HOST, HOUR, MALLORY, NOW, PHONE, Party, chain, judged

ID, CODE = b"invite-1", bytes(range(16))
PROOF = proof_of(ID, CODE)
WRONG = proof_of(ID, bytes(16))
LINK = InviteLink("https://relay.example", ID, CODE, HOST.key)
PIN = bytes(range(32))
PINNED = InviteLink("https://192.168.1.5:7420", ID, CODE, HOST.key, PIN)
_PAUSE_S = 1 / INVITE_GUESSES_PER_S


def invite(**changes: Any) -> Invite:
    fields: dict[str, Any] = {
        "id": ID,
        "proof": PROOF,
        "reach": Reach(("label:x",)),
        "rights": rights_of(["execute"]),
        "expires_at": NOW + HOUR,
        "lasts_s": 8.0 * HOUR,
        "created_at": float(NOW),
        "created_by": ADA.actor,
        "uid": 1000,
    }
    return Invite(**{**fields, **changes})


def invites(**changes: Any) -> InviteBook:
    book = InviteBook()
    book.add(invite(**changes), NOW)
    return book


def joins(book: InviteBook, who: Party, now: float = NOW + 1) -> Redeemed:
    return book.redeem(ID, PROOF, who.key, now)


def refused(book: InviteBook, who: Party, now: float = NOW + 1) -> str:
    try:
        joins(book, who, now)
    except HoldfastError as error:
        return error.code
    return ""


# -- looking --------------------------------------------------------------------------------------


def test_looking_at_an_invite_uses_nothing_up_and_is_refused_as_joining_would_be() -> None:
    book = invites()
    for who in (PHONE, ADA, PHONE):
        assert book.look(ID, PROOF, who.key, NOW + 1).rights == invite().rights
    assert not book.invites()[0].joined
    joins(book, PHONE)
    assert book.look(ID, PROOF, PHONE.key, NOW + 2).joined, "its own, again"
    with pytest.raises(InviteUsed):
        book.look(ID, PROOF, ADA.key, NOW + 2)
    with pytest.raises(InviteExpired):
        book.look(ID, PROOF, PHONE.key, invite().expires_at)
    with pytest.raises(InviteInvalid):
        book.look(ID, WRONG, PHONE.key, NOW + 3)
    assert book.invites()[0].wrong_codes == 1


# -- coming in ------------------------------------------------------------------------------------


def test_a_device_that_comes_in_gets_a_grant_that_the_host_takes() -> None:
    book = invites(inputs_per_s=5.0, delegations=1)
    redeemed = joins(book, PHONE)
    grant = redeemed.invite.grant_for(redeemed.joined, HOST.key)
    held = judged(chain(grants.sign_grant(grant, HOST.signing.sign)), PHONE, NOW + 1)
    assert held.rights == frozenset(rights_of(["execute"]))
    assert (held.reach, held.until) == (Reach(("label:x",)), NOW + 1 + 8 * HOUR)
    assert held.limits is not None
    assert held.limits.inputs_per_s == 5.0


def test_the_same_device_may_ask_again_and_gets_the_same_and_no_more() -> None:
    book = invites()
    first, again = joins(book, PHONE, NOW + 1), joins(book, PHONE, NOW + 1800)
    assert (first.again, again.again) == (False, True)
    made = [each.invite.grant_for(each.joined, HOST.key) for each in (first, again)]
    assert made[0] == made[1]  # asking later does not make it last longer
    assert len(book.invites()[0].joined) == 1


def test_a_second_device_is_refused_when_the_invite_is_for_one() -> None:
    book = invites()
    joins(book, PHONE)
    with pytest.raises(InviteUsed):
        joins(book, MALLORY)
    assert joins(book, PHONE).again


def test_as_many_devices_come_in_as_the_invite_is_for() -> None:
    book = invites(uses=2)
    assert [refused(book, who) for who in (PHONE, ADA, PHONE, AGENT)] == ["", "", "", "invite_used"]
    serials = {
        each.key: book.invites()[0].grant_for(each, HOST.key).serial
        for each in book.invites()[0].joined
    }
    assert len(set(serials.values())) == 2


def test_a_restart_forgets_no_use() -> None:
    book = invites()
    joins(book, PHONE)
    written = [msgpack.packb(each.pack()) for each in book.invites()]
    later = InviteBook(Invite.unpack(msgpack.unpackb(each)) for each in written)
    assert refused(later, MALLORY) == "invite_used"
    assert joins(later, PHONE).again


def test_an_expired_invite_lets_nobody_in_not_even_again() -> None:
    book = invites()
    joins(book, PHONE, NOW + HOUR - 0.01)
    for who in (PHONE, ADA):
        with pytest.raises(InviteExpired):
            joins(book, who, NOW + HOUR)
    with pytest.raises(InviteExpired):
        book.proof(ID, NOW + HOUR)


def test_a_revoked_invite_lets_nobody_in() -> None:
    book = invites(uses=5)
    joins(book, PHONE)
    assert [each.key for each in book.revoke(ID, NOW + 2).joined] == [PHONE.key]
    assert book.revoke(ID, NOW + 9).revoked_at == NOW + 2
    assert refused(book, PHONE, NOW + 3) == refused(book, ADA, NOW + 3) == "invite_invalid"
    with pytest.raises(InviteInvalid):
        book.proof(ID, NOW + 3)
    with pytest.raises(InviteInvalid):
        book.revoke(b"no such ", NOW)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"uses": 0}, InvalidArgument),
        ({"uses": INVITE_USES_MAX + 1}, InvalidArgument),
        ({"expires_at": float(NOW)}, InvalidArgument),
        ({"expires_at": float("inf")}, InvalidArgument),
        ({"lasts_s": 0.5}, InvalidArgument),
        ({"lasts_s": float("nan")}, InvalidArgument),
        ({"lasts_s": GRANT_LIFE_MAX_S + 1.0}, GrantInvalid),
        ({"proof": b""}, InvalidArgument),
        ({"id": b"short"}, InvalidArgument),
        ({"rights": ()}, GrantInvalid),
        ({"delegations": 6}, GrantInvalid),
    ],
    ids=str,
)
def test_an_invite_that_makes_no_sense_is_refused(
    changes: dict[str, Any], error: type[HoldfastError]
) -> None:
    with pytest.raises(error):
        invites(**changes)


def test_an_id_that_exists_is_not_given_to_another_invite() -> None:
    book = invites()
    with pytest.raises(InvalidArgument):
        book.add(invite(rights=rights_of(["admin"])), NOW)


def test_invites_are_bounded_and_those_of_no_more_use_make_room() -> None:
    book = InviteBook(invite(id=number.to_bytes(8)) for number in range(INVITES_MAX))
    with pytest.raises(LimitReached):
        book.add(invite(), NOW)
    book.revoke(bytes(8), NOW)
    book.add(invite(), NOW)
    assert len(book.invites()) == INVITES_MAX


# -- guessing -------------------------------------------------------------------------------------


def test_a_wrong_code_and_an_id_that_does_not_exist_look_the_same() -> None:
    told = []
    for name in (ID, b"no such "):
        with pytest.raises(InviteInvalid) as found:
            invites().redeem(name, WRONG, MALLORY.key, NOW)
        told.append((found.value.message, found.value.hint))
    assert told[0] == told[1]


@pytest.mark.parametrize("name", [ID, b"no such "])
def test_codes_cannot_be_tried_faster_than_one_a_second(name: bytes) -> None:
    book, tried = invites(), 0
    for tenth in range(100):  # ten seconds of trying as fast as one can
        try:
            book.redeem(name, WRONG, MALLORY.key, NOW + tenth / 10)
        except InviteInvalid:
            tried += 1
        except RateLimited:
            pass
    assert tried <= 10 * INVITE_GUESSES_PER_S + 2


def test_guesses_at_other_ids_do_not_hold_up_who_has_a_link() -> None:
    book = invites()
    for number in range(50):
        with pytest.raises((InviteInvalid, RateLimited)):
            book.redeem(number.to_bytes(8), WRONG, MALLORY.key, NOW)
    assert refused(book, PHONE, NOW) == ""


def test_an_id_asked_for_before_the_handshake_counts_as_guessed_when_there_is_none() -> None:
    book = invites()
    for _ in range(2):
        with pytest.raises(InviteInvalid):
            book.proof(b"no such ", NOW)
    with pytest.raises(RateLimited):
        book.proof(b"no such ", NOW)


def test_after_so_many_wrong_codes_an_invite_is_closed_for_good() -> None:
    book, now = invites(), float(NOW)
    for _ in range(INVITE_WRONG_MAX):
        now += _PAUSE_S
        with pytest.raises(InviteInvalid):
            book.redeem(ID, WRONG, MALLORY.key, now)
    later = InviteBook(book.invites())  # a restart forgives nothing
    assert refused(later, PHONE, now + 60) == "invite_invalid"


def test_one_wrong_code_less_and_it_is_still_open() -> None:
    book, now = invites(), float(NOW)
    for _ in range(INVITE_WRONG_MAX - 1):
        now += _PAUSE_S
        book.guessed(ID, now)
    assert refused(book, PHONE, now + 60) == ""


def test_codes_tried_all_at_once_are_all_counted() -> None:
    book = invites()
    for _ in range(5):  # five handshakes under way before the first failed
        book.proof(ID, NOW)
    for _ in range(5):
        book.guessed(ID, NOW)
    assert book.invites()[0].wrong_codes == 5
    with pytest.raises(RateLimited) as found:
        book.proof(ID, NOW + 2)
    assert found.value.retryable


# -- the link -------------------------------------------------------------------------------------


def test_a_link_says_what_it_was_made_of() -> None:
    assert parse_link(LINK.text()) == LINK
    assert parse_link(f"  {LINK.text()}\n") == LINK
    assert LINK.text().startswith("https://relay.example/i#")
    assert len(LINK.text()) < 115  # a QR code of it fits a terminal


def test_a_link_may_say_which_certificate_the_relay_has() -> None:
    assert parse_link(PINNED.text()) == PINNED
    assert PINNED.address == f"https://192.168.1.5:7420#sha256:{PIN.hex()}"
    assert LINK.address == LINK.relay
    assert PINNED.text().count(".") - PINNED.relay.count(".") == 3
    assert PINNED.text().encode().startswith(PINNED.relay.encode() + b"/i#"), "behind the '#'"


def test_nothing_secret_is_in_what_reaches_the_relay() -> None:
    for seed in range(200):
        code = seed.to_bytes(1) * 16
        link = InviteLink("https://relay.example:8443/base", ID, code, HOST.key).text()
        sent = urlsplit(link)._replace(fragment="").geturl()
        assert sent == "https://relay.example:8443/base/i"


def test_the_code_is_not_in_what_ends_up_in_logs() -> None:
    shown = f"{LINK!r} {LINK}"
    assert CODE.hex() not in shown
    assert LINK.text().split(".")[-2] not in shown


def test_the_host_keeps_nothing_from_which_the_link_could_be_made() -> None:
    kept = repr(invite().pack())
    assert repr(CODE)[2:-1] not in kept
    assert repr(psk_of(PROOF, HOST.key))[2:-1] not in kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://relay.example/i",
        "https://relay.example/i#",
        LINK.text()[:-1],
        LINK.text() + "A",
        LINK.text().replace("#", "?"),
        LINK.text().replace("/i#", "/j#"),
        LINK.text().replace("/i#", "/i?code=x#"),
        LINK.text().replace("https://", "ftp://"),
        LINK.text().replace("https://", "https://user:secret@"),
        LINK.text().replace("relay.example", ""),
        LINK.text().replace("relay.example", "relay.example/"),
        LINK.text().replace("relay.example", "rélay"),
        LINK.text().replace("relay.example", "re lay"),
        LINK.text().replace("relay.example", "x" * INVITE_LINK_MAX_CHARS),
        LINK.text().replace(".", ".."),
        LINK.text() + "=",
        LINK.text() + ".",
        LINK.text() + ".AAAA",
        PINNED.text()[:-1],
        PINNED.text() + "A",
        PINNED.text() + "." + "A" * 43,
        PINNED.text().replace("https://", "http://"),  # nothing there has a certificate
    ],
)
def test_what_is_no_whole_link_is_refused(text: str) -> None:
    with pytest.raises(InviteInvalid):
        parse_link(text)


# -- the handshake --------------------------------------------------------------------------------

HOST_STATIC, PHONE_STATIC = KeyPair(b"h" * 32), KeyPair(b"p" * 32)


def handshakes(code: bytes, proof: bytes) -> tuple[Handshake, Handshake]:
    """A device that has a code, and a host that has a proof."""
    prologue = invite_prologue(ID, HOST.key)
    device = Handshake(
        IK_PSK1,
        initiator=True,
        static=PHONE_STATIC,
        ephemeral=KeyPair(b"e" * 32),
        remote_static=HOST_STATIC.public,
        prologue=prologue,
        psks=(psk_of(proof_of(ID, code), HOST.key),),
    )
    host = Handshake(
        IK_PSK1,
        initiator=False,
        static=HOST_STATIC,
        ephemeral=KeyPair(b"f" * 32),
        prologue=prologue,
        psks=(psk_of(proof, HOST.key),),
    )
    return device, host


def test_the_code_makes_the_handshake_and_both_ends_have_the_same_hash() -> None:
    device, host = handshakes(CODE, invites().proof(ID, NOW))
    assert host.read(device.write(b"my key")) == b"my key"
    device.read(host.write(b""))
    assert device.hash == host.hash


def test_a_guessed_code_fails_in_the_handshake_and_is_counted() -> None:
    book = invites()
    device, host = handshakes(bytes(16), book.proof(ID, NOW))
    with pytest.raises(HandshakeFailed):
        host.read(device.write(b"let me in"))
    book.guessed(ID, NOW)
    assert book.invites()[0].wrong_codes == 1


def test_a_code_is_of_no_use_for_another_invite_or_host() -> None:
    assert proof_of(b"another1", CODE) != PROOF
    assert psk_of(PROOF, HOST.key) != psk_of(PROOF, MALLORY.key)
    assert len({CODE, PROOF, psk_of(PROOF, HOST.key)}) == 3


def test_an_admin_may_be_invited_like_anybody() -> None:
    book = invites(rights=rights_of(["admin"]))
    redeemed = joins(book, PHONE)
    grant = redeemed.invite.grant_for(redeemed.joined, HOST.key)
    link = grants.sign_grant(grant, HOST.signing.sign)
    assert check(HOST.key, link.text, link.signature)
    assert judged(chain(link), PHONE, NOW + 1).rights == frozenset(Right)
