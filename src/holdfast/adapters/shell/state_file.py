"""The state file of an integrated shell: read, checked, and made a `ShellState`.

The shell writes it in place before it reports a prompt, and on LINE_PROBE before it reports the
line. So whoever has the report of prompt N finds a state with that number or a later one. A state
that is being written, was written by somebody without the nonce, or is too big, counts as none: ask
again at the next report. On a full disk the file keeps an older state; its number says so.

The file is a row of fields, each ended by NUL (no value of a shell has one):

    TRAPS                            as the shell prints them; empty from fish
    HOLDSTATE1 NONCE SERIAL NUMBER KIND
    TAG COUNT, then COUNT fields     as often as there is something to say
    END NONCE SERIAL                 what stands behind it is of an older state

Most fields are what a builtin prints, in the shell's own quoting: a shell is quick with that and
slow with anything else. `shell_words` undoes the quoting.

The file has the values of the environment. It is 0600 and the session's user's, as is
/proc/PID/environ of every process in the session; the values of variables that do not shape
commands go no further than `_kept` here. Deliberately absent: any comparison of states
(`core.shell_changes`), and any defence against the user of the shell, who can read the nonce.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property

from holdfast.adapters.shell.words import fish_words, shell_statements
from holdfast.model.limits import SHELL_STATE_MAX_BYTES, STATE_VALUE_MAX_CHARS
from holdfast.model.packed import PackedState
from holdfast.model.shell_state import ShellState, shapes_commands

_READ_BYTES = 256 << 10
# They change by themselves, or are told apart from the environment.
_VOLATILE = frozenset({
    "_", "PWD", "OLDPWD", "SHLVL", "LINES", "COLUMNS", "RANDOM", "SRANDOM", "SECONDS", "LINENO",
    "BASHPID", "BASH_COMMAND", "HISTCMD", "EPOCHSECONDS", "EPOCHREALTIME", "PPID",
    "READLINE_LINE", "READLINE_POINT", "READLINE_MARK", "READLINE_ARGUMENT",
    "TTYIDLE", "status", "pipestatus", "PIPESTATUS", "BASH_LINENO", "CMD_DURATION", "history",
})  # fmt: skip
_OURS = ("__hold_", "HOLD_SHELL_")
# What fish keeps for itself and changes as it likes, and what its prompt looks like.
_FISH_OWN = (
    "__fish_", "___fish_", "status_generation", "fish_color_", "fish_prompt_", "fish_pager_color_",
)  # fmt: skip
_BASH_LETTERS = {
    "a": "allexport",
    "e": "errexit",
    "f": "noglob",
    "u": "nounset",
    "v": "verbose",
    "x": "xtrace",
}  # which our hooks switch off for themselves before they look


def read_state(path: str, nonce: str, uid: int) -> ShellState | None:
    """The state in the file, if it is whole and this shell's."""
    data = _read(path, uid)
    return parse_state(data, nonce) if data is not None else None


# Lines of `declare -p` and of fish's `set` about what changes by itself, at every prompt.
_CHANGES_BY_ITSELF = re.compile(
    rb"^(?:declare -\S+ )?(?:_|RANDOM|SRANDOM|SECONDS|LINENO|BASHPID|BASH_COMMAND|HISTCMD"
    rb"|PIPESTATUS|EPOCHSECONDS|EPOCHREALTIME|BASH_LINENO|__hold_\w+|CMD_DURATION"
    rb"|\w*status_generation|status|pipestatus)(?:[ =].*)?$",
    re.MULTILINE,
)


class StateReader:
    """Looks into one shell's file after every prompt. Most commands change nothing: then the bytes
    are the same but for a few lines, and nothing is taken apart."""

    def __init__(self, path: str, nonce: str, uid: int) -> None:
        self._path, self._nonce, self._uid = path, nonce, uid
        self._seen = b""  # a digest of the bytes
        self._state: PackedState | None = None

    def read(self) -> PackedState | None:
        """The state now; None when the file does not hold a whole one."""
        data = _read(self._path, self._uid)
        if data is None:
            return None
        head, stable = _stable(data)
        seen = hashlib.blake2b(stable, digest_size=16).digest() if stable else b""
        if self._state is not None and seen and seen == self._seen:
            number, serial = (int(word) for word in head[3:1:-1])
            return self._state.renumbered(number, serial)
        state = parse_state(data, self._nonce)
        if state is None:
            return None
        self._seen, self._state = seen, PackedState.of(state)
        return self._state


