"""Who may see a session is asked at every beat of every stream: what that costs, and that the
answer is never older than what it rests on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.access import visibility
from holdfast.core.access.authority import Authority
from holdfast.core.access.presented_grants import PresentedGrants
from holdfast.host import session_registry as registry_module
from holdfast.host.reach.uplink import Uplink
from holdfast.host.session_registry import Registry
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope
from holdfast.model.grant import Reach
from holdfast.model.ids import HOST_ACTOR
from unit.granting import ADA, AGENT, HOST, HOUR, NOW, SESSION, chain, verifier

STREAMS = 200
ACTOR = Actor.of(ADA.key, "ada", "human", uid=1000, created_at=0.0)


class Scene:
    """A device with many connections, each of which shows its grant, and a session it may see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = float(NOW)
        monkeypatch.setattr(registry_module, "now", lambda: self.now)
        self.shown = PresentedGrants(verifier())
        grant = chain(HOST.gives(ADA, reach=Reach(("label:x",))))
        for number in range(STREAMS):
            self.shown.show(str(number), grant, ADA.key, NOW)
        self.authority = Authority([ACTOR], shown=self.shown)
        store: Any = SimpleNamespace(tombstones=lambda _: [], unacknowledged=list)
        self.registry: Registry[Any] = Registry(store, self.authority)
        self.live: Any = SimpleNamespace(spec=SimpleNamespace(uid=1000, id=SESSION, labels=("x",)))
        self.judged = 0
        judged = self.authority._rights_of

        def counted(*asked: Any, **how: Any) -> Any:
            self.judged += 1
            return judged(*asked, **how)

        monkeypatch.setattr(self.authority, "_rights_of", counted)

    def sees(self) -> bool:
        return self.registry.may_see(ACTOR, self.live)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.requirement("R3")
def test_beats_of_many_streams_judge_once_also_when_streams_come_and_go(scene: Scene) -> None:
    for number in range(1, STREAMS):
        assert scene.sees()
        scene.shown.withdraw(str(number))
    assert scene.sees() and scene.judged == 1


@pytest.mark.requirement("A2", "R3")
def test_what_ends_or_narrows_what_it_rests_on_is_seen_at_once(scene: Scene) -> None:
    assert scene.sees()
    scene.live.spec.labels = ()
    assert not scene.sees(), "out of reach"
    scene.live.spec.labels = ("x",)
    nothing = Envelope(ACTOR.id, ALL, (), granted_by=HOST_ACTOR)
    assert scene.sees()
    scene.authority.set(nothing, now=scene.now, live=())
    assert not scene.sees(), "shut out"


@pytest.mark.requirement("A2", "R3")
def test_it_ends_with_the_last_connection_with_its_time_and_with_its_actor(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.sees()
    scene.now += 8 * HOUR
    assert not scene.sees(), "expired"
    scene.now = float(NOW)
    assert not scene.sees(), "the clock was set back"
    other = Scene(monkeypatch)
    assert other.sees()
    other.authority.revoke_actor(ACTOR.id, by=HOST_ACTOR, now=other.now, live=())
    assert not other.sees(), "revoked"
    last = Scene(monkeypatch)
    for number in range(STREAMS):
        assert last.sees()
        last.shown.withdraw(str(number))
    assert not last.sees(), "nobody shows it"


@pytest.mark.requirement("R3")
def test_no_more_answers_are_kept_than_there_is_room_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "_CACHE_MAX", 3)
    for number in range(10):
        scene.live.spec.labels = ("x", str(number))
        assert scene.sees()
        assert len(scene.registry._visibility._cache) <= 3


@pytest.mark.requirement("R3")
def test_a_change_about_one_actor_has_only_its_streams_judged() -> None:
    judged: list[int] = []

    def stream(number: int) -> Any:
        of = ADA if number % 100 == 7 else AGENT
        return SimpleNamespace(
            is_of=lambda actor: actor == of.actor, judge=lambda: judged.append(number)
        )

    uplink: Any = SimpleNamespace(_streams={number: stream(number) for number in range(STREAMS)})
    Uplink.judge(uplink, ADA.actor)
    assert judged == [7, 107]
    judged.clear()
    Uplink.judge(uplink, None)
    assert len(judged) == STREAMS
