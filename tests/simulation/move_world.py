"""The world in which `core/continuity/migration.py` is checked: hosts, a store, a network and a
client, and everything that may go wrong between them.

The machines are those that run in a host, the lease machines among them. What is written down here
is what a host does with their effects: a tree is a list of inputs that it took, a journal a list
of entries. `Host` is the whole of it; who decides what happens next is not here: `move_orders.py`
tries every order, `move_runs.py` draws one from a seed.

What may happen at any moment:

- a message is lost, late, repeated, or overtakes another;
- a write to the store is done without an answer, is not done, or is done long after its sender
  gave up on it; a look fails;
- a host's daemon dies, also between two effects of one event: what was not stored is gone, CRIU's
  hold on the tree too, so that it runs on unless its cgroup is frozen; custody stays;
- a host's machine restarts: the tree is gone too;
- work fails: taking an image, restoring it;
- time passes, and deadlines with it.

What must hold after every step is `World.violation`.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import SavedSource, SavedTarget, SourceMove, TargetMove
from holdfast.core.continuity.move_table import SourceState, TargetState
from holdfast.core.lease import events as lev
from holdfast.core.lease.machine import Lease, SavedLease
from holdfast.core.lease.table import FENCED, HELD, RELEASED, LeaseStep
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms

SESSION = SessionId("0" * 26)
CLIENT = OperatorId("0" * 32)
Entry = tuple[Any, ...]
Journal = tuple[Entry, ...]


class Tree(NamedTuple):
    """The processes of a session: the inputs they took, and why they stand still."""

    log: tuple[int, ...]
    frozen: bool = False  # by its cgroup: outlives every process of ours
    traced: bool = False  # by CRIU: outlives nothing
    runs_on: int = 0  # how often it was let run again; what it did then is in no older image

    @property
    def runs(self) -> bool:
        return not (self.frozen or self.traced)


class Image(NamedTuple):
    log: tuple[int, ...]
    runs_on: int
    journal: Journal


class Message(NamedTuple):
    to: int
    sender: int
    move: str  # the incarnation that the target will be: one per move
    what: str
    body: Any = None


class Request(NamedTuple):
    """To the store."""

    host: int
    kind: str  # write; look, of a lease; record, of a move
    incarnation: str  # of the lease that asks
    write: Any = None  # (record, revision)


class Rules(NamedTuple):
    """The machines that are checked; mutants name others."""

    source: type[SourceMove] = SourceMove
    target: type[TargetMove] = TargetMove
    lease: type[Lease] = Lease
    terms: LeaseTerms = LeaseTerms(None, 0.0, 0.0, 0.0, 0.0)
    stops: bool = True  # StopTree freezes the cgroup
    ledger: bool = True  # what was taken is known by its number
    stores_first: bool = True  # what is kept is stored before the effects


class Host:
    """One host's part in one session."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.up = True
        self.gone = False  # for good
        self.boot = 0
        self.lives = 0  # incarnations named here, so that no two share a name
        # On disk or in custody:
        self.tree: Tree | None = None
        self.image: Image | None = None
        self.journal: Journal = ()
        self.epoch = 0  # of the session, as its parcel here has it
        self.sealed = False
        self.kept_source: SavedSource | None = None
        self.kept_target: SavedTarget | None = None
        self.kept_lease: SavedLease | None = None
        # In the daemon's memory:
        self.source: SourceMove | None = None
        self.target: TargetMove | None = None
        self.lease: Lease | None = None
        self.work: frozenset[str] = frozenset()
        self.crash_after = -1  # effects, counted down; -1: it does not

    def clone(self, world: World) -> Host:
        new = copy(self)
        new.world = world
        new.source, new.target, new.lease = copy(self.source), copy(self.target), copy(self.lease)
        return new

    # -- what it shows ----------------------------------------------------------------------------

    @property
    def holds_lease(self) -> bool:
        return self.lease is not None and self.lease.usable(self.world.now)

    @property
    def is_live(self) -> bool:
        """Whether operators are let in."""
        if not self.up or self.tree is None or not self.tree.runs or not self.holds_lease:
            return False
        return (self.source is None or self.source.is_over) and (
            self.target is None or self.target.is_over
        )

    # -- input ------------------------------------------------------------------------------------

    def offer(self, seq: int) -> bool:
        """Whether the client is told that it was taken."""
        if self.source is not None and self.source.holds_input and self.tree is not None:
            if self.rules.ledger and seq in self.tree.log:
                return True
            held = ev.HeldInput("ann", CLIENT, seq, b"%d" % seq)
            self.give(ev.InputCame(self.world.now, held))
            return False
        if not self.is_live:
            return False
        if self.target is not None and self.target.held:
            self.world.bad = "an input overtook one that was held"
        self.take(seq)
        return True

    def take(self, seq: int) -> None:
        assert self.tree is not None
        if self.rules.ledger and self.tree.log and seq <= self.tree.log[-1]:
            return
        self.record("input", seq)
        self.tree = self.tree._replace(log=(*self.tree.log, seq))

    def record(self, what: str, value: Any = None) -> None:
        if self.sealed:
            self.world.bad = f"host {self.number} journals after it sent the rest: {what}"
        self.journal = (*self.journal, (self.epoch, what, value))

    # -- the machines -----------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        return self.world.rules

    def start_move(self, to: Host) -> None:
        """Both agree; what led to that is of no interest here."""
        assert self.lease is not None
        to.lives += 1
        name = f"{to.number}.{to.lives}"
        to.target = self.rules.target(self.lease.epoch, name)
        to.kept_source = to.source = None
        to.image = None
        to._effects(to.target.begin(self.world.now))
        self.source = self.rules.source(self.lease.epoch, name)
        self.kept_target = self.target = None
        self._effects(self.source.begin(self.world.now))

    def give(self, event: ev.MoveEvent, *, source: bool = True) -> None:
        move = self.source if source else self.target
        if move is None or not self.up:
            return
        effects = move.handle(event)
        self._effects(effects)

    def _store(self) -> None:
        if self.target is not None and self.target.state is TargetState.PRIMED:
            self.world.primed |= {self.target.incarnation}
        self.kept_source = self.source.kept() if self.source is not None else None
        self.kept_target = self.target.kept() if self.target is not None else None

    def _effects(self, effects: list[ev.MoveEffect]) -> None:
        if self.rules.stores_first:
            self._store()
        after: list[tuple[ev.MoveEvent, bool]] = []
        for effect in effects:
            if self._crashes():
                return
            after += self._carry_out(effect)
            if not self.up:
                return
        if self._crashes():
            return
        if not self.rules.stores_first:
            self._store()
        for event, source in after:
            self.give(event, source=source)

    def _crashes(self) -> bool:
        if self.crash_after == 0:
            self.crash_after = -1
            self.world.crash(self)
        elif self.crash_after > 0:
            self.crash_after -= 1
        return not self.up

    def _carry_out(self, effect: ev.MoveEffect) -> list[tuple[ev.MoveEvent, bool]]:
        now, world = self.world.now, self.world
        match effect:
            case ev.TakeImage():
                assert self.tree is not None
                self.tree = self.tree._replace(traced=True)
                self.work |= {"image"}
            case ev.SendImage():
                self._send_to_target("image", self.image)
            case ev.SendRest(held=held):
                assert self.source is not None
                promised = tuple(each.seq for each in self.source.held)
                self.world.promised = {**self.world.promised, self.source.successor: promised}
                self._send_to_target("rest", (held, self.journal))
                self.sealed = True
            case ev.StopTree():
                assert self.tree is not None
                if self.rules.stops:
                    self.tree = self.tree._replace(frozen=True)
            case ev.ReleaseLease(successor=successor):
                return self._release(successor)
            case ev.ReclaimLease(heir_of=epoch):
                return self._inherit(epoch, "")
            case ev.ClaimLease(heir_of=epoch):
                assert self.target is not None
                return self._inherit(epoch, self.target.incarnation)
            case ev.RunOnHere(epoch=epoch, reason=reason):
                self.sealed, self.epoch = False, max(self.epoch, epoch)
                if self.lease is None or self.lease.state is RELEASED:
                    world.bad = f"host {self.number} lets its tree run after it released the lease"
                if self.tree is not None:
                    self.record("rolled back", bool(reason))
                    self._let_run()
            case ev.DeliverHeld(held=held):
                for each in held:
                    if self.tree is not None and self.holds_lease:  # else it is refused
                        self.take(each.seq)
                    if self._crashes():
                        return []
                if self.target is not None and self.target.state is TargetState.DELIVERING:
                    return [(ev.Delivered(now), False)]
            case ev.Tell(note=note):
                self._tell(note)
            case ev.LookAtRecord():
                world.ask(Request(self.number, "record", ""))
            case ev.DisposeOfTree():
                self.tree = None
                return [(ev.Disposed(now), True)]
            case ev.RestoreTree():
                self.work |= {"restore"}
            case ev.AdoptEpoch(epoch=epoch):
                self.epoch = epoch
                if (epoch, "moved", self.number) not in self.journal:
                    self.record("moved", self.number)
            case ev.LiveHere():
                self._live_here()
            case ev.Discard():
                self.tree, self.image, self.journal = None, None, ()
                self.work = frozenset()
        return []

    def _live_here(self) -> None:
        assert self.tree is not None and self.target is not None
        if not self.target.epoch:
            self.world.bad = f"host {self.number} lets its tree run before it has the lease"
        self._let_run()

    def _let_run(self, frozen: bool | None = None) -> None:
        tree = self.tree
        assert tree is not None
        if frozen is None:
            frozen = not self.holds_lease
        again = not tree.runs and not frozen
        if again and tree.runs_on < self.world.ran:
            self.world.bad = "a tree ran on after the image that lives now was taken"
        self.tree = tree._replace(frozen=frozen, traced=False, runs_on=tree.runs_on + again)

    def _tell(self, note: ev.MoveNote) -> None:
        if self.source is not None:
            self._send_to_target(note)
        elif self.target is not None:
            sender = int(self.world.sources[self.target.incarnation])
            self.world.send(Message(sender, self.number, self.target.incarnation, note))

    def _send_to_target(self, what: str, body: Any = None) -> None:
        assert self.source is not None
        to = int(self.source.successor.split(".")[0])
        self.world.send(Message(to, self.number, self.source.successor, what, body))

    def hear(self, message: Message) -> None:
        if not self.up:
            return
        now, what = self.world.now, message.what
        if self.source is not None and self.source.successor == message.move:
            if what in _NOTES:
                self.give(ev.Noted(now, ev.MoveNote(what)))
        elif self.target is not None and self.target.incarnation == message.move:
            if what == "image":
                if self.target.state is TargetState.RECEIVING:
                    self.image = message.body
                    self.give(ev.ImageArrived(now), source=False)
            elif what == "rest":
                if self.target.state is TargetState.RESTORED:
                    self.journal, self.sealed = message.body[1], False
                self.give(ev.RestArrived(now, message.body[0]), source=False)
            else:
                self.give(ev.Noted(now, ev.MoveNote(what)), source=False)
        elif what == ev.MoveNote.ASKS:
            self.world.send(
                Message(message.sender, self.number, message.move, ev.MoveNote.CALLED_OFF)
            )

    def done(self, work: str, *, well: bool) -> None:
        self.work -= {work}
        now = self.world.now
        if not well:
            self.give(ev.MoveFailed(now, work), source=work == "image")
        elif work == "image":
            assert self.tree is not None
            self.image = Image(self.tree.log, self.tree.runs_on, self.journal)
            self.give(ev.ImageTaken(now))
        else:
            if self.image is None:
                self.world.bad = f"host {self.number} restores a tree of nothing"
                return
            self.tree = Tree(self.image.log, frozen=True, runs_on=self.image.runs_on)
            self.give(ev.TreeRestored(now), source=False)

    # -- the lease --------------------------------------------------------------------------------

    def _release(self, successor: str) -> list[tuple[ev.MoveEvent, bool]]:
        assert self.lease is not None
        if self.lease.state is RELEASED:
            if self.lease.settled:
                return [(ev.LeaseReleased(self.world.now), True)]
            return self.lease_event(lev.LeaseTick(self.world.now))
        return self.lease_event(lev.Release(self.world.now, successor))

    def _inherit(self, epoch: int, incarnation: str) -> list[tuple[ev.MoveEvent, bool]]:
        lease = self.lease
        if lease is not None and lease.heir_of == epoch and lease.state is not RELEASED:
            if lease.state is HELD:
                return [(self._held(lease.epoch), not incarnation)]
            if lease.state is not FENCED:
                return self.lease_event(lev.LeaseTick(self.world.now))
            # Ousted, or of another boot: a new one looks at the record, and finds out.
        if not incarnation:
            self.lives += 1
            incarnation = f"{self.number}.{self.lives}"
        self.lease = self.rules.lease(
            SESSION, str(self.number), incarnation, self.rules.terms, heir_of=epoch
        )
        return self.lease_event(lev.Acquire(self.world.now))

    def _held(self, epoch: int) -> ev.MoveEvent:
        now = self.world.now
        reclaims = self.source is not None
        return ev.Reclaimed(now, epoch) if reclaims else ev.Claimed(now, epoch)

    def _ousted(self) -> ev.MoveEvent:
        now = self.world.now
        return ev.ReclaimOusted(now) if self.source is not None else ev.ClaimOusted(now)

    def lease_event(self, event: lev.LeaseEvent) -> list[tuple[ev.MoveEvent, bool]]:
        """What follows for the move."""
        lease = self.lease
        if lease is None or not self.up:
            return []
        after: list[tuple[ev.MoveEvent, bool]] = []
        outcomes = lease.handle(event)
        self.kept_lease = lease.kept(str(self.boot))
        source = self.source is not None
        for outcome in outcomes:
            match outcome:
                case lev.ReadRecord():
                    self.world.ask(Request(self.number, "look", lease.incarnation))
                case lev.Write(record=record, revision=revision):
                    write = (record, revision)
                    self.world.ask(Request(self.number, "write", lease.incarnation, write))
                case lev.Acquired(epoch=epoch):
                    if lease.heir_of:
                        after.append((self._held(epoch), source))
                    elif self.tree is not None and (self.source is None or self.source.is_over):
                        self.epoch = epoch
                        self.record("held again")
                        self._let_run()
                case lev.Released():
                    after.append((ev.LeaseReleased(self.world.now), source))
                case lev.LeaseFenced(step=step):
                    after += self._fenced(step)
        return after

    def _fenced(self, step: LeaseStep) -> list[tuple[ev.MoveEvent, bool]]:
        lease, source = self.lease, self.source
        assert lease is not None
        if lease.heir_of and not lease.epoch:
            return [(self._ousted(), source is not None)]
        if self.tree is not None:
            self.tree = self.tree._replace(frozen=True)
        after: list[tuple[ev.MoveEvent, bool]] = []
        if source is not None and not source.is_over:
            after.append((ev.FencedBeforeRelease(self.world.now, "fenced"), True))
        # As LeaseRunner does: its own tree stood still since.
        self.lives += 1
        old = self.lease
        self.lease = self.rules.lease(
            SESSION,
            str(self.number),
            f"{self.number}.{self.lives}",
            self.rules.terms,
            max_seen=lease.max_seen,
        )
        assert old is not None
        now = self.world.now
        return [
            *after,
            *self.lease_event(lev.Acquire(now)),
            *self.lease_event(lev.Force(now, "host", "its own tree", old.epoch)),
        ]

    def answered(self, request: Request, event: lev.LeaseEvent) -> None:
        """The store's answer to a lease; one that is gone concerns nobody."""
        if self.lease is None or self.lease.incarnation != request.incarnation:
            return
        for after, source in self.lease_event(event):
            self.give(after, source=source)

    # -- death ------------------------------------------------------------------------------------

    def crash(self, *, restart: bool) -> None:
        """Its daemon, or with `restart` the machine."""
        self.up = False
        self.source = self.target = self.lease = None
        self.work = frozenset()
        self.crash_after = -1
        if self.tree is not None and self.tree.traced:
            self._let_run(frozen=self.tree.frozen)
        if restart:
            self.boot += 1
            self.tree = None

    def recover(self) -> None:
        self.up = True
        if self.kept_lease is not None:
            self.lease = _restored(self.rules.lease, self.kept_lease, str(self.boot))
        if self.kept_source is not None:
            self.source = self.rules.source.of(self.kept_source)
            self.sealed = self.sealed and not self.source.is_over
        if self.kept_target is not None:
            self.target = self.rules.target.of(self.kept_target)
        event = ev.Recovered(self.world.now, self.tree is not None)
        for source in (True, False):
            self.give(event, source=source)
        for after, source in self.lease_event(lev.LeaseTick(self.world.now)):
            self.give(after, source=source)