def _attributes_in(flags: bytes) -> bytes:
    """Those by which a variable changes what is assigned to it: `declare -i`, `-l`, `-u`, `-c`."""
    return bytes(letter for letter in flags if letter in b"iluc")


def _stable(data: bytes) -> tuple[list[bytes], bytes]:
    """The words of the state's head, and of the rest what does not change by itself; of anything
    that is no whole state nothing."""
    traps, _, rest = data.partition(b"\0")
    first, _, body = rest.partition(b"\0")
    head = first.split(b" ")
    if len(head) != 5 or not (head[2].isdigit() and head[3].isdigit()):
        return head, b""
    body, end, _ = body.partition(b"\0END %s %s\0" % (head[1], head[2]))
    words = b"\0".join((traps, head[0], head[1], head[4]))
    return head, words + b"\0" + _CHANGES_BY_ITSELF.sub(b"", body) if end else b""


def _read(path: str, uid: int) -> bytes | None:
    try:
        # The user of the session may have put anything in its place.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != uid:
            return None
        pieces, size = [], 0
        while size <= SHELL_STATE_MAX_BYTES and (piece := os.read(fd, _READ_BYTES)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces) if size <= SHELL_STATE_MAX_BYTES else None
    except OSError:
        return None
    finally:
        os.close(fd)


def parse_state(data: bytes, nonce: str) -> ShellState | None:
    """The state these bytes hold; None when they do not hold a whole one with the nonce."""
    whole = _whole(data, nonce)
    if whole is None:
        return None
    sections, kind, number, serial = whole
    return sections.state(kind, number, serial)


def read_exported(path: str, nonce: str, uid: int) -> tuple[dict[str, str], tuple[str, ...]] | None:
    """The variables that programs of the shell inherit, with their values, and its jobs; None when
    the file does not hold a whole state. For a successor that starts in the same environment
    (host/near_end.py), and for nothing that is shown."""
    data = _read(path, uid)
    whole = _whole(data, nonce) if data is not None else None
    if whole is None:
        return None
    sections, *_ = whole
    return sections.exported_values(), sections.job_lines()


def _whole(data: bytes, nonce: str) -> tuple[_Sections, str, int, int] | None:
    """The sections of a whole state, with its kind, number and serial."""
    traps, _, rest = data.partition(b"\0")
    fields = rest.split(b"\0")
    head = fields[0].split(b" ")
    if len(head) != 5 or head[:2] != [b"HOLDSTATE1", nonce.encode()]:
        return None
    if not (head[2].isdigit() and head[3].isdigit()) or len(head[2] + head[3]) > 36:
        return None
    sections = _sections(fields, b"END " + nonce.encode() + b" " + head[2])
    if sections is None:
        return None
    return _Sections(nonce, sections, traps), _text(head[4]), int(head[3]), int(head[2])


def _sections(fields: list[bytes], end: bytes) -> list[tuple[str, list[bytes]]] | None:
    sections: list[tuple[str, list[bytes]]] = []
    at = 1
    # The last field has no NUL behind it: an END there is not complete.
    while at < len(fields) - 1:
        if fields[at] == end:
            return sections
        tag, _, count = fields[at].partition(b" ")
        at += 1
        if tag:
            if not count.isdigit() or len(count) > 7 or at + int(count) >= len(fields):
                return None
            sections.append((_text(tag), fields[at : at + int(count)]))
            at += int(count)
    return None


