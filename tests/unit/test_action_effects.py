"""Two looks at a session, what is different, and that against what was declared."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.gate.action_effects import (
    Difference,
    Look,
    cut,
    difference,
    missing,
    named,
    shown,
    unexpected,
)
from holdfast.core.gate.action_score import UNKNOWN
from holdfast.core.gate.file_globs import Glob, absolute
from holdfast.journal.encoding import encode
from holdfast.journal.entries import ActionMeasured
from holdfast.model.action import Expected
from holdfast.model.file_marks import FileMark, TreeScan
from holdfast.model.graph import Process, Socket
from holdfast.model.limits import ACTION_NAME_BYTES, ACTION_NAMED, JOURNAL_ENTRY_MAX_BYTES
from holdfast.model.measured import Deviation
from holdfast.model.shell_state import ShellState

SHELL, INIT = 10, 9
OWN = frozenset((SHELL, INIT))
ROOT = "/w"
STATE = ShellState("bash", 1, 1, "/w", "0022", {"A": "#1"}, {}, {}, {}, (), {}, {}, {})

Names = dict[str, int | dict[str, Any]]  # a file's number; a directory's names


def tree(names: Names, at: str = ROOT) -> dict[str, dict[str, FileMark]]:
    """`{"a": 1, "d": {"b": 2}}`: a file's number is its inode, time and size."""
    found: dict[str, dict[str, FileMark]] = {at: {}}
    for name, what in names.items():
        if isinstance(what, dict):
            found[at][name] = FileMark(hash(f"{at}/{name}"), 0, 0, True)
            found |= tree(what, f"{at}/{name}")
        else:
            found[at][name] = FileMark(what, what, what, False)
    return found


def process(pid: int, ppid: int = SHELL, name: str = "sleep", *, port: int = 0, peer: str = "",
            state: str = "S", started: float = 5.0) -> Process:  # fmt: skip
    sockets = []
    if port:
        sockets.append(Socket(3, pid, "inet", "tcp", "listen", f"0.0.0.0:{port}"))
    if peer:
        sockets.append(Socket(4, pid, "inet", "tcp", "established", "10.0.0.1:5", peer))
    return Process(
        pid, pid, ppid, pid, 1, name, (name, "100"), "/w", 0, state, started, 0.0, 0, 1, False,
        sockets=tuple(sockets),
    )  # fmt: skip


def look(
    names: Names | None = None,
    processes: tuple[Process, ...] = (),
    shell: ShellState | None = STATE,
    cwd: str = ROOT,
    partial: tuple[str, ...] = (),
) -> Look:
    base = (process(INIT, 1, "hold-init"), process(SHELL, INIT, "bash"))
    return Look(TreeScan(tree(names or {}), partial), (*base, *processes), shell, cwd)


def diff(before: Look, after: Look) -> Difference:
    return difference(before, after, OWN, (ROOT,))


def files(before: Names, after: Names) -> tuple[tuple[str, ...], ...]:
    found = diff(look(before), look(after))
    return found.created, found.changed, found.deleted


def against(
    expect: Expected, found: Difference, after: Look, status: int | None = 0
) -> tuple[list[str], list[str]]:
    """Missing and unexpected."""
    globs = [Glob(absolute(glob, ROOT)) for glob in expect.files]
    lacking = missing(expect, globs, found, after, status)
    more = unexpected(expect, globs, found)
    return _words(lacking), _words(more)


def _words(found: tuple[Deviation, ...]) -> list[str]:
    return [f"{each.kind} {each.what}" for each in found]


# -- files ------------------------------------------------------------------------------------


def test_nothing_changed() -> None:
    one = look({"a": 1, "d": {"b": 2}})
    found = diff(one, one)
    assert found == Difference((), (), (), (), (), (), (), "", (), ())


def test_files_created_changed_and_deleted() -> None:
    before: Names = {"a": 1, "b": 2, "d": {"x": 3}}
    assert files(before, {"a": 1, "b": 9, "c": 4, "d": {}}) == (
        ("/w/c",), ("/w/b",), ("/w/d/x",),
    )  # fmt: skip


