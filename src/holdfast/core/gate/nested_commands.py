"""Commands that run other commands: what they run, as far as their arguments show.

`sudo -u x rm y` runs `rm y`; `bash -c 'rm y'` runs the line `rm y`; `find . -exec rm {} +` runs `rm
{}`. Options of a wrapper that take a value are listed, so that the value is not mistaken for the
command. An option that is not listed is treated as a flag; to be safe, everything behind it is then
read as a possible command as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from holdfast.model.command_line import HOLE, Word
from holdfast.model.record import Record


class Inner(Record):
    """What a command runs."""

    commands: tuple[tuple[Word, ...], ...] = ()  # each as words
    code: tuple[str, ...] = ()  # lines for a shell
    opaque: bool = False  # and something that cannot be read here
    reads_stdin: bool = False  # it takes lines for a shell from its standard input


NOTHING = Inner()
_OPAQUE = Inner(opaque=True)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Wrapper -> its options whose value is the next word. What follows the options is a command.
_WRAPPERS: dict[str, frozenset[str]] = {
    "sudo": _words(
        "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt "
        "--close-from --role --type --command-timeout --other-user --chdir "
        "--chroot"
    ),
    "doas": frozenset(("-u", "-C", "-a")),
    "env": frozenset(("-u", "--unset", "-C", "--chdir")),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "nice": frozenset(("-n", "--adjustment")),
    "ionice": frozenset(("-c", "-n", "-t", "--class", "--classdata")),
    "chrt": frozenset(("-T", "-P", "-D")),
    "taskset": frozenset(),
    "timeout": frozenset(("-k", "-s", "--kill-after", "--signal")),
    "time": frozenset(("-f", "-o", "--format", "--output")),
    "stdbuf": frozenset(("-i", "-o", "-e", "--input", "--output", "--error")),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset(("-a",)),
    "xargs": _words(
        "-I -i -n -P -L -l -s -d -E -e -a --arg-file --delimiter --max-args "
        "--max-procs --max-lines --max-chars --replace --eof --process-slot-var"
    ),
    "parallel": frozenset(("-j", "--jobs", "-a", "--arg-file", "-I", "-n", "-N", "-S", "--colsep")),
    "watch": frozenset(("-n", "--interval")),
    "strace": frozenset(("-o", "-e", "-p", "-s", "-u", "-E", "-P", "-a")),
    "ltrace": frozenset(("-o", "-e", "-p", "-s", "-u", "-a", "-n")),
    "unshare": frozenset(("--wd", "-w", "-R", "--root", "-S", "-G")),
    "nsenter": frozenset(("-t", "--target", "-S", "-G")),
    "chroot": frozenset(),
    "flock": frozenset(("-w", "--timeout", "-E", "--conflict-exit-code")),
    "systemd-run": frozenset(("-u", "--unit", "-p", "--property", "-E", "--setenv", "-M", "--uid")),
    "runuser": frozenset(("-u", "-g", "-G", "--user", "--group")),
    "setpriv": frozenset(("--reuid", "--regid", "--groups")),
    "busybox": frozenset(),
    "toybox": frozenset(),
    "caffeinate": frozenset(("-t", "-w")),
    "dbus-run-session": frozenset(),
    "xvfb-run": frozenset(("-s", "-n", "-e", "-f", "-p", "-w", "-l")),
    "fakeroot": frozenset(),
    "proot": frozenset(("-r", "-b", "-w")),
    "firejail": frozenset(),
    "bwrap": frozenset(),
    "ssh-agent": frozenset(("-a", "-t", "-E")),
    "pkexec": frozenset(("--user",)),
    "run0": frozenset(("-u", "--user")),
    "gosu": frozenset(),
    "su-exec": frozenset(),
    "setuidgid": frozenset(),
    "chpst": _words("-u -U -b -e -/ -n -l -L -m -d -o -p -f -c"),
    "setarch": frozenset(),
    "linux64": frozenset(),
    "linux32": frozenset(),
    "prlimit": frozenset(),
    "choom": frozenset(("-n", "-p")),
    "numactl": frozenset(("-N", "-m", "-C", "-i", "-p")),
    "cgexec": frozenset(("-g",)),
    "runcon": frozenset(("-t", "-u", "-r", "-l")),
    "aa-exec": frozenset(("-p", "-n")),
    "capsh": frozenset(),
    "tini": frozenset(("-p", "-e")),
    "dumb-init": frozenset(("-r",)),
    "catchsegv": frozenset(),
    "chronic": frozenset(),
    "unbuffer": frozenset(),
    "faketime": frozenset(("-f",)),
    "rlwrap": _words("-a -b -c -C -f -H -l -m -M -O -p -P -q -s -S -t -w -z"),
    "torsocks": frozenset(("-P", "-a", "-u", "-p")),
    "proxychains": frozenset(("-f",)),
    "proxychains4": frozenset(("-f",)),
    "valgrind": frozenset(),
    "systemd-inhibit": frozenset(),
    "ld.so": frozenset(("--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath")),
    "sched": frozenset(),  # of zsh: a time, then a command for later
    # Words of zsh and fish that stand before a command.
    "noglob": frozenset(),
    "nocorrect": frozenset(),
    "-": frozenset(),
    "and": frozenset(),
    "or": frozenset(),
    "not": frozenset(),
    "begin": frozenset(),
    "!": frozenset(),
}  # fmt: skip
# NAME=VALUE may stand before their command. `time` and `!` are words of the shell's grammar.
_ASSIGNS = frozenset(
    ("env", "sudo", "doas", "time", "!", "noglob", "nocorrect", "and", "or", "not")
)
# Words between a wrapper's options and the command.
_BETWEEN = {
    "timeout": 1,
    "taskset": 1,
    "chrt": 1,
    "chroot": 1,
    "flock": 1,
    "faketime": 1,
    "sched": 1,
    "gosu": 1,
    "su-exec": 1,
    "setuidgid": 1,
    "setarch": 1,
}
# The dynamic loader runs the program that it is given.
_LOADER = re.compile(r"ld(?:-linux[\w-]*|-musl-\w+|64)?\.so(?:\.\d+)*|ld-[\d.]+\.so")
# Programs that run what stands behind one of their own words.
_BEHIND_WORD = {
    **dict.fromkeys(("poetry", "pipenv", "uv", "rye", "hatch", "conda", "mamba"), _words("run")),
    **dict.fromkeys(
        ("bundle", "direnv", "mise", "asdf", "rbenv", "pyenv", "nvm"), _words("exec x")
    ),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _words("exec x dlx")),
    **dict.fromkeys(("ip",), _words("exec")),
    **dict.fromkeys(("machinectl", "lxc", "incus", "vagrant"), _words("shell exec")),
    **dict.fromkeys(("perf",), _words("record stat trace")),
}
_NEEDS_COMMAND = frozenset(("sudo", "doas", "chroot", "unshare", "nsenter", "runuser", "su"))
# Words behind `sudo` and others that ask for a shell.
_SHELL_FLAGS = re.compile(r"-[A-Za-z]*[si]|--shell|--login")

SHELLS = frozenset(
    ("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "pwsh")
)
_SHELL_VALUES = frozenset(("-o", "+o", "-O", "+O", "--init-file", "--rcfile", "-C"))

# Interpreters of other languages, and their options that take code. It is not read.
_CODE_OPTIONS: dict[str, str] = {
    "python": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "deno": "", "bun": "e",
    "php": "rBRE", "lua": "e", "luajit": "e", "tclsh": "", "osascript": "e", "Rscript": "e",
    "julia": "eE", "guile": "c", "erl": "", "ghc": "e", "groovy": "e", "jshell": "",
    "vim": "c", "vi": "c", "nvim": "c", "ex": "c", "view": "c", "emacs": "", "ed": "", "gdb": "",
    "expect": "c", "script": "c",
}  # fmt: skip
_CODE_WORDS = frozenset(
    ("eval", "--eval", "--execute", "--print", "--cmd", "-ex", "--command", "-eval", "--batch")
)
# Arguments by which programs that are no interpreters run commands.
_RUNS = re.compile(
    r"--(?:to-command|checkpoint-action|use-compress-program|rsync-path|rsh|upload-pack|receive-pack)"
    r"|.*(?:ProxyCommand|LocalCommand)[ =]"
    r"|(?:core\.(?:pager|editor|sshCommand|fsmonitor|hooksPath)|(?:alias|pager|filter|diff|merge)\..*)="
    r"|SHELL=|--(?:eval|pre|post)[-a-z]*command=?",
    re.IGNORECASE,
)
# Options of single programs whose value is a command.
_COMMAND_OPTIONS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), frozenset(("-I",))),
    "rsync": frozenset(("-e",)),
    "zip": frozenset(("-TT", "--unzip-command")),
    **dict.fromkeys(("scp", "sftp"), frozenset(("-S",))),
    "sort": frozenset(("--compress-program",)),
    "split": frozenset(("--filter",)),
    "man": frozenset(("-P", "--pager")),
    **dict.fromkeys(("nc", "ncat", "netcat"), frozenset(("-e", "-c", "--exec", "--sh-exec"))),
    "xterm": frozenset(("-e",)),
    "nix-shell": frozenset(("--run", "--command")),
    "sg": frozenset(("-c",)),
}
# What the clients of databases take for a command of the shell.
_ESCAPES = re.compile(r"(?s:.*)(?:^|[\s;])(?:\.sh(?:ell)?\b|\.system\b|\\!|system\s)")
_CLIENTS = frozenset(("sqlite3", "psql", "mysql", "mariadb"))
_AWKS = frozenset(("awk", "gawk", "mawk", "nawk", "original-awk"))
_AWK_RUNS = re.compile(r"system\s*\(|\||>|getline|@load")
_SED_RUNS = re.compile(r"(?:^|[;{}\n])\s*[0-9$,~+/!]*\s*[ewW]\b|/[gpiI0-9mM]*[ew]")
_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_REMOTE_VALUES = _words("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w")
_CONTAINER_RUNS = {"exec", "run"}


def name_of(word: Word) -> str:
    """The command that this word names; `?` if only the shell knows."""
    if not word.static:
        return "?"
    return word.text.rsplit("/", 1)[-1] if word.text.strip("/") else word.text


def runs(words: Sequence[Word]) -> Inner:
    """What this command runs besides itself."""
    name, rest = name_of(words[0]), tuple(words[1:])
    name = "ld.so" if _LOADER.fullmatch(name) else name
    if words[0].glob or words[0].tilde or not words[0].static:
        return _OPAQUE  # which program it is, the shell knows
    special = _SPECIAL.get(name)
    if special is not None:
        return special(rest)
    if name in SHELLS or name in ("su", "newgrp"):
        return _shell(rest, name)
    if name in _WRAPPERS:
        return _wrapped(name, rest)
    stem = re.sub(r"[\d.]+$", "", name)
    if stem in _CODE_OPTIONS:
        return _interpreter(stem, rest)
    if any(_RUNS.match(each.text) for each in rest):
        return _OPAQUE
    if name in _CLIENTS and any(_ESCAPES.match(each.text) for each in rest):
        return _OPAQUE
    if name in _COMMAND_OPTIONS:
        return _by_option(rest, _COMMAND_OPTIONS[name])
    if name in _BEHIND_WORD:
        return _behind(rest, _BEHIND_WORD[name])
    return NOTHING


def _wrapped(name: str, rest: tuple[Word, ...]) -> Inner:
    values, at, unsure = _WRAPPERS[name], 0, False
    while at < len(rest):
        text = rest[at].text
        if name in _ASSIGNS and re.match(r"[A-Za-z_]\w*=", text):
            at += 1
        elif name == "env" and text.startswith(("-S", "--split-string")):
            return _split_string(rest[at:])
        elif text == "--":
            at += 1
            break
        elif text.startswith("-") and len(text) > 1 and name not in ("-", "!"):
            if HOLE in text:
                return _OPAQUE
            if name in _NEEDS_COMMAND and _SHELL_FLAGS.fullmatch(text) and at + 1 >= len(rest):
                return NOTHING  # a shell of its own: its lines come later, and are judged then
            takes = text in values
            unsure = unsure or not (
                takes or re.fullmatch(r"-[A-Za-z]|-\w[\d.]+|--?\w[\w-]*=.*", text)
            )
            at += 2 if takes else 1
        else:
            break
    if name == "command" and rest[:1] and re.fullmatch(r"-[pvV]*[vV]", rest[0].text):
        return NOTHING  # it says what would run
    if name == "flock" and any(each.text in ("-c", "--command") for each in rest):
        return _code_after(rest, ("-c", "--command"))
    at += _BETWEEN.get(name, 0)
    inner = rest[at:]
    if not inner:
        # `xargs` alone is echo; `command -v` and the like have nothing to run.
        return NOTHING
    if name in ("xargs", "parallel"):
        inner = (*inner, Word(HOLE))  # what it reads is added, and not known
    commands = [inner]
    if unsure:
        commands.extend(inner[index:] for index in range(1, len(inner)))
    joined = _joined(inner) if name in ("watch", "parallel", "ssh-agent") else None
    code = (joined,) if joined is not None else ()
    return Inner(tuple(commands), code, opaque=_runs_input(name, inner))


def _runs_input(name: str, inner: tuple[Word, ...]) -> bool:
    """Whether what it reads becomes a command: `xargs sh -c`, `xargs -I{} {}`."""
    if name not in ("xargs", "parallel"):
        return False
    first = name_of(inner[0])
    if first in ("?", "{}") or first.startswith("{"):
        return True
    if first in SHELLS:
        return True
    return any("{}" in each.text for each in inner[1:]) and first in ("eval", "env", "sudo")


def _split_string(rest: tuple[Word, ...]) -> Inner:
    """`env -S 'rm -rf x'`."""
    first = rest[0].text
    for prefix in ("--split-string=", "--split-string", "-S"):
        if first.startswith(prefix):
            text = " ".join([first[len(prefix) :], *(each.text for each in rest[1:])])
            return _OPAQUE if HOLE in text else Inner(code=(text,))
    return _OPAQUE


def _shell(rest: tuple[Word, ...], name: str) -> Inner:
    """`bash -lc 'line' name arguments`, `bash file`, `bash`."""
    at = 0
    while at < len(rest):
        text = rest[at].text
        if HOLE in text and text.startswith(("-", HOLE)):
            return _OPAQUE
        if text in ("-c", "--command") or re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", text):
            return _code_at(rest, at + 1)
        if text.startswith("--command="):
            return Inner(code=(text.partition("=")[2],)) if HOLE not in text else _OPAQUE
        if text == "-s" or re.fullmatch(r"-[A-Za-z]*s[A-Za-z]*", text):
            return Inner(reads_stdin=True)
        if text in _SHELL_VALUES:
            at += 2
        elif text.startswith(("-", "+")) and len(text) > 1:
            at += 1
        elif name in ("su", "newgrp"):
            at += 1  # a user's name; `-c` may follow
        else:
            return _file(rest[at])
    return Inner(reads_stdin=True)


def _file(word: Word) -> Inner:
    """A file of commands: what it holds is for those who wrote it to answer for (provenance). A
    descriptor is no file."""
    return _OPAQUE if not word.static or word.text.startswith(("/dev/", "/proc/")) else NOTHING


def _code_at(rest: tuple[Word, ...], at: int) -> Inner:
    while at < len(rest) and rest[at].text.startswith(("-", "+")) and len(rest[at].text) > 1:
        at += 1
    if at >= len(rest):
        return NOTHING
    if not rest[at].static:
        return _OPAQUE
    return Inner(code=(rest[at].text,))


def _code_after(rest: tuple[Word, ...], options: Sequence[str]) -> Inner:
    for at, word in enumerate(rest):
        if word.text in options:
            return _code_at(rest, at + 1)
    return NOTHING


def _joined(words: Sequence[Word]) -> str | None:
    """As `eval` reads them; None if some are not known."""
    if not all(word.static and not word.glob for word in words):
        return None
    return " ".join(word.text for word in words)


def _by_option(rest: tuple[Word, ...], options: Collection[str]) -> Inner:
    """`tar -I 'rm x'`, `split --filter='rm x'`."""
    values = [rest[at + 1] for at, word in enumerate(rest[:-1]) if word.text in options]
    for word in rest:
        option, equals, value = word.text.partition("=")
        if equals and option in options:
            values.append(word.replace(text=value))
    if any(not each.static for each in values):
        return _OPAQUE
    return Inner(code=tuple(each.text for each in values))


def _eval(rest: tuple[Word, ...]) -> Inner:
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if not rest:
        return NOTHING
    line = _joined(rest)
    return _OPAQUE if line is None else Inner(code=(line,))


def _source(rest: tuple[Word, ...]) -> Inner:
    return _file(rest[0]) if rest else _OPAQUE


def _trap(rest: tuple[Word, ...]) -> Inner:
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if not rest or rest[0].text in ("-l", "-p", "-", ""):
        return NOTHING
    return Inner(code=(rest[0].text,)) if rest[0].static else _OPAQUE


def _alias(rest: tuple[Word, ...]) -> Inner:
    """What an alias stands for is run later, under its name."""
    values = [word for word in rest if "=" in word.text or HOLE in word.text]
    if len(rest) == 2 and not values and not rest[0].text.startswith("-"):  # fish: alias NAME LINE
        values = [Word(f"={rest[1].text}")]
    if not all(word.static for word in values):
        return _OPAQUE
    return Inner(code=tuple(word.text.partition("=")[2] for word in values))


def _bind(rest: tuple[Word, ...]) -> Inner:
    """Keys that run commands, or type them."""
    return _OPAQUE if rest and rest[0].text not in ("-l", "-p", "-P", "-v", "-V", "-q") else NOTHING


def _complete(rest: tuple[Word, ...]) -> Inner:
    return _code_after(rest, ("-C",))


def _mapfile(rest: tuple[Word, ...]) -> Inner:
    return _code_after(rest, ("-C",))


def _find(rest: tuple[Word, ...]) -> Inner:
    found: list[tuple[Word, ...]] = []
    starts: list[Word] = []
    at = 0
    while at < len(rest) and not rest[at].text.startswith(("-", "(", "!")):
        starts.append(rest[at])
        at += 1
    while at < len(rest):
        if rest[at].text in _FIND_RUNS:
            end = at + 1
            while end < len(rest) and rest[end].text not in (";", "+"):
                end += 1
            if rest[at + 1 : end]:
                found.append(tuple(rest[at + 1 : end]))
            at = end
        else:
            at += 1
    shells = any(name_of(each[0]) in SHELLS for each in found)
    braces = any("{}" in word.text and len(word.text) > 2 for each in found for word in each)
    # What it finds is below where it begins.
    placed = (
        tuple(start if word.text == "{}" else word for word in each)
        for each in found
        for start in starts or [Word(".")]
    )
    return Inner(tuple(placed), opaque=shells and braces)


def _ssh(rest: tuple[Word, ...]) -> Inner:
    """What runs on the other machine is a line for its shell."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        if _RUNS.match(rest[at].text) or (
            rest[at].text == "-o" and at + 1 < len(rest) and _RUNS.match(rest[at + 1].text)
        ):
            return _OPAQUE
        at += 2 if rest[at].text in _REMOTE_VALUES else 1
    if not rest[at + 1 :]:
        # A shell there: what it is given by a pipe or a here-document is a script.
        return Inner(reads_stdin=True)
    line = _joined(rest[at + 1 :])
    return _OPAQUE if line is None else Inner(code=(line,))


