"""The connections of this gateway, their limits, and which keys are still authorized."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.model.errors import HoldfastError
from holdfast.model.limits import (
    SSH_ADDRESS_UNPROVEN,
    SSH_CHILD_GRACE_S,
    SSH_CONNECTIONS_MAX,
    SSH_LEAVE_S,
    SSH_RECHECK_S,
    SSH_UNPROVEN_MAX,
)
from holdfast.ssh import authorized

if TYPE_CHECKING:
    from holdfast.ssh.child import Child
    from holdfast.ssh.login import Login

log = logging.getLogger("ssh")

_Stamp = tuple[int, int, int]


class Gateway:
    """What the connections of one gateway share."""

    def __init__(self) -> None:
        self._unproven: set[Login] = set()
        self._from: Counter[str] = Counter()  # unauthenticated ones, by address
        self._proven: set[Login] = set()
        self._children: set[Child] = set()
        self._empty = asyncio.Event()  # no connection and no child is left
        self._empty.set()
        self._entries: tuple[authorized.Authorized, ...] = ()
        self._stamp: _Stamp | None = None
        self._unusable = False

    # -- connections --------------------------------------------------------------------------

    def admit(self, login: Login) -> bool:
        """Whether one more unauthenticated connection is allowed."""
        if len(self._unproven) >= SSH_UNPROVEN_MAX:
            return False
        if self._from[login.address] >= SSH_ADDRESS_UNPROVEN:
            return False
        self._empty.clear()
        self._unproven.add(login)
        self._from[login.address] += 1
        return True

    def prove(self, login: Login) -> bool:
        """Whether one more authenticated connection is allowed."""
        if len(self._proven) >= SSH_CONNECTIONS_MAX:
            return False
        self._forget(login)
        self._proven.add(login)
        return True

    def leave(self, login: Login) -> None:
        self._forget(login)
        self._proven.discard(login)
        self._note_empty()

    def _forget(self, login: Login) -> None:
        if login in self._unproven:
            self._unproven.remove(login)
            self._from[login.address] -= 1
            if not self._from[login.address]:
                del self._from[login.address]

    def keep(self, child: Child) -> None:
        """Track a child until it has been waited for, even if its channel is closed."""
        self._children.add(child)
        self._empty.clear()
        child.when_ended(lambda _status: self._gone(child))

    def _gone(self, child: Child) -> None:
        self._children.discard(child)
        self._note_empty()

    def _note_empty(self) -> None:
        if not (self._children or self._proven or self._unproven):
            self._empty.set()

    # -- keys ---------------------------------------------------------------------------------

    def find(self, blob: str) -> authorized.Authorized | None:
        """The entry of a key in the current file."""
        self._look()
        return None if self._unusable else authorized.find(self._entries, blob)

    def _look(self) -> bool:
        """Read the file if it changed; returns whether it did."""
        stamp = _stamp(authorized.path())
        if stamp == self._stamp and stamp is not None and not self._unusable:
            return False
        self._stamp = stamp
        try:
            entries = authorized.load()
        except HoldfastError as error:
            if not self._unusable:
                log.error("new logins are refused: %s; %s", error.message, error.hint)
            self._unusable = True
            return False
        changed = entries != self._entries
        self._entries, self._unusable = entries, False
        return changed

    async def recheck(self) -> None:
        """Forever: disconnect logins whose key was removed or now acts as another actor. An
        unusable file disconnects nobody."""
        while True:
            await asyncio.sleep(SSH_RECHECK_S)
            if self._proven and self._look():
                for login in tuple(self._proven):
                    assert login.entry is not None
                    if not self._still(login.entry):
                        login.disconnect("this key is no longer authorized; the session continues")

    def _still(self, entry: authorized.Authorized) -> bool:
        now = authorized.find(self._entries, entry.blob)
        return now is not None and (now.acting, now.actor) == (entry.acting, entry.actor)

    # -- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Tell all clients; children detach, and no session is affected."""
        for login in (*self._proven, *self._unproven):
            login.disconnect("the gateway is stopping; the session continues")
        try:
            async with asyncio.timeout(SSH_LEAVE_S + SSH_CHILD_GRACE_S):
                await self._empty.wait()
        except TimeoutError:
            log.error("%d clients did not exit", len(self._children))


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (
        found.st_ctime_ns,
        found.st_ino,
        found.st_size,
    )  # ctime: also changes with the permissions
