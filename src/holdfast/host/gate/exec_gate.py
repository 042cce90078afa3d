"""The exec gate of one session: what its processes execute and open for writing is judged before
it happens.

While no policy is in force the session's keeper lets everything pass. With one, the host's answerer
takes the calls: it reports who writes which file, and lets everything pass by itself as long as no
policy concerns such effects and everybody who ever had a part in the session may write in it.
Otherwise it asks what it does not know yet. An answer counts until policies or rights change: then
the page has another word, and everything is asked again.

Deliberately absent: what a policy says, who is behind a process, how approvals are counted. Each is
asked by a small Protocol or callable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from holdfast.adapters.proc import ancestry
from holdfast.adapters.seccomp.gate_messages import (
    CallAnswer,
    CallQuestion,
    KnownFiles,
    Learns,
    NamedFile,
    Read,
    Serve,
    WordChanged,
    Wrote,
)
from holdfast.adapters.seccomp.gate_page import GateWord, JudgedKinds
from holdfast.core.gate.authority_meet import AUTHORITY, refused_by_authority
from holdfast.core.gate.verdicts import strictest
from holdfast.host.gate.answerer_link import Asker
from holdfast.host.gate.command_book import Approved
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.errors import HoldfastError
from holdfast.model.gate import (
    ALLOWED,
    Contributor,
    EffectKind,
    Outcome,
    ProposedEffect,
    Verdict,
)
from holdfast.model.ids import ActorId
from holdfast.model.record import Record
from holdfast.model.state import Level
from holdfast.ports.gate_policy import GatePolicy

_OF_KIND = {
    EffectKind.EXEC: JudgedKinds.EXEC,
    EffectKind.WRITE_OPEN: JudgedKinds.WRITE_OPEN,
    EffectKind.CONNECT: JudgedKinds.CONNECT,
}
# A removed or changed name is a write, and may be judged as what it is, too.
_MORE_OF = {EffectKind.WRITE_OPEN: (EffectKind.UNLINK, EffectKind.RENAME)}
_FUNCTION = re.compile(r"BASH_FUNC_([^%=]+)%%=")  # as bash hands a function to another one
_FILES_TOLD = 30  # in one message, with the longest paths
_APPROVED_MAX = 64  # programs of one session whose children belong to their approval


class Answerers(Protocol):
    """The link to the answerer."""

    def serve(self, session: str, asker: Asker) -> None: ...

    def leave(self, session: str) -> None: ...

    def say(self, message: Record) -> None: ...


class Keeper(Protocol):
    """As far as the gate needs it."""

    def leave_gate(self) -> None: ...


class WhoIsBehindEffects(Protocol):
    """Who is behind what a session does."""

    def of_group(self, membership: str) -> tuple[Contributor, ...]:
        """Of a process, by its control group; whoever set it off first."""
        ...

    def approved(self, membership: str) -> Approved | None:
        """The line that started such a process, if it was held and then approved."""
        ...

    def of_file(self, device: int, inode: int, path: str) -> tuple[Contributor, ...]:
        """Who wrote it, as far as that is known."""
        ...

    def of_state(self, key: str) -> tuple[Contributor, ...]:
        """Who set a piece of the shell's state, as far as that is known."""
        ...

    def wrote(self, membership: str, device: int, inode: int, path: str, *, adds: bool) -> None:
        """A process of this control group has the file open for writing. `adds`: what was in it
        before may stay."""
        ...

    def read(self, membership: str, device: int, inode: int) -> None:
        """A process of this control group reads the file: who wrote it is behind what it does."""
        ...

    def learns(self, membership: str, of: str) -> None:
        """Processes of one control group receive what those of another send: whoever is behind the
        senders is behind what the receivers do."""
        ...

    def files(self) -> Iterable[tuple[str, int, int]]:
        """Path, device and inode of those of which it is known who wrote them."""
        ...

    def everybody(self) -> tuple[Contributor, ...]:
        """Everybody who ever had a part in it."""
        ...

    def close(self) -> None: ...


class AsksApproval(Protocol):
    """Where effects wait that a policy holds."""

    def hold(
        self, key: str, effect: ProposedEffect, verdict: Verdict, decided: Callable[[], None]
    ) -> tuple[ActorId, ...] | None:
        """Ask for approval, once for the same key; gives who approved by now, None if it was denied
        or has expired. `decided`: call when that changes."""
        ...

    def drop(self, key: str) -> None:
        """It will not happen, whatever is decided."""
        ...


