"""Makes docs/grants-vectors.json: chains, revocations and an invite, with everything spelled out.

    PYTHONPATH=src:tests python -m unit.grants_vectors > docs/grants-vectors.json

A test compares the file with what is made here, so a change of the format is seen. It must then be
a change on purpose: who wrote a client from the document relies on the old one.
"""

from __future__ import annotations

import json
from typing import Any

import msgpack

from holdfast.core.access.grant_verifier import Root
from holdfast.model.errors import HoldfastError
from holdfast.model.grant import GrantChain, GrantLink, Reach, Revocations
from holdfast.model.invite import Invite, Redemption
from holdfast.wire import grants
from holdfast.wire.invites import InviteLink, invite_prologue, proof_of, psk_of
from unit.granting import (
    ADA,
    AGENT,
    HOST,
    HOUR,
    MALLORY,
    NOW,
    ORG,
    PARTIES,
    PHONE,
    SESSION,
    Party,
    judged,
    three_links,
    verifier,
)

Found = dict[str, Any]
NAMED = {
    "host": HOST,
    "ada": ADA,
    "phone": PHONE,
    "agent": AGENT,
    "mallory": MALLORY,
    "org": ORG,
    **{f"party-{number}": party for number, party in enumerate(PARTIES[1:], start=1)},
}
_NAME_OF = {party.key: name for name, party in NAMED.items()}
_REACHES = (
    ("all", "all"),
    ("all", "label:x"),
    ("label:x", "all"),
    ("label:team-a/label:x", "label:team-a/label:x"),
    ("label:team-a/label:x", "label:team-a/label:xy"),
    ("label:team-a/label:x", f"label:team-a/label:x/session:{SESSION}"),
    ("label:team-a/label:x", "label:x/label:team-a"),
)


def made() -> Found:
    return {
        "about": "See grants.md, Test vectors.",
        "parties": {
            name: {"seed": party.seed.hex(), "key": party.key.hex()}
            for name, party in NAMED.items()
        },
        "chain": _chain(),
        "revocations": _spelled_list(HOST.revokes(7, links=[_first().id], keys=[MALLORY.key])),
        "judged": [_case(*case) for case in _cases()],
        "reaches": [
            {
                "wide": wide,
                "narrow": narrow,
                "covers": Reach.parse(wide).covers(Reach.parse(narrow)),
            }
            for wide, narrow in _REACHES
        ],
        "invite": _invite(),
    }


def _first() -> GrantLink:
    return three_links()[0]


def _chain() -> Found:
    chain = GrantChain(three_links())
    held = judged(chain, AGENT)
    return {
        "links": [_spelled(link) for link in chain.links],
        "bytes": grants.encode_chain(chain).hex(),
        "text": grants.chain_text(chain),
        "holder": "agent",
        "now": NOW,
        "rights": sorted(held.rights),
        "reach": str(held.reach),
        "until": int(held.until),
    }


def _spelled(link: GrantLink) -> Found:
    fields = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in link.grant.pack().items()
    }
    return {
        **fields,
        "reach": list(link.grant.reach.steps),
        "signed": link.text.hex(),
        "signature": link.signature.hex(),
        "id": link.id.hex(),
    }


def _list_bytes(made: Revocations) -> bytes:
    """As a list would be sent; none is yet."""
    return made.text[len(grants.REVOCATIONS_DOMAIN) :] + made.signature


def _spelled_list(made: Revocations) -> Found:
    return {
        "issuer": made.issuer.hex(),
        "version": made.version,
        "issued_at": made.issued_at,
        "links": [each.hex() for each in made.links],
        "keys": [each.hex() for each in made.keys],
        "signed": made.text.hex(),
        "signature": made.signature.hex(),
        "bytes": _list_bytes(made).hex(),
    }


_Case = tuple[str, bytes, Party, float, tuple[Party, ...], tuple[Revocations, ...]]


