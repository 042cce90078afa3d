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
def _names(host: Host, request: Any, answer: Any) -> tuple[frozenset[int], frozenset[int], Any]:
    """The revisions and epochs that a host and what is under way for it speak of, and an order of
    hosts that does not look at their numbers."""
    revisions, epochs, recs = {-1, 0, host[2]}, {0, host[1], host[12]}, [host[3]]
    for message in (request, answer):
        if message is not None:
            *_, revision, rec = message
            revisions.add(revision)
            recs.append(rec)
    epochs.update(rec[1] for rec in recs if rec is not None)
    order = (*host[:3], *host[4:], request is None, "" if answer is None else answer[0])
    return frozenset(revisions), frozenset(epochs), order


def canonical(world: World) -> World:
    """Of all the worlds that differ in nothing that matters, one."""
    rec, revision, hosts, requests, answers, strays, _, client = world
    if strays:
        strays = frozenset(stray for stray in strays if stray[0] == revision)
        world = put(world, 5, strays)
    revisions, epochs = {revision}, {rec[1]}
    for each in zip(hosts, requests, answers, strict=True):
        named = _names(*each)
        revisions |= named[0]
        epochs |= named[1]
    epochs.update(stray[1][1] for stray in strays)
    if client is not None:
        epochs.update((client[0], *client[1]))
    # Both are without gaps if the last is as high as there are many.
    if max(revisions) != len(revisions) - 2 or max(epochs) != len(epochs) - 1:
        at = {value: place - 1 for place, value in enumerate(sorted(revisions))}
        nth = {value: place for place, value in enumerate(sorted(epochs))}
        world = _renumbered(world, at, nth)
    return _mirrored(world)


def _renumbered(world: World, at: dict[int, int], nth: dict[int, int]) -> World:
    rec, revision, hosts, requests, answers, strays, sleeping, client = world

    def r(one: Rec | None) -> Rec | None:
        return None if one is None else (one[0], nth[one[1]], one[2])

    return (
        r(rec),
        at[revision],
        tuple(
            (h[0], nth[h[1]], at[h[2]], r(h[3]), *h[4:12], nth[h[12]])
            for h in hosts
        ),
        tuple(q and (at[q[0]], r(q[1])) for q in requests),
        tuple(a and (a[0], at[a[1]], r(a[2])) for a in answers),
        frozenset((at[q[0]], r(q[1])) for q in strays),
        sleeping,
        client and (nth[client[0]], frozenset(nth[e] for e in client[1])),
    )  # fmt: skip


def _mirrored(world: World) -> World:
    """Of a world and its mirror image the one that sorts first; only where there are two hosts."""
    rec, revision, hosts, requests, answers, strays, sleeping, client = world
    if len(hosts) != 2:
        return world

    def swap(one: Rec | None) -> Rec | None:
        return (1 - one[0], *one[1:]) if one is not None and one[0] < 2 else one

    first, second = (_names(*each)[2] for each in zip(hosts, requests, answers, strict=True))
    if first <= second:
        return world
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
