"""Agents at work in shells, each by the SDK as an actor of its own, some of them in one session:
what each was told of each command goes into a diary. The files that commands write say what ran.

A command writes its tag, once, prints it, and ends with a status that follows from it. It is tried
again where it was refused. With a key it is one act, however often it is tried; without one each
try is another, with a tag of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from faults.hosting import FaultHost
from holdfast import Session, connect, errors
from holdfast.sdk import identity
from holdfast.wire.messages import access
from process.sdking import lines_of, shell

_ROLE = ("observe", "input", "turn.request", "turn.grant")
_AGAIN_S = 0.02  # after a refusal
_UNKNOWN_MAX_S = 20.0  # for so long asking again may find nothing: a new daemon must read reports
_ASKED_AGAIN = 10  # keys of each agent: of five in one session fewer than the host remembers


class Told(NamedTuple):
    """What an agent heard of one try."""

    tag: str
    key: str
    refused: str = ""  # the code, if it was refused
    ran_by_then: bool = False  # the tag was in the file when the refusal came
    unknown: bool = False
    never: bool = False  # nor did asking again tell
    status: int | None = None
    output: str = ""


def status_of(tag: str) -> int:
    return sum(tag.encode()) % 100


class Agent:
    """One actor, one connection, one session; one command after the other."""

    def __init__(self, name: str, key_file: str, session: str, ran: Path, seed: int) -> None:
        self.name, self.key_file, self.session, self.ran = name, key_file, session, ran
        self.chance = random.Random(seed)
        self.diary: list[Told] = []
        self._done: list[Told] = []  # the last word of each command with a key
        self._tries = 0

    async def work(self, socket: str, enough: asyncio.Event) -> None:
        """Until it is enough; then it asks again for what its latest keys stand for."""
        async with connect(socket, actor=self.key_file, client="agent") as hold:
            session, number = await hold.session(self.session), 0
            while not enough.is_set():
                number += 1
                keyed = self.chance.random() < 0.5
                await (self._with_key if keyed else self._without)(session, number)
                await self._let_others(session)
            for told in self._done[-_ASKED_AGAIN:]:
                self.diary.append(await self._again(session, told))

    async def _let_others(self, session: Session) -> None:
        """Give the turn up, which else is free only after a while; it may be gone already."""
        with contextlib.suppress(errors.TurnNotHeld, errors.InputUnknown):
            await session.yield_turn()

    def command(self, tag: str) -> str:
        """Some so short that they have ended before anybody looks, some not."""
        rest = self.chance.choice(("", "sleep 0.05; ", "read -t 0.01 -r _ < /dev/null; "))
        return f"echo {tag} >> {self.ran}; {rest}echo out-{tag}; (exit {status_of(tag)})"

    async def _with_key(self, session: Session, number: int) -> None:
        """Until there is a result."""
        tag = f"{self.name}.{number}"
        command, told_at = self.command(tag), time.monotonic()
        while (told := await self._told(session, tag, command, key=tag)).status is None:
            if not told.unknown:
                told_at = time.monotonic()
            elif time.monotonic() - told_at > _UNKNOWN_MAX_S:
                self.diary.append(told._replace(never=True))
                return
            await asyncio.sleep(_AGAIN_S)
        self._done.append(told)

    async def _without(self, session: Session, number: int) -> None:
        """Until the shell took one; what is unknown is not tried again."""
        while True:
            self._tries += 1
            tag = f"{self.name}.{number}.{self._tries}"
            told = await self._told(session, tag, self.command(tag))
            if not told.refused:
                return
            await asyncio.sleep(_AGAIN_S)

    async def _told(self, session: Session, tag: str, command: str, key: str = "") -> Told:
        try:
            result = await session.submit(command, key=key, intent="swarm")
            told = Told(tag, key, status=result.status, output=result.output)
        except errors.InputUnknown:
            told = Told(tag, key, unknown=True)
        except errors.HoldfastError as refusal:
            told = Told(tag, key, refused=refusal.code, ran_by_then=tag in lines_of(self.ran))
        self.diary.append(told)
        return told

    async def _again(self, session: Session, told: Told) -> Told:
        """The same key, and no command line: nothing can run, and the result comes."""
        result = await (await session.running(told.key)).result()
        return told._replace(status=result.status, output=result.output)


async def hire(host: FaultHost, alone: int, together: int, seed: int) -> list[Agent]:
    """So many agents in a session each, and so many in one; at their prompts, with their rights."""
    names = [*(f"alone{number}" for number in range(alone)), "together"]
    async with connect(host.socket) as hold:
        await asyncio.gather(*(shell(hold, name) for name in names))
    where = [*names[:alone], *["together"] * together]
    return [
        _hired(host, f"agent{number}", name, seed + number) for number, name in enumerate(where)
    ]


def _hired(host: FaultHost, name: str, session: str, seed: int) -> Agent:
    with mock.patch.dict("os.environ", {"HOLDFAST_HOME": str(host.home)}):
        who = identity.make(name)
        key_file = identity.keep(who)
    with host.client() as client:
        client.ask(access.AddActor(0, name, "agent", who.public), access.ActorShown)
        client.ask(access.GrantEnvelope(0, who.actor, session, _ROLE), access.Envelopes)
    return Agent(name, key_file, session, host.work / f"ran-{session}", seed)


async def work_while(
    host: FaultHost, agents: list[Agent], dies: Callable[[], Awaitable[None]]
) -> list[str]:
    """The agents work until `dies`, which kills the daemon again and again, is done. Gives what was
    wrong."""
    enough = asyncio.Event()
    working = [asyncio.create_task(agent.work(host.socket, enough)) for agent in agents]
    try:
        await dies()
    finally:
        enough.set()
    await asyncio.gather(*working)
    return [fault for agent in agents for fault in faults(agent, lines_of(agent.ran))]


def faults(agent: Agent, ran: list[str]) -> list[str]:
    """What must not be: a command lost, run twice, refused though it ran, or with another result
    than it had."""
    found = []
    for told in agent.diary:
        count = ran.count(told.tag)
        if told.never:
            found.append(f"{told.tag} ran {count} times, and its key gives no result")
        if count > 1:
            found.append(f"{told.tag} ran {count} times")
        if told.refused and (told.ran_by_then or (not told.key and count)):
            found.append(f"{told.tag} ran, and {told.refused} was said of it")
        if told.status is not None and not count:
            found.append(f"{told.tag} has status {told.status} and did not run")
        if told.status is not None:
            found += _wrong_result(told)
    return found


def _wrong_result(told: Told) -> list[str]:
    if (told.status, told.output) == (status_of(told.tag), f"out-{told.tag}\n"):
        return []
    return [f"{told.tag}: status {told.status}, output {told.output!r}"]
