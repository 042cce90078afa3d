"""Everything the journal says about one action. It is read in one pass and nothing is guessed: an
action whose input was never recorded did not run, and one without a result has an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.core.gate.action_score import INVALID
from holdfast.host.gate.action_runs import declared_of
from holdfast.journal import entries
from holdfast.journal.entries import Entry
from holdfast.model.action import Action
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.measured import ActionTrace, Decision, TraceStep

_ID_CHARS = 16
_NAMED = 5  # in a refusal: the latest actions


class _Found:
    """What the journal says of one action."""

    def __init__(self, entry: Entry, body: entries.ActionEntry) -> None:
        self.entry, self.body = entry, body
        self.action: Action = declared_of(body)
        self.typed = False
        self.began: Entry | None = None
        self.ended: Entry | None = None
        self.measured: Entry | None = None
        self.judged: Entry | None = None
        self.steps: list[TraceStep] = [_step(entry, self.action.intent)]

    def take(self, entry: Entry) -> None:
        match entry.body:
            case entries.InputEntry() | entries.BlindInput() if self._is_its(entry.body):
                self.typed = True
                self.steps.append(_step(entry, ""))
            case entries.Voided() if self._is_its(entry.body):
                self.typed = False
                self.steps.append(_step(entry, "the line never reached the shell"))
            case entries.CommandBegan(number=number, text=text) if self.typed:
                if self.began is None and self.measured is None:
                    self.began = entry
                    self.steps.append(_step(entry, f"#{number} {text}"))
            case entries.CommandEnded(number=number, status=status) if number == self.number:
                self.ended = entry
                self.steps.append(_step(entry, f"status {status}"))
            case entries.ActionMeasured(action=action) if action == self.body.action:
                self.measured = entry
                self.steps.append(_step(entry, entry.body.message))
            case _ if entry.body.tag == "judged" and entry.actor == self.entry.actor:
                if self.began is None and self.measured is None:
                    self.judged = entry
                    self.steps.append(_step(entry, str(getattr(entry.body, "outcome", ""))))

    def _is_its(self, body: entries.InputEntry | entries.BlindInput | entries.Voided) -> bool:
        return body.operator == self.body.operator and body.seq <= self.body.seq <= body.last_seq

    @property
    def number(self) -> int | None:
        """The shell's, for its command."""
        if self.began is not None:
            assert isinstance(self.began.body, entries.CommandBegan)
            return self.began.body.number
        return None


def _step(entry: Entry, text: str) -> TraceStep:
    return TraceStep(entry.seq, entry.at, entry.body.tag, text)


def find_action(
    journal: Iterable[Entry],
    wanted: str,
    *,
    session: SessionId,
    asker: str,
    is_over: bool,
    name: Callable[[str], str],
) -> ActionTrace:
    """By its id, the asker's or anybody's key, or the number of its command, in this order."""
    found: list[_Found] = []
    open_ones: list[_Found] = []  # without a measurement so far
    for entry in journal:
        for each in open_ones:
            each.take(entry)
        open_ones = [each for each in open_ones if each.measured is None]
        said = {each.body.action for each in open_ones}
        if isinstance(entry.body, entries.ActionEntry) and entry.body.action not in said:
            one = _Found(entry, entry.body)
            found.append(one)
            open_ones.append(one)
    return _trace(_wanted(found, wanted, asker), session, is_over, name)


def _wanted(found: list[_Found], wanted: str, asker: str) -> _Found:
    keyed = [each for each in found if wanted and each.action.key == wanted]
    number = int(wanted) if wanted.isdecimal() and len(wanted) < _ID_CHARS else -1
    for among in (
        [each for each in found if each.body.action == wanted],
        [each for each in keyed if each.entry.actor == asker],
        keyed,
        [each for each in found if each.number == number],
    ):
        if len({each.entry.actor for each in among}) > 1:
            ids = ", ".join(each.body.action for each in among[-_NAMED:])
            raise InvalidArgument(
                f"several actors used the key {wanted[:40]!r}", hint=f"give an id: {ids}"
            )
        if among:
            return among[-1]
    latest = ", ".join(each.body.action for each in found[-_NAMED:])
    raise InvalidArgument(
        f"no action of this session has the id, key or command number {wanted[:40]!r}",
        hint=f"its latest actions: {latest}"
        if latest
        else "submit one first: there was none in this session",
    )


def _trace(
    found: _Found, session: SessionId, is_over: bool, name: Callable[[str], str]
) -> ActionTrace:
    began = found.began.body if found.began is not None else None
    ended = found.ended.body if found.ended is not None else None
    measured = found.measured.body if found.measured is not None else None
    assert began is None or isinstance(began, entries.CommandBegan)
    assert ended is None or isinstance(ended, entries.CommandEnded)
    trace = ActionTrace(
        id=found.body.action,
        session=session,
        actor=name(found.entry.actor),
        actor_id=found.entry.actor,
        declared=found.action,
        state=_state(found, is_over),
        at=found.entry.at,
        decision=_decision(found.judged),
        command=found.number,
        status=ended.status if ended is not None else None,
        cwd=ended.cwd if ended is not None else "",
        retries=found.body.retried,
        output_from=began.offset if began is not None else None,
        output_to=ended.offset if ended is not None else None,
        steps=tuple(found.steps),
    )
    if measured is None:
        return trace
    assert isinstance(measured, entries.ActionMeasured)
    return trace.replace(
        command=measured.number or trace.command,
        status=measured.status if measured.status is not None else trace.status,
        seconds=measured.seconds,
        latency_s=measured.latency_s,
        code=measured.code,
        message=measured.message,
        effects=measured.effects,
        missing=measured.missing,
        unexpected=measured.unexpected,
        score=measured.score,
    )


def _state(found: _Found, is_over: bool) -> str:
    if not found.typed:
        return "not_run"
    if found.measured is None:
        if not is_over:
            return "running"
        return "unknown" if found.ended is None else "done"
    body = found.measured.body
    assert isinstance(body, entries.ActionMeasured)
    if body.code in INVALID:
        return "refused"
    known = body.status is not None or found.ended is not None
    return "done" if known and not body.code else "unknown"


def _decision(judged: Entry | None) -> Decision:
    """By the entry of the line gate; without one no policy was in force."""
    if judged is None:
        return Decision("none")
    body = judged.body
    words = (str(getattr(body, field, "")) for field in ("outcome", "reason", "policy"))
    return Decision(*words)