def _container(rest: tuple[Word, ...]) -> Inner:
    """`docker exec ... box CMD`, `kubectl exec pod -- CMD`: where the command begins depends on
    options of many versions, so every place is tried."""
    return _behind(rest, _CONTAINER_RUNS)


def _behind(rest: tuple[Word, ...], verbs: Collection[str]) -> Inner:
    at = next((index for index, each in enumerate(rest) if each.text in verbs), None)
    if at is None:
        return NOTHING
    words = rest[at + 1 :]
    dashes = next((index for index, each in enumerate(words) if each.text == "--"), None)
    if dashes is not None:
        return Inner((words[dashes + 1 :],)) if words[dashes + 1 :] else NOTHING
    tails = (words[index:] for index in range(len(words)))
    return Inner(
        tuple(each for each in tails if not each[0].text.startswith("-") and each[0].static)
    )


def _awk(rest: tuple[Word, ...]) -> Inner:
    if any(not each.static or each.text in ("-f", "--file") for each in rest[:1]):
        return _OPAQUE if rest and not rest[0].static else NOTHING
    program = next((each for each in rest if not each.text.startswith("-")), None)
    return _OPAQUE if program is not None and _AWK_RUNS.search(program.text) else NOTHING


def _sed(rest: tuple[Word, ...]) -> Inner:
    scripts = [each for each in rest if not each.text.startswith("-")][:1]
    scripts += [
        rest[i + 1] for i, each in enumerate(rest[:-1]) if each.text in ("-e", "--expression")
    ]
    return _OPAQUE if any(_SED_RUNS.search(each.text) for each in scripts) else NOTHING


