"""A judge of chains written from docs/grants.md alone, and from nothing of ours: if the page says
too little, this one cannot agree with the other."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
from typing import Any

import msgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_STEP = re.compile(rf"host:[0-9a-f]{{64}}|label:{_LABEL}|session:[0-9abcdefghjkmnpqrstvwxyz]{{26}}")


class Refused(Exception):
    """With the code as its argument."""


def signed(key: bytes, text: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def read(data: bytes) -> Any:
    """msgpack in its one form."""
    try:
        value = msgpack.unpackb(data)
    except Exception as error:
        raise Refused("grant_invalid") from error
    require(msgpack.packb(value) == data)
    return value


def require(truth: bool, code: str = "grant_invalid") -> None:
    if not truth:
        raise Refused(code)


def covers(wide: list[str], narrow: list[str]) -> bool:
    return len(wide) <= len(narrow) and all(a == b for a, b in zip(wide, narrow, strict=False))


def check_grant(grant: list[Any]) -> None:
    require(len(grant) == 11)
    issuer, holder, parent, reach, rights, begin, end, serial, inputs, size, left = grant
    require(len(issuer) == len(holder) == 32 and len(parent) in (0, 32) and len(serial) == 16)
    require(len(reach) <= 8 and all(_STEP.fullmatch(step) for step in reach))
    require(1 <= len(rights) <= 32 and sorted(set(rights)) == rights)
    require(all(re.fullmatch("[a-z.]{1,32}", right) for right in rights))
    require(0 <= begin < end < 2**40 and end - begin <= 31622400 and 0 <= left < 6)
    require(all(rate is None or (rate > 0 and math.isfinite(rate)) for rate in (inputs, size)))


def judge(
    chain: bytes, host: bytes, trusted: list[bytes], lists: list[bytes], holder: bytes, now: float
) -> list[Any]:
    """The last grant, or `Refused`."""
    require(len(chain) <= 4096)
    found = read(chain)
    require(isinstance(found, list) and len(found) == 2 and found[0] == 1)
    require(1 <= len(found[1]) <= 6)
    grants: list[Any] = []
    ids: list[bytes] = []
    for link in found[1]:
        require(64 < len(link) <= 1024)
        grant = read(link[:-64])
        check_grant(grant)
        if not grants:
            require(grant[0] in (host, *trusted) and grant[2] == b"")
        else:
            before = grants[-1]
            require(grant[2] == ids[-1] and grant[0] == before[1])
            require(before[10] >= 1 and grant[10] < before[10])
            require(set(grant[4]) <= set(before[4]) and covers(before[3], grant[3]))
            require(grant[6] <= before[6])
            for most, has in ((before[8], grant[8]), (before[9], grant[9])):
                require(most is None or (has is not None and has <= most))
        require(signed(grant[0], b"holdfast grant v1\0" + link[:-64], link[-64:]))
        grants.append(grant)
        ids.append(hashlib.sha256(b"holdfast grant id v1\0" + link[:-64]).digest())
    require(grants[-1][1] == holder)
    gone = revoked(lists, host, trusted, grants[0][0])
    for grant, name in zip(grants, ids, strict=True):
        require(not {name, grant[0], grant[1]} & gone, "grant_revoked")
    for grant in grants:
        require(now < grant[6], "grant_expired")
        require(now >= grant[5] - 30)
    last: list[Any] = grants[-1]
    return last


def revoked(lists: list[bytes], host: bytes, trusted: list[bytes], first: bytes) -> set[bytes]:
    """What counts of the lists for a chain that begins with that key."""
    newest: dict[bytes, list[Any]] = {}
    for data in lists:
        said = read(data[:-64])
        require(said[0] in (host, *trusted))
        require(signed(said[0], b"holdfast revocations v1\0" + data[:-64], data[-64:]))
        if said[0] not in newest or newest[said[0]][1] < said[1]:
            newest[said[0]] = said
    counting = [said for issuer, said in newest.items() if issuer in (host, first)]
    return {item for said in counting for item in (*said[3], *said[4])}


def secrets_of(link: str, device: bytes) -> dict[str, str]:
    """All that is made from an invite's link."""
    name, code, host, *certificate = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        for part in link.partition("#")[2].split(".")
    )
    proof = hmac.digest(code, b"holdfast invite proof v1\0" + name, "sha256")
    serial = hashlib.sha256(b"holdfast invite serial v1\0" + name + device).digest()[:16]
    return {
        "id": name.hex(),
        "code": code.hex(),
        "host_key": host.hex(),
        "proof": proof.hex(),
        "psk": hmac.digest(proof, b"holdfast invite psk v1\0" + host, "sha256").hex(),
        "prologue": (b"holdfast invite channel v1\0" + name + host).hex(),
        "serial": serial.hex(),
        **({"certificate": certificate[0].hex()} if certificate else {}),
    }
