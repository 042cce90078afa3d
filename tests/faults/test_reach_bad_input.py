"""What comes to a host through a relay from somebody broken or hostile: it is refused by name, or
its stream is closed; nobody else notices, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from faults.hosting import resident_bytes
from faults.reached import Guests, ReachedHost, plain_relay
from faults.rude_operator import HELLO, Reader, RudeStream, rude, stream_to
from holdfast.host.reach.uplink import COMPLAINT_S
from holdfast.model.errors import HoldfastError, InviteExpired, InviteInvalid, InviteUsed
from holdfast.model.grant import SERIAL_BYTES, Grant
from holdfast.model.ids import SessionId
from holdfast.model.limits import (
    FRAME_MAX_BYTES,
    GRANT_SKEW_S,
    INVITE_GUESSES_PER_S,
    INVITE_WRONG_MAX,
    RATE_BURST_S,
)
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.sdk.reach.machines import Machine
from holdfast.wire import relay_messages as r
from holdfast.wire.base64url import decoded
from holdfast.wire.grants import decode_chain, encode_chain, extend
from holdfast.wire.invites import parse_link
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages.admission import Devices, RevokeDevice
from holdfast.wire.record_layer import RecordKind
from holdfast.wire.request_classes import body_of
from process.relaying import OperatorClient, bounded, stop_reading
from process.waiting import until

SEED = 7
ABANDONED = 1000
DAEMON_GROWTH_BYTES = 32 << 20
# A slower machine guesses less often: so many guesses are looked at that the invite stays open.
GUESSING_S = (INVITE_WRONG_MAX - 1) / INVITE_GUESSES_PER_S - 2 * RATE_BURST_S


class Place:
    """A host at a relay, a device that joined, and one that only wants to work."""

    def __init__(self, guests: Guests) -> None:
        self.guests = guests
        self.relay = plain_relay()
        self.host = ReachedHost([self.relay])
        self.host.up()
        self.machine = guests.join(self.host.link(), "rude")
        with self.host.client() as client:
            self.session = client.run(["cat"], name="mine").id
            self.other = client.run(["cat"], name="other").id
        self.honest = Host(guests.join(self.host.link(), "honest"))
        self.works()
        self.before = self.host.descriptors()

    def works(self) -> float:
        """How long an honest operator's input and a look at the screen take."""
        began = time.monotonic()
        self.honest.send(self.other, "ok")
        self.honest.show(self.other)
        return time.monotonic() - began

    def play(self, scene: Callable[[Place], Coroutine[Any, Any, None]]) -> None:
        bounded(scene(self), 60.0)

    def untouched(self) -> None:
        """Nothing was typed, nobody is affected, nothing is left."""
        self.works()
        with self.host.client() as client:
            assert client.screen(self.session).text.strip() == ""
        until(
            "the daemon has as many descriptors as before",
            lambda: self.host.descriptors() <= self.before,
        )
        until("no stream is left", lambda: self._streams() == 2, 20)  # the honest one's
        assert "Traceback" not in self.host.log(), self.host.log()

    def _streams(self) -> int:
        return asyncio.run(self.relay.now.metric("streams"))

    def close(self) -> None:
        self.honest.close()
        self.host.down()
        self.relay.close()


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        guests = Guests(patch)
        made = Place(guests)
        yield made
        made.close()
        guests.close()


# -- before anybody is known ----------------------------------------------------------------------


def _garbage(chance: random.Random) -> Iterator[bytes]:
    yield from (b"", b"X", b"S", b"H", b"I", b"S" + b"!" * 26, b"S" + b"0" * 25, b"I" + b"7" * 7)
    yield b"S" + b"0" * 26 + b"\x01" + chance.randbytes(200)  # of a session that is nowhere
    for kind in (b"H", b"I" + bytes(8), b"H\x01", b"H\x02", b"H\x03", b"I" + bytes(8) + b"\x02"):
        for size in (0, 1, 31, 32, 95, 200, 65_535):
            yield kind + chance.randbytes(size)
    for _ in range(40):
        yield chance.randbytes(chance.randrange(300))
    yield chance.randbytes(100_000)