def _git(rest: tuple[Word, ...]) -> Inner:
    words = [each.text for each in rest]
    if any(_RUNS.match(text) for text in words):
        return _OPAQUE
    if "bisect" in words[:1] and "run" in words[1:2]:
        return Inner((rest[2:],)) if rest[2:] else NOTHING
    for option in ("--exec", "-x"):
        if "rebase" in words and option in words:
            return _code_after(rest, (option,))
    if "submodule" in words[:1] and "foreach" in words:
        return _eval(
            tuple(each for each in rest[words.index("foreach") + 1 :] if each.text[:2] != "--")
        )
    if "filter-branch" in words or "config" in words[:1]:
        return (
            _OPAQUE
            if any("!" in text or _RUNS.match(f"{text}=") for text in words[1:])
            else NOTHING
        )
    return NOTHING


def _interpreter(stem: str, rest: tuple[Word, ...]) -> Inner:
    letters = _CODE_OPTIONS[stem]
    for word in rest:
        text = word.text
        if text in _CODE_WORDS or any(text.startswith(f"{each}=") for each in _CODE_WORDS):
            return _OPAQUE
        short = re.match(r"-([A-Za-z0-9]+)", text)
        if short is not None and any(letter in short[1] for letter in letters):
            return _OPAQUE
        if stem in ("vim", "vi", "nvim", "ex", "view") and text.startswith("+"):
            return _OPAQUE
        if not text.startswith("-") or text == "-":
            return _OPAQUE if text == "-" or not word.static else NOTHING
    # No file and no code: it reads its standard input.
    return Inner(reads_stdin=True)


