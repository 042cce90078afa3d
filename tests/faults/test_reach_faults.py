"""What people elsewhere must not notice, or only as a wait: relays and NATS servers that are
killed, paused and started again at random while they type and read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from faults.actors_at_work import Worker
from faults.histories import OK, UNKNOWN, faults
from faults.numbered import stream_faults
from faults.reached import Guests, ReachedHost, RelayPlace
from faults.remote_actors import (
    COME_BACK_S,
    FarCompany,
    FarFollower,
    FarView,
    ticking,
    type_line,
)
from holdfast.adapters.nats.server import NatsCluster, NatsNode
from process.relay_pairs import relay_on
from process.waiting import until

SEED = 20_270_402
STORM_S = 120.0
ACTORS = 4


class Storm:
    """Faults, one or two at a time, each followed by its end. Drawn from one seed; when they meet
    what is up to the machine."""

    def __init__(self, relays: list[RelayPlace], nodes: list[NatsNode], host: ReachedHost) -> None:
        self._relays, self._nodes, self._host = relays, nodes, host
        self._chance = random.Random(SEED)
        self._struck: list[object] = []
        self.done: list[str] = []
        self.daemons = 0

    def blow(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            afterwards = [self._strike()]
            if self._chance.random() < 0.4:
                afterwards.append(self._strike())
            time.sleep(self._chance.uniform(0.2, 4.0))  # how long it lasts is the chance
            for heal in afterwards:
                heal()
            time.sleep(self._chance.uniform(0.5, 3.0))

    def _strike(self) -> Callable[[], None]:
        """Break something; gives what mends it."""
        roll = self._chance.random()
        if roll < 0.08:
            return self._kill_daemon()
        if roll < 0.6:
            return self._strike_relay(self._chance.choice(self._relays))
        return self._strike_node(self._chance.choice(self._nodes))

    def _mended_by(self, mend: Callable[[], None], what: object) -> Callable[[], None]:
        """Nothing is struck again before that."""
        self._struck.append(what)

        def mended() -> None:
            mend()
            self._struck.remove(what)

        return mended

    def _strike_relay(self, relay: RelayPlace) -> Callable[[], None]:
        if relay in self._struck:
            return lambda: None
        how = self._chance.choice(["kill", "kill", "end", "pause"])
        self.done.append(f"{how} relay")
        if how == "pause":
            relay.pause()
            return self._mended_by(relay.resume, relay)
        (relay.kill if how == "kill" else relay.end)()
        return self._mended_by(relay.again, relay)

    def _strike_node(self, node: NatsNode) -> Callable[[], None]:
        if node in self._struck:
            return lambda: None
        if self._chance.random() < 0.5:
            self.done.append("pause nats")
            node.pause()
            return self._mended_by(node.resume, node)
        self.done.append("kill nats")
        node.kill()

        def again() -> None:
            node.start()
            node.wait_ready()

        return self._mended_by(again, node)

    def _kill_daemon(self) -> Callable[[], None]:
        self.done.append("kill daemon")
        killed = self._host.kill_daemon()
        self._host.wait_new_daemon(killed)
        self.daemons += 1
        return lambda: None


@pytest.mark.requirement("F5", "M6", "R3", "R4", "S4")
@pytest.mark.timeout(600)
def test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input(
    tmp_path: Path, guests: Guests, record_property: Callable[[str, object], None]
) -> None:
    with ExitStack() as stack:
        nats = stack.enter_context(NatsCluster(tmp_path, 3))
        relays = [
            RelayPlace(lambda listen: relay_on(nats, "storm", listen=listen)) for _ in range(2)
        ]
        for relay in relays:
            stack.callback(relay.close)
        host = ReachedHost(relays)
        stack.callback(host.down)
        host.up()
        link = host.link("--uses", str(ACTORS))
        machines = [guests.join(link, f"a{number}") for number in range(ACTORS)]
        company, printing = FarCompany(host, machines, SEED), ticking(host, 40, 0.02)
        follower = FarFollower(machines[0], printing)
        views = [FarView(machine, printing) for machine in machines[1:3]]
        for each in (*company.hands, follower, *views):
            each.start()
        type_line(host, printing)
        storm = Storm(relays, nats.nodes, host)
        storm.blow(STORM_S)
        healed = time.monotonic()
        company.kills = storm.daemons
        # Everybody is there again, and can work.
        for hand in company.hands:
            _until_it_writes(hand)
        took_s = time.monotonic() - healed
        type_line(host, printing)
        follower.join(COME_BACK_S)
        wrong = [follower.fault, *stream_faults(bytes(follower.held))]
        assert wrong == [""], wrong
        for view in views:
            _until_it_has_seen_the_end(view)
        scene = company.finish()
        found = faults(scene)
        assert found == [], "\n".join(found[:20])
        assert company.judgement.verdict == "intact"
        # It was worth judging.
        inputs = [op for op in scene.ops if op.kind == "input"]
        codes = {op.code for op in inputs}
        acknowledged = sum(op.outcome == OK for op in inputs)
        told: dict[str, object] = {
            "faults": len(storm.done),
            "kinds": sorted(set(storm.done)),
            "inputs": len(inputs),
            "acknowledged": acknowledged,
            "unknown": sum(op.outcome == UNKNOWN for op in inputs),
            "codes": sorted(codes),
            "came back": len(company.away),
            "longest away s": round(max(company.away), 1),
            "all there after the storm s": round(took_s, 1),
            "reader came back": follower.reconnects,
            "views": [(view.reconnects, view.resyncs, view.bytes) for view in views],
        }
        for name, value in told.items():
            record_property(name, value)
        print(told)
        assert codes <= {"", "turn_held", "rate_limited"}
        assert len({op.actor for op in inputs if op.outcome == OK}) == ACTORS + 1
        assert acknowledged > 100 and len(company.away) >= ACTORS


def _until_it_writes(hand: Worker) -> None:
    def written() -> int:
        return sum(op.kind == "input" and op.outcome == OK for op in list(hand.ops))

    before = written()
    until(f"{hand.name} writes", lambda: hand.fault or written() > before, COME_BACK_S)
    assert hand.fault == ""


def _until_it_has_seen_the_end(view: FarView) -> None:
    until("it has seen the end", lambda: view.fault or b"end\n" in view.last, COME_BACK_S)
    assert view.fault == ""
    view.stop.set()