class ApprovedProgram:
    """An execution that was held, and approved."""

    def __init__(
        self,
        question: CallQuestion,
        rule: str,
        actors: frozenset[str],
        by: tuple[ActorId, ...],
    ) -> None:
        self.question, self.rule, self.actors, self.by = question, rule, actors, by
        self._process = ancestry.process(question.pid)

    def started(self, pid: int) -> bool:
        """Whether that process is this one, or descends from it."""
        return self._process is not None and self._process in ancestry.of(pid)


class ExecGate:
    """Of one session. Without a filter (level plain, or asked for without) it does nothing."""

    def __init__(
        self,
        spec: SessionSpec,
        listener: int,
        memfd: int,
        keeper: Keeper,
        answerers: Answerers,
        policy: GatePolicy,
        behind: WhoIsBehindEffects,
        *,
        check_rights: Callable[[Iterable[Contributor]], None],
        epoch: Callable[[], int],
        turn_holder: Callable[[], str],
        record: Callable[[ProposedEffect, Verdict], None],
        judge: Callable[[ProposedEffect], Awaitable[Verdict]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        approvals: AsksApproval,
        own_files: tuple[str, ...] = (),
    ) -> None:
        """`check_rights` raises for a contributor that may not write in the session now; `record`
        if what is allowed cannot be recorded. `own_files`: where the shell reports to this host."""
        self._spec, self._listener, self._memfd = spec, listener, memfd
        self._word = GateWord(memfd) if listener >= 0 else None
        self._keeper, self._answerers = keeper, answerers
        self._policy, self._behind, self._check_rights = policy, behind, check_rights
        self._epoch, self._turn_holder = epoch, turn_holder
        self._record, self._approvals = record, approvals
        self._ask_policy, self._spawn = judge, spawn
        self._served, self._own_files = False, own_files
        self._held: dict[int, CallQuestion] = {}
        self._approved: list[ApprovedProgram] = []

    @property
    def missing(self) -> str:
        """Why there is none; "" if there is."""
        if self._listener >= 0:
            return ""
        if not self._spec.level.reaches(Level.CONTAINED):
            return f"level {self._spec.level} has no exec gate"
        return "it was started without the exec gate's system call filter"

    @property
    def judged(self) -> JudgedKinds:
        return self._word.judged if self._word is not None else JudgedKinds.NOTHING

    def start(self) -> None:
        """Of a session that begins, or that was carried on."""
        carried_on = self._word is not None and self._word.value != 0
        self.changed()
        if carried_on:
            self._keeper.leave_gate()  # or it has stepped back already, and says so again

    def changed(self) -> None:
        """Policies or rights have changed, or somebody new has a part in the session: from here on
        everything is judged by what holds now."""
        if self._word is None:
            return
        kinds = self._kinds()
        if kinds is JudgedKinds.NOTHING and not self._word.value:
            return
        first = not self._word.value
        self._word.judge(kinds)
        if first:
            self._keeper.leave_gate()
        elif self._served:
            self._answerers.say(WordChanged(self._spec.id))

    def new_contributor(self) -> None:
        """Somebody has a part in the session for the first time."""
        if self._word is not None and self._kinds() != self._word.judged:
            self.changed()

    def keeper_left(self) -> None:
        """From here on the answerer is the only one that takes calls."""
        if self._word is not None and not self._served:
            self._served = True
            self._answerers.serve(self._spec.id, self)

    def close(self, *, keep: bool) -> None:
        if self._word is None:
            return
        if self._served and not keep:
            self._answerers.leave(self._spec.id)
        self._behind.close()
        self._word.close()
        self._word = None

    def _kinds(self) -> JudgedKinds:
        spec, kinds = self._spec, JudgedKinds.NOTHING
        if not self._policy.in_force(spec.id, spec.labels):
            return kinds
        kinds |= JudgedKinds.WRITE_OPEN  # who wrote which file is known from then on
        for kind, bit in _OF_KIND.items():
            if self._policy.concerns(spec.id, spec.labels, kind):
                kinds |= bit
        if not self._everybody_may():
            kinds |= JudgedKinds.EXEC
        if len({each.actor for each in self._behind.everybody()}) > 1:
            kinds |= JudgedKinds.READS
        return kinds

    def _everybody_may(self) -> bool:
        try:
            self._check_rights(self._behind.everybody())
        except HoldfastError:
            return False
        return True

    # -- what the answerer asks -------------------------------------------------------------------

    def serve(self) -> tuple[Serve, tuple[int, int]]:
        fds = (self._listener, self._memfd)
        place = self._spec.place
        return Serve(self._spec.id, place.shell_pid, self._own_files, place.cgroup), fds

    def asked(self, question: CallQuestion) -> None:
        self._spawn(self._asked(question))

    async def _asked(self, question: CallQuestion) -> None:
        if self._word is None:
            return
        group = self._behind.of_group(question.membership)
        effect = self._effect(question, group)
        verdict = await self._judge(effect, question)
        if self._word is None:
            return
        if question.word != self._word.value:
            self._answer(question, allow=False)  # refused by nobody: it is asked again
            return
        carried = self._carried(question, effect, verdict)
        if verdict.outcome is Outcome.HOLD and carried and question.id not in self._held:
            effect = effect.replace(approved_by=carried)
            verdict = await self._judge(effect, question)
            if verdict.outcome is Outcome.ALLOW:
                self._settle(question, effect, verdict, allow=True)
                return
        if verdict.outcome is Outcome.HOLD:
            await self._hold(question, effect, verdict)
            return
        self.gone(question.id)  # held before, and not now: policies have changed
        allow = verdict.outcome is Outcome.ALLOW
        if not allow:
            self._record(effect, verdict)
        self._answer(question, allow=allow, whole_group=self._of_group(question, group, allow))

    def wrote(self, wrote: Wrote) -> None:
        file = wrote.file
        self._behind.wrote(wrote.membership, file.device, file.inode, file.path, adds=wrote.adds)

    def read(self, read: Read) -> None:
        self._behind.read(read.membership, read.device, read.inode)

    def learns(self, learns: Learns) -> None:
        self._behind.learns(learns.membership, learns.of)

    def asked_written(self) -> None:
        files = [NamedFile(*each) for each in self._behind.files()]
        for at in range(0, len(files), _FILES_TOLD):
            told = tuple(files[at : at + _FILES_TOLD])
            self._answerers.say(KnownFiles(self._spec.id, told))

    def gone(self, id: int) -> None:
        """It was interrupted, or its process was ended, while it waited."""
        if self._held.pop(id, None) is not None:
            self._approvals.drop(_key(id))

    def _answer(
        self, question: CallQuestion, *, allow: bool, whole_group: bool = False, once: bool = False
    ) -> None:
        session, id, word = question.session, question.id, question.word
        self._answerers.say(CallAnswer(session, id, word, allow, whole_group, once))

    def _of_group(
        self, question: CallQuestion, group: tuple[Contributor, ...], allow: bool
    ) -> bool:
        """Whether the same answer is right for everything of this kind from the same control
        group."""
        if not allow:
            try:
                self._check_rights(group)
            except HoldfastError:
                return True
            return False
        # Of a name that is removed or given, the same is not to be said of what is written.
        kinds = (question.kind, *_MORE_OF.get(question.kind, ()))
        concerned = any(self._concerns(kind) for kind in kinds)
        return not concerned and self._everybody_may()

    def _concerns(self, kind: EffectKind) -> bool:
        return self._policy.concerns(self._spec.id, self._spec.labels, kind)

    # -- held -------------------------------------------------------------------------------------

    async def _hold(self, question: CallQuestion, effect: ProposedEffect, verdict: Verdict) -> None:
        """Until it is approved, denied or given up: its process waits, and can be frozen or ended.
        An approval is for this very call, and the policy has the last word."""
        again = partial(self._decided, question.id)
        self._held[question.id] = question
        rule = verdict.policy
        approved = self._approvals.hold(_key(question.id), effect, verdict, again)
        if approved == ():
            return
        if approved is not None:
            effect = effect.replace(approved_by=approved)
            verdict = await self._judge(effect, question)
        self._held.pop(question.id, None)
        allow = approved is not None and verdict.outcome is Outcome.ALLOW
        if allow and question.kind is EffectKind.EXEC and approved is not None:
            self._approved.append(ApprovedProgram(question, rule, _actors(effect), approved))
            del self._approved[:-_APPROVED_MAX]
        self._settle(question, effect, verdict, allow=allow)

    def _settle(
        self, question: CallQuestion, effect: ProposedEffect, verdict: Verdict, *, allow: bool
    ) -> None:
        """For this very call, whatever is asked next."""
        outcome = Outcome.ALLOW if allow else Outcome.REFUSE
        try:
            self._record(effect, verdict.replace(outcome=outcome))
        except HoldfastError:  # what cannot be recorded does not happen
            allow = False
        self._answer(question, allow=allow, once=True)

    def _carried(
        self, question: CallQuestion, effect: ProposedEffect, verdict: Verdict
    ) -> tuple[ActorId, ...]:
        """Who already approved this as a part of something else: of the line that started it, or of
        the program that it descends from, if the same rule held that one. It may have no
        contributor whom they did not see."""
        behind = _actors(effect)
        line = self._behind.approved(question.membership)
        if line is not None and behind <= set(line.actors):
            return tuple(map(ActorId, line.by))
        for program in self._approved:
            same = (program.question.membership, program.rule) == (
                question.membership,
                verdict.policy,
            )
            if same and behind <= program.actors and program.started(question.pid):
                return program.by
        return ()

    def _decided(self, id: int) -> None:
        question = self._held.get(id)
        if question is not None:
            self.asked(question)

    # -- judging ----------------------------------------------------------------------------------

    def _effect(self, question: CallQuestion, group: tuple[Contributor, ...]) -> ProposedEffect:
        spec = self._spec
        files: list[Contributor] = []
        if question.kind is EffectKind.EXEC and question.inode:
            program = NamedFile(question.path, question.device, question.inode)
            for file in (program, *question.files):
                files += self._behind.of_file(file.device, file.inode, file.path)
        for each in question.environment:
            function = _FUNCTION.match(each)
            if function is not None:
                files += self._behind.of_state(f"func:{function[1]}")
        return ProposedEffect(
            session=spec.id,
            name=spec.name,
            labels=spec.labels,
            level=spec.level,
            epoch=self._epoch(),
            kind=question.also or question.kind,
            actor=group[0].actor if group else ActorId(spec.created_by),
            contributors=tuple(dict.fromkeys((*group, *files))),
            text=_said(question),
            argv=question.argv,
            path=question.path,
            cwd=question.cwd,
            workspace=spec.workspace or spec.cwd,
            environment=question.environment,
            destination=question.destination,
            turn_holder=self._turn_holder(),
        )

    async def _judge(self, effect: ProposedEffect, question: CallQuestion) -> Verdict:
        refusal = refused_by_authority(self._check_rights, effect.contributors)
        if refusal is not None:
            return refusal
        if question.target:
            return self._reaching(effect, question)
        asked = [each for each in (question.kind, question.also) if each and self._concerns(each)]
        if asked and question.cut:
            reason = "its arguments and environment are too long to be judged"
            return Verdict(Outcome.REFUSE, reason, AUTHORITY)
        # Who gives a file a name where it may write, writes it there from then on.
        paths = [path for path in (question.path, question.before) if path] or [""]
        verdicts = [
            await self._ask_policy(effect.replace(kind=kind, path=path))
            for kind in asked
            for path in paths
        ]
        return strictest(verdicts) if verdicts else ALLOWED

    def _reaching(self, effect: ProposedEffect, question: CallQuestion) -> Verdict:
        """Into another process, to change it or to take what it has open: only where the same
        actors are behind both. Never into the shell, which acts for everybody, whoever's command it
        runs now."""
        if question.first:
            reason = "it would change the session's own shell, which acts for everybody"
            return Verdict(Outcome.REFUSE, reason, AUTHORITY)
        own = {each.actor for each in effect.contributors}
        found = self._behind.of_group(question.target)
        theirs = {each.actor for each in found}
        others = [each for each in found if each.actor not in own]
        if not others and theirs == own:
            return ALLOWED
        of = others or [each for each in effect.contributors if each.actor not in theirs]
        reason = (
            f"it would change a process of {of[0].name}"
            if others
            else f"{of[0].name} had a part in it, and none in the process that it would change"
        )
        return Verdict(Outcome.REFUSE, reason, AUTHORITY)


def _said(question: CallQuestion) -> str:
    """What an approver reads."""
    if question.kind is EffectKind.CONNECT:
        return f"connect to {question.destination or question.path}"
    return shlex.join(question.argv) or question.path


def _actors(effect: ProposedEffect) -> frozenset[str]:
    return frozenset(each.actor for each in effect.contributors)


def _key(id: int) -> str:
    """The kernel's number for a call is the same for every daemon and answerer."""
    return f"call-{id:016x}"
