"""Which worlds of `fencing.py` are one: the part of the checker that makes an endless search end.

Of revisions and epochs the machine only asks which is higher and whether two are equal, so a world
keeps their order and not their size. A write that names an old revision can never be done. Two
hosts are alike but for their numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

# A record in a world: (incarnation, epoch, released). A host: its machine's fields, as in _fields.
Rec = tuple[int, int, bool]
Host = tuple[Any, ...]
World = tuple[Any, ...]


def put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


@cache
def _names(host: Host, request: Any, answer: Any) -> tuple[int, int, tuple[Any, ...]]:
    """The revisions and epochs that a host and what is under way for it speak of, as bits, and an
    order of hosts that does not look at their numbers."""
    revisions, epochs = 0b11 | 1 << host[2] + 1, 1 | 1 << host[1] | 1 << host[12] | 1 << host[13]
    order = (*host[:3], *host[4:], "" if answer is None else answer[0])
    for revision, rec in ((-1, host[3]), *(each[-2:] for each in (request, answer) if each)):
        revisions |= 1 << revision + 1
        epochs |= 1 << rec[1] if rec is not None else 1
        order += (revision, (-1, False) if rec is None else rec[1:])
    return revisions, epochs, order


def canonical(world: World) -> World:
    """Of all the worlds that differ in nothing that matters, one."""
    rec, revision, hosts, requests, answers, strays, _, client = world
    if strays:
        strays = frozenset(stray for stray in strays if stray[0] == revision)
        world = put(world, 5, strays)
    revisions, epochs, orders = 1 << revision + 1, 1 << rec[1] if rec else 1, []
    for named in map(_names, hosts, requests, answers):
        revisions |= named[0]
        epochs |= named[1]
        orders.append(named[2])
    for stray in strays:
        epochs |= 1 << stray[1][1]
    if client is not None:
        for epoch in (client[0], *client[1]):
            epochs |= 1 << epoch
    if revisions & (revisions + 1) or epochs & (epochs + 1):  # there are gaps
        at = {value - 1: place - 1 for place, value in enumerate(_bits(revisions))}
        nth = {value: place for place, value in enumerate(_bits(epochs))}
        return mirrored(_renumbered(world, at, nth))
    return _mirrored(world, orders)


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _renumbered(world: World, at: dict[int, int], nth: dict[int, int]) -> World:
    rec, revision, hosts, requests, answers, strays, sleeping, client = world

    def r(one: Rec | None) -> Rec | None:
        return None if one is None else (one[0], nth[one[1]], one[2])

    return (
        r(rec),
        at[revision],
        tuple(
            (h[0], nth[h[1]], at[h[2]], r(h[3]), *h[4:12], nth[h[12]], nth[h[13]])
            for h in hosts
        ),
        tuple(q and (at[q[0]], r(q[1])) for q in requests),
        tuple(a and (a[0], at[a[1]], r(a[2])) for a in answers),
        frozenset((at[q[0]], r(q[1])) for q in strays),
        sleeping,
        client and (nth[client[0]], frozenset(nth[e] for e in client[1])),
    )  # fmt: skip


def mirrored(world: World) -> World:
    """Of a world and its mirror image the one that sorts first; only where there are two hosts."""
    return _mirrored(world, [named[2] for named in map(_names, *world[2:5])])


def _mirrored(world: World, orders: list[Any]) -> World:
    rec, revision, hosts, requests, answers, strays, sleeping, client = world
    if len(hosts) != 2 or orders[0] <= orders[1]:
        return world

    def swap(one: Rec | None) -> Rec | None:
        return (1 - one[0], *one[1:]) if one is not None and one[0] < 2 else one

    one, two = hosts
    return (
        swap(rec),
        revision,
        (put(two, 3, swap(two[3])), put(one, 3, swap(one[3]))),
        tuple(q and (q[0], swap(q[1])) for q in reversed(requests)),
        tuple(a and (a[0], a[1], swap(a[2])) for a in reversed(answers)),
        frozenset((q[0], swap(q[1])) for q in strays),
        (sleeping >> 1 & 1) | (sleeping & 1) << 1,
        client,
    )
