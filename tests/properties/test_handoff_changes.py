"""Whatever two states are, their differences lead from the one to the other and tell no secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.shell.state_file import parse_state
from holdfast.core.shell_changes import changes
from holdfast.model.change_text import text
from holdfast.model.shell_state import ChangeKind, ShellState, What, shapes_commands

names = st.sampled_from(["PATH", "EDITOR", "TOKEN", "a", "b", "LD_PRELOAD", "ls"])
values = st.text(max_size=8)
tables = st.dictionaries(names, values, max_size=5)
states = st.builds(
    ShellState,
    kind=st.just("bash"),
    number=st.integers(0, 9),
    serial=st.integers(0, 9),
    cwd=values,
    umask=st.sampled_from(["0022", "0077"]),
    exported=tables,
    variables=st.just({}),
    aliases=tables,
    functions=st.dictionaries(names, st.sampled_from(["1", "2"]), max_size=5),
    options=st.frozensets(names, max_size=4).map(lambda on: tuple(sorted(on))),
    traps=tables,
    jobs=tables,
    hashed=tables,
)
TABLES = {
    ChangeKind.ALIAS: "aliases",
    ChangeKind.TRAP: "traps",
    ChangeKind.JOB: "jobs",
    ChangeKind.HASH: "hashed",
}


@given(states)
def test_equal_states_differ_in_nothing(state: ShellState) -> None:
    assert changes(state, state.replace(number=99, serial=99)) == ()


@pytest.mark.requirement("A6")
@given(states, states)
def test_applied_to_the_earlier_state_the_changes_give_the_later_one(
    before: ShellState, after: ShellState
) -> None:
    found = changes(before, after)
    for kind, field in TABLES.items():
        table = dict(getattr(before, field))
        for change in found:
            if change.kind is kind and change.what is What.REMOVED:
                del table[change.name]
            elif change.kind is kind:
                assert table.get(change.name, "") == change.before
                table[change.name] = change.after
        assert table == getattr(after, field)
    touched = {c.name for c in found if c.kind in (ChangeKind.ENV, ChangeKind.PATH)}
    both = before.exported.keys() | after.exported.keys()
    assert touched == {n for n in both if before.exported.get(n) != after.exported.get(n)}


@given(states, states)
def test_the_way_back_is_the_mirror_image(before: ShellState, after: ShellState) -> None:
    there = {(c.kind, c.name, c.before, c.after) for c in changes(before, after)}
    back = {(c.kind, c.name, c.after, c.before) for c in changes(after, before)}
    assert there == back


@given(states, states)
def test_every_line_is_one_line_and_tells_no_value_that_is_not_to_be_shown(
    before: ShellState, after: ShellState
) -> None:
    for change in changes(before, after):
        assert text(change).isprintable()
        if change.kind is ChangeKind.ENV and not shapes_commands(change.name):
            assert (change.before, change.after) == ("", "")


@given(st.binary(max_size=400))
def test_no_bytes_without_the_nonce_are_a_state_and_none_make_it_fail(data: bytes) -> None:
    nonce = "0123456789abcdef" * 2
    assert parse_state(data, nonce) is None
    head = f"\0HOLDSTATE1 {nonce} 1 1 bash\0".encode()
    end = f"\0END {nonce} 1\0".encode()
    parse_state(head + data + end, nonce)  # whatever it makes of it, it makes it quietly
    for tag in (b"bash", b"functions", b"hash", b"bashjobs", b"jobstates", b"abbreviations"):
        framed = head + tag + b" 1\0" + data.replace(b"\0", b"") + end
        assert parse_state(data.replace(b"\0", b"") + framed, nonce) is not None
