"""Command lines made up at random, and what bash really runs of them.

Bash finds no program here: PATH is empty and almost no builtin is left, so whatever a line would
run ends in `command_not_found_handle`, which writes its name down.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRELUDE = r"""
command_not_found_handle() { printf '%s\n' "$1" >&9; return 0; }
FUNCNEST=20
for each in $(compgen -b); do case $each in
    printf|eval|builtin|command|exec|export|declare|unset|trap|.|:|readonly|return|break|enable) ;;
    *) enable -n "$each" ;;
esac; done
enable -n enable
"""
_BASH = "/bin/bash"
_LINE_S = 2.0  # a line that runs longer is ended; what it ran until then counts

_NAMES = [
    "c{n}", '"c{n}"', "'c{n}'", "c\\{n}", 'c"{n}"', "$'c\\x3{n}'", "$'\\143{n}'", "c[{n},4]",
    "[c{n},c2]", "\\c{n}", '$"c{n}"', '""c{n}', "c{n}\\\n",
]  # fmt: skip
_WORDS = [
    "a", '"b c"', "$x", '"${x:-$(@)}"', "$(@)", "`@`", '"$(@)"', "<(@)", ">(@)", "$((1+1))",
    "$((@))", "{a,b}", "x=1", ">o", "2>&1", '<<<"$(@)"', "# c1", "\\#", "'$(c3)'", '"\\$(c2)"',
    "$(@; @)", "${y[$(@)]}", "!", "[[", "a=$(@)", "{", "}", "then", "in", "$(<o)", "&>o", "$[1+1]",
    "~", "*", '\\"', "\\'", '"a`@`b"', "$(( $(@) ))", '"${x//a/$(@)}"', "a[$(@)]=1", '>"$(@)"',
]  # fmt: skip
_LINES = [
    "@; @", "@ && @", "@ | @", "@ || @", "( @; @ )", "{ @; @; }", "if @; then @; fi",
    "for i in 1 2; do @; done; @", "while @; do @; break; done", "case a in a) @;; *) @;; esac",
    "f() { @; }; f; @", "! @; @", "@ & @", "eval '@'; @", 'eval "@"; @', "command @; @",
    "builtin @; @", "@ |& @", "[[ -n $(@) ]] && @", "(( $(@) )); @", "@ <<E\n$(@)\nE\n",
    "@ <<'E'\n$(@)\nE\n", "@\n@", "export x=$(@); @", "declare -a y=($(@)); @", "trap '@' EXIT; @",
    "select i in a; do @; break; done", "function g { @; }; g; @", "f() ( @ ); f; @",
    "coproc { @; }; @", "time @; @", "time -p @; @", "for ((i=0;i<1;i++)); do @; done; @",
    "until @; do @; break; done", "if @; then a; elif @; then b; fi", "case $(@) in *) @ ;; esac",
    "exec @; @", "@ >o; @", "@;@", "@&&@", "@|@", "(@);@", "x=1 @; @", "{ @; } >o 2>&1; @",
    "while read x; do @; done <<< \"$(@)\"", "x=a; ${x:+@} ; @", "`@`; @", '"$(@)"; @', "@ >o @",
    "@ <<A; @ <<-B\n$(c1)\nA\n\tx\n\tB\n",
]  # fmt: skip
_SLIPS = [" ", '"', "'", "\\", ";", "(", ")", "`", "$", "{", "}", "\n", "|", "&", "#", "<", ">", ""]


def line(seed: int) -> str:
    """One line; every fourth has one character wrong."""
    pick = random.Random(seed)
    made = _line(pick, 0)
    if pick.random() < 0.25:
        at = pick.randrange(len(made))
        made = made[:at] + pick.choice(_SLIPS) + made[at + 1 :]
    return made


def _filled(pick: random.Random, shape: str, depth: int) -> str:
    while "@" in shape:
        shape = shape.replace("@", _line(pick, depth + 1), 1)
    return shape


def _line(pick: random.Random, depth: int) -> str:
    if depth > 3:
        return _name(pick)
    if pick.random() < 0.4:
        words = [_filled(pick, pick.choice(_WORDS), depth) for _ in range(pick.randint(0, 3))]
        return " ".join([_name(pick), *words])
    return _filled(pick, pick.choice(_LINES), depth)


def _name(pick: random.Random) -> str:
    shape = pick.choice(_NAMES[:3] * 2 + _NAMES)
    number = str(pick.randint(1, 5))
    return shape.replace("{n}", number).replace("[", "{").replace("]", "}")


class Bash:
    """Runs lines that can do nothing, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self._script, self._cwd = directory / "script", directory / "cwd"
        self._cwd.mkdir()

    def names_run(self, text: str) -> set[str]:
        """The names of all commands that it tried to run."""
        self._script.write_text(f"{_PRELUDE}{text}\n")
        reader, writer = os.pipe()
        try:
            running = subprocess.Popen(
                [_BASH, "--norc", "-c", f"exec 9>&{writer}; . {self._script}"],
                cwd=self._cwd,
                env={"PATH": "/nonexistent"},
                pass_fds=(writer,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            os.close(writer)
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(_LINE_S)
            finally:
                # What it left running in the background belongs to its group.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
            return _lines_of(reader)
        finally:
            os.close(reader)


def _lines_of(reader: int) -> set[str]:
    os.set_blocking(reader, False)
    try:
        data = os.read(reader, 1 << 16)
    except BlockingIOError:
        return set()
    return set(data.decode(errors="replace").split("\n")) - {""}


@contextmanager
def bash() -> Iterator[Bash]:
    with tempfile.TemporaryDirectory(prefix="hf-lines-") as directory:
        yield Bash(Path(directory))