def test_new_directories_are_said_by_what_is_in_them_and_empty_ones_by_themselves() -> None:
    assert files({}, {"d": {"e": {"x": 1}}, "f": {}}) == (("/w/f/", "/w/d/e/x"), (), ())
    assert files({"d": {"e": {"x": 1}}, "f": {}}, {}) == ((), (), ("/w/f/", "/w/d/e/x"))


def test_a_file_that_became_a_directory_is_both() -> None:
    assert files({"a": 1}, {"a": {"x": 2}}) == (("/w/a/x",), (), ("/w/a",))


def test_a_directory_that_only_one_look_listed_says_nothing() -> None:
    whole, half = look({"d": {"x": 1}}), look({"d": {"x": 1}})
    del half.files.directories["/w/d"]
    assert diff(whole, half)[:3] == diff(half, whole)[:3] == ((), (), ())


def test_a_declared_file_outside_of_the_roots_counts_when_it_goes() -> None:
    before, after = look(), look()
    before.files.directories["/tmp"] = {"x": FileMark(1, 1, 1, False)}
    after.files.directories["/tmp"] = {}
    assert diff(before, after).deleted == ()
    globs = [Glob("/tmp/x")]
    assert difference(before, after, OWN, (ROOT,), globs).deleted == ("/tmp/x",)


def test_outside_of_the_roots_only_what_was_declared_counts() -> None:
    before, after = look(), look()
    before.files.directories["/tmp"] = {}
    after.files.directories["/tmp"] = {"x": FileMark(1, 1, 1, False)}
    found = diff(before, after)
    assert found.created == ()
    lacking, more = against(Expected(files=("/tmp/x",)), found, after)
    assert (lacking, more) == ([], [])
    lacking, _ = against(Expected(files=("/tmp/y",)), found, after)
    assert lacking == ["file /tmp/y"]


# -- processes, ports, peers ------------------------------------------------------------------


def test_a_process_left_running_and_one_that_was_there() -> None:
    old, new, ended = process(20), process(21), process(22, state="Z")
    found = diff(look(processes=(old,)), look(processes=(old, new, ended)))
    assert [each.pid for each in found.left] == [21]


def test_a_process_of_a_job_that_was_there_before_belongs_to_that_job() -> None:
    job = process(20, name="watch")
    found = diff(look(processes=(job,)), look(processes=(job, process(21, 20), process(22, 21))))
    assert found.left == ()


def test_a_pid_that_was_used_again_is_another_process() -> None:
    found = diff(look(processes=(process(20),)), look(processes=(process(20, started=90.0),)))
    assert [each.pid for each in found.left] == [20]


def test_ports_opened_and_closed_and_peers() -> None:
    before = look(processes=(process(20, port=80),))
    after = look(processes=(process(20), process(21, port=3000, peer="1.2.3.4:443")))
    found = diff(before, after)
    assert (found.opened, found.closed, found.peers) == ((3000,), (80,), ("1.2.3.4:443",))


# -- the shell --------------------------------------------------------------------------------


def test_what_changed_in_the_shell_and_where_it_is() -> None:
    changed = STATE.replace(exported={"A": "#2", "B": "#3"}, aliases={"ls": "rm"}, number=2)
    found = diff(look(), look(shell=changed, cwd="/tmp"))
    assert [f"{each.kind} {each.name}" for each in found.shell] == ["env A", "env B", "alias ls"]
    assert found.cwd == "/tmp"


@pytest.mark.parametrize("before", [None, STATE])
def test_a_shell_that_does_not_say_is_said(before: ShellState | None) -> None:
    after = None if before is not None else STATE
    found = diff(look(shell=before), look(shell=after))
    assert found.shell == () and found.partial == ("the shell did not say what changed in it",)


def test_what_neither_look_could_see_is_said_once() -> None:
    found = diff(look(partial=("more than 9 files",)), look(partial=("more than 9 files",)))
    assert found.partial == ("more than 9 files",)


# -- against what was declared ----------------------------------------------------------------


