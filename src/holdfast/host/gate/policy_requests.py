"""Requests about policies of the gate. Who may set one: whoever has `grant` throughout the scope;
for the whole host, whoever may make other requests about the host."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core.access import policy_rules
from holdfast.core.access.envelope_book import Live
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.gate import policy_source
from holdfast.host.gate.effect_judge import EffectJudge
from holdfast.host.gate.past_lines import (
    PastEffect,
    PastSession,
    command,
    commands,
    judged,
    line_of,
    session_of,
)
from holdfast.host.gate.policy_book import HOST_SCOPE, PolicyBook
from holdfast.host.gate.policy_store import KeptPolicy
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.record import SessionRecord
from holdfast.host.session_registry import has_ended
from holdfast.host.session_store import SessionStore, Stored, journal_of
from holdfast.journal.entries import CommandBegan, Entry, JudgedEntry
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.envelope import Scope
from holdfast.model.errors import InvalidArgument
from holdfast.model.gate import Contributor, Outcome, Part, ProposedEffect, Verdict
from holdfast.model.gate_policy import Explanation, JudgedLine, PartShown
from holdfast.model.ids import SessionId
from holdfast.model.state import Level
from holdfast.ports.policy_engine import PreparedPolicy
from holdfast.wire.messages import gate_policy
from holdfast.wire.messages import session as m

LINES_MAX = 5000  # judged by one check: each takes about a millisecond
FINDINGS_MAX = 1000  # of one answer: it must fit one frame
_LINE_MAX_CHARS = 400  # of one finding
_NO_SESSION = SessionId("0" * 26)  # of lines that are judged for none


class PolicedSession(Protocol):
    """A live session, as far as policies are concerned."""

    spec: SessionSpec
    journal: SessionRecord


Found = PolicedSession | Stored
MayObserve = Callable[[Actor, SessionId], bool]


class PolicyRequests:
    """Handlers of one host."""

    def __init__(
        self,
        book: PolicyBook,
        actors: ActorBook,
        store: SessionStore,
        make_judge: Callable[[], EffectJudge],
        live_sessions: Callable[[], list[Live]],
        may_see: MayObserve,
        host_uid: int,
    ) -> None:
        """`make_judge`: one for a thread of its own; `may_see`: whether an actor may observe a live
        session."""
        self._book, self._actors, self._store = book, actors, store
        self._make_judge, self._live_sessions = make_judge, live_sessions
        self._may_see, self._host_uid = may_see, host_uid
        self._judge = make_judge()

    # -- showing --------------------------------------------------------------------------------

    def show(
        self, operator: OperatorConnection, request: gate_policy.ShowPolicy, found: Found | None
    ) -> m.Answer:
        if found is None:
            return self._shown(request.id, operator, None)
        return self._shown(request.id, operator, _live(found).spec)

    def _shown(
        self, request: int, operator: OperatorConnection, spec: SessionSpec | None
    ) -> m.Answer:
        asker = operator.actor
        shown = self._book.shown(lambda kept: self._sees(asker, kept), spec)
        names = {str(each.id): each.name for each in self._actors.seen_by(asker)}
        return gate_policy.Policies(request, shown, names, self._book.damaged)

    def _sees(self, asker: Actor, kept: KeptPolicy) -> bool:
        kind, _, name = kept.scope.partition(":")
        if kind == "session":
            return self._may_see(asker, SessionId(name))
        return kind == HOST_SCOPE or policy_rules.may_see_label_policy(asker, kept.uid)

    # -- changing -------------------------------------------------------------------------------

    def set(
        self, operator: OperatorConnection, request: gate_policy.SetPolicy, found: Found | None
    ) -> m.Answer:
        scope = self._scope(operator, request.session, request.label, found)
        given = policy_source.read(request.text, request.source, request.format)
        self._book.set(operator.actor, scope, given, floor=request.floor)
        return self._of_scope(request.id, operator, scope)

    def off(
        self, operator: OperatorConnection, request: gate_policy.EndPolicy, found: Found | None
    ) -> m.Answer:
        scope = self._scope(operator, request.session, request.label, found)
        if request.floor and scope != HOST_SCOPE:
            raise InvalidArgument("a floor is of the whole host")
        if not self._book.off(operator.actor, scope, floor=request.floor):
            what = "floor" if request.floor else f"policy of {scope.partition(':')[0]} scope"
            raise InvalidArgument(
                f"there is no {what} to take away", hint="`hold policy show` lists those in force"
            )
        return self._of_scope(request.id, operator, scope)

    def _of_scope(self, request: int, operator: OperatorConnection, scope: str) -> m.Answer:
        names = {str(each.id): each.name for each in self._actors.seen_by(operator.actor)}
        shown = self._book.shown(lambda kept: kept.scope == scope)
        ungated = self._book.ungated(scope)
        return gate_policy.Policies(request, shown, names, self._book.damaged, ungated)

    def _scope(
        self, operator: OperatorConnection, session: str, label: str, found: Found | None
    ) -> str:
        """Which scope is meant, if this actor may set its policy."""
        if session and label:
            raise InvalidArgument("a policy is for one session or for one label")
        authority, actor, at = self._actors.authority, operator.actor, now()
        if found is not None:
            spec = _live(found).spec
            policy_rules.check_for_session(authority, actor, spec.id, spec.labels, at)
            return str(Scope.session(spec.id))
        if label:
            scope = Scope.label(label).checked()
            policy_rules.check_for_label(authority, actor, scope, at, self._live_sessions())
            return str(scope)
        policy_rules.check_for_host(authority, actor, operator.uid, self._host_uid, at)
        return HOST_SCOPE

    # -- asking what would be -------------------------------------------------------------------

    async def check(
        self, operator: OperatorConnection, request: gate_policy.CheckPolicy, found: Found | None
    ) -> m.Answer:
        given = policy_source.read(request.text, request.source, request.format)
        policy = policy_source.prepare(given)
        if len(request.lines) > LINES_MAX:
            raise InvalidArgument(f"at most {LINES_MAX} lines are judged at once")
        if request.kind not in list(ActorKind):
            raise InvalidArgument(
                f"not a kind of actor: {request.kind[:40]!r}", hint=", ".join(ActorKind)
            )
        past = None if found is None else self._past(found)
        lines = self._lines_given(operator.actor, request, past)
        directory = "" if past is None else self._store.directory(past.id)
        return await asyncio.to_thread(self._checked, request.id, policy, past, directory, lines)

    def _checked(
        self,
        request: int,
        policy: PreparedPolicy,
        past: PastSession | None,
        directory: str,
        lines: list[ProposedEffect],
    ) -> m.Answer:
        """In a thread: with a judge of its own."""
        effects: deque[PastEffect] = deque(maxlen=LINES_MAX)
        skipped = 0
        if past is not None:
            entries = JournalReader(directory).entries()
            for each in commands(entries, past, self._actors.authority.actor):
                if each is None:
                    skipped += 1
                else:
                    effects.append(each)
        judge = self._make_judge()
        counts = dict.fromkeys(Outcome, 0)
        findings: deque[JudgedLine] = deque(maxlen=FINDINGS_MAX)
        for each in (*effects, *(PastEffect(0, 0.0, line) for line in lines)):
            verdict = judge.judge(each.effect, [("checked", policy)])
            counts[verdict.outcome] += 1
            if verdict.outcome is not Outcome.ALLOW:
                findings.append(_finding(each, verdict))
        return gate_policy.PolicyChecked(
            request,
            rules=policy.rules,
            judged=sum(counts.values()),
            refused=counts[Outcome.REFUSE],
            held=counts[Outcome.HOLD],
            skipped=skipped,
            findings=tuple(findings),
        )

    def _lines_given(
        self, asker: Actor, request: gate_policy.CheckPolicy, past: PastSession | None
    ) -> list[ProposedEffect]:
        """As if an actor of that kind set them off."""
        kind = ActorKind(request.kind)
        by = Contributor(asker.id, f"some {kind}", kind, Part.TRIGGER)
        if request.cwd and not request.cwd.startswith("/"):
            raise InvalidArgument("the working directory must be an absolute path")
        cwd = request.cwd or "/"
        nowhere = PastSession(_NO_SESSION, "", (), Level.PLAIN, 1, cwd, cwd)
        return [line_of(past or nowhere, text, (by,), request.cwd) for text in request.lines]

    async def explain(
        self, operator: OperatorConnection, request: gate_policy.ExplainPolicy, found: Found
    ) -> m.Answer:
        past = self._past(found)
        directory = self._store.directory(past.id)
        entry = await asyncio.to_thread(_entry, directory, request.seq)
        effect = self._effect_of(entry, past)
        facts, verdict = self._judge.facts(effect), self._book.judge(effect)
        then = entry.body if isinstance(entry.body, JudgedEntry) else None
        return gate_policy.PolicyExplained(
            request.id,
            Explanation(
                seq=entry.seq,
                kind=effect.kind,
                text=effect.text,
                at=entry.at,
                contributors=tuple(
                    PartShown(each.name, each.kind, each.part, each.what, each.command)
                    for each in effect.contributors
                ),
                facts=facts,
                outcome=verdict.outcome,
                reason=verdict.reason,
                policy=verdict.policy,
                quorum=verdict.quorum,
                recorded=then.outcome if then is not None else "",
                recorded_reason=then.reason if then is not None else "",
                recorded_policy=then.policy if then is not None else "",
            ),
        )

    def _effect_of(self, entry: Entry, past: PastSession) -> ProposedEffect:
        known = self._actors.authority.actor
        if isinstance(entry.body, CommandBegan):
            found = command(entry, entry.body, past, known)
            if found is not None:
                return found.effect
            raise InvalidArgument("nobody is known to have typed that command")
        if isinstance(entry.body, JudgedEntry) and entry.body.contributors:
            return judged(entry.body, past)
        raise InvalidArgument(
            f"entry {entry.seq} is not about a line: it is {entry.body.tag or 'unknown'!r}",
            hint="give the number of a judgement or of a begun command, as `hold log NAME` has it",
        )

    def _past(self, found: Found) -> PastSession:
        journal_of(found)
        return session_of(found if isinstance(found, Stored) else found.spec)


def _live(found: Found) -> PolicedSession:
    if isinstance(found, Stored):
        raise has_ended(found)
    return found


def _entry(directory: str, seq: int) -> Entry:
    if seq < 1:
        raise InvalidArgument("journal records are numbered from 1")
    entry = next(iter(JournalReader(directory).entries(seq, seq)), None)
    if entry is None:
        raise InvalidArgument(f"the journal has no entry {seq}")
    return entry


def _finding(past: PastEffect, verdict: Verdict) -> JudgedLine:
    return JudgedLine(
        seq=past.seq,
        text=past.effect.text[:_LINE_MAX_CHARS],
        actors=tuple(dict.fromkeys(each.name for each in past.effect.contributors)),
        outcome=verdict.outcome,
        reason=verdict.reason,
        policy=verdict.policy.removeprefix("checked:"),
        quorum=verdict.quorum,
        at=past.at,
    )