class _Sections:
    """The sections of one file, each made what it says."""

    def __init__(self, nonce: str, sections: list[tuple[str, list[bytes]]], traps: bytes) -> None:
        self._key = nonce.encode()[:64]
        self._traps = traps
        self._by_tag: dict[str, list[list[bytes]]] = {}
        for tag, fields in sections:
            self._by_tag.setdefault(tag, []).append(fields)

    def state(self, kind: str, number: int, serial: int) -> ShellState:
        exported = dict(self._exported())
        return ShellState(
            kind=kind,
            number=number,
            serial=serial,
            cwd=self._cut(self._one("cwd")),
            umask=_text(self._one("umask").strip()).rjust(4, "0"),
            exported={name: self._kept(name, value) for name, value in exported.items()},
            variables=self._variables(),
            aliases=dict(self._aliases()),
            functions=self._functions(),
            options=tuple(sorted(self._options())),
            traps=dict(self._trapped()),
            jobs=dict(self._jobs()),
            hashed=dict(self._hashed(_text(exported.get("PATH", b"")))),
            private=self._private(exported),
            references=dict(self._references()),
            attributes=dict(self._attributes()),
            builtins=tuple(sorted(_text(self._one("builtins")).split()[1::2])),
            directories={name: self._cut(value) for name, value in self._pairs("nameddirs")},
            bindings=self._bindings(),
            remembered=self._found_before(kind, _text(exported.get("PATH", b""))),
            descriptors=dict.fromkeys(self._descriptors(), ""),
        )

    def exported_values(self) -> dict[str, str]:
        """Those that are UTF-8, as all that a session can be started with."""
        found = {}
        for name, value in self._exported():
            try:
                found[name] = value.decode()
            except UnicodeDecodeError:
                continue
        return found

    def job_lines(self) -> tuple[str, ...]:
        return tuple(dict(self._jobs()).values())

    def _one(self, tag: str, index: int = 0) -> bytes:
        fields = self._by_tag.get(tag, [[]])[0]
        return fields[index] if index < len(fields) else b""

    def _pairs(self, tag: str) -> Iterator[tuple[str, bytes]]:
        for fields in self._by_tag.get(tag, ()):
            for name, value in zip(fields[::2], fields[1::2], strict=False):
                yield _text(name), value

    def _digest(self, value: bytes) -> str:
        # With a key: nobody who sees two sessions, or guesses a value, can compare.
        return hashlib.blake2b(value, digest_size=16, key=self._key).hexdigest()

    def _cut(self, value: bytes) -> str:
        shown = _text(value)
        if len(shown) <= STATE_VALUE_MAX_CHARS:
            return shown
        return f"{shown[:STATE_VALUE_MAX_CHARS]}…#{self._digest(value)}"

    def _kept(self, name: str, value: bytes) -> str:
        return self._cut(value) if shapes_commands(name) else f"#{self._digest(value)}"

    def _exported(self) -> Iterator[tuple[str, bytes]]:
        for name, value in self._exported_by_shell.items():
            if name not in _VOLATILE and not name.startswith(_OURS):
                yield name, value

    @cached_property
    def _exported_by_shell(self) -> dict[str, bytes]:
        # bash has ours in them: `variables` says what is the user's.
        told = {name for name, _ in self._pairs("variable")}
        found = {name: v for name, v in self._pairs("exported") if name not in told}
        for words in self._declared:
            name, _, value = b" ".join(words[2:]).partition(b"=")
            if b"x" in words[1] and _text(name) not in told:
                found[_text(name)] = value
        return found

    @cached_property
    def _declared(self) -> list[list[bytes]]:
        return [
            words
            for words in shell_statements(self._one("bash"))
            if words[0] == b"declare" and len(words) > 2
        ]

    def _private(self, exported: Mapping[str, bytes]) -> dict[str, str]:
        """What no program inherits, each as a digest."""
        found = dict(self._pairs("private"))
        told = self._exported_by_shell
        if "OLDPWD" in told:
            found["OLDPWD"] = told["OLDPWD"]  # by it, `cd -` goes somewhere
        if self._by_tag.get("bash"):
            found["@"] = self._one("positional")
        for words in self._declared:
            name, _, value = b" ".join(words[2:]).partition(b"=")
            found[_text(name)] = value + _attributes_in(words[1])
        for line in self._one("fishvariables").splitlines():
            name, _, value = line.partition(b" ")
            if not name.decode(errors="replace").startswith(_FISH_OWN):
                found[_text(name)] = value
        known = {name for name, _ in self._pairs("variable")} | exported.keys()
        digests = {
            name: f"#{self._digest(value)}"
            for name, value in found.items()
            if name not in known
            and (name not in _VOLATILE or name == "OLDPWD")
            and not name.startswith(_OURS)
        }
        if "@" in digests and "positional" not in self._by_tag:
            digests["@"] = ""  # it could not say
        return digests

    def _attributes(self) -> Iterator[tuple[str, str]]:
        for words in self._declared:
            if letters := _attributes_in(words[1]):
                yield _text(words[2].partition(b"=")[0]), _text(letters)

    def _references(self) -> Iterator[tuple[str, str]]:
        """Variables that stand for others. Such a value is a name, not a secret."""
        for words in self._declared:
            if b"n" in words[1]:
                name, _, target = b" ".join(words[2:]).partition(b"=")
                yield _text(name), self._cut(target)

    def _bindings(self) -> tuple[str, ...]:
        """Of our own a digest: that they are others now, somebody is behind."""
        lines = _text(self._one("bindings")).splitlines()
        return tuple(
            sorted(
                f"of the host #{self._digest(line.encode())}" if "__hold_" in line else line
                for line in set(lines)
            )
        )

    def _descriptors(self) -> list[str]:
        """The numbers of those that the shell had open when it wrote this: what it opens for itself
        a moment later (readline's start-up file) is nobody's. An earlier version says none."""
        said = _text(self._one("descriptors")).split()
        return said if "descriptors" in self._by_tag else [str(number) for number in range(3, 10)]

    def _variables(self) -> dict[str, str]:
        return {name: self._cut(value) for name, value in self._pairs("variable") if value}

    def _aliases(self) -> Iterator[tuple[str, str]]:
        for words in shell_statements(self._one("bashaliases")):
            if words[0] == b"alias":
                name, _, value = words[-1].partition(b"=")
                yield _text(name), self._cut(value)
        for tag, mark in (("aliases", ""), ("galiases", " -g"), ("saliases", " -s")):
            for alias, value in self._pairs(tag):
                yield f"{alias}{mark}", self._cut(value)
        for line in self._one("abbreviations").split(b"\n"):
            if b"--" in (words := fish_words(line)):
                name, *rest = words[words.index(b"--") + 1 :] or [b""]
                yield _text(name), self._cut(b" ".join(rest or words))

    def _functions(self) -> dict[str, str]:
        bodies = {
            name: self._digest(body)
            for name, body in self._pairs("bodies")
            if not _starts_nested(name, body)
        }
        # A body may hold text that looks like another function's beginning. Then there is one
        # name too many; but every byte is in some digest, so no change is missed.
        text = self._one("functions")
        starts = list(re.finditer(rb"^(?:function )?(\S+) \(\) \n\{ \n", text, re.MULTILINE))
        for index, start in enumerate(starts):
            end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
            name, body = _text(start[1]), text[start.start() : end]
            if not _starts_nested(name, body):
                bodies[name] = self._digest(body)
        names = _text(self._one("names")).split("\n")
        bodies |= dict.fromkeys((name for name in names if name not in _STARTING_NESTED), "")
        return {name: d for name, d in bodies.items() if name and not name.startswith(_OURS)}

    def _options(self) -> set[str]:
        words = _text(self._one("options"))
        if "flags" not in self._by_tag:
            pairs = words.split()
            on = zip(pairs[::2], pairs[1::2], strict=False)
            return {name for name, value in on if value == "on"}
        letters = {_BASH_LETTERS.get(letter, "") for letter in _text(self._one("flags"))}
        return {name for name in {*words.split(":"), *letters} if name}

    def _trapped(self) -> Iterator[tuple[str, str]]:
        # The user's own DEBUG trap may have printed in between.
        for words in shell_statements(self._traps):
            if len(words) == 4 and words[:2] == [b"trap", b"--"]:
                yield _text(words[3]).removeprefix("SIG"), self._cut(words[2])
        event = ""
        for line in _text(self._one("handlers")).splitlines():
            first, _, handler = line.partition(" ")
            if first == "Event":
                event = handler
            if first != "Event" and handler and not handler.startswith((*_OURS, "__fish_")):
                yield f"{'variable ' * (event == 'variable')}{first} {handler}", ""

    def _jobs(self) -> Iterator[tuple[str, str]]:
        running = _bash_jobs(_text(self._one("bashjobs")))
        yield from running.items()
        for pid in _text(self._one("bashjobs", 1)).split():
            if pid not in running:
                yield pid, "not running"
        texts = dict(self._pairs("jobtexts"))
        for number, state in self._pairs("jobstates"):
            doing, _, processes = _text(state).partition(":")
            pid = processes.partition(":")[2].partition("=")[0]
            yield pid, f"{doing} {self._cut(texts.get(number, b''))}"
        for line in _text(self._one("fishjobs")).splitlines():
            columns = line.split("\t", 4)
            if len(columns) == 5 and columns[0].isdigit():
                yield columns[1], f"{columns[3]} {columns[4]}"

    def _hashed(self, path: str) -> Iterator[tuple[str, str]]:
        directories = {directory.rstrip("/") for directory in path.split(":")}
        for name, where in self._remembered():
            directory, _, program = where.rpartition("/")
            if program != name or directory not in directories:
                yield name, where

    def _found_before(self, kind: str, path: str) -> dict[str, str]:
        # zsh lists every file of PATH's directories, thousands.
        return dict(self._hashed(path) if kind == "zsh" else self._remembered())

    def _remembered(self) -> Iterator[tuple[str, str]]:
        for line in _text(self._one("hash")).splitlines():
            if line.startswith("builtin hash -p "):
                where, _, name = line.removeprefix("builtin hash -p ").rpartition(" ")
            else:
                name, _, where = line.partition("=")
                # zsh quotes what is special, and no more: '['=/usr/bin/'['
                name, where = name.replace("'", ""), where.replace("'", "")
            if where:
                yield name, where


