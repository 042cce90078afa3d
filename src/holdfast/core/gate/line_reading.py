"""What a command line may use of a shell's state: which aliases, functions, variables, traps,
options, directories of PATH, the working directory.

It reads bash, zsh and fish alike, by their words and not by their grammar, and prefers to name too
much: what may be used counts as used. Where the text does not say what runs (`eval`, `source`, an
indirect variable, a function call, whose body is not examined), every variable, alias and function
counts. What runs at each prompt whatever the line is (traps, prompt commands and what they name)
always counts; so do the options, which change what a line means. What the shell runs on some
occasion counts where the line provides that occasion: it changes the directory, names a command
that is not found, runs a program, sets a variable.

Known gaps: what a program reads by itself (that is for the exec gate), completion functions, and
`$?` in a function. Of key bindings only those count that can act on text and Enter alone: what the
others put into the line does not show in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

from holdfast.model.shell_state import ShellState, shapes_commands

_TOKEN = re.compile(
    r"""(?P<single>\$?'[^']*(?:'|$)) | (?P<double>"(?:[^"\\]|\\.)*(?:"|$)) | (?P<escaped>\\.)
    | (?P<comment>(?:(?<=\s)|^)\#[^\n]*) | (?P<inner>\$\(\(?|`) | (?P<end>\|\||&&|[;&|\n(){}])
    | (?P<redirect>\d*[<>]+[&|]?) | (?P<gap>\s+) | (?P<plain>[^\s'"\\;&|(){}<>`$]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{?(?:\([^()]*\))?[#!^=~+]*([A-Za-z_]\w*)")
_POSITIONAL = re.compile(r"\$\{?[#!]?[1-9@*#]|\bshift\b|\bfor\s+\w+\s*(?:;|\n|do\b)")
_OWN_NAME = re.compile(r"\$\{?0")
_DESCRIPTOR = re.compile(r"(?:&|fd/|-u\s*)(\d+)\b")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_ARITHMETIC = re.compile(
    r"\(\(|\$\[|\[\[|\blet\b|\s-v\b|\[[^]]*[A-Za-z_]|\$\{[!#]?[\w@*]+(?:\[[^]]*\])?:\s*[^-=?+\s]"
    r"|\b(?:declare|typeset|local|export|readonly)\s+-\w*[iEF]|\b(?:integer|float|repeat|shift|math)\b"
)
_NAMED_DIRECTORY = re.compile(r"(?<![\w/])~([A-Za-z_][\w.-]*)")
_STATUS = re.compile(r"\$\{?#?(?:\?|_(?!\w)|status\b)|\b(?:PIPESTATUS|pipestatus)\b")
_LAST_JOB = re.compile(r"\$(?:!|\{!\})")
_INDIRECT = re.compile(
    r"\{[^\s{}]*,|\$\{!|\$\$[A-Za-z_]|\$\{\(\w*[eP]|\b(?:declare|typeset|local)\s+-\w*n"
)
_HISTORY = re.compile(r"!(?![\s=(]|$)|^\^|(?:^|[;&|]\s*)(?:fc|r)\b")

_RESERVED = frozenset({
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac",
    "in", "select", "function", "time", "coproc", "begin", "end", "switch", "and", "or", "not",
    "!", "[[", "]]", "noglob", "nocorrect", "-", "repeat", "foreach",
})  # fmt: skip
# They run what follows them; the words there may be commands too.
_PREFIXES = frozenset({
    "builtin", "command", "exec", "eval", "nohup", "env", "sudo", "doas", "su", "time", "xargs",
    "nice", "ionice", "setsid", "stdbuf", "timeout", "watch", "find", "parallel", "ssh", "chroot",
    "unshare", "nsenter", "trap", "alias", "function", "bash", "sh", "zsh", "fish", "dash", "ksh",
    "compgen", "strace", "ltrace", "flock", "script", "at", "batch", "crontab", "systemd-run",
    "entr",
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
# These words may be followed by commands that see the status of the line before.
_NO_COMMAND_YET = frozenset({
    "for", "select", "case", "function", "foreach", "repeat", "coproc", "switch",
})  # fmt: skip
_ENDS_COMMAND = frozenset({";", "&", "&&", "||", "\n"})
_CHANGES_DIRECTORY = frozenset({"cd", "chdir", "pushd", "popd", "prevd", "nextd", "cdh"})
_AMBIENT_FUNCTION = re.compile(
    r"(?:precmd|preexec|periodic|zshexit|zshaddhistory|TRAP\w+|zle-[\w-]+"
    r"|fish_\w*prompt|fish_title|fish_greeting|fish_postexec|fish_preexec)$"
)
_NOT_FOUND_FUNCTION = re.compile(r"command_not_found_handler?$|fish_command_not_found\b")
_ON_DIRECTORY = frozenset({"chpwd", "chpwd_functions"})
_SAVES_HISTORY = frozenset({"history", "exit", "logout", "exec", "fc"})
_FOR_PROGRAMS = frozenset({"BASH_ENV", "ENV", "ZDOTDIR"})
# Variables of fish that commands change without naming them.
_CHANGES_BY_ITSELF = re.compile(
    r"fish_|__|(?:COLUMNS|LINES|PWD|OLDPWD|dir(?:prev|next)|history|SHLVL|umask|CMD_DURATION|.*status)$"
)
# Bindings of what is pressed for every line: Enter, ^O, a paste, a printable key, the host's own
# keys; and what zsh runs without a key. A binding that enters a line by itself counts as well.
_LINE_KEY = re.compile(
    r"of the host|509[89]~|accept|self-insert|execute|enter|return|zle-|20[01]~|bracketed"
    r"|\\C-[mjo]|\^[MJO]|\\c[mjo]|\\[rn]"
    r"|^\"(?:[^\\\"]|\\[\\\"])|^bindkey (?:-\S+ )*\"[^\\^\"]"
    r"|^bind (?:(?:-M|-m|--mode|--sets-mode) \S+ |-\S+ )*[^\\\s-]",
    re.IGNORECASE,
)
_AMBIENT_VARIABLES = frozenset({
    "IFS", "PROMPT_COMMAND", "PROMPT_COMMANDS", "PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT",
    "RPROMPT", "RPS1", "RPS2", "SPROMPT", "SHELLOPTS", "BASHOPTS",
    "GLOBIGNORE", "EXECIGNORE", "histchars", "HISTCONTROL", "auto_resume", "BASH_XTRACEFD",
    "MAIL", "MAILPATH", "MAILCHECK", "mailpath", "fish_function_path", "FPATH",
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

    commands: set[str] = field(default_factory=set)  # words in the position of a command
    words: set[str] = field(default_factory=set)  # all of them, without quotes
    reserved: set[str] = field(default_factory=set)  # words of the grammar: an alias comes first
    directories: set[str] = field(default_factory=set)  # NAME of each ~NAME
    assigned: set[str] = field(default_factory=set)  # words that set a variable, whole
    variables: set[str] = field(default_factory=set)
    descriptors: set[str] = field(default_factory=set)  # numbers of open files
    everything: bool = False  # any variable, alias or function
    history: bool = False  # commands entered before, by whomever
    relative: bool = False  # the working directory
    redirects: bool = False  # some of its files are opened by the shell itself
    status: bool = False  # what the line before left: its status, its last word
    last_job: bool = False  # the process that was put into the background last

    @property
    def programs(self) -> set[str]:
        """Commands that may be programs: a function or alias of that name comes first."""
        return {each for each in self.commands if each not in _BUILTINS}

    def add(self, inner: LineUse) -> None:
        """It may use what this one may."""
        for each in fields(self):
            mine, other = getattr(self, each.name), getattr(inner, each.name)
            setattr(self, each.name, mine | other)


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
    if _OWN_NAME.search(text):
        use.variables.add("BASH_ARGV0")
    use.descriptors.update(_DESCRIPTOR.findall(text))
    # Where these lead to is unknown: they may be the shell's own.
    use.everything = use.everything or any(len(each) > 1 for each in use.descriptors)
    use.history = _HISTORY.search(text) is not None
    use.directories.update(_NAMED_DIRECTORY.findall(text))
    use.variables.update(use.directories)  # in zsh they name directories, too
    use.status = _STATUS.search(_first_command(text)) is not None
    use.last_job = _LAST_JOB.search(text) is not None
    return use


def _first_command(text: str) -> str:
    """The part of a line that sees the status of the line before; too long rather than too
    short."""
    if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in _NO_COMMAND_YET:
        return text
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "inner":
            return text
        if token.lastgroup in ("end", "gap") and token[0].strip(" \t") in _ENDS_COMMAND:
            return text[: token.start()]
    return text


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
                use.reserved.update({str(word)} & _RESERVED)
                if _ASSIGNED.match(word):
                    use.assigned.add(str(word))
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
    """Whether this command depends on the working directory: yes, unless it is known not to, or has
    only absolute paths for arguments."""
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
    """Those of the `known` keys (originators.py) that the line may use. `state`: the shell's; None
    if it is not known, and then all are used. `leads_to`: the directory in which PATH finds a
    program; "" if it is not found."""
    if not text.strip():
        return []
    use = read_line(text)
    if state is None:
        return list(known)
    _follow_aliases(use, state)
    _follow_references(use, state)
    everything = use.everything or not state.functions.keys().isdisjoint(use.commands)
    judged = _Judged(use, state, everything, leads_to)
    return [key for key in known if judged.uses(key)]


def _follow_aliases(use: LineUse, state: ShellState) -> None:
    """What the aliases that stand for its commands use."""
    followed: set[str] = set()
    names = {alias.partition(" ")[0]: (alias, value) for alias, value in state.aliases.items()}
    while found := _aliased(use, names) - followed:
        for name in found:
            followed.add(name)
            _, value = names[name]
            use.add(read_line(value))
            if value[-1:].isspace():  # then the next word may be an alias as well
                use.commands |= use.words


def _aliased(use: LineUse, names: Mapping[str, tuple[str, str]]) -> set[str]:
    """Those of its words that are aliases."""
    commands = (use.commands | use.reserved) & names.keys()
    return commands | {each for each in use.words & names.keys() if names[each][0].endswith(" -g")}


def _follow_references(use: LineUse, state: ShellState) -> None:
    """The variables for which those that it names stand. A value that is given to one with an
    attribute (of a number, say) is an expression."""
    for word in use.assigned:
        if (found := _NAME.match(word)) and found[0] in state.attributes:
            use.variables.update(_NAME.findall(word))
    new = use.variables
    while (
        new := {name for each in new for name in _NAME.findall(state.references.get(each, ""))}
        - use.variables
    ):
        use.variables |= new


@dataclass
class _Judged:
    """One line against one state."""

    use: LineUse
    state: ShellState
    everything: bool
    leads_to: Callable[[str], str]

    @cached_property
    def ambient(self) -> set[str]:
        """Names in what runs whatever the line is, or on an occasion that this one gives."""
        texts = [
            value
            for name, value in self.state.variables.items()
            if name not in ("IFS", "FPATH", "CDPATH") and self._occasion(name)
        ]
        texts += self.state.traps.values()
        return {name for text in texts for name in _NAME.findall(text)}

    def _occasion(self, name: str) -> bool:
        """Whether the line makes the shell look at this variable, or call this function."""
        if name in _ON_DIRECTORY:
            return self.moves
        if name in _FOR_PROGRAMS:
            return bool(self.use.programs) or self.everything
        if _NOT_FOUND_FUNCTION.match(name):
            return self.finds_not
        return name != "CDPATH" or self.searches_directories

    @cached_property
    def finds_not(self) -> bool:
        """Some command may not be found."""
        here = self.state.functions.keys()
        searched = {each for each in self.use.programs if "/" not in each} - here
        own = {
            name
            for name in searched & self.state.aliases.keys()
            if name not in read_line(self.state.aliases[name]).commands
        }
        return self.everything or any(not self.leads_to(each) for each in searched - own)

    @cached_property
    def moves(self) -> bool:
        """The working directory may be another one behind it."""
        by_name = self.state.kind == "fish" or "autocd" in self.state.options
        return (
            self.everything
            or not _CHANGES_DIRECTORY.isdisjoint(self.use.commands)
            or (by_name and (self.finds_not or any("/" in each for each in self.use.programs)))
        )

    @cached_property
    def searches_directories(self) -> bool:
        """It goes to a directory by a relative name."""
        words = self.use.words - self.use.reserved - _CHANGES_DIRECTORY
        absolute = ("/", "~", "./", "../", "-")
        return self.moves and any(
            not word.startswith(absolute) and word not in (".", "..", "") for word in words
        )

    def uses(self, key: str) -> bool:
        kind, _, name = key.partition(":")
        use = self.use
        match kind:
            case "trap":
                return self._trap(name)
            case "option":
                return True
            case "dir":
                return name in use.directories or self._is_word(name) or self.everything
            case "cwd":
                return use.relative or self.everything
            case "umask":
                return bool(use.programs) or use.redirects
            case "key":
                return _LINE_KEY.search(name) is not None
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
                named = use.words if how == "g" else use.commands | use.reserved
                return self.everything or alias in named or alias in self.ambient
            case "func":
                if self.everything or name in use.commands or name in self.ambient:
                    return True
                if name in _ON_DIRECTORY or _NOT_FOUND_FUNCTION.match(name):
                    return self._occasion(name)
                return _AMBIENT_FUNCTION.match(name) is not None
            case "hash":
                return self.everything or name in use.commands
            case "builtin":
                return self.everything or name in use.commands
            case "job":
                named_job = any(word.startswith("%") or word == name for word in use.words)
                return named_job or use.last_job or not _JOB_WORDS.isdisjoint(use.commands)
        return True

    def _is_word(self, name: str) -> bool:
        """It names a directory to go to, for a shell that is told to look so."""
        options = ("cdable_vars", "cdablevars", "autonamedirs")
        return name in self.use.words and not set(options).isdisjoint(self.state.options)

    def _trap(self, name: str) -> bool:
        """fish: `EVENT FUNCTION`, `variable NAME FUNCTION`."""
        if _NOT_FOUND_FUNCTION.match(name):
            return self._occasion(name)
        event, _, rest = name.partition(" ")
        variable, _, function = rest.partition(" ")
        if event != "variable" or not function or self.everything:
            return True
        if _CHANGES_BY_ITSELF.match(variable):
            return True
        used = self.use.words | self.use.variables
        return any(variable in _NAME.findall(word) for word in used)

    def _variable(self, name: str) -> bool:
        if name in self.use.variables or self.everything or self._is_word(name):
            return True
        if name in _ON_DIRECTORY or name in _FOR_PROGRAMS or name == "CDPATH":
            return self._occasion(name)
        if name in _AMBIENT_VARIABLES or name in self.ambient or name in self.state.variables:
            return True
        if name == "PATH":
            return bool(self._searched())
        if name.startswith("HIST") and not _SAVES_HISTORY.isdisjoint(self.use.commands):
            return True
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
