"""Whatever commands do to a shell's state: whoever last changed a piece of it is never left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gate.originators import KeptOrigins, Origin, OriginatorBook
from holdfast.model.shell_state import ShellState
from unit.test_originators import nowhere, state

NAMES = ("A", "B", "C", "D")
ACTORS = ("ann", "bot", "cid")
change = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("", "#1", "#2")), max_size=4)
# Who ran it, what it set ("" takes away), whether the state was seen behind it, and whether the
# daemon was replaced then.
commands = st.lists(
    st.tuples(st.sampled_from(ACTORS), change, st.booleans(), st.booleans()), max_size=20
)


def _shell(number: int, held: dict[str, str]) -> ShellState:
    return state(number, private=dict(held))


@pytest.mark.requirement("A7")
@given(commands)
def test_the_last_one_that_changed_it_is_always_among_the_originators(
    ran: list[tuple[str, dict[str, str], bool, bool]],
) -> None:
    """Of what is another value than when it was seen last: one that is the same was not noticed,
    and a line that uses it does what it would have done."""
    book, held, last = OriginatorBook(), {"A": "#0"}, dict[str, str]()
    changer: dict[str, str] = {}
    book.take(_shell(1, held), None, nowhere)
    first, shown, unseen = dict(held), dict(held), Origin(0, ())
    for number, (actor, changes, seen, replaced) in enumerate(ran, 1):
        for name, value in changes.items():
            if held.get(name, "") != value:
                changer[name] = actor
            held[name] = value
        held = {name: value for name, value in held.items() if value}
        unseen = Origin(number, tuple(dict.fromkeys((actor, *unseen.actors))))
        if not seen:
            continue
        book.take(_shell(number + 1, held), unseen, nowhere)
        unseen = Origin(0, ())
        last |= {name: by for name, by in changer.items() if held.get(name) != shown.get(name)}
        shown = dict(held)
        if replaced:
            book = OriginatorBook(KeptOrigins.unpack(book.kept().pack()))
        for name in NAMES:
            origin = book.origin(f"var:{name}")
            if held.get(name) == first.get(name):
                continue  # as the session began
            assert origin is not None and last[name] in origin.actors


@given(commands)
def test_nobody_is_named_that_never_ran_anything(
    ran: list[tuple[str, dict[str, str], bool, bool]],
) -> None:
    book = OriginatorBook()
    book.take(_shell(1, {}), None, nowhere)
    for number, (actor, changes, _, _) in enumerate(ran, 1):
        book.take(_shell(number + 1, changes), Origin(number, (actor,)), nowhere)
    named = {actor for origin in book.entries.values() for actor in origin.actors}
    assert named <= {actor for actor, _, _, _ in ran}