@pytest.mark.requirement("R4")
@pytest.mark.timeout(90)
def test_a_flood_of_strangers_is_a_line_now_and_then_that_counts_them(place: Place) -> None:
    flood, before, began = 200, len(place.host.log()), time.monotonic()

    def lines() -> list[str]:
        return re.findall(r"a remote operator: .*; (\d+) so far", place.host.log()[before:])

    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client:

            async def one() -> None:
                stream = await stream_to(client, place.machine)
                await stream.throw(b"X")
                await stream.closed()

            for _ in range(flood):
                await one()
            while max(map(int, lines()), default=0) < flood:
                await one()

    place.play(scene)
    assert len(lines()) <= (time.monotonic() - began) / COMPLAINT_S + 2
    place.untouched()


@pytest.mark.requirement("R1", "R3", "R4")
def test_openings_and_handshakes_that_are_none_close_their_stream(place: Place) -> None:
    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client:
            for piece in _garbage(random.Random(SEED)):
                stream = await stream_to(client, place.machine)
                await stream.throw(piece)
                await stream.closed()

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R3", "R4")
def test_a_real_first_message_that_was_altered_or_cut_opens_nothing(place: Place) -> None:
    async def scene(place: Place) -> None:
        chance = random.Random(SEED)
        async with rude(place.relay.now) as client:
            for turn in range(40):
                stream = await stream_to(client, place.machine)
                _, message = stream.first(SessionId(place.session) if turn % 2 else None)
                broken = bytearray(message)
                if turn % 4 < 2:
                    broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
                else:
                    del broken[chance.randrange(1, len(broken)) :]
                await stream.throw(bytes(broken))
                await stream.closed()
            stream = await stream_to(client, place.machine)  # meant for another channel
            _, message = stream.first(SessionId(place.session))
            await stream.throw(b"H" + message[27:])
            await stream.closed()

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R3")
def test_who_is_not_known_or_shows_a_bad_grant_is_told_why_and_sent_away(place: Place) -> None:
    own = decoded(place.machine.grant) or b""
    grants = {
        "no_such_actor": b"",
        "grant_invalid": os.urandom(200),
        "bad_signature": own[:-1] + bytes([own[-1] ^ 1]),
    }

    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client:
            for code, grant in grants.items():
                for session in (None, SessionId(place.session)):
                    stream = await stream_to(client, place.machine)
                    stranger = os.urandom(32) if code == "no_such_actor" else b""
                    await stream.shake(session, grant=grant, seed=stranger)
                    await stream.say(HELLO)
                    assert (await stream.hear(0))["code"] in (code, "grant_invalid")
                    await client.say(r.Close(stream.number))
            stream = await stream_to(client, place.machine)  # a good grant, in other hands
            await stream.shake(seed=os.urandom(32))
            await stream.say(HELLO)
            assert (await stream.hear(0))["code"] == "grant_invalid"
            await stream.closed()

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R4")
@pytest.mark.timeout(120)
def test_streams_that_are_opened_and_left_are_closed_in_time_and_leave_nothing(
    place: Place,
) -> None:
    """Silent ones, half handshakes, garbage, by the thousand; some of their connections stay."""

    async def some(client: OperatorClient, count: int, chance: random.Random) -> None:
        for _ in range(count):
            stream = await stream_to(client, place.machine)
            roll = chance.random()
            if roll < 0.4:
                await stream.throw(stream.first()[1])
            elif roll < 0.6:
                await stream.throw(chance.randbytes(100))

    async def scene(place: Place) -> None:
        chance = random.Random(SEED)
        for _ in range(ABANDONED // 50 // 2):
            async with rude(place.relay.now) as client:
                await some(client, 50, chance)
        async with rude(place.relay.now) as stays, rude(place.relay.now) as stays_too:
            for client in (stays, stays_too):
                await some(client, 60, chance)
            async with asyncio.timeout(40):
                while await place.relay.now.metric("streams") > 2:
                    await asyncio.sleep(0.1)

    lines = place.host.log().count("\n")
    place.play(scene)
    assert place.host.log().count("\n") - lines < ABANDONED // 20, "a stranger fills the disk"
    place.untouched()


# -- on a channel that stands ---------------------------------------------------------------------


async def greeted(place: Place, client: OperatorClient, session: str = "") -> RudeStream:
    stream = await stream_to(client, place.machine)
    await stream.shake(SessionId(session) if session else None)
    await stream.say(HELLO)
    return stream


def typing(session: str, number: int = 5) -> dict[str, Any]:
    return {
        "t": "input", "id": number, "session": session, "seq": 1, "data": b"rude", "quiet": False
    }  # fmt: skip


@pytest.mark.requirement("R3", "R4")
def test_records_that_are_repeated_moved_altered_or_cut_end_their_channel(place: Place) -> None:
    def repeated(records: list[bytes]) -> list[bytes]:
        return [records[0], records[0]]

    def moved(records: list[bytes]) -> list[bytes]:
        return records[::-1]

    def altered(records: list[bytes]) -> list[bytes]:
        return [records[0][:-1] + bytes([records[0][-1] ^ 1])]

    def cut(records: list[bytes]) -> list[bytes]:
        return [records[0][:-3]]

    def dropped(records: list[bytes]) -> list[bytes]:
        return records[1:]

    def empty(records: list[bytes]) -> list[bytes]:
        return [b""]

    async def scene(place: Place) -> None:
        for spoil in (repeated, moved, altered, cut, dropped, empty):
            async with rude(place.relay.now) as client:
                stream = await greeted(place, client, place.session)
                looks = {"t": "attach", "session": place.session, "channel": 1, "observe": True}
                records = [
                    record
                    for number in (1, 2)
                    for record in stream.records({**looks, "id": number})
                ]
                await stream.throw(*spoil(records))
                await stream.closed()

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R3", "R4", "A1")
def test_what_must_be_signed_is_not_taken_unsigned_nor_through_another_channel(
    place: Place,
) -> None:
    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client:
            for channel, asked, signed, code in (
                (place.session, typing(place.session), False, "protocol_violation"),
                (place.session, typing(place.other), True, "protocol_violation"),
                ("", typing(place.session), True, "protocol_violation"),
                ("", typing(place.session), False, "protocol_violation"),
                ("", {"t": "run", "id": 5, "argv": ["true"]}, False, "protocol_violation"),
                ("", {"t": "claim", "id": 5, "actor": "a", "proof": b""}, True, "not_permitted"),
                (place.session, {"t": "list", "id": 5}, False, "protocol_violation"),
                ("", {"t": "shutdown", "id": 5, "end_sessions": True}, True, "not_permitted"),
            ):  # fmt: skip
                stream = await greeted(place, client, channel)
                answer = await stream.ask(asked, signed=signed)
                assert (answer["t"], answer["code"]) == ("failed", code), (asked, answer)
                await client.say(r.Close(stream.number))

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R4")
def test_messages_that_make_no_sense_end_their_stream_only(place: Place) -> None:
    chance = random.Random(SEED)
    bodies: list[Any] = [
        b"", b"\xc1", b"\x80", body_of({"t": 5}), body_of({"x": 1}), b"\x91" * 5000,
        body_of({"t": "no such thing"}), body_of({"t": "input"}), b"\xdf\xff\xff\xff\xff",
        body_of({**HELLO, "versions": []}), chance.randbytes(60_000), b"\x81\xa1t" * 20_000,
    ]  # fmt: skip

    async def scene(place: Place) -> None:
        for body in bodies:
            async with rude(place.relay.now) as client:
                stream = await stream_to(client, place.machine)
                await stream.shake(SessionId(place.session))
                for record in stream.channel.sealed.seal(RecordKind.MESSAGE, body, 0.0):
                    await stream.throw(record)
                await stream.closed()
        async with rude(place.relay.now) as client:  # longer than any request may be
            stream = await greeted(place, client)
            for record in stream.channel.sealed.seal(
                RecordKind.MESSAGE, bytes(FRAME_MAX_BYTES + 1), 0.0
            ):
                await stream.throw(record)
            await stream.closed()

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R4")
@pytest.mark.timeout(120)
def test_a_flood_of_requests_that_are_not_read_costs_bounded_memory_and_holds_up_nobody(
    place: Place,
) -> None:
    pid = until("there is a daemon", place.host.daemon_pid)
    before, times = resident_bytes(pid), []

    async def flood(stream: RudeStream) -> None:
        """As fast as the relay lets it; it is closed when it breaks the relay's rules."""
        for number in range(2000):
            await stream.say({"t": "list", "id": number, "ended": True})

    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client, rude(place.relay.now) as another:
            streams = [await greeted(place, each) for each in (client, another, client)]
            floods = [asyncio.create_task(flood(stream)) for stream in streams]
            for each in (client, another):
                stop_reading(each)
            for _ in range(20):
                times.append(await asyncio.to_thread(place.works))
            for flooding in floods:
                flooding.cancel()
            await asyncio.gather(*floods, return_exceptions=True)

    place.play(scene)
    assert resident_bytes(pid) - before < DAEMON_GROWTH_BYTES
    # Who is held up is held up each time; one may come when this machine does something else.
    assert sorted(times)[len(times) // 2] < 3.0
    place.untouched()


# -- one who may not read any more ----------------------------------------------------------------


def revoked(host: Host, who: str, _: str) -> None:
    host.ask(RevokeDevice(0, who), Devices)


def narrowed(host: Host, who: str, session: str) -> None:
    host.ask(access_messages.RevokeEnvelope(0, who, session), access_messages.Envelopes)


def expired(host: Host, who: str, session: str) -> None:
    host.ask(
        access_messages.GrantEnvelope(0, who, session, ("observe",), time.time() + 0.5),
        access_messages.Envelopes,
    )


@pytest.mark.requirement("A2", "R3")
def test_a_reader_that_does_not_go_can_open_nothing_printed_after_its_right_ended(
    place: Place,
) -> None:
    """It ignores that it was dismissed, and keeps stream, subscription and keys. Another connection
    under its name has closed its view again: that has no key, and the first still its seat."""
    session, endings = SessionId(place.other), (revoked, narrowed, expired)
    machines = [place.guests.join(place.host.link(), each.__name__) for each in endings]

    async def scene(place: Place) -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(rude(place.relay.now)) for _ in range(5)]
            local = stack.enter_context(place.host.client())
            stays = await Reader.attach(clients[0], place.machine, session)
            readers = [
                await Reader.attach(client, machine, session)
                for client, machine in zip(clients[1:4], machines, strict=True)
            ]
            idle = await Reader.attach(clients[4], machines[0], session)
            assert (await idle.ask({"t": "detach", "id": 3, "channel": 1}))["t"] == "done"
            place.honest.send(session, "before")
            for reader in (stays, *readers):
                await reader.until(lambda reader=reader: b"before" in reader.read)  # type: ignore[misc]
            for ending, reader in zip(endings, readers, strict=True):
                ending(local, ending.__name__, session)
                await reader.until(lambda reader=reader: "dismissed" in reader.told)  # type: ignore[misc]
                secret = f"after {ending.__name__}"
                place.honest.send(session, secret)
                await stays.until(lambda secret=secret: secret.encode() in stays.read)  # type: ignore[misc]
            for reader in (*readers, idle):
                await reader.until(lambda reader=reader: reader.over)  # type: ignore[misc]
            for ending, reader in zip(endings, readers, strict=True):
                assert f"after {ending.__name__}".encode() not in reader.read
            assert b"before" not in idle.read
            assert not stays.refused and not stays.over, "nobody else notices"

    place.play(scene)
    place.untouched()


@pytest.mark.requirement("R3", "R4")
def test_who_may_not_observe_a_session_is_not_sent_even_the_sizes_of_its_output(
    place: Place,
) -> None:
    machine = place.guests.join(place.host.link(), "nosy")

    async def scene(place: Place) -> None:
        with place.host.client() as local:
            narrowed(local, "nosy", place.session)
        async with rude(place.relay.now) as client:
            for session, code in ((place.session, "not_permitted"), (place.other, "")):
                stream = await stream_to(client, machine)
                await stream.shake(SessionId(session))
                await stream.say(HELLO)
                await stream.ask({"t": "show", "id": 1, "session": session})  # it is let in
                await client.say(r.Subscribe(9, SessionId(session)))
                answer = await client.next()
                while not isinstance(answer, r.RelayFailed | r.Subscribed):
                    answer = await client.next()
                assert getattr(answer, "code", "") == code

    place.play(scene)
    place.untouched()


# -- invites and grants ---------------------------------------------------------------------------


def joins(place: Place, link: str, name: str) -> Machine | HoldfastError:
    try:
        return place.guests.join(link, name)
    except HoldfastError as error:
        return error


@pytest.mark.requirement("R3")
def test_expired_and_used_invites_let_nobody_in(place: Place) -> None:
    used, short = place.host.link(), place.host.link("--expires", "1s")
    assert isinstance(joins(place, used, "first"), Machine)
    assert isinstance(joins(place, used, "second"), InviteUsed)
    assert isinstance(joins(place, used, "first"), Machine), "the same device again"
    time.sleep(1.1)  # it expires by the clock: there is no event to wait for
    assert isinstance(joins(place, short, "late"), InviteExpired)
    place.untouched()


@pytest.mark.requirement("R3")
def test_guessing_an_invites_code_is_slow_and_hurts_no_other_invite(place: Place) -> None:
    guessed, other = place.host.link(), place.host.link()
    parsed = parse_link(guessed)
    began = time.monotonic()
    for _ in range(30):
        if time.monotonic() - began > GUESSING_S:
            break
        wrong = parsed.replace(code=os.urandom(len(parsed.code))).text()
        assert isinstance(joins(place, wrong, "guesser"), InviteInvalid)
        nowhere = parsed.replace(id=os.urandom(len(parsed.id))).text()
        assert isinstance(joins(place, nowhere, "guesser"), InviteInvalid)
    assert isinstance(joins(place, other, "somebody"), Machine)
    counted = {each["invite"]: each["wrong_codes"] for each in place.host.json("invite", "ls")}
    may = INVITE_GUESSES_PER_S * (RATE_BURST_S + time.monotonic() - began)
    assert 0 < counted[parsed.id.hex()] <= may, "not every guess was even looked at"
    until(
        "who has the code comes in after a moment",
        lambda: isinstance(joins(place, guessed, "rightful"), Machine),
    )
    place.untouched()


@pytest.mark.requirement("R3")
def test_grants_of_people_whose_clocks_are_wrong(place: Place) -> None:
    giver, agent = identity.load(place.machine.identity), identity.make("agent")
    chain = decode_chain(decoded(place.machine.grant) or b"")
    now = int(time.time())

    def handed_on(begins: int, ends: int) -> bytes:
        last = chain.last
        grant = Grant(
            *(giver.public, agent.public, chain.links[-1].id, last.reach, last.rights),
            *(begins, ends, os.urandom(SERIAL_BYTES)),
        )
        return encode_chain(extend(chain, grant, giver.sign))

    async def scene(place: Place) -> None:
        async with rude(place.relay.now) as client:
            for begins, ends, code in (
                (now - 10, now - 1, "grant_expired"),
                (now + 10 * GRANT_SKEW_S, now + 1000, "grant_invalid"),  # a clock far ahead
                (now + GRANT_SKEW_S // 2, now + 1000, ""),  # a little
                (now - 1000, now + 1000, ""),
            ):
                stream = await stream_to(client, place.machine)
                seed = bytes.fromhex(agent.private)
                await stream.shake(grant=handed_on(begins, ends), seed=seed)
                await stream.say(HELLO)
                if code:
                    assert (await stream.hear(0))["code"] == code
                else:
                    assert (await stream.ask({"t": "list", "id": 1}))["t"] == "sessions"
                await client.say(r.Close(stream.number))

    place.play(scene)
    place.untouched()
