"""Twenty actors on one session, each with its own key and connection, and an admin who takes and
gives their rights: all they do and are told goes into one history (histories.py).

An input that was under way when its connection broke is sent again under the same number, mostly;
sometimes it is given up, and its outcome stays unknown. Everything is drawn from one seed; which
request meets which state of the host is up to the machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from faults.histories import OK, REFUSED, UNKNOWN, Op, Scene
from faults.hosting import FaultHost
from holdfast.model.errors import HoldfastError, HostDown, HostLost, TimedOut
from holdfast.model.state import Level
from holdfast.sdk import identity
from holdfast.sdk.connection import Connection, new_operator
from holdfast.sdk.identity import Identity
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.waiting import until

PROGRAM = str(Path(__file__).with_name("programs") / "recorder.py")
WORKER = ("observe", "input", "turn.request", "turn.grant")
TAKER = (*WORKER, "seize")  # every third actor
_ANSWER_S = 20.0
_RETRY_S = 0.02


class Hand(threading.Thread):
    """One actor's connection, which comes back by itself; and its diary."""

    def __init__(self, host: FaultHost, session: str, who: Identity | None, seed: int) -> None:
        super().__init__(daemon=True, name=who.name if who is not None else "admin")
        self.host, self.session, self.who = host, session, who
        self.chance = random.Random(seed)
        self.operator = new_operator()
        self.stop = threading.Event()
        self.ops: list[Op] = []
        self.actor = who.actor if who is not None else ""
        self.seq = 0
        self._count = 0
        self.connection: Connection | None = None

    # -- connection -------------------------------------------------------------------------------

    def connected(self) -> Connection:
        deadline = time.monotonic() + _ANSWER_S
        while self.connection is None:
            connection = None
            try:
                connection = Connection(self.host.socket, self.operator, "test")
                self._claim(connection)
                self.connection = connection
            except (HostDown, HostLost):
                if connection is not None:
                    connection.close()
                assert time.monotonic() < deadline, f"no host came back; {self.host.story()}"
                self.stop.wait(_RETRY_S)
        return self.connection

    def _claim(self, connection: Connection) -> None:
        if self.who is None:
            shown = connection.ask(access_messages.ShowActor(connection.next_id()), _ANSWER_S)
            assert isinstance(shown, access_messages.ActorShown)
            self.actor = shown.actor.id
            return
        welcome = connection.welcome
        proof = self.who.claim(welcome.host_key, welcome.challenge, self.operator)
        connection.ask(
            access_messages.Claim(connection.next_id(), self.who.actor, proof), _ANSWER_S
        )

    def leave(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    # -- asking, and writing down what came of it --------------------------------------------------

    def begin(self, kind: str, subject: str = "") -> Op:
        self._count += 1
        tag = f"{self.name}.{self._count}"
        op = Op(self.actor, kind, tag, time.monotonic(), subject=subject)
        self.ops.append(op)
        return op

    def ask(self, op: Op, request: m.Request) -> m.Answer | None:
        """Ask once. None: refused, or lost before it was answered."""
        connection = self.connected()
        try:
            answer = connection.ask(request.replace(id=connection.next_id()), _ANSWER_S)
        except (HostLost, TimedOut):
            self.leave()
            return None
        except HoldfastError as error:
            self.refused(op, error.code)
            return None
        op.end, op.outcome = time.monotonic(), OK
        if isinstance(answer, turn_messages.TurnShown):
            op.shown = answer.turn.holder
        return answer

    def refused(self, op: Op, code: str) -> None:
        op.end, op.outcome, op.code = time.monotonic(), REFUSED, code

    # -- input ------------------------------------------------------------------------------------

    def write(self, form: str = "", give_up: float = 0.0) -> Op:
        """One tagged input, until it is known what became of it, or it is given up."""
        self.connected()
        op = self.begin("input")
        self.seq += 1
        text = f"<{op.tag}>" + "x" * self.chance.choice((0, 5, 60, 900))
        if form == "long":  # longer than what is gathered
            text = text.ljust(5000, "y")
        if form == "key":  # as short as one
            text = f"<{op.tag}>"
        quiet = form in ("quiet", "key")
        request: m.Request = m.Input(0, self.session, self.seq, text.encode(), quiet)
        if (form or self.chance.choice(("keys", "submit"))) == "submit":
            request = m.Submit(0, self.session, self.seq, text)
        while self.ask(op, request) is None and op.outcome == UNKNOWN:
            if self.chance.random() < give_up:
                return op
        if op.outcome == REFUSED:
            self.seq -= 1  # the number was not used
        return op

    def write_and_vanish(self) -> None:
        """Send, and go without waiting for the answer."""
        connection, op = self.connected(), self.begin("input")
        self.seq += 1
        data = f"<{op.tag}>".encode()
        with contextlib.suppress(HostLost):
            connection.send(m.Input(connection.next_id(), self.session, self.seq, data))
        self.leave()

    def write_quietly(self) -> None:
        """Keys as a terminal sends them: several under way, answered together."""
        try:
            self.settle(self.send_ahead(self.chance.randint(2, 6), quiet=True))
        except (HostLost, TimedOut):
            self.leave()

    def send_ahead(self, count: int, size: int = 0, *, quiet: bool = False) -> dict[int, Op]:
        """Several inputs, without waiting for the answers; by the numbers of their requests."""
        connection = self.connected()
        under_way: dict[int, Op] = {}
        for _ in range(count):
            op = self.begin("input")
            self.seq += 1
            number = connection.next_id()
            under_way[number] = op
            data = f"<{op.tag}>".encode().ljust(size, b"x")
            connection.send(m.Input(number, self.session, self.seq, data, quiet))
        return under_way

    def settle(self, under_way: dict[int, Op]) -> None:
        """Wait for all the answers. A quiet one's stands for those before it."""
        connection = self.connected()
        while under_way:
            message = connection.receive(_ANSWER_S)
            if isinstance(message, m.Failed) and message.id in under_way:
                self.refused(under_way.pop(message.id), message.code)
            elif isinstance(message, m.Accepted):
                for number in [number for number in under_way if number <= message.id]:
                    op = under_way.pop(number)
                    op.end, op.outcome = time.monotonic(), OK


class Worker(Hand):
    """An actor that writes when it can, and asks for, gives and takes the turn."""

    acts_per_s = 20.0

    def __init__(
        self,
        host: FaultHost,
        session: str,
        who: Identity | None,
        seed: int,
        others: list[Identity],
    ) -> None:
        super().__init__(host, session, who, seed)
        self.others, self.fault = others, ""

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self._something()
                self.stop.wait(self.chance.expovariate(self.acts_per_s))  # they think, too
        except Exception as error:  # told by the test; a thread's own traceback is lost
            self.fault = f"{self.name}: {type(error).__name__}: {error}"
        finally:
            self.leave()

    def _something(self) -> None:
        roll = self.chance.random()
        if roll < 0.60:
            self._write_for_a_while()
        elif roll < 0.72:
            self.turn(turn_messages.RequestTurn(0, self.session, "please"))
        elif roll < 0.80:
            self.turn(turn_messages.GetTurn(0, self.session))
        elif roll < 0.84:
            self.turn(turn_messages.GrantTurn(0, self.session))
        elif roll < 0.88:
            self.turn(turn_messages.WithdrawTurn(0, self.session))
        elif roll < 0.92:
            other = self.chance.choice(self.others)
            self.turn(turn_messages.HandOffTurn(0, self.session, other.actor), tagged=True)
        elif roll < 0.94:
            self.turn(turn_messages.Seize(0, self.session), tagged=True)
        elif roll < 0.95:
            self.turn(turn_messages.RevokeTurn(0, self.session), tagged=True)
        elif roll < 0.98:
            self.leave()
        else:
            self.write_and_vanish()

    def _write_for_a_while(self) -> None:
        for _ in range(self.chance.randint(1, 8)):
            if self.write(give_up=0.2).outcome != OK:
                return
        if self.chance.random() < 0.3:
            self.write_quietly()
        if self.chance.random() < 0.7:
            self.turn(turn_messages.YieldTurn(0, self.session))

    def turn(self, request: m.Request, *, tagged: bool = False) -> Op:
        self.connected()
        op = self.begin(request.tag)
        if tagged:
            field = "message" if isinstance(request, turn_messages.HandOffTurn) else "reason"
            request = request.replace(**{field: f"<{op.tag}>"})
        self.ask(op, request)
        return op


class Admin(Worker):
    """Takes rights and gives them back, seizes and halts. It insists: what it began it completes,
    so that everybody can go on."""

    def __init__(
        self, host: FaultHost, session: str, seed: int, others: list[Identity], halts: bool
    ) -> None:
        super().__init__(host, session, None, seed, others)
        self._halts = halts

    def _something(self) -> None:
        self.connected()  # so that it knows who it is
        roll = self.chance.random()
        if roll < 0.80:
            subject = self.chance.choice(self.others)
            self.insist(
                "revoke",
                access_messages.RevokeEnvelope(0, subject.actor, self.session),
                subject.actor,
            )
            self.stop.wait(self.chance.uniform(0, 0.25))
            rights = rights_of(self.others, subject)
            self.insist(
                "grant",
                access_messages.GrantEnvelope(0, subject.actor, self.session, rights),
                subject.actor,
            )
        elif roll < 0.9 or not self._halts:
            self.turn(turn_messages.Seize(0, self.session), tagged=True)
            self._write_for_a_while()
            self.turn(turn_messages.YieldTurn(0, self.session))
        else:
            self.insist("halt", turn_messages.Seize(0, self.session, halt=True))
            self.insist("resume", turn_messages.Resume(0, self.session))
            self.turn(turn_messages.YieldTurn(0, self.session))

    def take_the_turn(self, how: str) -> None:
        """Away from its holder, in one of the ways there are."""
        self.connected()
        if how == "halt":
            self.insist("halt", turn_messages.Halt(0, self.session))
        elif how == "revoke":
            subject = self.others[0].actor
            self.insist("revoke", access_messages.RevokeEnvelope(0, subject, self.session), subject)
        else:
            self.turn(turn_messages.Seize(0, self.session), tagged=True)

    def insist(self, kind: str, request: m.Request, subject: str = "") -> None:
        op = self.begin(kind, subject)
        while self.ask(op, request) is None:
            assert op.outcome == UNKNOWN, f"{kind}: {op.code}"


def rights_of(everybody: list[Identity], one: Identity) -> tuple[str, ...]:
    return TAKER if everybody.index(one) % 3 == 0 else WORKER


class Company:
    """The session, its actors, and their history."""

    def __init__(
        self, host: FaultHost, actors: int, seed: int, *, level: Level = Level.PLAIN, halts: bool
    ) -> None:
        self.host, self.chance = host, random.Random(seed)
        self.read = host.work / f"read-{seed}"
        with host.client() as client:
            info = client.run([sys.executable, "-S", PROGRAM, str(self.read)], level=level)
            self.session, self.pid = info.id, info.pid
            self.directory = host.home / "sessions" / info.id
            until("it reads", lambda: self.read.exists())
            who = [identity.make(f"a{number}") for number in range(actors)]
            for one in who:
                client.ask(
                    access_messages.AddActor(0, one.name, "agent", one.public),
                    access_messages.ActorShown,
                )
                grant = access_messages.GrantEnvelope(
                    0, one.actor, self.session, rights_of(who, one)
                )
                client.ask(grant, access_messages.Envelopes)
        self.hands: list[Worker] = [
            Worker(host, self.session, one, seed * 100 + number, who)
            for number, one in enumerate(who)
        ]
        self.hands.append(Admin(host, self.session, seed * 100 + 99, who, halts))
        self.kills = self.early = 0

    def start(self) -> None:
        for hand in self.hands:
            hand.start()

    def work(self, seconds: float, kill_every_s: float) -> None:
        """For so long, with the daemon killed again and again."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.chance.random() < 0.3:
                self.stall(self.chance.uniform(0.3, 1.0))
            time.sleep(self.chance.uniform(0.1, 2 * kill_every_s))  # when it dies is the chance
            killed = self.host.kill_daemon()
            if self.chance.random() < 0.15:
                self.early += 1  # this one died, and so will the next, while it starts
                killed = self._kill_another(killed)
            self.host.wait_new_daemon(killed)
            self.kills += 1

    def until_revoked(self, times: int) -> None:
        """So many more revocations were confirmed."""
        wanted = self._revoked() + times
        until(f"{times} revocations", lambda: self._revoked() >= wanted)

    def _revoked(self) -> int:
        return sum(op.kind == "revoke" and op.outcome == OK for op in self.hands[-1].ops)

    def stall(self, seconds: float) -> None:
        """The program does not read for a while: inputs wait, with the host and in the terminal,
        while everything goes on."""
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGCONT)

    def _kill_another(self, killed: int) -> int:
        def look() -> int | None:
            pid = self.host.daemon_pid()
            return pid if pid != killed else None

        pid = until("the next one starts", look)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return pid

    def finish(self) -> Scene:
        """Everybody stops, the program reads what is left, and this is the history."""
        for hand in self.hands:
            hand.stop.set()
        for hand in self.hands:
            if hand.ident is not None:
                hand.join(45)
            assert not hand.is_alive() and not hand.fault, hand.fault or f"{hand.name} hangs"
        with self.host.client() as client:
            end = b"<end.1>"
            client.ask(turn_messages.Seize(0, self.session), turn_messages.Halted)
            local = client.ask(access_messages.ShowActor(0), access_messages.ActorShown).actor.id
            last = Op(local, "input", "end.1", time.monotonic())
            client.type_bytes(self.session, end)
            last.end, last.outcome = time.monotonic(), OK
            until("the program read all", lambda: self.read.read_bytes().endswith(end))
            verified = client.ask(
                journal_messages.Verify(0, self.session, thorough=True), journal_messages.Verified
            )
            self.judgement = verified.judgement
        ops = [op for hand in self.hands for op in hand.ops]
        return Scene.of([*ops, last], self.read, self.directory, self.kills, self.early)