class World:
    """Hosts, a store, messages, and a client that types 1, 2, 3 …"""

    def __init__(self, rules: Rules, hosts: int = 2) -> None:
        self.rules = rules
        self.now = 0.0
        self.bad = ""
        self.record = LeaseRecord(SESSION, "0", "0.0", 1, rules.terms.length_s)
        self.revision = 1
        self.requests: tuple[Request, ...] = ()
        self.net: tuple[Message, ...] = ()
        self.sources: dict[str, int] = {}  # of each move
        self.primed: frozenset[str] = frozenset()  # moves whose targets were ready once
        self.promised: dict[str, tuple[int, ...]] = {}  # by move: what the target has to deliver
        self.lost = False  # nobody is left that could live
        self.typed = 0  # by the client: 1..typed
        self.acked = 0  # of those, the first so many are known to be taken
        self.ran = 0  # how often the tree that lived last was let run
        self.attested: Journal = ()  # what a live incarnation had in its journal last
        self.hosts = [Host(self, number) for number in range(hosts)]
        self._born(self.hosts[0])

    def _born(self, host: Host) -> None:
        lease = self.rules.lease(SESSION, "0", "0.0", self.rules.terms, born=True)
        lease.handle(lev.Acquire(0.0))
        lease.handle(lev.RecordSeen(0.0, 0, None))
        lease.handle(lev.LeaseWritten(0.0, 1))
        host.lease, host.kept_lease = lease, lease.kept("0")
        host.tree = Tree(())
        host.epoch = 1
        host.record("born")

    def clone(self) -> World:
        new = copy(self)
        new.hosts = [host.clone(new) for host in self.hosts]
        return new

    # -- what hosts ask for -----------------------------------------------------------------------

    def crash(self, host: Host, *, restart: bool = False) -> None:
        """What it asked for is answered to nobody; a write may be done yet."""
        host.crash(restart=restart)
        self.forget_requests(host)

    def forget_requests(self, host: Host) -> None:
        for request in [each for each in self.requests if each.host == host.number]:
            self.give_up(request, stray=request.kind == "write")

    def ask(self, request: Request) -> None:
        self.requests = (*self.requests, request)

    def send(self, message: Message) -> None:
        self.net = (*self.net, message)

    def start_move(self, source: Host, target: Host) -> None:
        self.sources = {**self.sources, f"{target.number}.{target.lives + 1}": source.number}
        source.start_move(target)

    # -- the store --------------------------------------------------------------------------------

    def serve(self, request: Request, *, answer: bool = True) -> None:
        """Do what is asked; without an answer the host hears later that there is none."""
        self.requests = _without(self.requests, request)
        host = self.hosts[request.host]
        if request.kind != "write":
            if answer and host.up:
                self._look(host, request)
            return
        record, revision = request.write
        done = revision == self.revision
        if done:
            self._write(record)
            if request.host < 0:  # whoever sent it may be gone
                self._judge_loss()
        if answer and host.up:
            now = self.now
            event = lev.LeaseWritten(now, self.revision) if done else lev.WriteLost(now)
            host.answered(request, event)

    def give_up(self, request: Request, *, stray: bool = False) -> None:
        """The host hears nothing; `stray`: it may be done yet."""
        if not stray:
            self.requests = _without(self.requests, request)
        elif request.host >= 0:
            stray_write = Request(-1, "write", "", request.write)
            self.requests = (*_without(self.requests, request), stray_write)
        host = self.hosts[request.host]
        if not host.up or request.host < 0:
            return
        if request.kind == "record":
            host.give(ev.RecordUnknown(self.now), source=host.source is not None)
        elif request.kind == "look":
            host.answered(request, lev.LookFailed(self.now))
        else:
            host.answered(request, lev.WriteUnknown(self.now))

    def _look(self, host: Host, request: Request) -> None:
        record = self.record
        if request.kind == "look":
            host.answered(request, lev.RecordSeen(self.now, self.revision, record))
            return
        released = (record.successor or "*") if record.released else ""
        ours = record.owner == str(host.number)
        event = ev.RecordIs(self.now, record.epoch, record.incarnation, released, ours)
        host.give(event, source=host.source is not None)

    def _write(self, record: LeaseRecord) -> None:
        before = self.record
        same = record.incarnation == before.incarnation
        if record.epoch < before.epoch or (record.epoch == before.epoch and not same):
            self.bad = f"epoch {record.epoch} was given out twice"
        unready = record.released and record.successor not in self.primed
        if unready and self.hosts[int(record.owner)].tree is not None:
            self.bad = "released to a target that is not ready"
        self.record, self.revision = record, self.revision + 1

    # -- the client -------------------------------------------------------------------------------

    def client_sends(self, host: Host, *, hears: bool = True) -> None:
        """Everything that was not acknowledged, in order, as after every reconnection."""
        for seq in range(self.acked + 1, self.typed + 1):
            taken = host.offer(seq)
            if taken and hears and seq == self.acked + 1:
                self.acked = seq

    # -- what must hold ---------------------------------------------------------------------------

    def violation(self) -> str:
        if self.bad:
            return self.bad
        running = [host for host in self.hosts if host.tree is not None and host.tree.runs]
        if len(running) > 1:
            return "two trees run"
        live = [host for host in self.hosts if host.is_live]
        if len(live) > 1:
            return "two incarnations are attachable"
        for host in self.hosts:
            log = host.tree.log if host.tree is not None else ()
            if len(set(log)) != len(log):
                return f"an input was doubled: {log}"
            if host.tree is not None and host.tree.runs:
                self.ran = max(self.ran, host.tree.runs_on)
            if list(log) != sorted(log):
                return f"inputs were reordered: {log}"
        if live:
            return self._of_the_live(live[0])
        return ""

    def _of_the_live(self, host: Host) -> str:
        assert host.tree is not None
        if self.acked > len(host.tree.log):
            return f"an acknowledged input was lost: {self.acked} of {host.tree.log}"
        if list(host.tree.log) != list(range(1, len(host.tree.log) + 1)):
            return f"an input was skipped: {host.tree.log}"
        if host.journal[: len(self.attested)] != self.attested:
            return f"the journal does not go on: {self.attested} … {host.journal}"
        missing = set(self.promised.get(self.record.incarnation, ())) - set(host.tree.log)
        if missing:
            return f"held inputs were not delivered: {sorted(missing)}"
        epochs = [entry[0] for entry in host.journal]
        if epochs != sorted(epochs):
            return f"epochs do not rise: {epochs}"
        self.attested = host.journal
        return ""

    def machine_stopped(self, host: Host, *, for_good: bool = False) -> None:
        """With its trees. `lost`: nobody is left that could live, so nobody must."""
        host.gone = for_good
        self.crash(host, restart=True)
        self._judge_loss()

    def _judge_loss(self) -> None:
        holder = self.hosts[int(self.record.owner)]
        if holder.tree is not None:
            return
        if self.record.released:
            heir = self.record.successor
            able = heir in self.primed and not self.hosts[int(heir.split(".")[0])].gone
        else:  # a target that has not let its tree run yet has the image
            kept = holder.kept_target
            able = kept is not None and kept.state in _NOT_RUN_YET and not holder.gone
        self.lost = self.lost or not able


_NOT_RUN_YET = (TargetState.PRIMED, TargetState.CLAIMING, TargetState.DELIVERING)
_NOTES = frozenset(note.value for note in ev.MoveNote)
OVER = (SourceState.MOVED, SourceState.ROLLED_BACK, SourceState.LOST)


def _without(items: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    at = items.index(item)
    return (*items[:at], *items[at + 1 :])


def _restored(kind: type[Lease], kept: SavedLease, boot: str) -> Lease:
    return kind.of(kept, boot)