def _opaque(_: tuple[Word, ...]) -> Inner:
    return _OPAQUE


_SPECIAL: dict[str, Callable[[tuple[Word, ...]], Inner]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "abbr": _opaque,
    "bind": _bind,
    "bindkey": _bind,
    "fc": lambda rest: NOTHING if any(each.text == "-l" for each in rest) else _OPAQUE,
    "r": _opaque,  # zsh and ksh: the last command again
    "complete": _complete,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "find": _find,
    "fd": lambda rest: (
        _OPAQUE if any(re.match(r"-\w*[xX]$|--exec", each.text) for each in rest) else NOTHING
    ),
    "ssh": _ssh,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
    "kubectl": _container,
    "oc": _container,
    "git": _git,
    "sed": _sed,
    "gsed": _sed,
    "at": lambda _: Inner(reads_stdin=True),
    "batch": lambda _: Inner(reads_stdin=True),
    "tmux": _opaque,
    "screen": _opaque,
    "socat": _opaque,
    "crontab": lambda rest: NOTHING if any(e.text in ("-l", "-r") for e in rest) else _OPAQUE,
    "enable": lambda rest: _OPAQUE if any(each.text.startswith("-f") for each in rest) else NOTHING,
    "hash": lambda rest: _OPAQUE if any(each.text.startswith("-p") for each in rest) else NOTHING,
    **dict.fromkeys(_AWKS, _awk),
}
