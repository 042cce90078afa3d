"""The parser of a shell's state file: what counts, what is refused, what quoting means."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import integrate, make_state_file, state_path
from holdfast.adapters.shell.state_file import StateReader, parse_state, read_state
from holdfast.adapters.shell.words import fish_words, shell_statements
from holdfast.model.limits import SHELL_STATE_MAX_BYTES, STATE_VALUE_MAX_CHARS
from holdfast.model.packed import PackedState

NONCE = "0123456789abcdef" * 2


def file_of(
    *fields: bytes, kind: str = "bash", number: int = 4, serial: int = 9, traps: bytes = b""
) -> bytes:
    head = f"HOLDSTATE1 {NONCE} {serial} {number} {kind}".encode()
    end = f"END {NONCE} {serial}".encode()
    return b"\0".join([traps, head, *fields, end, b""])


BASH = file_of(
    b"cwd 1", b"/home/a b",
    b"flags 1", b"ehimsB",
    b"options 1", b"braceexpand:emacs:extglob",
    b"umask 1", b"0027\n",
    b"bash 1",
    b'declare -x PATH="/a:/b"\ndeclare -x TOKEN="x \\"y\\" \\$z"\n'
    b"declare -x LD_PRELOAD=$'a\\nb'\n"
    b'declare -x _="/usr/bin/env"\ndeclare -x __hold_x="1"\ndeclare -x EMPTY\n',
    b"bashaliases 1", b"alias ll='ls -l '\\''x'\\'''\nalias -- -='cd -'\n",
    b"bashjobs 2",
    b"[1]-  71 Running                 sleep 9 &\n"
    b"[2]+  72 Running                 sleep 8\n      73                       | cat &\n",
    b"71\n72\n99\n",
    b"hash 1", b"builtin hash -p /a/ls ls\nbuiltin hash -p /usr/bin/id uname\n",
    b"variable 2", b"IFS", b" \t\n",
    b"functions 1",
    b"__hold_end () \n{ \n    :\n}\nf () \n{ \n    echo 1\n}\ng () \n{ \n    echo 2\n}\n",
    traps=b"noise of a trap\ntrap -- 'echo '\\''hi'\\''' SIGUSR1\ntrap -- 'x=1' DEBUG\n",
)  # fmt: skip


def test_a_whole_file_of_bash() -> None:
    state = parse_state(BASH, NONCE)
    assert state is not None
    assert (state.kind, state.number, state.serial) == ("bash", 4, 9)
    assert (state.cwd, state.umask) == ("/home/a b", "0027")
    assert state.exported.keys() == {"PATH", "TOKEN", "LD_PRELOAD", "EMPTY"}
    assert (state.exported["PATH"], state.exported["LD_PRELOAD"]) == ("/a:/b", "a\nb")
    assert state.exported["TOKEN"].startswith("#")
    assert state.variables == {"IFS": " \t\n"}
    assert state.aliases == {"ll": "ls -l 'x'", "-": "cd -"}
    assert state.functions.keys() == {"f", "g"}
    assert all(state.functions.values())
    assert set(state.options) == {"braceexpand", "emacs", "extglob", "errexit"}
    assert state.traps == {"USR1": "echo 'hi'", "DEBUG": "x=1"}
    assert state.jobs == {
        "71": "running sleep 9 &",
        "72": "running sleep 8 | cat &",
        "99": "not running",
    }
    assert state.hashed == {"uname": "/usr/bin/id"}


def test_the_values_of_other_variables_are_nowhere_and_their_change_is_seen() -> None:
    other = BASH.replace(b'x \\"y\\"', b'x \\"Y\\"')
    first, second = parse_state(BASH, NONCE), parse_state(other, NONCE)
    assert first is not None
    assert second is not None
    assert 'x "y"' not in repr(first)
    assert first.exported["TOKEN"] != second.exported["TOKEN"]


def test_the_tail_of_an_older_and_longer_state_is_nobodys() -> None:
    assert parse_state(BASH + b"tail of the old one\0END 0 0\0", NONCE) == parse_state(BASH, NONCE)


def test_a_state_cut_anywhere_is_none() -> None:
    for size in range(len(BASH)):
        assert parse_state(BASH[:size], NONCE) is None


def test_a_state_of_two_halves_is_none() -> None:
    # The shell writes in place; a reader may see the new beginning and the old end.
    old, new = BASH, BASH.replace(f"{NONCE} 9".encode(), f"{NONCE} 10".encode())
    at = len(BASH) // 2
    assert parse_state(new[: at + 1] + old[at:], NONCE) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        BASH.replace(NONCE.encode(), b"f" * 32),
        BASH.replace(b"END " + NONCE.encode(), b"END " + b"f" * 32),
        BASH.replace(b"HOLDSTATE1", b"HOLDSTATE2"),
        BASH.replace(b" 9 4 ", b" 9 x "),
        BASH.replace(b" 9 4 ", b" " + b"9" * 40 + b" 4 "),
        BASH.replace(b"cwd 1", b"cwd 9999"),
        BASH.replace(b"cwd 1", b"cwd -1"),
        BASH.replace(b"cwd 1", b"cwd"),
    ],
)
def test_what_is_forged_or_malformed_is_none(data: bytes) -> None:
    assert parse_state(data, NONCE) is None


def test_names_alone_say_that_no_body_is_known() -> None:
    state = parse_state(file_of(b"names 1", b"__hold_end\nf\ng\n"), NONCE)
    assert state is not None
    assert state.functions == {"f": "", "g": ""}


def test_a_long_value_is_cut_and_still_told_from_another() -> None:
    def path(last: bytes) -> str:
        value = b"/x" * STATE_VALUE_MAX_CHARS + last
        state = parse_state(file_of(b"exported 2", b"PATH", value, kind="zsh"), NONCE)
        assert state is not None
        return state.exported["PATH"]

    assert len(path(b"a")) < STATE_VALUE_MAX_CHARS + 50
    assert path(b"a") != path(b"b")
    assert path(b"a") == path(b"a")


def test_zsh_and_fish_say_jobs_aliases_and_handlers_in_their_own_ways() -> None:
    zsh = parse_state(
        file_of(
            b"options 1", b"nullglob on xtrace off",
            b"galiases 2", b"G", b"| grep",
            b"jobstates 2", b"1", b"running:+:71=running:72=running",
            b"jobtexts 2", b"1", b"sleep 9 | cat",
            b"hash 1", b"ls=/usr/bin/ls\nuname=/usr/bin/id\n",
            b"exported 4", b"PATH", b"/bin:/usr/bin", b"A", b"1",
            kind="zsh",
        ),
        NONCE,
    )  # fmt: skip
    assert zsh is not None
    assert zsh.options == ("nullglob",)
    assert zsh.aliases == {"G -g": "| grep"}
    assert zsh.jobs == {"71": "running sleep 9 | cat"}
    assert zsh.hashed == {"uname": "/usr/bin/id"}
    fish = parse_state(
        file_of(
            b"abbreviations 1",
            b"abbr -a -- gs 'git status'\nabbr -a --position anywhere -- L less\n",
            b"handlers 1",
            b"Event signal\nSIGUSR1 mine\n\nEvent generic\nfish_prompt __hold_prompt\n",
            b"fishjobs 1", b"Job\tGroup\tCPU\tState\tCommand\n1\t71\t3%\trunning\tsleep 9 &\n",
            b"bodies 2", b"f", b"function f\nend\n",
            kind="fish",
        ),
        NONCE,
    )  # fmt: skip
    assert fish is not None
    assert fish.aliases == {"gs": "git status", "L": "less"}
    assert fish.traps == {"SIGUSR1 mine": ""}
    assert fish.jobs == {"71": "running sleep 9 &"}
    assert fish.functions.keys() == {"f"}


def test_bytes_that_are_not_utf8_become_text_that_can_be_sent() -> None:
    state = parse_state(file_of(b"cwd 1", b"/a\xff"), NONCE)
    assert state is not None
    assert state.cwd == "/a\\xff"
    assert type(state).unpack(state.pack()) == state


def test_the_file_is_private_found_again_and_read_only_when_it_is_the_users(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "state")
    old = os.umask(0)
    try:
        make_state_file(path, os.getuid(), os.getgid())
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    Path(path).write_bytes(BASH)
    make_state_file(path, os.getuid(), os.getgid())
    assert read_state(path, NONCE, os.getuid()) == parse_state(BASH, NONCE)
    assert read_state(path, NONCE, os.getuid() + 1) is None
    assert read_state(str(tmp_path / "none"), NONCE, os.getuid()) is None
    os.symlink(path, tmp_path / "link")
    assert read_state(str(tmp_path / "link"), NONCE, os.getuid()) is None
    with pytest.raises(FileExistsError):
        make_state_file(str(tmp_path / "link"), os.getuid(), os.getgid())
    os.mkfifo(tmp_path / "fifo")
    assert read_state(str(tmp_path / "fifo"), NONCE, os.getuid()) is None


def test_a_packed_state_is_the_same_at_a_later_prompt() -> None:
    state = parse_state(BASH, NONCE)
    assert state is not None
    kept = PackedState.of(state)
    assert kept.state() == state and type(kept.state().options) is tuple
    later = kept.renumbered(state.number + 1, state.serial + 2)
    assert later.state() == state.replace(number=later.number, serial=later.serial)


def test_the_reader_gives_what_is_in_the_file_and_renumbers_what_is_unchanged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state"
    reader = StateReader(str(path), NONCE, os.getuid())
    for number, cwd in ((4, b"/tmp"), (5, b"/tmp"), (6, b"/"), (6, b"/")):
        data = file_of(b"cwd 1", cwd, number=number, serial=number + 3)
        path.write_bytes(data)
        found = reader.read()
        assert found is not None and found.number == number
        assert found.state() == parse_state(data, NONCE)
    path.write_bytes(b"x")
    assert reader.read() is None


def test_a_file_beyond_the_limit_is_none(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(BASH + b"x" * (SHELL_STATE_MAX_BYTES - len(BASH)))
    assert read_state(str(path), NONCE, os.getuid()) is not None
    path.write_bytes(BASH + b"x" * (SHELL_STATE_MAX_BYTES - len(BASH) + 1))
    assert read_state(str(path), NONCE, os.getuid()) is None


def test_the_shell_is_told_where_its_state_goes() -> None:
    for name in ("bash", "zsh", "fish"):
        started = integrate((name,), {}, "/run/bell", 7)
        assert started is not None
        assert started.env["HOLD_SHELL_STATE"] == state_path("/run/bell")


@pytest.mark.parametrize(
    "text, words",
    [
        (rb"""a 'b c' "d\"e" f\ g""", [b"a", b"b c", b'd"e', b"f g"]),
        (rb"""$'\e[1m\x41\101\u00fc\cA\'' ''""", ["\x1b[1mAAü\x01'".encode(), b""]),
        (rb"""x="a$b" $HOME""", [b"x=a$b", b"$HOME"]),
        (b"'no end", [b"'no", b"end"]),
        ("grün 漢".encode(), ["grün".encode(), "漢".encode()]),
    ],
)
def test_quoting_of_bash_and_zsh_is_undone(text: bytes, words: list[bytes]) -> None:
    assert shell_statements(text) == [words]


def test_a_quoted_newline_ends_no_statement() -> None:
    assert shell_statements(b"a 'b\nc'\n\nd\n") == [[b"a", b"b\nc"], [b"d"]]


@pytest.mark.parametrize(
    "text, words",
    [
        (rb"""a  'b \'c\' \\' d\ne ''""", [b"a", b"b 'c' \\", b"d\ne", b""]),
        (rb"""\x41\e\u00fc\ z""", ["A\x1bü z".encode()]),
        (b"", [b""]),
    ],
)
def test_quoting_of_fish_is_undone(text: bytes, words: list[bytes]) -> None:
    assert fish_words(text) == words
