"""Policies in force, by scope. The gate asks here.

In a session the narrowest counts: the session's own, else those of its labels (all of them), else
the host's. A floor of the host is always judged besides, and the stricter verdict counts: what is
set below it can only narrow.

A change is checked, in the journal of every session that it applies to, and on disk, in that order;
then it is in force.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from holdfast.core.access.policy_rules import label_reaches
from holdfast.core.gate.verdicts import narrowest
from holdfast.host.clock import now
from holdfast.host.gate.effect_judge import EffectJudge, refused
from holdfast.host.gate.policy_source import WEBHOOK, PolicySource, prepare
from holdfast.host.gate.policy_store import KeptPolicy, PolicyStore, digest_of
from holdfast.host.session.parcel import SessionSpec
from holdfast.journal.entries import Body, GatePolicySet
from holdfast.model.actor import Actor
from holdfast.model.errors import InvalidArgument, LimitReached, StorageFailed
from holdfast.model.gate import EffectKind, ProposedEffect, Verdict
from holdfast.model.gate_policy import PolicyInfo
from holdfast.model.ids import SessionId
from holdfast.model.info import Finding
from holdfast.ports.gate_policy import GatePolicy
from holdfast.ports.policy_engine import PreparedPolicy

log = logging.getLogger(__name__)

HOST_SCOPE = "host"
FLOOR = "floor"  # how verdicts name the floor
UNGATED_NAMED = 64  # sessions without an exec gate, in one answer
_COUNTED_MAX = 1024  # sessions
POLICIES_MAX = 500  # in force at once, of all scopes: each is in memory, and in one file


class GatedSession(Protocol):
    """A live session, as far as policies apply to it."""

    spec: SessionSpec

    @property
    def ungated(self) -> str:
        """Why what its programs do is not judged; "" if it is."""
        ...

    def record_policy(self, actor: str, body: Body) -> None:
        """In its journal, at once. Raises StorageFailed."""
        ...


class PolicyBook(GatePolicy):
    """Of one host."""

    def __init__(
        self,
        store: PolicyStore,
        live: Mapping[SessionId, GatedSession],
        judge: EffectJudge,
        host_uid: int,
        has_ended: Callable[[SessionId], bool],
    ) -> None:
        """`has_ended`: whether a session is over for good, and not only not carried on yet."""
        self._store, self._live, self._judge, self._host_uid = store, live, judge, host_uid
        self._has_ended = has_ended
        self._starting: dict[SessionId, int] = {}  # sessions that are no live ones yet, by user
        self.damaged = ""
        # Replaced as a whole at every change.
        self._policies: dict[tuple[str, bool, int], tuple[KeptPolicy, PreparedPolicy]] = {}
        # What counts where, by these policies: a build asks a thousand times in a second.
        self._counted_of = self._policies
        self._counted: dict[
            tuple[str, tuple[str, ...]], tuple[tuple[str, PreparedPolicy], ...]
        ] = {}
        try:
            self._policies = {kept.place: (kept, ready) for kept, ready in store.read()}
        except StorageFailed as error:
            self.damaged = error.message
            log.critical("policies cannot be read, everything gated is refused: %s", self.damaged)

    # -- the gate asks --------------------------------------------------------------------------

    def in_force(self, session: str, labels: tuple[str, ...]) -> bool:
        if not self._policies:  # asked twice at every key press
            return bool(self.damaged)
        return bool(self.damaged) or any(
            self._applies(kept, session, labels) for kept, _ in self._policies.values()
        )

    def concerns(self, session: str, labels: tuple[str, ...], kind: EffectKind) -> bool:
        counting = self.counting(session, labels)
        return bool(self.damaged) or any(ready.concerns(kind) for _, ready in counting)

    def judge(self, effect: ProposedEffect) -> Verdict:
        if self.damaged:
            return refused(
                f"the policies of this host cannot be read: {self.damaged}; `hold doctor` says more"
            )
        return self._judge.judge(effect, self.counting(effect.session, effect.labels))

    def counting(
        self, session: str, labels: tuple[str, ...]
    ) -> tuple[tuple[str, PreparedPolicy], ...]:
        """The policies that count there, each with its scope as verdicts name it."""
        if self._counted_of is not self._policies or len(self._counted) > _COUNTED_MAX:
            self._counted_of, self._counted = self._policies, {}
        found = self._counted.get((session, labels))
        if found is None:
            counts = self._counting_places(session, labels)
            found = tuple(
                (_scope_shown(kept), ready)
                for place, (kept, ready) in self._policies.items()
                if place in counts
            )
            if self._user_of(SessionId(session)) is not None:  # else no label counts yet
                self._counted[session, labels] = found
        return found

    def _counting_places(
        self, session: str, labels: tuple[str, ...]
    ) -> frozenset[tuple[str, bool, int]]:
        applying = [
            kept for kept, _ in self._policies.values() if self._applies(kept, session, labels)
        ]
        chosen = narrowest(each.scope for each in applying if not each.floor)
        return frozenset(each.place for each in applying if each.floor or each.scope in chosen)

    def _applies(self, kept: KeptPolicy, session: str, labels: tuple[str, ...]) -> bool:
        kind, _, name = kept.scope.partition(":")
        if kind == "session":
            return name == session
        if kind == "label":
            uid = self._user_of(SessionId(session))
            return name in labels and label_reaches(kept.uid, uid, self._host_uid)
        return True

    def _user_of(self, session: SessionId) -> int | None:
        live = self._live.get(session)
        return live.spec.uid if live is not None else self._starting.get(session)

    def ungated(self, scope: str) -> tuple[str, ...]:
        """The live sessions of a scope where what programs do cannot be judged, by name."""
        kept = [kept for kept, _ in self._policies.values() if kept.scope == scope]
        return tuple(
            live.spec.name
            for live in self._live.values()
            if live.ungated
            and any(self._applies(each, live.spec.id, live.spec.labels) for each in kept)
        )[:UNGATED_NAMED]

    # -- changes --------------------------------------------------------------------------------

    def set(self, by: Actor, scope: str, given: PolicySource, *, floor: bool) -> KeptPolicy:
        """Raises PolicyInvalid, StorageFailed, LimitReached; then nothing has changed."""
        if floor and scope != HOST_SCOPE:
            raise InvalidArgument(
                "a floor is for the whole host", hint="leave --session or --label out"
            )
        if given.format == WEBHOOK and scope != HOST_SCOPE:
            # The daemon posts there, so whoever chooses the address reaches what the host can
            # reach.
            raise InvalidArgument("a webhook is for the whole host, or its floor")
        ready = prepare(given)
        self._check_readable(scope)
        kept = KeptPolicy(
            scope=scope,
            floor=floor,
            source=given.source,
            format=given.format,
            text=given.text,
            digest=digest_of(given.text),
            set_by=by.id,
            set_at=now(),
            uid=by.uid,
        )
        changed = {**self._left(), kept.place: (kept, ready)}
        if len(changed) > POLICIES_MAX:
            raise LimitReached(
                f"already {POLICIES_MAX} policies are in force",
                hint="`hold policy show` lists them",
            )
        entry = GatePolicySet(scope, kept.digest, kept.source, floor)
        self._change(by, kept, entry, changed)
        return kept

    def carry_over(self, before: SessionId, after: SessionId) -> int:
        """The policy of one session is the one of its successor too, which has not begun: its
        journal will have it. Gives how many. Raises StorageFailed."""
        found = {
            place: each
            for place, each in self._policies.items()
            if _is_session(each[0]) and _session_of(each[0]) == before
        }
        if not found:
            return 0
        changed = self._left()
        for kept, ready in found.values():
            carried = kept.replace(scope=f"session:{after}")
            changed[carried.place] = (carried, ready)
        self._store.write(tuple(kept for kept, _ in changed.values()))
        self._policies = changed
        return len(found)

    def off(self, by: Actor, scope: str, *, floor: bool) -> bool:
        """False: there was none."""
        self._check_readable(scope)
        uid = by.uid if scope.startswith("label:") else 0
        found = self._policies.get((scope, floor, uid))
        if found is None and not self.damaged:
            return False
        # Damaged: whoever may change everything starts over, with none.
        nothing = KeptPolicy(scope, floor, "", "", "", "", by.id, now(), uid)
        kept = found[0] if found is not None else nothing
        changed = {place: each for place, each in self._left().items() if place != kept.place}
        self._change(by, kept, GatePolicySet(scope, "", kept.source, floor), changed)
        return True

    def _change(
        self,
        by: Actor,
        about: KeptPolicy,
        entry: Body,
        changed: dict[tuple[str, bool, int], tuple[KeptPolicy, PreparedPolicy]],
    ) -> None:
        recorded: list[GatedSession] = []
        try:
            for live in list(self._live.values()):
                if self._applies(about, live.spec.id, live.spec.labels):
                    live.record_policy(by.id, entry)
                    recorded.append(live)
            if self.damaged:
                self._store.move_damaged_away()
            self._store.write(tuple(kept for kept, _ in changed.values()))
        except StorageFailed:
            self._take_back(by, about, recorded)
            raise
        self._policies, self.damaged = changed, ""

    def _take_back(self, by: Actor, about: KeptPolicy, recorded: list[GatedSession]) -> None:
        """It is in some journals but not in force: these are told what is."""
        kept, _ = self._policies.get(about.place, (None, None))
        digest, source = (kept.digest, kept.source) if kept is not None else ("", about.source)
        for live in recorded:
            with contextlib.suppress(StorageFailed):
                live.record_policy(by.id, GatePolicySet(about.scope, digest, source, about.floor))

    def _check_readable(self, scope: str) -> None:
        """What was in force is unknown: only whoever may change everything can start over."""
        if self.damaged and scope != HOST_SCOPE:
            raise StorageFailed(
                f"the policies of this host cannot be read: {self.damaged}",
                hint="start over for the whole host: `hold policy set FILE` or `hold policy off`",
            )

    def _left(self) -> dict[tuple[str, bool, int], tuple[KeptPolicy, PreparedPolicy]]:
        """What is in force, without that of sessions that have ended."""
        return {
            place: each
            for place, each in self._policies.items()
            if not _is_session(each[0]) or not self._has_ended(_session_of(each[0]))
        }

    # -- showing --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def starting(self, session: SessionId, uid: int) -> Iterator[None]:
        """A session of this unix user is not live yet, and will be soon."""
        self._starting[session] = uid
        try:
            yield
        finally:
            del self._starting[session]

    def entries_for(
        self, session: str, labels: tuple[str, ...]
    ) -> tuple[tuple[str, GatePolicySet], ...]:
        """For a journal that begins: policies that apply from the start, each by whom."""
        return tuple(
            (kept.set_by, GatePolicySet(kept.scope, kept.digest, kept.source, kept.floor))
            for kept, _ in self._policies.values()
            if self._applies(kept, session, labels)
        )

    def entries_since(
        self,
        before: tuple[tuple[str, GatePolicySet], ...],
        session: str,
        labels: tuple[str, ...],
    ) -> Iterator[tuple[str, GatePolicySet]]:
        """What has changed since `entries_for` said that."""
        now_applying = self.entries_for(session, labels)
        places = {(each.scope, each.floor) for _, each in now_applying}
        for by, gone in before:
            if (gone.scope, gone.floor) not in places:
                yield by, gone.replace(digest="")
        yield from (each for each in now_applying if each not in before)

    def shown(
        self, may_see: Callable[[KeptPolicy], bool], spec: SessionSpec | None = None
    ) -> tuple[PolicyInfo, ...]:
        """Those that the asker may see; with a session, those that apply to it."""
        counts = self._counting_places(spec.id, spec.labels) if spec is not None else None
        found = []
        for place, (kept, ready) in self._policies.items():
            if spec is not None and not self._applies(kept, spec.id, spec.labels):
                continue
            if spec is None and not may_see(kept):
                continue
            live = self._live.get(_session_of(kept)) if _is_session(kept) else None
            found.append(
                PolicyInfo(
                    scope=kept.scope,
                    floor=kept.floor,
                    source=kept.source,
                    format=kept.format,
                    digest=kept.digest,
                    rules=ready.rules,
                    set_by=kept.set_by,
                    set_at=kept.set_at,
                    text=kept.text,
                    session=live.spec.name if live is not None else "",
                    counts=counts is None or place in counts,
                )
            )
        return tuple(
            sorted(found, key=lambda each: (not each.floor, _width(each.scope), each.scope))
        )

    def findings(self) -> list[Finding]:
        """For `hold doctor`."""
        if self.damaged:
            return [
                Finding(
                    "gate",
                    False,
                    f"{self.damaged}: everything that a policy would be asked for is refused",
                    "restore it and `hold daemon restart`; or start over: `hold policy set FILE`",
                )
            ]
        differs = self._store.differs()
        if not differs:
            return []
        return [
            Finding(
                "gate",
                False,
                f"{differs}: the policies stay in force as they were set, until this daemon stops",
                "set them again, and the file is written",
            )
        ]


def _scope_shown(kept: KeptPolicy) -> str:
    """As verdicts name it: `floor`, `host`, `label:x`, `session`."""
    if kept.floor:
        return FLOOR
    return "session" if _is_session(kept) else kept.scope


def _is_session(kept: KeptPolicy) -> bool:
    return kept.scope.startswith("session:")


def _session_of(kept: KeptPolicy) -> SessionId:
    return SessionId(kept.scope.partition(":")[2])


def _width(scope: str) -> int:
    return ("host", "label", "session").index(scope.partition(":")[0])