@pytest.mark.requirement("G3")
def test_everything_undeclared_is_unexpected() -> None:
    before = look({"a": 1, "b": 2}, processes=(process(20, port=80),))
    after = look(
        {"a": 9, "c": 3},
        processes=(process(20), process(21, port=3000, peer="1.2.3.4:443")),
        shell=STATE.replace(exported={}),
        cwd="/tmp",
    )
    lacking, more = against(Expected(), diff(before, after), after)
    assert lacking == []
    assert more == [
        "file_created /w/c", "file_changed /w/a", "file_deleted /w/b", "process sleep (21)",
        "port_opened 3000", "port_closed 80", "env env A removed", "cwd /tmp", "peer 1.2.3.4:443",
    ]  # fmt: skip


def test_everything_declared_is_neither() -> None:
    before = look({"a": 1})
    after = look(
        {"a": 9, "out": {"x": 3}},
        processes=(process(21, port=3000), process(22, 21, "worker")),
        shell=STATE.replace(exported={}),
        cwd="/tmp",
    )
    expect = Expected(2, ("a", "out/**"), (3000,), (), ("A",), "/tmp")
    assert against(expect, diff(before, after), after, 2) == ([], [])


def test_everything_declared_and_not_found_is_missing() -> None:
    expect = Expected(0, ("out/*",), (80,), ("node",), ("X",), "/tmp")
    lacking, more = against(expect, diff(look(), look()), look(), 1)
    assert lacking == [
        "status expected 0, was 1", "file out/*", "port 80", "process node", "env X",
        "cwd expected /tmp, was /w",
    ]  # fmt: skip
    assert more == []


def test_a_status_that_nobody_knows_is_not_the_expected_one() -> None:
    lacking, _ = against(Expected(), diff(look(), look()), look(), None)
    assert lacking == ["status expected 0, was unknown"]


def test_a_declared_file_that_was_there_already_is_not_missing() -> None:
    one = look({"a": 1})
    assert against(Expected(files=("a",)), diff(one, one), one) == ([], [])


def test_a_deleted_file_can_be_declared() -> None:
    before, after = look({"a": 1}), look()
    assert against(Expected(files=("a",)), diff(before, after), after) == ([], [])


def test_a_process_declared_by_name() -> None:
    after = look(processes=(process(21, name="node"), process(22, name="other")))
    lacking, more = against(Expected(processes=("node",)), diff(look(), after), after)
    assert (lacking, more) == ([], ["process other (22)"])


# -- as it is shown ---------------------------------------------------------------------------


def test_so_many_are_named_and_the_rest_is_counted() -> None:
    found = diff(look(), look({f"f{number:04}": number for number in range(ACTION_NAMED + 7)}))
    effects = shown(found)
    assert len(effects.files.created) == ACTION_NAMED and effects.left_out == 7
    many = [Deviation("file_created", f"/w/{number}") for number in range(ACTION_NAMED + 7)]
    assert len(named(many)) == ACTION_NAMED


def test_the_largest_measurement_fits_an_entry_of_the_journal() -> None:
    paths: Names = {f"{'é' * 126}{number:03}": number for number in range(100)}
    left = tuple(
        process(pid, name="é" * 7, port=pid, peer=f"10.0.0.1:{pid}").replace(argv=("𝄞" * 500,))
        for pid in range(100, 200)
    )
    aliases = {f"{'é' * 200}{number}": "x" for number in range(100)}
    before, after = look(), look(paths, left, STATE.replace(aliases=aliases), "/" + "é" * 2000)
    found = diff(before, after)._replace(changed=("é" * 500,) * 99, deleted=("é" * 500,) * 99)
    expect = Expected(files=tuple("é" * 999 for _ in range(100)))
    globs = [Glob("/none")] * 100
    body = ActionMeasured(
        "a" * 16, 1, 0, 1.0, 1.0, UNKNOWN, shown(found),
        named(missing(expect, globs, found, after, 1)), named(unexpected(expect, globs, found)),
    )  # fmt: skip
    record = encode(1, 1.0, 1, "a" * 26, 1, body, b"p" * 32)
    assert len(record) < JOURNAL_ENTRY_MAX_BYTES


def test_a_long_path_is_cut_at_its_beginning() -> None:
    path = "/w/" + "é" * 200 + "/end"
    assert cut("/w/short") == "/w/short"
    assert cut(path).endswith("é/end") and cut(path).startswith("…")
    assert len(cut(path).encode()) <= ACTION_NAME_BYTES + len("…".encode())
