"""Effects from a journal, to judge them again: what a policy would have said, and why one was
judged as it was. Nothing here is executed.

A journal has a command with its authors, and not who shaped the state that it used: so what is
judged again may have had more behind it than is known now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session_store import Stored
from holdfast.journal.entries import CommandBegan, Entry, JudgedEntry
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.gate import Contributor, EffectKind, Part, ProposedEffect
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record

Known = Callable[[ActorId], Actor | None]


class PastSession(Record):
    """What a session's effects have in common."""

    id: SessionId
    name: str
    labels: tuple[str, ...]
    level: str
    epoch: int
    workspace: str
    cwd: str


class PastEffect(Record):
    """One effect that a journal tells of."""

    seq: int
    at: float
    effect: ProposedEffect


def session_of(found: SessionSpec | Stored) -> PastSession:
    """Live or ended."""
    if isinstance(found, Stored):
        info = found.info
        return PastSession(
            info.id, info.name, info.labels, info.level, info.epoch, info.workspace, info.cwd
        )
    return PastSession(
        found.id, found.name, found.labels, found.level, found.epoch, found.workspace, found.cwd
    )


def commands(
    entries: Iterator[Entry], session: PastSession, known: Known
) -> Iterator[PastEffect | None]:
    """Each command that its shell began; None: nobody is known to have typed it."""
    for entry in entries:
        if isinstance(entry.body, CommandBegan):
            yield command(entry, entry.body, session, known)


def command(
    entry: Entry, body: CommandBegan, session: PastSession, known: Known
) -> PastEffect | None:
    """The line of one command, by those who typed it: the last of them set it off."""
    authors = tuple(dict.fromkeys(ActorId(each) for each in body.authors if each))
    if not authors:
        return None
    first, *others = reversed(authors)
    effect = line_of(
        session,
        body.text,
        (
            contributor(first, known, Part.TRIGGER),
            *(contributor(each, known, Part.TYPED) for each in others),
        ),
        body.cwd,
    )
    return PastEffect(entry.seq, entry.at, effect)


def judged(body: JudgedEntry, session: PastSession) -> ProposedEffect:
    """What was judged then, by everybody who had a part in it; approvals of then do not count."""
    line = line_of(session, body.text, body.contributors)
    return line.replace(kind=EffectKind(body.kind), text_known=body.text_known)


def contributor(actor: ActorId, known: Known, part: Part) -> Contributor:
    """An actor that is not known any longer counts as an agent: a rule that is stricter about
    agents must not be avoided by removing one."""
    found = known(actor)
    if found is None:
        return Contributor(actor, str(actor), ActorKind.AGENT, part)
    return Contributor(actor, found.name, found.kind, part)


def line_of(
    session: PastSession, text: str, contributors: tuple[Contributor, ...], cwd: str = ""
) -> ProposedEffect:
    """A line as the gate would have seen it."""
    return ProposedEffect(
        session=session.id,
        name=session.name,
        labels=session.labels,
        level=session.level,
        epoch=session.epoch,
        kind=EffectKind.LINE,
        actor=contributors[0].actor,
        contributors=contributors,
        text=text,
        cwd=cwd or session.cwd,
        workspace=session.workspace or session.cwd,
    )
