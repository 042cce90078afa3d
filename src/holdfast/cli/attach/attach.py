"""From `hold attach` and `hold run` to an attached terminal, and back to a shell's exit status."""

from __future__ import annotations

import os
from typing import NamedTuple

from holdfast.cli.attach import predicted_typing, prefix_keys
from holdfast.cli.attach.raw_terminal import RawTerminal
from holdfast.cli.attach.terminal_client import (
    AttachDetached,
    AttachEnded,
    AttachSwitched,
    TerminalClient,
)
from holdfast.cli.session_address import address_from_here
from holdfast.model.errors import HoldfastError, InvalidArgument, NotPermitted, SessionLost
from holdfast.model.state import Ending


def attach_terminal(
    session: str,
    *,
    observe: bool = False,
    predict: str | None = None,
    prefix: str | None = None,
    scrollback: bool = False,
) -> int:
    """Attach this terminal until the operator detaches or the session ends. Gives the exit status:
    0 after detaching, the session's own when it ended."""
    if not (os.isatty(0) and os.isatty(1)):
        raise InvalidArgument(
            "attach needs a terminal on standard input and output",
            hint="scripts use `hold exec`, `hold send`, `hold screen` and `hold tail`",
        )
    connect = _Connect(predicted_typing.chosen(predict), prefix_keys.chosen(prefix), scrollback)
    client = connect.to(session, observe)
    try:
        with RawTerminal(0) as terminal:
            try:
                while True:
                    try:
                        client.serve(terminal)
                    except AttachSwitched as to:
                        client.wipe_line()
                        terminal.reset()
                        client = connect.instead(client, to, observe)
            finally:
                client.wipe_line()
    except AttachDetached as left:
        name = client.name
        again = f"`hold attach {address_from_here(name)}`"
        print(f"\r\n[detached from {name}{left.why}; {again} comes back]")
        if count := client.untaken_bytes():
            print(
                f"[the host did not confirm the last {count} bytes typed: look before you repeat]"
            )
        return 0
    except AttachEnded as end:
        print(f"\r\n[{client.name} {end.ending.sentence()}]")
        return exit_status(end.ending)
    raise AssertionError("unreachable")


def exit_status(ending: Ending) -> int:
    """A session's end as this command's exit status, the way shells do it."""
    if ending.signal is not None:
        return 128 + ending.signal
    return ending.code if ending.code is not None else SessionLost.exit_status


class _Connect(NamedTuple):
    """How this terminal attaches, whatever it attaches to."""

    predict: str
    prefix: int
    scrollback: bool

    def to(self, session: str, observe: bool, *, switched: bool = False) -> TerminalClient:
        """Attached; one who may only watch watches."""
        client = self._client(session, observe, switched)
        try:
            client.connect()
        except NotPermitted:
            if observe:
                raise
            client = self._client(session, True, switched)
            client.connect()
        except SessionLost as lost:
            successor = lost.ending.successor if lost.ending else ""
            if not successor:
                raise
            # Only a view follows, and says so: what is written goes to the session that is named.
            print(f"[{lost.message}; attaching to its successor, {successor}]")
            return self.to(successor, observe, switched=switched)
        return client

    def instead(self, before: TerminalClient, to: AttachSwitched, observe: bool) -> TerminalClient:
        """Attached to another session in place of this one; or to this one again, with the reason
        why not."""
        before.leave()
        try:
            client = self.to(to.session, observe, switched=True)
            client.typed_ahead = to.keys
        except HoldfastError as error:
            client = self.to(before.session, observe, switched=True)
            client.greeting = error.message
        return client

    def _client(self, session: str, observe: bool, switched: bool) -> TerminalClient:
        return TerminalClient(
            session,
            observe,
            self.predict,
            self.prefix,
            scrollback=self.scrollback and not switched,
            switched=switched,
        )
