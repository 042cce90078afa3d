"""The machines this user has joined: one file, read by every client.

    CONFIG/machines.json    name, host key, relays and grant of each; the highest epochs seen

`MACHINE/NAME` names a session there; HOLDFAST_ON, or `hold --on MACHINE`, says it for a whole
command. `ID@RELAY-URL` names one on a machine that is not in it (locate_session). The file is
0600: a grant is worth nothing without its key, but it says where you may go.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator

from holdfast.model.actor import check_name
from holdfast.model.errors import InvalidArgument, NoSuchMachine, StorageFailed
from holdfast.model.home import home_of, machines_of
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record

VARIABLE = "HOLDFAST_ON"
_EPOCHS_MAX = 4096  # remembered; then the longest unseen goes


class Machine(Record):
    """A host somewhere else, as this user knows it."""

    name: str
    host_key: str  # Ed25519, hexadecimal: who it is, whatever a relay says
    relays: tuple[str, ...]
    identity: str  # name or path of the key to act with (sdk.identity)
    grant: str = ""  # the chain, base64url; "": its own envelopes say what we may
    host: str = ""  # what it calls itself
    joined_at: float = 0.0
    session: str = ""  # not joined, but to be found as the host that has this one (locate_session)

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.host_key)

    def grant_of(self, holder: bytes) -> str:
        """The chain, if it is this key's: to anybody else it is worth nothing."""
        from holdfast.wire.grants import chain_of_text

        return self.grant if self.grant and chain_of_text(self.grant).last.holder == holder else ""


class _Book(Record):
    machines: tuple[Machine, ...] = ()
    epochs: dict[str, int] = {}  # noqa: RUF012 - Records never mutate a default


def machines() -> tuple[Machine, ...]:
    return _load().machines


def find(name: str) -> Machine:
    """By its name here; or ID@RELAY-URL: whichever has that session."""
    if "@" in name:
        from holdfast.sdk.reach.locate_session import parse_address

        return parse_address(name)
    for machine in machines():
        if machine.name == name:
            return machine
    raise NoSuchMachine(
        f"no machine called {name[:80]!r} is known here", hint="`hold machines` lists them"
    )


def destination(name: str) -> Machine | str:
    """Another host as `--on` and `--to` name it: a machine that this user has joined, or a host of
    this machine, by the path of its socket or of its home directory."""
    if not name.startswith("/"):
        return find(name)
    return home_of({"HOLDFAST_HOME": name}, 0).socket if os.path.isdir(name) else name


def chosen() -> Machine | None:
    """The machine the environment asks for; None: this one."""
    name = os.environ.get(VARIABLE, "")
    return find(name) if name else None


def add(machine: Machine) -> Machine:
    """Keep it. The same host again takes the place of its older entry; a name that another host
    has is given a number."""
    check_name(machine.name, "machine")
    if len(machine.key) != 32:
        raise InvalidArgument("a host's key has 32 bytes")
    with _changing() as book:
        kept = _added(machine, book)
        _save(book.replace(machines=(*_others(machine, book), kept)))
    return kept


def _others(machine: Machine, book: _Book) -> list[Machine]:
    return [each for each in book.machines if each.host_key != machine.host_key]


def _added(machine: Machine, book: _Book) -> Machine:
    taken = {each.name for each in _others(machine, book)}
    name, count = machine.name, 1
    while name in taken:
        count += 1
        name = f"{machine.name}-{count}"
    return machine.replace(name=name)


def forget(name: str) -> None:
    gone = find(name)
    with _changing() as book:
        left = tuple(each for each in book.machines if each.name != gone.name)
        _save(book.replace(machines=left))


def highest_epoch(session: SessionId) -> int:
    return _load().epochs.get(session, 0)


def saw_epoch(session: SessionId, epoch: int) -> None:
    """The host itself vouched for it: nothing lower is ever believed again."""
    if highest_epoch(session) >= epoch:
        return
    with _changing() as book:
        epochs = {key: value for key, value in book.epochs.items() if key != session}
        while len(epochs) >= _EPOCHS_MAX:
            del epochs[next(iter(epochs))]
        _save(book.replace(epochs={**epochs, session: max(epoch, book.epochs.get(session, 0))}))


@contextlib.contextmanager
def _changing() -> Iterator[_Book]:
    """What is in the file, for one program at a time to change."""
    path = machines_of(os.environ)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageFailed(f"cannot keep {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _load()
    finally:
        os.close(lock)


def _load() -> _Book:
    path = machines_of(os.environ)
    try:
        with open(path, encoding="utf-8") as file:
            return _Book.unpack(json.loads(file.read()), path)
    except FileNotFoundError:
        return _Book()
    except (OSError, ValueError, Malformed) as error:
        raise StorageFailed(
            f"cannot read {path}: {error}", hint="repair it, or move it away"
        ) from error


def _save(book: _Book) -> None:
    path = machines_of(os.environ)
    beside = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps(book.pack(), indent=1) + "\n")
            file.flush()
            os.fsync(fd)
        os.rename(beside, path)
    except OSError as error:
        raise StorageFailed(f"cannot keep {path}: {error.strerror}") from error
