"""Who may come in by a link, how often, and how fast codes may be tried.

    proof    what a handshake with this invite must be made with; asked for before it
    guessed  the handshake failed: a wrong code
    look     the code was right: what this device key would get; nothing is used up
    redeem   the code was right: this device key comes in, or came in already

The first device keys bind the invite, as many as it has uses. Asking again with the same key
gives the same again and costs no use, so a repeated message does no harm. A wrong code and an id
that does not exist look the same from outside. Whoever knows an id can close that invite by
guessing; the relay can, and it could drop every message as well.

The caller writes `invites()` down before it answers: a use that is forgotten could be used twice.
Not here: where invites are kept, the handshake, and signing the grant (`Invite.grant_for`).
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.access.rate_limits import Bucket
from holdfast.model.device import KEY_BYTES
from holdfast.model.errors import (
    InvalidArgument,
    InviteExpired,
    InviteInvalid,
    InviteUsed,
    LimitReached,
    RateLimited,
)
from holdfast.model.invite import Invite, Redemption
from holdfast.model.limits import INVITE_GUESSES_PER_S, INVITE_WRONG_MAX, INVITES_MAX
from holdfast.model.record import Record


class Redeemed(Record):
    """A device is in."""

    invite: Invite
    joined: Redemption
    again: bool  # it was in already; nothing was used up


class InviteBook:
    """The invites of one host."""

    def __init__(self, invites: Iterable[Invite] = ()) -> None:
        self._invites = {invite.id: invite for invite in invites}
        self._guesses: dict[bytes, Bucket] = {}  # of invites that somebody guessed at
        self._strange: Bucket | None = None  # guesses at ids that do not exist

    def invites(self) -> tuple[Invite, ...]:
        return tuple(self._invites.values())

    def add(self, invite: Invite, now: float) -> None:
        """From now on it can be used. The id must be random: one that exists is refused."""
        if invite.checked().id in self._invites:
            raise InvalidArgument("there is already an invite with this id")
        if len(self._invites) >= INVITES_MAX:
            self.forget(now)
        if len(self._invites) >= INVITES_MAX:
            raise LimitReached(
                f"already {INVITES_MAX} invites can be used here", hint="revoke some, or wait"
            )
        self._invites[invite.id] = invite

    def revoke(self, invite: bytes, now: float) -> Invite:
        """Nobody can join by it from now on. What those who did were granted stands; the caller
        revokes the keys in `joined` when that is to end too."""
        known = self._invites.get(invite)
        if known is None:
            raise InviteInvalid("there is no such invite")
        if known.revoked_at is None:
            known = self._invites[invite] = known.replace(revoked_at=now)
        return known

    def take_back(self, before: Iterable[Invite]) -> None:
        """A change could not be written down: the invites are what they were. Guesses stay counted
        against the clock."""
        self._invites = {invite.id: invite for invite in before}

    def forget(self, now: float) -> None:
        """Drop those whose link is no longer of use to anybody."""
        self._invites = {
            key: each
            for key, each in self._invites.items()
            if each.expires_at > now and each.revoked_at is None
        }
        self._guesses = {
            key: bucket for key, bucket in self._guesses.items() if key in self._invites
        }

    def proof(self, invite: bytes, now: float) -> bytes:
        """To make the handshake's secret from."""
        self._may_try(invite, now)
        if invite not in self._invites:
            self.guessed(invite, now)
        return self._usable(invite, now).proof

    def guessed(self, invite: bytes, now: float) -> None:
        """Somebody tried this invite and did not know its code. Always counted, also when several
        tried at once: then the wait is the longer."""
        bucket = self._bucket(invite, now)
        bucket.wait_s(1.0, INVITE_GUESSES_PER_S, now)
        bucket.take(1.0)
        known = self._invites.get(invite)
        if known is not None:
            self._invites[invite] = known.replace(wrong_codes=known.wrong_codes + 1)

    def look(self, invite: bytes, proof: bytes, key: bytes, now: float) -> Invite:
        """The invite, if the holder of this device key can come in by it; `proof`: see `redeem`."""
        known = self._shown(invite, proof, key, now)
        self._check_uses(known, key)
        return known

    def redeem(self, invite: bytes, proof: bytes, key: bytes, now: float) -> Redeemed:
        """Let the holder of this device key in, who has shown that it knows the code: after a
        handshake, `proof` is what it was made with."""
        known = self._shown(invite, proof, key, now)
        for joined in known.joined:
            if joined.key == key:
                return Redeemed(known, joined, True)
        self._check_uses(known, key)
        joined = Redemption(key, now)
        known = self._invites[invite] = known.replace(joined=(*known.joined, joined))
        return Redeemed(known, joined, False)

    def _shown(self, invite: bytes, proof: bytes, key: bytes, now: float) -> Invite:
        self._may_try(invite, now)
        known = self._invites.get(invite)
        # A plain comparison: both sides are hashes, and how far they agree tells nothing of codes.
        if known is None or known.proof != proof:
            self.guessed(invite, now)
            raise _no_such_invite()
        known = self._usable(invite, now)
        if len(key) != KEY_BYTES:
            raise InvalidArgument(f"a device key has {KEY_BYTES} bytes, not {len(key)}")
        return known

    @staticmethod
    def _check_uses(known: Invite, key: bytes) -> None:
        if len(known.joined) >= known.uses and all(key != each.key for each in known.joined):
            raise InviteUsed(
                "the invite has been used by another device"
                if known.uses == 1
                else f"the invite has been used by {known.uses} other devices",
                hint="ask for one of your own",
            )

    def _usable(self, invite: bytes, now: float) -> Invite:
        known = self._invites.get(invite)
        if known is None or known.revoked_at is not None:
            raise _no_such_invite()
        if known.wrong_codes >= INVITE_WRONG_MAX:
            raise _no_such_invite()
        if now >= known.expires_at:
            raise InviteExpired("the invite has expired", hint="ask for a new one")
        return known

    def _may_try(self, invite: bytes, now: float) -> None:
        wait = self._bucket(invite, now).wait_s(1.0, INVITE_GUESSES_PER_S, now)
        if wait > 0:
            raise RateLimited(
                f"too many wrong codes; another may be tried in {wait + 0.01:.2f} s",
                hint="wait so long and try again",
            )

    def _bucket(self, invite: bytes, now: float) -> Bucket:
        if invite in self._invites:
            return self._guesses.setdefault(invite, Bucket(INVITE_GUESSES_PER_S, now))
        if self._strange is None:
            self._strange = Bucket(INVITE_GUESSES_PER_S, now)
        return self._strange


def _no_such_invite() -> InviteInvalid:
    return InviteInvalid("there is no invite with this id and code", hint="is the link whole?")
