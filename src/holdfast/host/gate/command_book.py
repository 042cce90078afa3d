"""The latest commands of one session, each with everybody who had a part in it.

What is older is read from the journal when somebody asks (why.py). Actors are ids here; names are
for answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.core.gate.originators import Origin
from holdfast.journal import entries
from holdfast.model.gate import Part
from holdfast.model.limits import COMMANDS_REMEMBERED
from holdfast.model.record import Record


class PartIn(Record):
    """How an actor had a part in a command."""

    actor: str
    part: Part
    what: str = ""
    command: int = 0


class Approved(Record):
    """A line that was held, and approved: what it starts needs no approval of its own, as long as
    it has no contributor whom the approvers did not see."""

    by: tuple[str, ...]
    actors: tuple[str, ...]  # that were behind it


class KnownCommand(Record):
    """One command line, and who is behind it."""

    number: int
    text: str
    trigger: str
    authors: tuple[str, ...]
    at: float
    parts: tuple[PartIn, ...] = ()
    uses: tuple[str, ...] = ()  # `KEY@COMMAND`: the state it used, and which command had set it
    adopted: str = ""  # the actor that took the responsibility for what it left
    approved: Approved | None = None  # its line; not kept for another daemon, which asks again

    @property
    def actors(self) -> tuple[str, ...]:
        """Everybody behind it; the one who set it off comes first."""
        if self.adopted:
            return (self.adopted,)
        everybody = (self.trigger, *self.authors, *(part.actor for part in self.parts))
        return tuple(dict.fromkeys(actor for actor in everybody if actor))

    @property
    def origin(self) -> Origin:
        return Origin(self.number, self.actors)


class CommandBook:
    """Of one session."""

    def __init__(self) -> None:
        self._commands: dict[int, KnownCommand] = {}

    def __iter__(self) -> Iterator[KnownCommand]:
        return iter(self._commands.values())

    def get(self, number: int) -> KnownCommand | None:
        return self._commands.get(number)

    @property
    def last(self) -> KnownCommand | None:
        return next(reversed(self._commands.values()), None)

    def add(self, command: KnownCommand) -> KnownCommand | None:
        """Gives the one that is no longer remembered."""
        self._commands.pop(command.number, None)
        self._commands[command.number] = command
        if len(self._commands) <= COMMANDS_REMEMBERED:
            return None
        return self._commands.pop(next(iter(self._commands)))

    def change(self, command: KnownCommand) -> None:
        if command.number in self._commands:
            self._commands[command.number] = command

    def had_input(self, actor: str) -> bool:
        """This actor typed while the last one ran. True: for the first time."""
        last = self.last
        if last is not None and actor not in last.actors:
            part = PartIn(actor, Part.INPUT, command=last.number)
            self.change(last.replace(parts=(*last.parts, part)))
            return True
        return False

    def since(self, number: int) -> list[KnownCommand]:
        """Those of this number and later."""
        return [each for each in self if each.number >= number]


def of_entry(entry: entries.Entry, body: entries.CommandBegan) -> KnownCommand:
    """As the journal has it."""
    behind = [actor for actor in body.originators if actor not in (entry.actor, *body.authors)]
    parts = tuple(PartIn(actor, Part.STATE) for actor in behind)
    return KnownCommand(
        body.number, body.text, entry.actor, body.authors, entry.at, parts, body.uses
    )


def replayed(found: Iterable[entries.Entry], wanted: frozenset[int] = frozenset()) -> CommandBook:
    """The commands of these entries; with `wanted` only those."""
    book, running = CommandBook(), 0
    for entry in found:
        match entry.body:
            case entries.CommandBegan(number=number) as body if not wanted or number in wanted:
                book.add(of_entry(entry, body))
                running = number
            case entries.CommandEnded(number=number) if number == running:
                running = 0
            case entries.InputEntry() | entries.BlindInput() if running and entry.actor:
                book.had_input(entry.actor)
            case entries.AdoptedEntry(target=target) if target.startswith("command:"):
                number = int(target.removeprefix("command:"))
                if (adopted := book.get(number)) is not None:
                    book.change(adopted.replace(adopted=entry.actor))
    return book
