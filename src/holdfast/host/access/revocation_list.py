"""What this host has taken back: one list, whose number rises, signed with the host's key. What has
expired by itself is left out of the next one. docs/grants.md has the list as others read it.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.adapters.signing import SigningKey
from holdfast.model.errors import LimitReached
from holdfast.model.grant import GrantLink, Revocations
from holdfast.model.limits import GRANT_LIFE_MAX_S, REVOCATIONS_MAX
from holdfast.model.record import Record
from holdfast.wire.grants import sign_revocations


class Revoked(Record):
    """Links and keys, in hexadecimal, each with the time from which nothing can rest on it."""

    version: int = 0
    issued_at: int = 0
    links: dict[str, float] = {}  # noqa: RUF012 - Records never mutate a default
    keys: dict[str, float] = {}  # noqa: RUF012

    def with_(self, links: Iterable[GrantLink], keys: Iterable[bytes], now: float) -> Revoked:
        """The list after this one."""
        all_links = self.links | {link.id.hex(): float(link.grant.expires) for link in links}
        # No grant lasts longer, and the host gives none to an actor that is revoked.
        all_keys = self.keys | {key.hex(): now + GRANT_LIFE_MAX_S for key in keys}
        made = Revoked(
            self.version + 1, int(now), _lasting(all_links, now), _lasting(all_keys, now)
        )
        if len(made.links) + len(made.keys) > REVOCATIONS_MAX:
            raise LimitReached(
                f"already {REVOCATIONS_MAX} grants and devices are revoked here",
                hint="`hold actor revoke` ends an actor, with all it handed on",
            )
        return made

    def signed(self, key: SigningKey) -> Revocations:
        return sign_revocations(
            key.public,
            self.version,
            self.issued_at,
            [bytes.fromhex(each) for each in self.links],
            [bytes.fromhex(each) for each in self.keys],
            key.sign,
        )


def _lasting(items: dict[str, float], now: float) -> dict[str, float]:
    return {item: until for item, until in items.items() if until > now}
