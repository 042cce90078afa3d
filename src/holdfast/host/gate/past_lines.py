"""Effects from a journal, to judge them again: what a policy would have said, and why one was
judged as it was. Nothing here is executed.

A journal has a command with its authors, and with the originators of the shell's state that it
used. It does not say which of them is behind which key, nor who wrote the files that it ran.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.host.gate.contributors import KnownActor, contributor
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session_store import Stored
from holdfast.journal.entries import CommandBegan, Entry, JudgedEntry
from holdfast.model.gate import Contributor, EffectKind, Part, ProposedEffect
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record


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
    entries: Iterator[Entry], session: PastSession, known: KnownActor
) -> Iterator[PastEffect | None]:
    """Each command that its shell began; None if nobody is known to have typed it."""
    for entry in entries:
        if isinstance(entry.body, CommandBegan):
            yield command(entry, entry.body, session, known)


def command(
    entry: Entry, body: CommandBegan, session: PastSession, known: KnownActor
) -> PastEffect | None:
    """The line of one command, by those who typed it (the last of them set it off) and by those
    behind the shell's state that it used."""
    authors = tuple(dict.fromkeys(ActorId(each) for each in body.authors if each))
    if not authors:
        return None
    first, *others = reversed(authors)
    behind = [each for each in body.originators if each and each not in authors]
    effect = line_of(
        session,
        body.text,
        (
            contributor(known, first, Part.TRIGGER),
            *(contributor(known, each, Part.TYPED) for each in others),
            *(contributor(known, each, Part.STATE) for each in behind),
        ),
        body.cwd,
    )
    return PastEffect(entry.seq, entry.at, effect)


def judged(body: JudgedEntry, session: PastSession) -> ProposedEffect:
    """What was judged then, by everybody who had a part in it; approvals of then do not count."""
    line = line_of(session, body.text, body.contributors, body.cwd)
    return line.replace(
        kind=EffectKind(body.kind),
        text_known=body.text_known,
        argv=body.argv,
        path=body.path,
    )


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
