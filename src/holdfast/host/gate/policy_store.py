"""Policies in force, as one file: replaced whole, readable by its owner alone.

    STATE/gate.json

What is in force is what this daemon has in memory; the file is for the next one. A file that cannot
be read then, or that has an invalid policy, is *damaged*: nobody knows what it was meant to forbid,
so everything is refused that a policy would be asked about. No file means no policy.
"""

from __future__ import annotations

import hashlib
import os

from holdfast.host import json_file
from holdfast.host.gate.policy_source import PolicySource, prepare
from holdfast.host.session_store import storage_failed
from holdfast.model.errors import PolicyInvalid, StorageFailed
from holdfast.model.record import Record
from holdfast.ports.policy_engine import PreparedPolicy


class KeptPolicy(Record):
    """A policy that somebody set."""

    scope: str  # host, label:NAME, session:ID
    floor: bool
    source: str
    format: str
    text: str
    digest: str
    set_by: str
    set_at: float
    uid: int  # of who set it: one for a label counts for that user's sessions; 0: for all

    @property
    def place(self) -> tuple[str, bool, int]:
        """Where it is: another one there replaces it."""
        return self.scope, self.floor, self.uid if self.scope.startswith("label:") else 0

    def prepared(self) -> PreparedPolicy:
        """Raises PolicyInvalid."""
        return prepare(PolicySource(self.text, self.source, self.format))


class _Kept(Record):
    policies: tuple[KeptPolicy, ...]


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class PolicyStore:
    """Of one host."""

    def __init__(self, state: str) -> None:
        self.path = f"{state}/gate.json"
        self._written = b""  # what the file should be

    def read(self) -> tuple[tuple[KeptPolicy, PreparedPolicy], ...]:
        """Raises StorageFailed when it is damaged."""
        kept = json_file.read(self.path, _Kept, without="no policy of the gate is known")
        if kept is None:
            return ()
        found = []
        for each in kept.policies:
            if digest_of(each.text) != each.digest:
                raise self._damaged(f"the text of {each.scope} is not the one that was set")
            try:
                found.append((each, each.prepared()))
            except PolicyInvalid as error:
                raise self._damaged(f"the policy of {each.scope}: {error.message}") from error
        self._written = json_file.encode(kept)
        return tuple(found)

    def write(self, policies: tuple[KeptPolicy, ...]) -> None:
        """Raises StorageFailed, and leaves the file as it was."""
        kept = _Kept(policies)
        try:
            json_file.write(self.path, kept)
        except OSError as error:
            raise storage_failed(error) from error
        self._written = json_file.encode(kept)

    def move_damaged_away(self) -> None:
        """So that somebody can look into it; a new file takes its place."""
        try:
            os.replace(self.path, f"{self.path}.damaged")
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_failed(error) from error

    def differs(self) -> str:
        """Why the next daemon would not find what is in force now; "" if it would."""
        if not self._written:
            return ""
        try:
            with open(self.path, "rb") as file:
                return "" if file.read() == self._written else f"{self.path} was changed"
        except OSError as error:
            return f"{self.path}: {error.strerror}"

    def _damaged(self, why: str) -> StorageFailed:
        return StorageFailed(f"{self.path}: {why}")
