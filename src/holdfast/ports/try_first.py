"""Trying out what waits for approval, before anybody decides.

It would be carried out in a branch of its session that is thrown away: an approver then sees what
it does, and not only what it says. That needs sessions that can be branched at any moment, which
no host has yet; until then whoever asks is told so.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.ids import SessionId


class TryFirst(Protocol):
    """Branches of the sessions of one host."""

    async def tried(self, session: SessionId, approval: str) -> ApprovalInfo:
        """What waits by this id, with what it changed in the branch. Nothing is decided by that,
        and the session does not notice. Raises LevelUnavailable where it cannot be done."""
        ...