# Functions of ours that have no name of ours: they start a shell that reports (shells/nested.sh).
# While they are that, a line that calls one uses no more of the shell than the program would.
_STARTING_NESTED = frozenset(("bash", "zsh", "fish", "su", "env"))


def _starts_nested(name: str, body: bytes) -> bool:
    if name not in _STARTING_NESTED:
        return False
    lines = [line for line in _text(body).splitlines() if not line.startswith("#")]
    return " ".join(" ".join(lines).split()) in (
        f"{name} () {{ {{ local -; builtin set +aefuvx }} 2> /dev/null; "
        f'__hold_nested {name} "$@" }}',
        '{ builtin emulate -L zsh "${__hold_options[@]}" } 2> /dev/null '
        f'__hold_nested {name} "$@"',
        f"function {name} __hold_nested {name} $argv; end",
    )


_BASH_JOB = re.compile(r"\[\d+\][-+ ]?\s+(\d+)\s+(\S+)\s+(.*)")
_BASH_JOB_MORE = re.compile(r"\s+\d+\s+(\|.*)")


def _bash_jobs(text: str) -> dict[str, str]:
    jobs: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        if found := _BASH_JOB.match(line):
            last = found[1]
            # With the directory it was started in, when that is not the shell's any more.
            jobs[last] = f"{found[2].lower()} {re.sub(r' +[(]wd: .*[)]$', '', found[3])}"
        elif last and (more := _BASH_JOB_MORE.match(line)):
            jobs[last] += f" {more[1]}"
    return jobs


def _text(value: bytes) -> str:
    # Not surrogates: it will go on the wire, which carries UTF-8 only.
    return value.decode(errors="backslashreplace")
