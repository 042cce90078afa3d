"""What a command line may use of a shell's state: which aliases, functions, variables, traps,
options, directories of PATH, the working directory.

It reads bash, zsh and fish alike, by their words and not by their grammar, and errs to naming
more: what may be used counts as used. Where the text does not say what runs (`eval`, `source`, an
indirect variable, the call of a function, whose body is not looked at), every variable, alias and
function counts. What runs at each prompt whatever the line is (traps, prompt commands and what
they name) counts always; so do the options, by which a line means something else.

Known not to be seen: what a program that runs reads by itself (the exec gate's), key bindings, and
completion functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.model.shell_state import ShellState, shapes_commands

_TOKEN = re.compile(
    r"""(?P<single>\$?'[^']*(?:'|$)) | (?P<double>"(?:[^"\\]|\\.)*(?:"|$)) | (?P<escaped>\\.)
    | (?P<comment>(?:(?<=\s)|^)\#[^\n]*) | (?P<inner>\$\(\(?|`) | (?P<end>\|\||&&|[;&|\n(){}])
    | (?P<redirect>\d*[<>]+[&|]?) | (?P<gap>\s+) | (?P<plain>[^\s'"\\;&|(){}<>`$]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{?[#!^=~+]*([A-Za-z_]\w*)")
_POSITIONAL = re.compile(r"\$\{?[#!]?[1-9@*#]|\bshift\b|\bfor\s+\w+\s*(?:;|\n|do\b)")
_DESCRIPTOR = re.compile(r"(?:&|fd/|-u\s*)(\d)\b")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_ARITHMETIC = re.compile(r"\(\(|\$\[|\[\[|\blet\b|\s-v\b|\[[^]]*[A-Za-z_]")
_INDIRECT = re.compile(r"\{[^\s{}]*,|\$\{!|\$\$[A-Za-z_]|\(P\)|\b(?:declare|typeset|local)\s+-\w*n")
_HISTORY = re.compile(r"!(?![\s=(]|$)|^\^|(?:^|[;&|]\s*)(?:fc|r)\b")

_RESERVED = frozenset({
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac",
    "in", "select", "function", "time", "coproc", "begin", "end", "switch", "and", "or", "not",
    "!", "[[", "]]", "noglob", "nocorrect", "-", "repeat", "foreach",
})  # fmt: skip
# They run what stands behind them; the words there may be commands too.
_PREFIXES = frozenset({
    "builtin", "command", "exec", "eval", "nohup", "env", "sudo", "doas", "su", "time", "xargs",
    "nice", "ionice", "setsid", "stdbuf", "timeout", "watch", "find", "parallel", "ssh", "chroot",
    "unshare", "nsenter", "trap", "alias", "function", "bash", "sh", "zsh", "fish", "dash", "ksh",
    "strace", "ltrace", "flock", "script", "at", "batch", "crontab", "systemd-run", "entr",
})  # fmt: skip
_EVALUATES = frozenset({
    "eval", "source", ".", "trap", "fc", "r", "bind", "zle", "complete", "autoload", "emulate",
})  # fmt: skip
_SAYS = frozenset("$*?")  # in a command's own name: what runs, the text does not say
_BUILTINS = frozenset({
    "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete",
    "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export",
    "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local",
    "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly",
    "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true",
    "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", ":", ".", "[", "print",
    "setopt", "unsetopt", "functions", "unfunction", "unhash", "rehash", "whence", "where",
    "autoload", "zmodload", "bindkey", "vared", "emulate", "string", "count", "contains", "abbr",
    "status", "argparse", "math", "random", "commandline", "and", "or", "not",
})  # fmt: skip
# programs that do not look where they are, without arguments
_READS_NO_DIRECTORY = frozenset({
    "date", "uptime", "whoami", "id", "uname", "hostname", "sleep", "free", "who", "w", "last",
    "tty", "clear", "reset", "env", "printenv", "ps", "kill", "pkill", "killall", "nproc", "arch",
    "true", "false", "yes", "logname", "groups", "users", "jobs", "df", "lscpu", "lsblk",
})  # fmt: skip
_TOUCHES_DIRECTORY = frozenset({
    "source", ".", "cd", "pushd", "popd", "test", "[", "read", "mapfile", "readarray", "exec",
})  # fmt: skip
_DIRECTORY_WORDS = frozenset({"-", "popd", "pushd", "dirs", "prevd", "nextd", "cdh"})
_JOB_WORDS = frozenset({
    "fg", "bg", "jobs", "wait", "disown", "kill",
})  # fmt: skip
_AMBIENT_FUNCTION = re.compile(
    r"(?:precmd|preexec|chpwd|periodic|zshexit|zshaddhistory|command_not_found_handler?|TRAP\w+"
    r"|fish_\w*prompt|fish_title|fish_command_not_found|fish_greeting|fish_postexec|fish_preexec)$"
)
_AMBIENT_VARIABLES = frozenset({
    "IFS", "PROMPT_COMMAND", "PROMPT_COMMANDS", "PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT",
    "RPROMPT", "RPS1", "RPS2", "SPROMPT", "BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS",
    "GLOBIGNORE", "EXECIGNORE", "histchars", "HISTCONTROL", "fish_function_path", "FPATH",
    "fpath", "NULLCMD", "READNULLCMD", "BASH_COMPAT", "POSIXLY_CORRECT",
})  # fmt: skip
_PROGRAM_VARIABLES = re.compile(
    r"(?:LD_|DYLD_|PYTHON|GIT_|NODE_|NPM_|npm_config_|PERL|RUBY|GEM_|JAVA|_JAVA|JDK_|CARGO|RUST|SSH_"
    r"|SUDO_|DOCKER_|KUBE|LESS|MAN|GREP_|TAR_|RSYNC_|CURL_|WGET|OPENSSL_|SSL_|PIP_|VIRTUAL_ENV)"
    r"|.*(?:_proxy|_PROXY|FLAGS|_OPTS|_OPTIONS|_PRELOAD|_PATH|_HOME|RC)$|(?:EDITOR|VISUAL|PAGER|BROWSER"
    r"|SHELL|HOME|TMPDIR|CC|CXX|LD|MAKE|INPUTRC|TERMINFO|DISPLAY)$"
)


@dataclass
class LineUse:
    """What a command line may use."""

    commands: set[str] = field(default_factory=set)  # words that stand where a command stands
    words: set[str] = field(default_factory=set)  # all of them, without quotes
    variables: set[str] = field(default_factory=set)
    descriptors: set[str] = field(default_factory=set)  # numbers of open files
    everything: bool = False  # any variable, alias or function
    history: bool = False  # commands entered before, by whomever
    relative: bool = False  # the working directory
    redirects: bool = False  # some of its files are opened by the shell itself

    @property
    def programs(self) -> set[str]:
        """Commands that may be programs: a function or alias of that name comes first."""
        return {each for each in self.commands if each not in _BUILTINS}


def read_line(text: str) -> LineUse:
    """By the text alone; `used_keys` follows aliases and functions."""
    use = LineUse()
    _read(text, use, depth=0)
    use.variables.update(_VARIABLE.findall(text))
    if _ARITHMETIC.search(text):
        use.variables.update(_NAME.findall(text))
    use.everything = use.everything or _INDIRECT.search(text) is not None
    if _POSITIONAL.search(text):
        use.variables.add("@")
    use.descriptors.update(_DESCRIPTOR.findall(text))
    use.history = _HISTORY.search(text) is not None
    return use


_DEPTH_MAX = 8  # quotes in quotes; what is deeper counts as everything


def _read(text: str, use: LineUse, depth: int) -> None:
    if depth > _DEPTH_MAX:
        use.everything = True
        return
    for words in _simple_commands(text):
        _read_command(words, use, depth)


class _Word(str):
    """A word without its quotes."""

    __slots__ = ("quoted", "redirected")
    quoted: bool
    redirected: bool  # the file of a redirection


def _simple_commands(text: str) -> Iterator[list[_Word]]:
    words: list[_Word] = []
    now: list[str] = []
    quoted = redirected = False

    def end_word() -> None:
        nonlocal quoted, redirected
        if now or quoted:
            word = _Word("".join(now))
            word.quoted, word.redirected = quoted, redirected
            words.append(word)
            redirected = False
        now.clear()
        quoted = False

    for token in _TOKEN.finditer(text):
        kind, piece = token.lastgroup, token[0]
        if kind in ("single", "double"):
            now.append(piece.lstrip("$")[1:].removesuffix(piece[-1]) if len(piece) > 1 else "")
            quoted = True
        elif kind == "escaped":
            now.append("" if piece == "\\\n" else piece[1:])
            quoted = True
        elif kind in ("gap", "redirect"):
            end_word()
            redirected = redirected or kind == "redirect"
            if "\n" in piece:
                yield words
                words = []
        elif kind in ("inner", "end"):
            end_word()
            yield words
            words = []
        elif kind == "plain":
            now.append(piece)
    end_word()
    yield words


def _read_command(words: list[_Word], use: LineUse, depth: int) -> None:
    use.words.update(words)
    first, evaluated = True, False
    for at, word in enumerate(words):
        if "`" in word or "$(" in word:
            _read(word, use, depth + 1)
        if word.redirected:
            use.redirects = True
            use.relative = use.relative or not word.startswith(("/", "~", "&"))
        elif first:
            if not word.quoted and (word in _RESERVED or _ASSIGNED.match(word) or word[:1] == "-"):
                continue
            use.commands.add(str(word))
            use.everything = use.everything or word in _EVALUATES or not _SAYS.isdisjoint(word)
            use.relative = use.relative or _uses_directory(word, words[at + 1 :])
            evaluated = word.rpartition("/")[2] in _PREFIXES
            first = False
        elif evaluated:
            if re.search(r"\s", word):
                _read(word, use, depth + 1)
            elif not word.startswith("-"):
                use.commands.add(str(word))
                use.everything = use.everything or word in _EVALUATES
    if any(_is_relative(word) for word in words):
        use.relative = True


def _is_relative(word: str) -> bool:
    """With a directory in it, and not from the root or a home."""
    path = word[found.end() :] if (found := _ASSIGNED.match(word)) else word
    return "/" in path and not path.startswith(("/", "~", "$", "-")) and "://" not in path


def _uses_directory(command: str, arguments: list[_Word]) -> bool:
    """Whether this command looks where it is: unless it is known not to, or has only absolute
    paths for arguments."""
    name = command.rpartition("/")[2]
    if name in _BUILTINS and name not in _TOUCHES_DIRECTORY:
        return False
    paths = [
        word for word in arguments if not word.startswith(("-", "+", "$")) and not word.redirected
    ]
    if not paths:
        return name not in _READS_NO_DIRECTORY and name not in _BUILTINS
    return not all(path.startswith(("/", "~")) for path in paths)


def used_keys(
    text: str,
    state: ShellState | None,
    known: Iterable[str],
    leads_to: Callable[[str], str] = lambda _: "",
) -> list[str]:
    """Those of the `known` keys (originators.py) that the line may use. `state`: the shell's, None
    if it is not known: then all are used. `leads_to`: the directory in which PATH finds a program;
    "" if it is not found."""
    if not text.strip():
        return []
    use = read_line(text)
    if state is None:
        return list(known)
    _follow_aliases(use, state)
    ambient = _ambient_words(state)
    everything = use.everything or not state.functions.keys().isdisjoint(use.commands)
    judged = _Judged(use, state, ambient, everything, leads_to)
    return [key for key in known if judged.uses(key)]


def _follow_aliases(use: LineUse, state: ShellState) -> None:
    """What the aliases that stand for its commands use."""
    followed: set[str] = set()
    names = {alias.partition(" ")[0]: (alias, value) for alias, value in state.aliases.items()}
    while found := (use.commands | use.words) & names.keys() - followed:
        for name in found:
            followed.add(name)
            alias, value = names[name]
            if name not in use.commands and not alias.endswith(" -g"):
                continue
            inner = read_line(value)
            use.commands |= inner.commands
            use.words |= inner.words if alias.endswith(" -g") else inner.commands
            use.variables |= inner.variables
            use.everything = use.everything or inner.everything
            use.relative = use.relative or inner.relative


def _ambient_words(state: ShellState) -> set[str]:
    """Names in what runs at every prompt."""
    texts = [
        value for name, value in state.variables.items() if name not in ("IFS", "FPATH", "CDPATH")
    ]
    return {name for text in (*texts, *state.traps.values()) for name in _NAME.findall(text)}


@dataclass
class _Judged:
    """One line against one state."""

    use: LineUse
    state: ShellState
    ambient: set[str]
    everything: bool
    leads_to: Callable[[str], str]

    def uses(self, key: str) -> bool:
        kind, _, name = key.partition(":")
        use = self.use
        match kind:
            case "trap" | "option":
                return True
            case "cwd":
                return use.relative or self.everything
            case "umask":
                return bool(use.programs) or use.redirects
            case "key":
                return True
            case "fd":
                return name in use.descriptors or self.everything
            case "var":
                return self._variable(name)
            case "path":
                return self.everything or any(
                    self.leads_to(each) in (name, "") for each in self._searched()
                )
            case "alias":
                alias, _, how = name.partition(" -")
                if how == "s":
                    return any(word.endswith(f".{alias}") for word in use.words)
                named = use.words if how == "g" else use.commands
                return self.everything or alias in named or alias in self.ambient
            case "func":
                return (
                    self.everything
                    or name in use.commands
                    or name in self.ambient
                    or _AMBIENT_FUNCTION.match(name) is not None
                )
            case "hash":
                return self.everything or name in use.commands
            case "job":
                return not _JOB_WORDS.isdisjoint(use.commands) or any(
                    word.startswith("%") or word == name for word in use.words
                )
        return True

    def _variable(self, name: str) -> bool:
        if name in self.use.variables or name in _AMBIENT_VARIABLES or name in self.ambient:
            return True
        if name in self.state.variables or self.everything:
            return True
        if name == "PATH":
            return bool(self._searched())
        commands, words = self.use.commands, self.use.words
        if name == "HOME" and ("cd" in commands or any(word[:1] == "~" for word in words)):
            return True
        if name in ("OLDPWD", "dirprev", "DIRSTACK", "dirstack"):
            return not _DIRECTORY_WORDS.isdisjoint((*commands, *words)) or any(
                word[:1] == "~" for word in words
            )
        shapes = shapes_commands(name) or _PROGRAM_VARIABLES.match(name) is not None
        return shapes and bool(self.use.programs)

    def _searched(self) -> set[str]:
        """The programs that PATH finds."""
        here = self.state.functions.keys() | set(self.state.aliases)
        return {each for each in self.use.programs if "/" not in each and each not in here}