def _cases() -> list[_Case]:
    first, second, third = three_links()
    narrow = HOST.gives(
        ADA,
        reach=Reach(("label:team-a", "label:x")),
        rights=("input", "observe", "teleport"),
        inputs_per_s=5.0,
        bytes_per_s=100.0,
        delegations=2,
    )
    fits = ADA.gives(AGENT, narrow, rights=("input", "teleport"))
    sole = HOST.gives(ADA, delegations=0)
    long = [PARTIES[0].gives(PARTIES[1])]
    for number in range(1, 7):
        long.append(PARTIES[number].gives(PARTIES[number + 1], long[-1]))
    forged = grants.sign_grant(
        MALLORY.says(MALLORY, first).replace(issuer=ADA.key), MALLORY.signing.sign
    )
    wider: dict[str, Found] = {
        "a label that only begins alike": {"reach": Reach(("label:team-a", "label:xy"))},
        "a wider reach": {"reach": Reach(("label:team-a",))},
        "a right more": {"rights": ("end", "input")},
        "a right more that nobody knows": {"rights": ("observe", "unheard.of")},
        "it lasts longer": {"expires": NOW + 8 * HOUR + 1},
        "more inputs": {"inputs_per_s": 5.5},
        "inputs not limited": {"inputs_per_s": None},
        "bytes not limited": {"bytes_per_s": None},
        "handed on as often": {"delegations": 2},
    }
    late = HOST.gives(ADA, not_before=NOW + 31, expires=NOW + 60)
    plain: list[tuple[str, tuple[GrantLink, ...], Party, float]] = [
        ("nothing", (first, second, third), AGENT, NOW),
        ("the holder's own part", (first, second), PHONE, NOW),
        ("stolen", (first, second, third), MALLORY, NOW),
        ("shown by somebody further up", (first, second, third), ADA, NOW),
        ("the beginning is missing", (second, third), AGENT, NOW),
        ("a link is missing", (first, third), AGENT, NOW),
        ("links exchanged", (second, first, third), AGENT, NOW),
        ("handed on by who does not hold it", (first, MALLORY.gives(MALLORY, first)), MALLORY, NOW),
        ("signed by another", (first, forged), MALLORY, NOW),
        ("not trusted", (ORG.gives(ADA),), ADA, NOW),
        ("it expires", (first, second, third), AGENT, NOW + 300),
        ("the moment before", (first, second, third), AGENT, NOW + 299.5),
        ("too early", (late,), ADA, NOW),
        ("early, within the skew", (late,), ADA, NOW + 1),
        ("narrower in everything", (narrow, fits), AGENT, NOW),
        *(
            (f"wider: {why}", (narrow, ADA.gives(AGENT, narrow, **how)), AGENT, NOW)
            for why, how in wider.items()
        ),
        ("not to be handed on", (sole, ADA.gives(AGENT, sole)), AGENT, NOW),
        ("six links", tuple(long[:6]), PARTIES[6], NOW),
        ("of no parent that is there", (HOST.gives(ADA, serial=b"2" * 16), second), PHONE, NOW),
    ]
    cases: list[_Case] = [
        (why, _bytes(links), holder, now, (), ()) for why, links, holder, now in plain
    ]
    whole = _bytes((first, second, third))
    trusting = _bytes((ORG.gives(ADA),))
    return [
        *cases,
        ("seven links", _bytes(tuple(long)), PARTIES[7], NOW, (), ()),
        ("no links", msgpack.packb([1, []]), ADA, NOW, (), ()),
        ("another version", b"\x92\x02" + whole[2:], AGENT, NOW, (), ()),
        ("a byte too many", whole + b"\0", AGENT, NOW, (), ()),
        ("a number written longer than it is", b"\x92\xcc\x01" + whole[2:], AGENT, NOW, (), ()),
        ("a bit of the signature", whole[:-1] + bytes([whole[-1] ^ 1]), AGENT, NOW, (), ()),
        ("trusted", trusting, ADA, NOW, (ORG,), ()),
        ("its first link revoked", whole, AGENT, NOW, (), (HOST.revokes(1, links=[first.id]),)),
        ("a key in between revoked", whole, AGENT, NOW, (), (HOST.revokes(1, keys=[PHONE.key]),)),
        (
            "an older list comes after",
            whole,
            AGENT,
            NOW,
            (),
            (HOST.revokes(2, keys=[ADA.key]), HOST.revokes(1)),
        ),
        (
            "a list of another authority",
            whole,
            AGENT,
            NOW,
            (ORG,),
            (ORG.revokes(1, keys=[ADA.key]),),
        ),
        (
            "the host's list, another's chain",
            trusting,
            ADA,
            NOW,
            (ORG,),
            (HOST.revokes(1, keys=[ADA.key]),),
        ),
    ]


def _bytes(links: tuple[GrantLink, ...]) -> bytes:
    """Also of what no chain may be."""
    parts = [link.text[len(grants.GRANT_DOMAIN) :] + link.signature for link in links]
    packed: bytes = msgpack.packb([1, parts])
    return packed


def _case(
    why: str,
    chain: bytes,
    holder: Party,
    now: float,
    trusted: tuple[Party, ...],
    lists: tuple[Revocations, ...],
) -> Found:
    judge = verifier(*(Root(each.key) for each in trusted))
    error = ""
    try:
        for each in lists:
            judge.take(each, now)
        judge.verify(grants.decode_chain(chain), holder.key, now)
    except HoldfastError as refused:
        error = refused.code
    return {
        "why": why,
        "chain": chain.hex(),
        "holder": _NAME_OF[holder.key],
        "now": now,
        "trusted": [_NAME_OF[each.key] for each in trusted],
        "revocations": [_list_bytes(each).hex() for each in lists],
        "error": error,
    }


def _invite() -> Found:
    name, code = bytes(range(0x10, 0x18)), bytes(range(0x20, 0x30))
    proof = proof_of(name, code)
    kept = Invite(name, proof, Reach(), ("observe",), NOW + 60.0, 60.0, float(NOW), "", 0)
    pin = bytes(range(0x40, 0x60))
    return {
        "link": InviteLink("https://relay.example", name, code, HOST.key).text(),
        "pinned": InviteLink("https://192.168.1.5:7420", name, code, HOST.key, pin).text(),
        "certificate": pin.hex(),
        "id": name.hex(),
        "code": code.hex(),
        "host_key": HOST.key.hex(),
        "proof": proof.hex(),
        "psk": psk_of(proof, HOST.key).hex(),
        "prologue": invite_prologue(name, HOST.key).hex(),
        "device": PHONE.key.hex(),
        "serial": kept.grant_for(Redemption(PHONE.key, float(NOW)), HOST.key).serial.hex(),
    }


if __name__ == "__main__":
    print(json.dumps(made(), indent=1))
