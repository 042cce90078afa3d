"""People, devices and agents with known keys, and the grants they give each other."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.signing import SigningKey, check
from holdfast.core.access.grant_verifier import Root, VerifiedGrant, Verifier
from holdfast.model.envelope import rights_of
from holdfast.model.errors import HoldfastError
from holdfast.model.grant import Grant, GrantChain, GrantLink, Reach, Revocations
from holdfast.model.ids import ActorId, SessionId
from holdfast.wire import grants

HOUR = 3600
NOW = 1_800_000_000
SESSION = SessionId.of_key(b"s" * 32)
OTHER = SessionId.of_key(b"t" * 32)


class Party:
    """Somebody with a key."""

    def __init__(self, number: int) -> None:
        self.seed = bytes([number]) * 32
        self.signing = SigningKey(self.seed)
        self.key = self.signing.public
        self.actor = ActorId.of_key(self.key)

    def gives(self, to: Party, parent: GrantLink | None = None, **changes: Any) -> GrantLink:
        """A link that says whatever is asked for, right or wrong."""
        return grants.sign_grant(self.says(to, parent, **changes), self.signing.sign)

    def says(self, to: Party, parent: GrantLink | None = None, **changes: Any) -> Grant:
        fields: dict[str, Any] = {
            "reach": parent.grant.reach if parent else Reach(),
            "rights": parent.grant.rights if parent else rights_of(["execute"]),
            "not_before": NOW,
            "expires": parent.grant.expires if parent else NOW + 8 * HOUR,
            "serial": bytes(16),
            "inputs_per_s": parent.grant.inputs_per_s if parent else None,
            "bytes_per_s": parent.grant.bytes_per_s if parent else None,
            "delegations": max(0, parent.grant.delegations - 1) if parent else 5,
        }
        return Grant(self.key, to.key, parent.id if parent else b"", **{**fields, **changes})

    def revokes(
        self, version: int, *, links: Any = (), keys: Any = (), issued_at: int = NOW
    ) -> Revocations:
        return grants.sign_revocations(self.key, version, issued_at, links, keys, self.signing.sign)


HOST, ADA, PHONE, AGENT, MALLORY, ORG = (Party(number) for number in range(1, 7))
PARTIES = [HOST, *(Party(number) for number in range(20, 27))]


def verifier(*roots: Root, check: Any = check) -> Verifier:
    return Verifier(HOST.key, check, roots)


def chain(*links: GrantLink) -> GrantChain:
    """As it comes over the wire."""
    return grants.decode_chain(grants.encode_chain(GrantChain(links)))


def three_links() -> tuple[GrantLink, GrantLink, GrantLink]:
    """The host lets Ada in, she her phone, the phone an agent for five minutes."""
    first = HOST.gives(ADA, reach=Reach(("label:team-a",)))
    second = ADA.gives(PHONE, first, reach=Reach(("label:team-a", "label:x")))
    third = PHONE.gives(AGENT, second, rights=("observe",), expires=NOW + 300)
    return first, second, third


def judged(
    links: GrantChain, holder: Party, now: float = NOW, by: Verifier | None = None
) -> VerifiedGrant:
    return (by or verifier()).verify(links, holder.key, now)


def refusal(links: GrantChain, holder: Party, now: float = NOW, by: Verifier | None = None) -> str:
    """The code it is refused with; "": it is not."""
    try:
        judged(links, holder, now, by)
    except HoldfastError as error:
        return error.code
    return ""
