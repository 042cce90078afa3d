"""Grants as bytes: their canonical encoding, what is signed, and their text for a header.

Every value has exactly one encoding. What is decoded is encoded again and compared, so that two
hosts never read one chain differently, and no byte of it can be changed unnoticed. Decoding raises
only `GrantInvalid`. Nothing here makes or checks a signature, or decides what a grant allows.
docs/grants.md describes the bytes.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import msgpack

from holdfast.model.device import SIGNATURE_BYTES
from holdfast.model.errors import GrantInvalid
from holdfast.model.grant import (
    Grant,
    GrantChain,
    GrantLink,
    Reach,
    Revocations,
    check_signature_size,
    widened,
)
from holdfast.model.limits import (
    GRANT_CHAIN_MAX_BYTES,
    GRANT_KNOWN_CHAINS,
    GRANT_LINK_MAX_BYTES,
    GRANT_LINKS_MAX,
    REVOCATIONS_MAX,
)
from holdfast.wire.base64url import decoded, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Sign = Callable[[bytes], bytes]  # an Ed25519 signature; the caller keeps the key

GRANT_DOMAIN = b"holdfast grant v1\0"
ID_DOMAIN = b"holdfast grant id v1\0"
REVOCATIONS_DOMAIN = b"holdfast revocations v1\0"
VERSION = 1
_Fields = tuple[type | tuple[type, ...], ...]
_NUMBER_OR_NONE = (float, type(None))
_GRANT: _Fields = (
    bytes, bytes, bytes, list, list, int, int, bytes, _NUMBER_OR_NONE, _NUMBER_OR_NONE, int,
)  # fmt: skip


# -- links and chains -------------------------------------------------------------------------


def sign_grant(grant: Grant, sign: Sign) -> GrantLink:
    """The link of a grant, signed by its issuer."""
    text = _grant_text(grant.checked())
    if len(text) + SIGNATURE_BYTES > GRANT_LINK_MAX_BYTES:
        raise GrantInvalid(f"a grant has at most {GRANT_LINK_MAX_BYTES} bytes")
    return _link(grant, text, check_signature_size(sign(text)))


def extend(chain: GrantChain, grant: Grant, sign: Sign) -> GrantChain:
    """The chain with `grant` added, which names the last link as its parent. What a host would
    refuse is refused here."""
    if grant.parent != chain.links[-1].id or grant.issuer != chain.last.holder:
        raise GrantInvalid("only the holder can delegate a grant, naming the link it comes from")
    if more := widened(chain.last, grant):
        raise GrantInvalid(f"a delegated grant cannot allow more than its parent: {more}")
    return GrantChain((*chain.links, sign_grant(grant, sign)))


def encode_chain(chain: GrantChain) -> bytes:
    links = [link.text[len(GRANT_DOMAIN) :] + link.signature for link in chain.links]
    data: bytes = msgpack.packb([VERSION, links])
    if not 0 < len(links) <= GRANT_LINKS_MAX or len(data) > GRANT_CHAIN_MAX_BYTES:
        raise GrantInvalid(
            f"a chain has at most {GRANT_LINKS_MAX} links and {GRANT_CHAIN_MAX_BYTES} bytes"
        )
    return data


# The same bytes are always the same chain, so the result can be cached. Errors are not cached.
@lru_cache(maxsize=GRANT_KNOWN_CHAINS)
def decode_chain(data: bytes) -> GrantChain:
    if len(data) > GRANT_CHAIN_MAX_BYTES:
        raise GrantInvalid(f"a chain has at most {GRANT_CHAIN_MAX_BYTES} bytes")
    version, links = _fields(data, (int, list))
    if version != VERSION:
        raise GrantInvalid(f"the chain has version {version}; this program knows {VERSION}")
    if not 0 < len(links) <= GRANT_LINKS_MAX or any(type(each) is not bytes for each in links):
        raise GrantInvalid(f"a chain has 1 to {GRANT_LINKS_MAX} links")
    chain = GrantChain(tuple(_decode_link(each) for each in links))
    if encode_chain(chain) != data:
        raise GrantInvalid("a chain is not in its canonical form")
    return chain


def chain_text(chain: GrantChain) -> str:
    """Text for a header or an environment variable."""
    return encoded(encode_chain(chain))


def chain_of_text(text: str) -> GrantChain:
    if len(text) > GRANT_CHAIN_MAX_BYTES * 4 // 3 + 4:
        raise GrantInvalid(f"a chain has at most {GRANT_CHAIN_MAX_BYTES} bytes")
    data = decoded(text)
    if data is None:
        raise GrantInvalid("a chain's text is not base64url")
    return decode_chain(data)


def _decode_link(data: bytes) -> GrantLink:
    """Its canonical form is checked with the whole chain."""
    if not SIGNATURE_BYTES < len(data) <= GRANT_LINK_MAX_BYTES:
        raise GrantInvalid("a link of a chain is too short or too long")
    written, signature = data[:-SIGNATURE_BYTES], data[-SIGNATURE_BYTES:]
    (
        issuer, holder, parent, steps, rights, not_before, expires, serial, inputs_per_s,
        bytes_per_s, delegations,
    ) = _fields(written, _GRANT)  # fmt: skip
    if any(type(each) is not str for each in (*steps, *rights)):
        raise GrantInvalid("reach and rights of a grant are text")
    grant = Grant(
        issuer, holder, parent, Reach(tuple(steps)), tuple(rights), not_before, expires, serial,
        inputs_per_s, bytes_per_s, delegations,
    ).checked()  # fmt: skip
    return _link(grant, _grant_text(grant), signature)


def _link(grant: Grant, text: bytes, signature: bytes) -> GrantLink:
    name = hashlib.sha256(ID_DOMAIN + text[len(GRANT_DOMAIN) :]).digest()
    return GrantLink(grant, text, signature, name)


def _grant_text(grant: Grant) -> bytes:
    """What the issuer signs."""
    rates = (grant.inputs_per_s, grant.bytes_per_s)
    packed: bytes = msgpack.packb(
        [
            grant.issuer,
            grant.holder,
            grant.parent,
            list(grant.reach.steps),
            [str.__str__(right) for right in grant.rights],
            grant.not_before,
            grant.expires,
            grant.serial,
            *(None if rate is None else float(rate) for rate in rates),
            grant.delegations,
        ]
    )
    return GRANT_DOMAIN + packed


# -- revocations ------------------------------------------------------------------------------


def sign_revocations(
    issuer: bytes,
    version: int,
    issued_at: int,
    links: Iterable[bytes],
    keys: Iterable[bytes],
    sign: Sign,
) -> Revocations:
    """An authority's list, which replaces the one before."""
    made = Revocations(issuer, version, issued_at, _sorted(links), _sorted(keys)).checked()
    text = _list_text(made)
    return made.replace(text=text, signature=check_signature_size(sign(text)))


def _list_text(made: Revocations) -> bytes:
    if len(made.links) + len(made.keys) > REVOCATIONS_MAX:
        raise GrantInvalid(
            f"a list has at most {REVOCATIONS_MAX} revocations",
            hint="leave out what has expired; revoke a key instead of many links",
        )
    packed: bytes = msgpack.packb(
        [made.issuer, made.version, made.issued_at, list(made.links), list(made.keys)]
    )
    return REVOCATIONS_DOMAIN + packed


def _sorted(items: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(sorted(set(items)))


def _fields(data: bytes, kinds: _Fields) -> list[Any]:
    """A msgpack list with fields of exactly these types."""
    try:
        fields = msgpack.unpackb(data, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise GrantInvalid(f"not a grant: {error}") from error
    if type(fields) is not list or len(fields) != len(kinds):
        raise GrantInvalid("not a grant: it has the wrong number of fields")
    for value, kind in zip(fields, kinds, strict=True):
        # Not isinstance: a bool must not pass as a number.
        if type(value) not in (kind if type(kind) is tuple else (kind,)):
            raise GrantInvalid("not a grant: a field has the wrong type")
    return list(fields)
