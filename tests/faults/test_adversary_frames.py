"""S1, S3, R3, R4: two hundred thousand frames that nobody honest sends, to a host's socket and to a
relay, from one seed. Afterwards the same processes run, and a session that was not asked about is
as it was.

Two kinds. *Typed*: every message of the protocol with random values of the right types, by an actor
with rights over one session and by root. *Spoiled*: the bytes of such messages, flipped, cut and
mixed. What counts is what was judged: an answer that was heard, or the refusal that closed a
connection; at a relay, where most messages have no answer, also what was sent on the same
connection before something that was answered, since it takes messages in order. What went into a
socket that had been closed counts for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import aiohttp
import pytest

from faults.hosting import resident_bytes
from faults.random_messages import RandomMessages
from faults.raw_socket import RawSocket, frame_of
from faults.reached import ReachedHost, RelayPlace, plain_relay
from faults.test_bad_input import Mutation, cut, flip, noise, swap_value
from faults.test_reach_fuzz import Fuzz
from holdfast.adapters.signing import SigningKey
from holdfast.model.envelope import Right
from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.limits import RELAY_FRAME_MAX_BYTES
from holdfast.model.size import Size
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.sdk.connection import new_operator
from holdfast.sdk.identity import Identity
from holdfast.wire import relay_messages as r
from holdfast.wire.frames import decode, encode
from holdfast.wire.messages import BY_TAG, access, journal, turn
from holdfast.wire.messages import session as m
from holdfast.wire.messages.base import Message
from holdfast.wire.messages.forward import Carried
from holdfast.wire.stream_opening import Opening
from process.relaying import PATIENCE_S, Client, Dialler, announced, at, bounded, fresh_session
from process.waiting import until

SEED = 20_261_118
TYPED_FRAMES = 15_000
SPOILED_FRAMES = 30_000
RELAY_TYPED_FRAMES = {"operator": 100_000, "host": 50_000}
RELAY_SPOILED_FRAMES = {"operator": 8_000, "host": 4_000}
STREAMS = 2_000
_RELAY_FRAMES = sum([*RELAY_TYPED_FRAMES.values(), *RELAY_SPOILED_FRAMES.values()])
assert TYPED_FRAMES + SPOILED_FRAMES + _RELAY_FRAMES + STREAMS >= 200_000
MEMORY_MAX_BYTES = 64 << 20  # by which all of it may raise a process's memory

REQUESTS = {tag: kind for tag, kind in BY_TAG.items() if issubclass(kind, m.Request)}

# Not asked as root, and not spoiled: the actor without these rights asks them.
NOT_AS_ROOT = {
    "shutdown": "it ends the host",
    "rename": "the judge finds its sessions by name",
    "restart_daemon": "it replaces the daemon, whose pid is compared",
    "set_relays": "the host would dial what is made up here",
    "run": "it starts processes, a few hundred a second",
    "end": "it ends the session that the rest is about",
    "checkpoint": "it may put that session to sleep",
    "reap": "so may it",
    "grant": "it would give the other actor what it must not have",
    "revoke": "it would take from it what it is to have",
    "revoke_actor": "the same",
}
# Everything but ending the session, by END or by a signal that it cannot ignore: see TARGET.
RIGHTS = tuple(right for right in Right if right is not Right.END)
# It ignores the signals that are sent, and no byte typed is an end of file.
TARGET = ["/bin/sh", "-c", "trap '' HUP INT QUIT TERM; stty raw -echo; exec cat"]
SENTINEL = 1 << 40  # an id that nothing else has
WINDOW = 40  # requests sent before their answers are read: fewer than one connection may have
WINDOW_BYTES = 64 << 10  # the same in bytes, far below what a socket takes


class Place(NamedTuple):
    """A host at a relay, a session to be asked about, and one to be left alone."""

    host: ReachedHost
    relay: RelayPlace
    bystander: SessionInfo
    target: SessionInfo
    actor: Identity  # with rights over the target only

    def likely(self, *, as_root: bool) -> dict[str, Sequence[object]]:
        """Values that get past the first check. Root could write to the bystander, so it does not
        get to know of it."""
        sessions = [self.target.id, "target"] * 4
        others = [] if as_root else [self.bystander.id, "bystander", self.bystander.id[:8]]
        return {
            "session": [*sessions, *others],
            "predecessor": [*sessions, *others],
            "scope": [f"session:{self.target.id}", *(f"session:{each}" for each in others), "all"],
            "reach": [(f"session:{each}",) for each in (self.target.id, *others)],
            "rights": [("read",), ("admin",), tuple(Right), ("observe", "input"), ()],
            "actor": ["companion"],
            "to": ["companion"],
            "only_actor": ["companion", ""],
            "add_actor.key": [b"k" * 32],
            "kind": ["human", "agent", "service", "device"],
            "policy": ["queue", "ask-holder", "free-when-idle"],
            "keys": [("Enter",), ("x", "Up"), ("C-c",), ("Hyper-Q",)],
            "channel": range(4),
            "number": range(4),
            "seq": range(1, 30),
            "since_seq": [1, 5],
            "first": [1, 2],
            "last": [0, 1, 5],
            "code_only": [True],
            "expires_s": [60.0],
            "lasts_s": [60.0],
            "uses": [1, 2],
            "resize.size": [Size(80, 24), Size(132, 50)],
            "signal": [1, 2, 15, 28],
            "force_lease": [""],
            "name": ["made-up"],
        }


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    limits = ("opens", "failed_proofs", "rises")
    relay = plain_relay(*(word for each in limits for word in ("--limit", f"{each}=10000000")))
    host = ReachedHost([relay])
    try:
        host.up()
        client = host.client()
        bystander = client.run(["cat"], name="bystander")
        target = client.run(TARGET, name="target")
        actor, companion = identity.make("fuzzer"), identity.make("companion")
        for each in (actor, companion):
            client.ask(access.AddActor(0, each.name, "agent", each.public), access.ActorShown)
        for each in (actor, companion):
            grant = access.GrantEnvelope(0, each.name, f"session:{target.id}", RIGHTS)
            client.ask(grant, access.Envelopes)
        yield Place(host, relay, bystander, target, actor)
    finally:
        host.down()
        relay.close()


@pytest.fixture
def unharmed(place: Place) -> Iterator[Place]:
    """The same processes run, and the bystander is as it was."""
    daemon, relay = place.host.daemon_pid(), place.relay.now
    assert daemon is not None
    memory = resident_bytes(daemon), relay.resident_bytes()
    with place.host.client() as client:
        turn_before = client.ask(turn.GetTurn(0, "bystander"), turn.TurnShown).turn
        yield place
        assert place.host.daemon_pid() == daemon and relay.process.poll() is None
        assert "Traceback" not in place.host.log(), place.host.log()[-3000:]
        assert resident_bytes(daemon) - memory[0] < MEMORY_MAX_BYTES
        assert relay.resident_bytes() - memory[1] < MEMORY_MAX_BYTES
        shown = client.show("bystander")
        assert (shown.id, shown.pid, shown.size, shown.ending) == (
            place.bystander.id,
            place.bystander.pid,
            place.bystander.size,
            None,
        )
        assert client.screen("bystander").text.strip() == "", "something was typed into it"
        assert client.ask(turn.GetTurn(0, "bystander"), turn.TurnShown).turn == turn_before
        for session in ("bystander", "target"):
            judged = client.ask(journal.Verify(0, session, True), journal.Verified).judgement
            assert judged.status == "continuous", judged
        assert client.show("target").ending is None
    with Host(path=place.host.socket) as other:  # a new connection, which works
        other.run(["cat"], name="afterwards")
        other.send("afterwards", "still here")
        until("it echoes", lambda: "still here" in other.screen("afterwards").text or None)
        other.end("afterwards")


# -- the host's socket, typed ---------------------------------------------------------------------


class Asking:
    """Requests on one connection, each until it is answered."""

    def __init__(self, place: Place, who: Identity | None, judged: Counter[str]) -> None:
        self._socket = RawSocket(place.host.socket, greet=False)
        self._judged = judged
        self._waiting: dict[int, m.Request] = {}
        self._waiting_bytes = 0
        self._greet(who)

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.sock.close()

    def _greet(self, who: Identity | None) -> None:
        operator = new_operator()
        self._socket.say(m.Hello((m.PROTOCOL_VERSION,), operator))
        welcome = self._socket.hear()
        assert isinstance(welcome, m.Welcome), welcome
        if who is not None:
            proof = who.claim(welcome.host_key, welcome.challenge, operator)
            self._socket.say(access.Claim(1, who.actor, proof))
            assert isinstance(shown := self._socket.hear(), access.ActorShown), shown

    def ask(self, request: m.Message) -> None:
        data = encode(request)
        self._socket.throw(data)
        if not isinstance(request, m.Request):
            return
        self._waiting[request.id] = request
        self._waiting_bytes += len(data)
        if len(self._waiting) >= WINDOW or self._waiting_bytes > WINDOW_BYTES:
            self.finish()

    def finish(self, may_close: bool = False) -> None:
        """Read until everything is answered, or the connection is closed."""
        while self._waiting:
            heard = self._socket.hear(timeout_s=20.0)
            if isinstance(heard, m.Failed) and not heard.id:
                assert may_close, heard  # a violation, by what has the right types
                return
            if isinstance(heard, m.Answer):
                self._count(heard)
        self._waiting_bytes = 0

    def _count(self, answer: m.Answer) -> None:
        asked = self._waiting.pop(answer.id, None)
        if asked is None:
            return
        if isinstance(answer, m.Failed):
            assert answer.code != "internal", (asked, answer)
        self._judged[asked.tag] += 1
        if isinstance(asked, m.Input) and asked.quiet and isinstance(answer, m.Accepted):
            for earlier in [n for n in self._waiting if n < answer.id]:
                quiet = self._waiting[earlier]
                if isinstance(quiet, m.Input) and quiet.quiet:  # one answer for all of them
                    self._judged[quiet.tag] += 1
                    del self._waiting[earlier]


@pytest.mark.requirement("S1", "S3", "R3")
@pytest.mark.timeout(120)
def test_every_request_with_random_values_is_answered_and_harms_nobody(unharmed: Place) -> None:
    place, judged = unharmed, Counter[str]()
    assert set(NOT_AS_ROOT) <= set(REQUESTS)
    carried = [kind for kind in BY_TAG.values() if issubclass(kind, Carried)]
    for number in range(10_000):
        if judged.total() >= TYPED_FRAMES:
            break
        as_root = number % 4 == 3
        made = RandomMessages(f"{SEED}/{number}", place.likely(as_root=as_root))
        kinds = [
            kind
            for tag, kind in REQUESTS.items()
            if tag != "claim" and not (as_root and tag in NOT_AS_ROOT)
        ]
        with Asking(place, None if as_root else place.actor, judged) as asking:
            for at in range(500):
                asking.ask(made.of(made.chance.choice(kinds), id=at + 2))
            asking.finish()
            # What may close its connection comes last: a word about a forwarded connection, which
            # has no answer, and a claim, which is refused.
            asking.ask(made.of(made.chance.choice(carried)))
            asking.ask(made.of(access.Claim, id=SENTINEL))
            asking.finish(may_close=True)
    assert judged.total() >= TYPED_FRAMES
    assert set(judged) == set(REQUESTS), "a request that was never answered"


# -- the host's socket, spoiled -------------------------------------------------------------------


class Spoiler:
    """Random messages, and what is left of them after a mutation."""

    MUTATIONS: tuple[Mutation, ...] = (flip, flip, cut, swap_value, swap_value, noise)

    def __init__(self, place: Place) -> None:
        self.made = RandomMessages(f"{SEED}/spoiled", {})
        self.fuzz = Fuzz(SEED)
        self._sessions = [place.target.id, "target"]
        self._kinds = [kind for tag, kind in BY_TAG.items() if tag not in NOT_AS_ROOT]

    def frame(self) -> bytes:
        kind = self.made.chance.choice(self._kinds)
        if not issubclass(kind, m.Request):  # which is refused as it is: less often
            kind = self.made.chance.choice(self._kinds)
        named = "session" in kind._fields and issubclass(kind, m.Request)
        message = self.made.of(
            kind, **({"session": self.made.chance.choice(self._sessions)} if named else {})
        )
        if self.made.chance.random() < 0.3:
            return frame_of(self.fuzz.of(encode(message)[4:]))
        return self.made.chance.choice(self.MUTATIONS)(self.made.chance, encode(message))

    def frames(self, at_most: int = 20) -> list[bytes]:
        """Up to the first that certainly closes the connection: none behind it would be read."""
        found: list[bytes] = []
        while len(found) < at_most:
            found.append(self.frame())
            try:
                if not isinstance(decode(found[-1][4:]), m.Request):
                    break
            except ProtocolViolation:
                break
        return found


@pytest.mark.requirement("S1", "S3")
@pytest.mark.timeout(120)
def test_spoiled_frames_on_a_hosts_socket_harm_nobody(unharmed: Place) -> None:
    spoiler, judged = Spoiler(unharmed), Counter[str]()
    chance = spoiler.made.chance
    while judged.total() < SPOILED_FRAMES:
        *taken, last = spoiler.frames()
        with RawSocket(unharmed.host.socket, greet=False) as client:
            if chance.random() < 0.9:  # the rest does not even greet
                # First what may be answered: with what closes the connection it would be dropped.
                hello, detach = m.Hello((1,), new_operator()), m.Detach(SENTINEL, 0)
                client.throw(b"".join([encode(hello), *taken, encode(detach)]))
                judged.update("answered" for _ in answers(client))
            client.throw(last)
            client.say(m.Detach(SENTINEL, 0))
            judged.update("last" for _ in answers(client))
    assert min(judged.values()) > SPOILED_FRAMES // 50, judged


def answers(client: RawSocket) -> Iterator[m.Answer]:
    """Until the one that was asked for last, or until the host closes: which it does not without
    having said why."""
    last: m.Message | None = None
    while True:
        try:
            heard = client.hear()
        except AssertionError:
            assert client.closed, last
            return
        if isinstance(heard, m.Answer):
            if heard.id == SENTINEL:
                return
            assert not isinstance(heard, m.Failed) or heard.code != "internal", heard
            yield heard
            last = heard


# -- the relay ------------------------------------------------------------------------------------


class Ends:
    """The two kinds of connection that a relay takes, greeted; and what may be said on each."""

    def __init__(self, place: Place, dialler: Dialler, made: RandomMessages) -> None:
        self.dialler, self.made = dialler, made
        self.host_key, (self.session_key, self.session) = SigningKey.generate(), fresh_session()
        sessions = [SessionId(place.bystander.id), SessionId(place.target.id), self.session]
        self.made.likely = {
            "session": sessions,
            "stream": range(1, 40),
            "sessions": [(announced(self.host_key, self.session_key, 1),), ()],
        }
        self._rising = itertools.count()

    async def dial(self, end: str) -> Client:
        if end == "operator":
            return await self.dialler.operator()
        host = await self.dialler.host(self.host_key)
        await host.announce((self.session_key, 1))
        return host

    def last(self, end: str) -> Message:
        """Answered on this end, in its turn."""
        if end == "operator":
            return r.Subscribe(SENTINEL, SessionId.of_key(bytes(32)))
        return r.Announce(SENTINEL, ())

    def message(self, kinds: Sequence[type[Message]]) -> Message:
        """Mostly what keeps the connection open: numbers that rise, sessions that may be ours."""
        message = self.made.of(self.made.chance.choice(kinds))
        if isinstance(message, r.Broadcast) and self.made.chance.random() < 0.99:
            return message.replace(seq=next(self._rising))
        if isinstance(message, r.Announce) and self.made.chance.random() < 0.97:
            return message.replace(sessions=self.made.chance.choice(self.made.likely["sessions"]))
        return message

    async def judged(self, client: Client, end: str, bodies: Sequence[bytes]) -> int:
        """How many of these were, when what came behind them is answered; -1: one of them closed
        the connection, and the relay said why. 0: it was closed before that could be heard."""
        with contextlib.suppress(aiohttp.ClientError):  # it may be closed while we send
            for body in bodies:
                await client.ws.send_bytes(body)
            await client.say(self.last(end))
        said_why = False
        while True:
            got = await asyncio.wait_for(client.ws.receive(), PATIENCE_S)
            if got.type is not aiohttp.WSMsgType.BINARY:
                return -1 if said_why else 0
            heard = r.decode(got.data)
            if isinstance(heard, m.Answer) and heard.id == SENTINEL:
                return len(bodies)
            said_why = said_why or (isinstance(heard, r.RelayFailed) and heard.id == 0)

    async def accepted(self, end: str) -> list[type[Message]]:
        """The messages that this end may send, found by sending each: a new one is among them."""
        found = []
        for kind in r.BY_TAG.values():
            client = await self.dial(end)
            if await self.judged(client, end, [r.encode(self.made.of(kind))]) == 1:
                found.append(kind)
            await client.ws.close()
        return found


@pytest.mark.requirement("R4")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", ["operator", "host"])
def test_random_messages_to_a_relay_harm_nobody(unharmed: Place, end: str) -> None:
    async def scene() -> Counter[str]:
        counted = Counter[str]()
        async with at(unharmed.relay.now) as dialler:
            ends = Ends(unharmed, dialler, RandomMessages(f"{SEED}/{end}", {}))
            kinds = await ends.accepted(end)
            while counted["taken"] + counted["closed"] < RELAY_TYPED_FRAMES[end]:
                client = await ends.dial(end)
                for _ in range(500):
                    some = [r.encode(ends.message(kinds)) for _ in range(20)]
                    count = await ends.judged(client, end, some)
                    if count <= 0:
                        counted["closed" if count else "not heard"] += 1
                        break
                    counted["taken"] += count
                await client.ws.close()
        return counted

    counted = bounded(scene(), 100)
    assert counted["not heard"] <= counted["closed"] // 20 + 1, counted


@pytest.mark.requirement("R4")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", ["operator", "host"])
def test_spoiled_messages_to_a_relay_harm_nobody(unharmed: Place, end: str) -> None:
    async def scene() -> Counter[str]:
        counted, fuzz = Counter[str](), Fuzz(SEED)
        async with at(unharmed.relay.now) as dialler:

            async def spoil(number: int) -> None:
                made = RandomMessages(f"{SEED}/spoiled/{end}/{number}", {})
                ends = Ends(unharmed, dialler, made)
                kinds = await ends.accepted(end)
                while counted["taken"] + counted["closed"] < RELAY_SPOILED_FRAMES[end]:
                    client, count = await ends.dial(end), 1
                    while count > 0:
                        body = fuzz.of(r.encode(ends.message(kinds)))
                        # Longer ones are not read: the relay closes without another word.
                        count = await ends.judged(client, end, [body[: RELAY_FRAME_MAX_BYTES // 2]])
                        counted["taken" if count > 0 else "closed" if count else "not heard"] += 1
                    await client.ws.close()

            await asyncio.gather(*(spoil(number) for number in range(4)))
        return counted

    counted = bounded(scene(), 100)
    assert counted["taken"] > RELAY_SPOILED_FRAMES[end] // 50, counted
    assert counted["not heard"] <= counted["closed"] // 20 + 1, counted


@pytest.mark.requirement("R3", "R4")
@pytest.mark.timeout(120)
def test_spoiled_openings_through_a_relay_are_closed_by_the_host(unharmed: Place) -> None:
    """The relay passes on what it cannot read; the host judges it."""

    async def scene() -> int:
        fuzz, session = Fuzz(SEED), SessionId(unharmed.bystander.id)
        openings = [Opening().encoded(), Opening(session).encoded()]
        openings.append(Opening(invite=bytes(8)).encoded())
        count = 0
        async with at(unharmed.relay.now) as dialler:
            operator = await dialler.operator()
            while count < STREAMS:
                stream = (await operator.open(session)).stream
                noise = fuzz.chance.randbytes(fuzz.chance.choice([0, 40, 96, 200]))
                spoiled = fuzz.of(fuzz.chance.choice(openings) + noise)
                await operator.say(r.StreamData(stream, spoiled[: RELAY_FRAME_MAX_BYTES // 2]))
                assert (await operator.hear_among(r.StreamClosed)).stream == stream
                count += 1
        return count

    assert bounded(scene(), 100) == STREAMS
