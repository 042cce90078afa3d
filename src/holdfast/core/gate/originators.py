"""Who is behind each piece of a shell's state: of every variable, alias, function, option, trap,
hash entry, PATH entry, job, and of the working directory.

Keys are texts: `var:NAME`, `path:DIR` (an entry of PATH), `alias:NAME`, `func:NAME`, `option:NAME`,
`trap:NAME`, `hash:NAME`, `dir:NAME` (zsh's `~NAME`), `job:PID`, `key:BINDING`, `fd:N`, `cwd`,
`umask`, `builtin:NAME`; `var:@` are the positional parameters. Two states one after the other tell
which keys a command changed; what is not in the book is as the session began. A key that one actor
alone gave another value and then its first one again is as it began, too: a line that uses it does
what it would have done without the change. If several had a part in it, whoever brought it back
stays in the book, and so does whoever took away what another one had set: a line may rely on it, or
on its absence.

Beyond ENTRIES_MAX keys the oldest entries are forgotten, and from then on every key without an
entry counts as shaped by those whose entries are gone. The same applies to everything that somebody
changed unobserved. So the book may name an actor too many, and never one too few.

Deliberately absent: what a command line uses (line_reading.py), and any judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from holdfast.model.packed import packed, unpacked
from holdfast.model.record import Record
from holdfast.model.shell_state import ShellState

ENTRIES_MAX = 2048  # keys with an originator: a session in use for months has a few hundred


class Origin(Record):
    """By which command a piece of state came to be what it is, and who is behind that command."""

    command: int  # 0: none, or one of several
    actors: tuple[str, ...]  # the one who set the command off first; empty: the host
    adopted: bool = False  # the one actor took responsibility for it


def merged(earlier: Origin | None, later: Origin) -> Origin:
    """One of several commands did it: all of their actors may have."""
    if earlier is None:
        return later
    actors = tuple(dict.fromkeys((*later.actors, *earlier.actors)))
    return Origin(later.command if later.command == earlier.command else 0, actors)


class KeptOrigins(Record):
    """The book, to be kept for another daemon."""

    number: int = 0  # of the prompt that it is complete up to; 0: it has seen none
    began: dict[str, str] = {}  # noqa: RUF012 - each key's value as the session began
    now: dict[str, str] = {}  # noqa: RUF012 - and at that prompt
    entries: dict[str, Origin] = {}  # noqa: RUF012 - the oldest first
    # Who else changed them since they were as the session began.
    others: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    forgotten: tuple[str, ...] = ()
    unseen: Origin | None = None


def values(state: ShellState) -> dict[str, str]:
    """Every key of one state with its value, or what stands for it."""
    return dict(_values(state))


def _values(state: ShellState) -> Iterator[tuple[str, str]]:
    yield "cwd", state.cwd
    yield "umask", state.umask
    for table in (state.private, state.variables, state.exported):
        yield from ((f"var:{name}", value) for name, value in table.items())
    for directory in _path(state):
        yield f"path:{directory}", ""
    for option in state.options:
        yield f"option:{option}", "on"
    for builtin in state.builtins:
        yield f"builtin:{builtin}", "on"
    for kind, named in (
        ("alias", state.aliases),
        ("func", state.functions),
        ("trap", state.traps),
        ("hash", state.remembered),
        ("dir", state.directories),
    ):
        yield from ((f"{kind}:{name}", value) for name, value in named.items())
    for line in state.bindings:
        yield f"key:{line}", ""
    for number, target in state.descriptors.items():
        yield f"fd:{number}", target
    for pid in state.jobs:  # that it stopped, nobody need have done
        yield f"job:{pid}", "a job"


def _path(state: ShellState) -> list[str]:
    value = state.exported.get("PATH", state.variables.get("PATH", ""))
    return [directory or "." for directory in value.split(":")]


class BookChange(Record):
    """What a new state brought."""

    changed: bool  # the book is another
    keys: tuple[str, ...] = ()  # that are not what they were, but for what changes nothing


class OriginatorBook:
    """The originators of one shell's state."""

    def __init__(self, kept: KeptOrigins | None = None) -> None:
        kept = kept or KeptOrigins()
        self.number = kept.number
        self._began, self._now = packed(kept.began), packed(kept.now)
        self._entries = dict(kept.entries)
        self._others = dict(kept.others)
        self.forgotten = kept.forgotten  # whoever may have shaped a key that has no entry
        # Behind function bodies since they were seen last: of many functions a shell writes only
        # the names at a prompt.
        self._unseen = kept.unseen

    def kept(self) -> KeptOrigins:
        began, now = unpacked(self._began), unpacked(self._now)
        entries, others = self._entries, self._others
        return KeptOrigins(self.number, began, now, entries, others, self.forgotten, self._unseen)

    @property
    def has_begun(self) -> bool:
        return bool(unpacked(self._now))

    @property
    def entries(self) -> Mapping[str, Origin]:
        return self._entries

    def origin(self, key: str) -> Origin | None:
        """Who is behind it; None: it is as the session began."""
        found = self._entries.get(key)
        if found is not None or not self.forgotten:
            return found
        return Origin(0, self.forgotten)

    def is_set(self, key: str) -> bool:
        return key in unpacked(self._now)

    def take(
        self, state: ShellState, by: Origin | None, in_path: Callable[[str, str], bool]
    ) -> BookChange:
        """The state at a prompt, and whoever is behind what ran since the last one that was taken.
        `in_path`: whether the shell's PATH leads from this program's name to this file: then
        remembering it changes nothing."""
        before, after = unpacked(self._now), values(state)
        names_only = "" in state.functions.values()
        for name, digest in state.functions.items():
            if not digest:
                after[f"func:{name}"] = before.get(f"func:{name}", "")
        if after.get("var:@") == "":
            after["var:@"] = before.get("var:@", "")
        self.number = state.number
        if after != before:
            self._now = packed(after)
        if not before:
            self._began = self._now
            if by is not None:  # what they ran before that, nobody saw
                self.forget(by.actors)
            return BookChange(True)
        origin = by or Origin(0, ())
        bodies = merged(self._unseen, origin)
        changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
        began = unpacked(self._began) if changed else {}
        kept = []
        for key in changed:
            alike = after.get(key) == began.get(key)
            behind = bodies if key.startswith("func:") else origin
            if self._set(key, after.get(key), behind, in_path, as_it_began=alike):
                kept.append(key)
        was_unseen, self._unseen = self._unseen, bodies if names_only else None
        self._bound()
        return BookChange(bool(changed) or was_unseen != self._unseen, tuple(kept))

    def _set(
        self,
        key: str,
        value: str | None,
        origin: Origin,
        in_path: Callable[[str, str], bool],
        *,
        as_it_began: bool,
    ) -> bool:
        """False: the change means nothing."""
        had = self._entries.pop(key, None)
        others = self._others.pop(key, ())
        if had is not None:
            others = tuple(dict.fromkeys((*others, *had.actors)))
        if key.startswith("hash:") and (value is None or in_path(key[5:], value)):
            return had is not None
        if key.startswith("job:") and value is None:
            return False
        alone = not set(others).difference(origin.actors[:1]) and len(origin.actors) < 2
        if not as_it_began or not alone:
            self._entries[key] = origin
            if others := tuple(actor for actor in others if actor not in origin.actors):
                self._others[key] = others
        return True

    def _bound(self) -> None:
        while len(self._entries) > ENTRIES_MAX:
            oldest = next(iter(self._entries))
            self.forget(self._entries.pop(oldest).actors)
            self._others.pop(oldest, None)

    def forget(self, actors: Iterable[str]) -> None:
        """These may have changed any key that has no entry, nobody knows which."""
        self.forgotten = tuple(dict.fromkeys((*self.forgotten, *actors)))

    def not_seen(self, actors: Iterable[str]) -> None:
        """These may have changed any key at all."""
        actors = tuple(actors)
        self.forget(actors)
        for key, origin in self._entries.items():
            self._entries[key] = merged(origin, Origin(origin.command, actors))

    def adopt(self, key: str, actor: str) -> None:
        """This actor answers for it from now on."""
        before = self._entries.pop(key, None)
        self._entries[key] = Origin(before.command if before else 0, (actor,), adopted=True)
        self._bound()
