"""A host somewhere else as if it were here: the ordinary protocol on a socket, and behind that
socket, in a thread of its own, the relay and the channels.

    SDK  ──▶  socketpair  ──▶  bridge: to which channel, signed or not  ──▶  relay  ──▶  host

What is about the host goes through the host's own channel; what acts on a session goes through that
session's, which is opened when it is first needed. So everything that speaks to a host speaks to
this one too. When anything is lost the socket is closed, and its user comes back as it does to a
host whose daemon was replaced.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any

from holdfast.dial.address import relay_address
from holdfast.dial.first_reached import first_of
from holdfast.dial.frame_pipe import FramePipe
from holdfast.dial.relay_link import RelayLink
from holdfast.dial.secure_channel import DeviceKeys, RemoteChannel, dial
from holdfast.model.errors import Fenced, HoldfastError, HostDown, RelayUnreachable
from holdfast.model.ids import SessionId
from holdfast.model.limits import FRAME_MAX_BYTES
from holdfast.sdk import identity
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.locate_session import locate
from holdfast.sdk.reach.machines import Machine
from holdfast.sdk.reach.relay_thread import wait_for
from holdfast.sdk.reach.shared_output import SharedOutput
from holdfast.wire import request_classes as requests
from holdfast.wire.base64url import decoded
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.frames import encode
from holdfast.wire.messages.session import Failed
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.stream_opening import HOST_EPOCH, Opening, host_channel

_CONNECT_S = 40.0
_OVER = ("ended", "asleep", "lost")  # states of a session without a channel
_LINGER_S = 0.2  # for last words to go out
_WAITING_MAX_BYTES = 1 << 20  # for a reader that is slow; then the relay is not read
_OWN_IDS = 1 << 40  # requests of the bridge itself: above all that its user makes


def connect(machine: Machine, acting: identity.Identity | None = None) -> socket.socket:
    """A socket on which that machine's host speaks. Raises what prevents it. `acting`: the
    actor to act as; None: as the environment says, or as this user is known there."""
    machine = locate(machine, acting) if machine.session else machine
    acting = acting or identity.chosen() or identity.load(machine.identity)
    seed = bytes.fromhex(acting.private)
    ours, theirs = socket.socketpair()
    try:
        wait_for(_begin(machine, seed, ours), _CONNECT_S)
    except BaseException:
        theirs.close()
        raise
    return theirs


async def _begin(machine: Machine, seed: bytes, ours: socket.socket) -> None:
    """By whichever of its relays leads there first."""

    async def reach(address: str) -> _Bridge:
        bridge = _Bridge(machine, DeviceKeys(seed), RelayLink(relay_address(address)))
        try:
            await bridge.dial()
        except BaseException:
            bridge.abandon()
            raise
        return bridge

    try:
        if not machine.relays:
            raise HostDown(f"no relay is known for {machine.name}")
        bridge = await first_of(machine.relays, reach, _Bridge.abandon)
    except BaseException:
        ours.close()
        raise
    bridge.serve(ours)


class _Bridge:
    """One socket of the SDK, and the channels behind it."""

    _pipe: FramePipe

    def __init__(self, machine: Machine, device: DeviceKeys, link: RelayLink) -> None:
        self._machine, self._device, self.link = machine, device, link
        link.on_lost = lambda _: self._end()
        link.on_leave = self._end
        self._loop = asyncio.get_running_loop()
        self._grant = identity.grant() or decoded(machine.grant_of(device.public.key)) or b""
        self._host: RemoteChannel
        self._sessions: dict[SessionId, RemoteChannel] = {}
        # By every name that was used, and whether it may have been a prefix of the id.
        self._ids: dict[tuple[str, bool], SessionId] = {}
        self._outputs: dict[int, RemoteChannel] = {}  # by the number of an attached channel
        self._hello: dict[str, Any] = {}
        self._requests: deque[dict[str, Any]] = deque()  # that wait for a channel
        self._opening: asyncio.Task[None] | None = None
        self._own: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last_own = _OWN_IDS
        self._shared: dict[SessionId, SharedOutput] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._early: list[bytes] = []  # said before there was a socket to say it on
        self._serves = self._paused = self._over = False

    async def dial(self) -> None:
        """To the host; nothing is said there yet."""
        await self.link.start()
        self.link.on_room = self._read_more
        key = self._machine.key
        stream = await self.link.open(key, None)
        floor = EpochFloor(HOST_EPOCH)
        self._host = await dial(
            stream, Opening(), host_channel(key), self._device, floor, self._end,
            grant=self._grant,
        )  # fmt: skip
        self._host.on_said = self._from_host

    def serve(self, ours: socket.socket) -> None:
        """From now on it speaks for the host on this socket."""
        self._pipe = FramePipe(ours, self._asked, self._end, self._has_room, FRAME_MAX_BYTES)
        for body in self._early:
            self._pipe.write(body)
        if self._over:  # lost in between, or not let in: its last words say which
            self._host.close()
            self._loop.call_later(_LINGER_S, self.link.close)
            self._pipe.close()
            return
        self._serves = True
        self._read_more()

    # -- from the SDK ----------------------------------------------------------------------------

    def _read_more(self) -> None:
        if not self._serves:
            return
        channels = (self._host, *self._sessions.values())
        room = all(each.stream.has_room for each in channels)
        self._pipe.read(room and self._opening is None)

    def _asked(self, body: bytes) -> None:
        try:
            self._requests.append(requests.fields_of(body))
            if self._opening is None:
                self._pass_on()
        except HoldfastError:
            self._end()

    def _pass_on(self) -> None:
        """In order; the first that needs a channel which is not there yet holds up the rest."""
        try:
            while self._requests and not self._over:
                fields = self._requests[0]
                channel = self._channel_for(fields)
                if channel is None:
                    self._opening = self._loop.create_task(self._open_for(fields))
                    break
                self._requests.popleft()
                self._say(channel, fields)
        except HoldfastError:
            self._end()
        self._read_more()

    def _channel_for(self, fields: dict[str, Any]) -> RemoteChannel | None:
        """None: it has to be opened first."""
        tag, named = fields["t"], requests.session_named(fields)
        if tag == "hello":
            self._hello = fields
        if tag == "detach":
            number = fields.get("channel", -1)
            self._shared = {
                session: each for session, each in self._shared.items() if each.channel != number
            }
            return self._outputs.pop(number, self._host)
        if not named or not requests.goes_by_session(tag):
            return self._host
        session = self._ids.get((named, _by_prefix(fields)))
        if session is None:
            return None
        fields["session"] = session
        channel = self._sessions.get(session, self._host)
        if tag == "attach":
            self._attaching(fields, session, channel)
        return channel

    def _attaching(self, fields: dict[str, Any], session: str, channel: RemoteChannel) -> None:
        """A view shares its output with all others as soon as it is attached."""
        number = fields.get("channel", -1)
        self._outputs[number] = channel
        if channel is not self._host and not fields.get("raw"):
            # One at a time, the latest: a terminal opens a new channel before it closes the old.
            self._shared[SessionId(session)] = SharedOutput(
                SessionId(session), number, channel.stream.host.key, channel.floor,
                self._forward, lambda: self._keep(self._share(SessionId(session), anew=True)),
                since=fields.get("since"),
            )  # fmt: skip

    def _say(self, channel: RemoteChannel, fields: dict[str, Any]) -> None:
        signed = requests.must_be_signed(fields["t"])
        channel.send(requests.body_of(fields), signed=signed)

    # -- channels of sessions ----------------------------------------------------------------------

    async def _open_for(self, fields: dict[str, Any]) -> None:
        """The channel of the session this request names. One that has ended, or is not ours to see,
        has none: then the host is asked after all, and says so."""
        named, by_prefix, session = fields["session"], _by_prefix(fields), None
        info: dict[str, Any] = {}
        try:
            asked = {"t": "show", "session": named, "exact": not by_prefix}
            info = (await self._ask(asked)).get("info") or {}
            if info.get("state", "ended") not in _OVER:
                session = SessionId(info["id"])
        except (HoldfastError, TimeoutError, KeyError, ValueError):
            pass
        self._ids[named, by_prefix] = session or named
        if session is not None:
            await self._open_or_refuse(session, info, fields)
        self._opening = None
        self._pass_on()
        if session is None:
            self._ids.pop((named, by_prefix), None)  # it may begin to live

    async def _open_or_refuse(
        self, session: SessionId, info: dict[str, Any], fields: dict[str, Any]
    ) -> None:
        try:
            if session not in self._sessions:
                await self._open(session)
            self._ids[session, True] = self._ids[session, False] = session
        except HoldfastError as error:  # nothing was sent, and the next request tries again
            self._ids.pop((fields["session"], _by_prefix(fields)), None)
            self._requests.popleft()
            why, number = _why_not(error, info), fields.get("id", 0)
            self._forward(
                encode(Failed(number, why.code, why.message, why.hint, why.retryable))[4:]
            )

    async def _open(self, session: SessionId) -> None:
        floor = EpochFloor(machines.highest_epoch(session))
        try:
            stream = await self.link.open(self._machine.key, session)
        except HoldfastError as error:  # the relay's own reasons say nothing of the session
            if self.link.ends:
                self._end()  # it opens nothing now; another one does
            why = f"the relay does not lead to this session now: {error.message}"
            raise RelayUnreachable(why, hint="try again") from error
        channel = await dial(
            stream, Opening(session), session, self._device, floor, self._end,
            grant=self._grant,
        )  # fmt: skip
        machines.saw_epoch(session, floor.highest)
        channel.on_said = partial(self._from_session, session)
        self._sessions[session] = channel
        self._say(channel, self._hello)

    async def _ask(
        self, fields: dict[str, Any], channel: RemoteChannel | None = None
    ) -> dict[str, Any]:
        """A question of the bridge's own."""
        self._last_own += 1
        number = self._last_own
        answer = self._own[number] = self._loop.create_future()
        self._say(channel or self._host, {**fields, "id": number})
        try:
            return await asyncio.wait_for(answer, _CONNECT_S)
        finally:
            del self._own[number]

    # -- from the host -----------------------------------------------------------------------------

    def _from_host(self, said: OpenedRecord) -> None:
        if said.kind != RecordKind.MESSAGE:
            return
        if not self._answers_own(said.body):
            self._forward(said.body)

    def _answers_own(self, body: bytes) -> bool:
        """Whether it is the answer to a question of the bridge's own."""
        if not self._own or body.startswith(_OUTPUT):
            return False
        fields = requests.fields_of(body)
        waiting = self._own.get(fields.get("id", -1))
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(fields)
        return True

    def _from_session(self, session: SessionId, said: OpenedRecord) -> None:
        shared, now = self._shared.get(session), self._loop.time()
        if said.kind == RecordKind.OUTPUT_KEY and shared is not None:
            shared.key(said.body, now)
        elif said.kind == RecordKind.OUTPUT_MARK and shared is not None:
            shared.mark(said.body, now)
        elif said.kind != RecordKind.MESSAGE or said.body.startswith(_WELCOME, 1):
            return  # the SDK was greeted already, by the host
        elif not self._answers_own(said.body):
            if shared is None:
                self._forward(said.body)
                return
            shared.message(said.body)
            if said.body.startswith(_ATTACHED, 1):
                self._keep(self._subscribe(session, shared))

    async def _subscribe(self, session: SessionId, shared: SharedOutput) -> None:
        def on_frame(frame: bytes | None) -> None:
            if frame is None:
                shared.gap()
            else:
                shared.frame(frame, self._loop.time())

        try:
            await self.link.subscribe(session, on_frame)
        except HoldfastError:
            return  # then this view has its output to itself
        await self._share(session, anew=False)

    async def _share(self, session: SessionId, *, anew: bool) -> None:
        shared, channel = self._shared.get(session), self._sessions[session]
        if shared is None:  # it was detached meanwhile
            return
        fields = {"t": "share", "session": session, "channel": shared.channel, "anew": anew}
        try:
            answer = await self._ask(fields, channel)
            if answer["t"] == "shared":
                shared.shared(answer["offset"])
                return
        except (HoldfastError, TimeoutError, KeyError):
            pass
        shared.refused()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forward(self, body: bytes) -> None:
        if not self._serves:
            self._early.append(body)
            return
        self._pipe.write(body)
        if self._pipe.waiting_bytes > _WAITING_MAX_BYTES and not self._paused:
            self._paused = True
            self.link.pause(True)

    def _has_room(self) -> None:
        """The SDK has taken all there was."""
        if self._paused:
            self._paused = False
            self.link.pause(False)

    # -- the end -----------------------------------------------------------------------------------

    def abandon(self) -> None:
        """It did not come to anything, or somebody else was faster."""
        self._over = True
        self.link.close()

    def _end(self, _: HoldfastError | None = None) -> None:
        """Of the way, or of one channel: its user finds out by the end of the socket, and comes
        back."""
        if self._over:
            return
        self._over = True
        if not self._serves:
            return
        if self._opening is not None:
            self._opening.cancel()
        for waiting in self._own.values():
            if not waiting.done():
                waiting.set_exception(HostDown("the connection to the host was lost"))
        for channel in (self._host, *self._sessions.values()):
            channel.close()
        self._loop.call_later(_LINGER_S, self.link.close)
        self._pipe.close()


def _by_prefix(fields: dict[str, Any]) -> bool:
    return requests.may_name_by_prefix(fields["t"], observe=bool(fields.get("observe")))


def _why_not(error: HoldfastError, info: dict[str, Any]) -> HoldfastError:
    """Of a session that lives, as its host says, and yet has no channel."""
    if (info.get("lease") or {}).get("state", "held") != "held":
        return Fenced(
            "the session's host lost its lease; what runs there is frozen until it has it again",
            hint="the session may live on another host",
        )
    return error


# Behind the map's own byte.
_WELCOME = requests.body_of({"t": "welcome"})[1:]
_ATTACHED = requests.body_of({"t": "attached"})[1:]
_OUTPUT = b"\x84\xa1t\xa6output"
