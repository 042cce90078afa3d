"""What a new turn holder is told of the shell, from two states of it (A6)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.shell_changes import changes
from holdfast.model.change_text import text
from holdfast.model.limits import CHANGE_VALUE_MAX_CHARS
from holdfast.model.shell_state import Change, ChangeKind, ShellState, What, shapes_commands

STATE = ShellState(
    kind="bash",
    number=1,
    serial=1,
    cwd="/home",
    umask="0022",
    exported={"PATH": "/usr/bin:/bin", "TOKEN": "#1", "EDITOR": "vi"},
    variables={"IFS": " \t\n"},
    aliases={"ls": "ls --color"},
    functions={"f": "1"},
    options=("emacs",),
    traps={"INT": "exit"},
    jobs={"71": "running sleep 9"},
    hashed={},
)


def told(**now: Any) -> list[str]:
    return [text(change) for change in changes(STATE, STATE.replace(**now))]


def test_an_unchanged_state_tells_nothing_whatever_its_number() -> None:
    assert told(number=7, serial=12) == []


def test_without_an_earlier_state_nothing_is_known_to_have_changed() -> None:
    assert changes(None, STATE) == ()


@pytest.mark.parametrize(
    "now, lines",
    [
        ({"cwd": "/tmp"}, ["directory: /home -> /tmp"]),
        ({"umask": "0077"}, ["umask: 0022 -> 0077"]),
        ({"aliases": {}}, ["alias ls removed"]),
        ({"aliases": {"ls": "rm"}}, ["alias ls changed: ls --color -> rm"]),
        ({"functions": {"f": "2", "g": "1"}}, ["function f changed", "function g added"]),
        ({"options": ("vi",)}, ["option emacs: off", "option vi: on"]),
        ({"traps": {"DEBUG": "x"}}, ["trap on DEBUG added: x", "trap on INT removed"]),
        ({"hashed": {"ls": "/tmp/ls"}}, ["remembered command ls added: /tmp/ls"]),
        ({"jobs": {}}, ["job 71 gone: running sleep 9"]),
        ({"jobs": {"71": "not running"}}, ["job 71: running sleep 9 -> not running"]),
        ({"variables": {"IFS": ":"}}, ["variable IFS changed:  \\t\\n -> :"]),
    ],
)
def test_each_difference_is_one_line(now: dict[str, Any], lines: list[str]) -> None:
    assert told(**now) == lines


@pytest.mark.parametrize(
    "path, line",
    [
        ("/evil:/usr/bin:/bin", "PATH: added /evil (first)"),
        (":/usr/bin:/bin", "PATH: added . (first)"),
        ("/usr/bin:/bin:/last", "PATH: added /last"),
        ("/bin", "PATH: removed /usr/bin"),
        ("/new:/bin", "PATH: added /new (first); removed /usr/bin"),
        ("/bin:/usr/bin", "PATH: now in the order /bin:/usr/bin"),
    ],
)
def test_a_path_says_which_directories_came_and_went(path: str, line: str) -> None:
    assert told(exported=STATE.exported | {"PATH": path}) == [line]


def test_only_variables_that_shape_commands_show_their_values() -> None:
    now = {"PATH": "/usr/bin:/bin", "TOKEN": "#2", "EDITOR": "emacs", "AWS_SECRET": "#3"}
    found = changes(STATE, STATE.replace(exported=now))
    assert found == (
        Change(ChangeKind.ENV, "AWS_SECRET", What.ADDED),
        Change(ChangeKind.ENV, "EDITOR", What.CHANGED, "vi", "emacs"),
        Change(ChangeKind.ENV, "TOKEN", What.CHANGED),
    )
    # Also should a state ever hold the value of another one.
    [leaked] = changes(STATE, STATE.replace(exported=STATE.exported | {"TOKEN": "hunter2"}))
    assert "hunter2" not in repr(leaked)


@pytest.mark.parametrize(
    "name, shown",
    [
        ("PATH", True),
        ("LD_LIBRARY_PATH", True),
        ("FOO_PRELOAD", True),
        ("GIT_SSH_COMMAND", True),
        ("GIT_CONFIG_VALUE_0", False),
        ("HTTPS_PROXY", False),
        ("AWS_SECRET_ACCESS_KEY", False),
        ("HOMEBREW_GITHUB_API_TOKEN", False),
    ],
)
def test_which_variables_shape_commands(name: str, shown: bool) -> None:
    assert shapes_commands(name) is shown


def test_a_function_whose_body_is_not_known_is_not_said_to_have_changed() -> None:
    assert told(functions={"f": ""}) == []
    before = STATE.replace(functions={"f": ""})
    assert changes(before, STATE) == ()
    assert told(functions={"f": "", "g": ""}) == ["function g added"]


def test_a_variable_that_becomes_exported_is_told_once() -> None:
    now = STATE.replace(variables={}, exported=STATE.exported | {"IFS": ":"})
    assert [text(change) for change in changes(STATE, now)] == ["variable IFS added: :"]


def test_no_value_moves_the_readers_cursor_and_a_long_one_is_cut() -> None:
    [line] = told(aliases=STATE.aliases | {"x\x1b[2J": "a\n\x1b]0;title\x07\u202e" + "y" * 9999})
    assert line.isprintable()
    assert len(line) < CHANGE_VALUE_MAX_CHARS + 100
