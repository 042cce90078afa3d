"""What waits at the gate of one session: the shell is asked what it is about to take, the policy
whether it may, and the answer becomes an event. What follows is decided in core.session.

A commit waits until somebody reads it: the session's shell at its prompt (or for the rest of a
line), or a program that the kernel shows waiting for the terminal. So nothing is judged before the
state in which it will be read is known. Deliberately absent: any rule of a policy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from holdfast.adapters import pty
from holdfast.core import events as ev
from holdfast.core.gate.approvals import Approval, ApprovalStatus
from holdfast.core.gate.authority_meet import refused_by_authority
from holdfast.core.gate.commit_bytes import ENTERS
from holdfast.core.gate.gated_input import GatedInput, Stage
from holdfast.core.gate.verdicts import refusal_text
from holdfast.core.session import RESIZED, SavedGate, SessionMachine
from holdfast.host.clock import now
from holdfast.host.gate.command_book import Approved
from holdfast.host.gate.contributors import (
    KnownActor,
    Provenance,
    contributor,
    merged,
    typed_before,
)
from holdfast.host.gate.judge import Judge
from holdfast.host.gate.judged_entry import judged_entry
from holdfast.host.session.record import SessionRecord
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.model.envelope import Right
from holdfast.model.errors import GateRefused, HoldfastError
from holdfast.model.gate import (
    ALLOWED,
    Contributor,
    EffectKind,
    Outcome,
    Part,
    ProposedEffect,
    Verdict,
)
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import APPROVAL_LIFE_S
from holdfast.model.state import SessionState

log = logging.getLogger(__name__)

# A shell reads what was typed within a millisecond; a command may run for hours.
_FIRST_LOOK_S, _LATER_LOOKS_S = 0.001, 0.05
_ANSWER_S = 1.0  # then whoever sent it hears that it is kept, and need not wait
_ERASE_LINE = b"\x15"  # what a terminal in line mode takes for that, unless it was set otherwise


_MACRO = (b"\x18e", b"\x18")  # of keys that were recorded; the second: what follows is not here yet
_NEEDS = {
    EffectKind.SIGNAL: Right.SIGNAL,
    EffectKind.END: Right.END,
    EffectKind.CHECKPOINT: Right.CHECKPOINT,
}


class TerminalReader(NamedTuple):
    """Who reads what is typed next."""

    state: SessionState

    @property
    def is_shell(self) -> bool:
        return self.state is SessionState.PROMPT


class Line(NamedTuple):
    """What the shell is about to take; None: it does not say."""

    text: str | None
    by: tuple[Contributor, ...]


class ProposeEffect(Protocol):
    """What an effect is judged by, besides what it is."""

    def __call__(
        self, kind: EffectKind, actor: ActorId, contributors: tuple[Contributor, ...]
    ) -> ProposedEffect: ...


class SessionGate:
    """Of one session."""

    def __init__(
        self,
        core: SessionMachine,
        commands: ShellCommands,
        record: SessionRecord,
        known: KnownActor,
        judge: Judge | None,
        provenance: Provenance,
        master: int,
        *,
        facts: ProposeEffect,
        offset: Callable[[], int],
        activity: Callable[[], SessionState],
        handle: Callable[[ev.SessionEvent], object],
        save: Callable[[], None],
        type_as_host: Callable[[bytes], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """`judge`: None on a host that has no policies; `offset`: of the output."""
        self._core, self._commands, self._journal = core, commands, record
        self._known, self._judge, self.provenance = known, judge, provenance
        self._master = master
        self._facts, self._offset, self._activity = facts, offset, activity
        self._handle, self._save, self._type_as_host = handle, save, type_as_host
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None
        self._news: asyncio.Event | None = None  # something happened: look again soon
        # Lines that the shell has read and wants more of: their text, and when it was reported.
        self._begun = Line("", ())
        self._begun_at = -1
        self._shapers: tuple[str, ...] = ()  # who entered the last line
        self._shell_silent = False  # and that line was not known either
        self._deciding: dict[str, asyncio.Future[Approval]] = {}
        # Requests for approval that were over when the session was restored from before that.
        self.decided_in_another_life: frozenset[str] = frozenset()

    # -- custody's side -------------------------------------------------------------------------

    def keep(self) -> None:
        self._save()

    def kept(self) -> SavedGate | None:
        """For the parcel. What keys did to a line is known for sure when all of them are typed:
        while it waits for approval, and when it has that."""
        saved = self._core.gate_kept()
        if saved is None or saved.input is None:
            return saved
        released = saved.released is not None and saved.released_number == saved.input.number
        if saved.held_by or released:
            return saved.replace(walked_history=self._commands.walked_history)
        return saved

    def look(self) -> None:
        self.news()
        if self._task is None and self._core.inputs.unjudged is not None:
            self._task = self._spawn(self._judge_commits())

    def news(self) -> None:
        """Something happened in the session."""
        if self._news is not None:
            self._news.set()

    def record_passing(self, piece: ev.InputOffered, secret: bool) -> None:
        passing = self._core.passing
        if passing is None or passing.number != piece.seq:
            return  # text between two commits
        self._journal.record(
            piece.actor, judged_entry(passing.effect, passing.verdict, secret=secret)
        )
        if passing.effect.kind is EffectKind.LINE and piece.data in ENTERS:
            self._commands.walked_history = False
            actors = tuple(each.actor for each in passing.effect.contributors)
            by = passing.effect.approved_by
            self.provenance.line_passed(Approved(by, actors) if by else None)
            text = passing.effect.text if passing.effect.text_known else None
            self._begun = Line(text, passing.effect.contributors)
            self._begun_at = self._commands.lines_begun
            if passing.effect.text_known:
                self._shapers, self._shell_silent = (piece.actor,), False
            else:
                self._shell_silent = True

    # -- effects --------------------------------------------------------------------------------

    def record_judged(self, effect: ProposedEffect, verdict: Verdict) -> None:
        """Of what does not pass."""
        self._journal.record_best_effort(effect.actor, judged_entry(effect, verdict))

    def clear_line(self, *, in_program: bool) -> None:
        """A line was refused, and must not be entered by mistake. What a program reads is left
        alone."""
        if not in_program:
            known = not self._shell_silent and self._last_known
            self._commands.clear_refused(continued=self._continues, known=known)
        elif pty.reads_lines(pty.local_modes(self._master)):
            self._commands.typed.cleared()
            self._type_as_host(_ERASE_LINE)

    def decided(self, approval: Approval) -> None:
        """It is over: whoever waits for it goes on."""
        waiting = self._deciding.pop(approval.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(approval)

    # -- judging commits ------------------------------------------------------------------------

    _last_known = True

    @property
    def _continues(self) -> bool:
        """Whether the shell wants the rest of a line."""
        return self._begun_at == self._commands.lines_begun

    async def _judge_commits(self) -> None:
        try:
            while (gated := self._core.inputs.unjudged) is not None:
                number = gated.number
                try:
                    await self._judge_one(gated, number)
                except HoldfastError as error:
                    self._handle(ev.CommitFailed(HOST_ACTOR, now(), number, error))
                except Exception:
                    log.exception("session %s: at its gate", self._core.id)
                    failed = GateRefused("it could not be judged: the host failed; see its log")
                    self._handle(ev.CommitFailed(HOST_ACTOR, now(), number, failed))
        finally:
            self._task = None

    def _waits(self, gated: GatedInput, number: int) -> bool:
        return self._core.inputs.unjudged is gated and gated.number == number

    async def _judge_one(self, gated: GatedInput, number: int) -> None:
        reader = await self._reader(gated, number)
        if reader is None:
            return
        if gated.stage is Stage.PASTE:
            await self._judge_paste(number, reader)
            return
        actor = ActorId(gated.whole.actor)
        effect = await self._effect(gated, actor, reader)
        verdict, released = ALLOWED, self._core.released(number)
        if self._core.inputs.policy_in_force and self._judge is not None:
            if released is not None and _is_about(released, effect):
                effect = effect.replace(approved_by=released.approved_by)
            verdict = await self._verdict(self._judge, effect)
        if self._waits(gated, number):
            asked_at = now()
            self._handle(
                ev.CommitJudged(
                    actor,
                    asked_at,
                    number,
                    effect,
                    verdict,
                    secrets.token_hex(4),
                    asked_at + APPROVAL_LIFE_S,
                    self._offset(),
                )
            )

    async def _verdict(self, judge: Judge, effect: ProposedEffect) -> Verdict:
        """By the authority of everybody behind it, as it is now, and then by the policy."""
        refusal = refused_by_authority(self.provenance.check, effect.contributors)
        return refusal or await judge.judge(effect)

    async def _judge_paste(self, number: int, reader: TerminalReader) -> None:
        """A paste of several lines is text if the shell waits for keys in a key map where it is."""
        shown = await self._commands.line_at_gate(paste=True) if reader.is_shell else None
        is_text = shown is not None and shown.takes_paste
        self._handle(ev.PasteChecked(HOST_ACTOR, now(), number, is_text))

    async def _reader(self, gated: GatedInput, number: int) -> TerminalReader | None:
        """Who reads next, once somebody does; None: it no longer needs a judgement."""
        loop = asyncio.get_running_loop()
        answer_at: float | None = loop.time() + _ANSWER_S
        pause = _FIRST_LOOK_S
        news = self._news = asyncio.Event()
        while self._waits(gated, number):
            news.clear()
            # In this order: with nothing unread, a shell that waits for keys has read its last
            # Enter, and has reported what it made of it before it asked for more.
            if self._commands.typed.unread() == 0:
                state = self._activity()
                if state in (SessionState.PROMPT, SessionState.INPUT, SessionState.SECRET):
                    self._commands.read_reports()
                    return TerminalReader(state)
            if answer_at is not None and loop.time() > answer_at:
                answer_at = None
                self._handle(ev.CommitWaits(HOST_ACTOR, now(), number))
            try:
                await asyncio.wait_for(news.wait(), pause)
                pause = _FIRST_LOOK_S
            except TimeoutError:
                pause = min(2 * pause, _LATER_LOOKS_S)
        return None

    async def _effect(
        self, gated: GatedInput, actor: ActorId, reader: TerminalReader
    ) -> ProposedEffect:
        if not reader.is_shell:
            text = None if reader.state is SessionState.SECRET else self._typed_to_program(gated)
            authors = self._commands.typed.authors()
            by = [contributor(self._known, author, Part.TYPED) for author in authors]
            by += typed_before(self.provenance.behind_running())
            effect = self._facts(EffectKind.INPUT, actor, self._all_behind(actor, by))
            return effect.replace(text=text or "", text_known=text is not None)
        line = await self._line(actor, gated)
        effect = self._facts(EffectKind.LINE, actor, self._all_behind(actor, line.by))
        return effect.replace(text=line.text or "", text_known=line.text is not None)

    def _all_behind(
        self, actor: str, others: list[Contributor] | tuple[Contributor, ...]
    ) -> tuple[Contributor, ...]:
        return merged(contributor(self._known, actor, Part.TRIGGER), others)

    async def _line(self, actor: str, gated: GatedInput) -> Line:
        """What the shell is about to take, with what it has read of it before, and by whom. A key
        that is no Enter is judged by the text as it stands there, since nobody knows what it does
        to it; a keyboard macro brings a text of its own."""
        enters, key = gated.enters, gated.commit
        shown = await self._commands.line_at_gate(paste=False)
        authors = self._commands.typed.authors()
        text = None if shown is None or not shown.text_known or shown.cut else shown.text
        if text is not None and not enters:
            text = _with_key(text, key)
        before = self._begun if self._continues else Line("", ())
        if text is not None and before.text is not None:
            if before.text and not text.startswith(before.text):
                text = f"{before.text}\n{text}"
        else:
            text = None
        self._last_known = text is not None
        found = (
            self.provenance.contributors_of_line(text, authors)
            if enters
            else self.provenance.contributors_of_key(text, authors, key)
        )
        history = self.provenance.authors_of_history() if self._commands.walked_history else ()
        by = typed_before((*found, *history, *before.by))
        if text is None:
            shapers = self._shapers or self._core.turn.holders
            by += [contributor(self._known, each, Part.SHAPED) for each in shapers if each != actor]
        return Line(text, tuple(by))

    def _typed_to_program(self, gated: GatedInput) -> str | None:
        """The line that a program gets, if all of it came with this input; else nobody knows what
        the program made of it."""
        whole = gated.whole.data
        upto = len(whole) - len(gated.data)
        line = whole[max(whole.rfind(b"\r", 0, upto), whole.rfind(b"\n", 0, upto)) + 1 : upto]
        if self._commands.typed.typed_in_line != len(line):
            return None
        text = line.decode(errors="replace")
        return text if text.isprintable() else None

    # -- effects that are no lines --------------------------------------------------------------

    @property
    def in_force(self) -> bool:
        return self._judge is not None and self._core.inputs.policy_in_force

    async def check(
        self, kind: EffectKind, actor: ActorId, text: str, *, may_wait: bool = True
    ) -> ev.Passed | None:
        """Raise unless the actor may do this now; while it is held, wait, or refuse. What it gives
        belongs into the event that follows; None: no policy is in force."""
        if self._judge is None or not self._core.inputs.policy_in_force:
            return None
        self._core.check_right(actor, _NEEDS[kind], now())
        return await self._check(kind, actor, text, (), may_wait=may_wait)

    @property
    def resize_is_judged(self) -> bool:
        """Somebody made the shell run something when its terminal gets another size."""
        return self.in_force and bool(self.provenance.behind_resize())

    async def check_resize(self, actor: str) -> ev.Passed:
        """As the signal that it is. Nothing waits for an approval: by then the size is another."""
        by = self.provenance.behind_resize()
        return await self._check(EffectKind.SIGNAL, actor, RESIZED, by, may_wait=False)

    async def _check(
        self,
        kind: EffectKind,
        actor: str,
        text: str,
        others: tuple[Contributor, ...],
        *,
        may_wait: bool,
    ) -> ev.Passed:
        assert self._judge is not None, "a policy is in force"
        effect = self._facts(kind, ActorId(actor), self._all_behind(actor, others))
        effect = effect.replace(text=text)
        verdict = await self._verdict(self._judge, effect)
        if verdict.outcome is Outcome.HOLD and may_wait:
            approval = await self.ask(effect, verdict)
            effect = effect.replace(approved_by=approval.approved_by)
            verdict = await self._verdict(self._judge, effect)
        if verdict.outcome is not Outcome.ALLOW:
            self.record_judged(effect, verdict)
            raise GateRefused(refusal_text(verdict))
        self._journal.record(actor, judged_entry(effect, verdict))
        return ev.Passed(effect, verdict)

    async def ask(self, effect: ProposedEffect, verdict: Verdict) -> Approval:
        """Until it is decided; refused unless it is approved. What another daemon asked is waited
        for under the same id."""
        asked_at = now()
        pending = (
            each.id
            for each in self._core.approvals.pending
            if each.id not in self._deciding and _is_about(each, effect)
        )
        found = next(pending, "")
        id = found or secrets.token_hex(4)
        decision = asyncio.get_running_loop().create_future()
        self._deciding[id] = decision
        try:
            if not found:
                self._handle(
                    ev.EffectHeld(
                        effect.actor,
                        asked_at,
                        id,
                        effect,
                        verdict,
                        asked_at + APPROVAL_LIFE_S,
                        self._offset(),
                    )
                )
            approval: Approval = await decision
        finally:
            if self._deciding.pop(id, None) is not None:
                self._handle(ev.EffectDropped(HOST_ACTOR, now(), id))
        if approval.status is not ApprovalStatus.APPROVED:
            raise GateRefused(f"it was held, and then {approval.status}")
        return approval

    def carry_on(self) -> None:
        """Another daemon left this: what it asked for itself, nobody waits for now. What was
        decided in a life that is over is not asked for again."""
        for approval in self._core.approvals.pending:
            if approval.id in self.decided_in_another_life:
                self._handle(ev.DecidedInAnotherLife(HOST_ACTOR, now(), approval.id))
        for approval in self._core.approvals.pending:
            if approval.kind in (EffectKind.SIGNAL, EffectKind.END):
                self._handle(ev.EffectDropped(HOST_ACTOR, now(), approval.id))
        self._handle(ev.RoomMade(HOST_ACTOR, now()))

    def close(self) -> None:
        for waiting in self._deciding.values():
            waiting.cancel()
        if self._task is not None:
            self._task.cancel()


def _with_key(text: str, key: bytes) -> str | None:
    """The text at the prompt when the key is read. Where keys were rebound, the key is a piece of
    text, any of whose characters may enter what precedes it."""
    if key in _MACRO:
        return None
    with contextlib.suppress(UnicodeDecodeError):
        typed = key.decode()
        if typed.isprintable():
            return text + typed
    return text


def _is_about(approval: Approval, effect: ProposedEffect) -> bool:
    """Whether what was approved is what would be done now."""
    same_people = {(each.actor, each.part, each.what) for each in approval.contributors} == {
        (each.actor, each.part, each.what) for each in effect.contributors
    }
    same = (approval.kind, approval.text, approval.text_known, approval.actor) == (
        effect.kind,
        effect.text,
        effect.text_known,
        effect.actor,
    )
    return same and same_people
