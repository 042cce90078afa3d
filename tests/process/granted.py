"""Grants in tests that use the real host: signed with its own key, as after an enrolment, and shown
by programs and commands."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from holdfast.adapters.signing import SigningKey
from holdfast.model.envelope import rights_of
from holdfast.model.grant import Grant, GrantChain, Reach
from holdfast.model.ids import ActorId
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.wire.grants import chain_text, sign_grant
from process.commanding import Hold


def make_key(hold: Hold, name: str) -> ActorId:
    """A key that `--as NAME` finds and the host has never heard of; gives the actor's id."""
    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        made = identity.make(name)
        identity.keep(made)
    return ActorId(made.actor)


def public_key(hold: Hold, name: str) -> bytes:
    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        return identity.load(name).public


def from_host(hold: Hold, name: str, *steps: str, **changes: Any) -> str:
    """What the host gives to the holder of this key: the text of a chain of one link."""
    host = SigningKey(Path(hold.home, "host.key").read_bytes())
    now = int(time.time())
    fields: dict[str, Any] = {
        "reach": Reach(steps),
        "rights": tuple(str.__str__(each) for each in rights_of(["execute"])),
        "not_before": now,
        "expires": now + 3600,
        "serial": os.urandom(16),
        "delegations": 1,
    }
    grant = Grant(host.public, public_key(hold, name), b"", **{**fields, **changes})
    return chain_text(GrantChain((sign_grant(grant, host.sign),)))


def showing(hold: Hold, name: str, grant: str) -> Hold:
    """The same home's commands, as this actor, with what it was given."""
    other = Hold(hold.home)
    os.rmdir(other.made)
    other.env |= {"HOLDFAST_AS": name, "HOLDFAST_GRANT": grant}
    return other


@contextmanager
def program(hold: Hold, name: str, grant: str) -> Iterator[Host]:
    """A program that stays connected."""
    env = {"HOLDFAST_HOME": hold.home, "HOLDFAST_AS": name, "HOLDFAST_GRANT": grant}
    with mock.patch.dict(os.environ, env), Host(client="test") as host:
        yield host
