"""What an effect does, as far as that is known before it happens: the facts that policies judge.

What is unknown is a fact too (`parsed`, `dynamic`, `opaque`, `writes_unknown`), so that a rule can
refuse it. Lines are parsed and paths resolved through ports: there is no I/O here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from holdfast.core.gate import destructive, network_names, written_paths
from holdfast.core.gate.nested_commands import SHELLS, name_of, runs
from holdfast.core.gate.patterns import UNKNOWN
from holdfast.model.command_line import HOLE, Command, Redirect, Word
from holdfast.model.gate import EffectKind, ProposedEffect
from holdfast.model.gate_facts import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.command_line import ParsedLine

# Lines nested in lines: deeper ones are not read, and count as opaque.
_DEPTH_MAX = 8
# Commands that are looked at in one line, with all that they run. More count as opaque.
_COMMANDS_MAX = 400
# Paths that are looked up in the filesystem. More count as unknown.
_PATHS_MAX = 128
_TEXT_MAX_CHARS = 400  # of one command in `lines`

_OUTPUT = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
# Variables whose values a shell, or what it starts, runs as code.
_CODE_VARIABLES = frozenset(
    (
        "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "BASH_ENV", "ENV", "EDITOR", "VISUAL",
        "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_SEQUENCE_EDITOR",
        "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "MANPAGER", "LESSOPEN", "LESSCLOSE", "PAGER",
        "BROWSER", "SHELL", "FCEDIT", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS",
        "RSYNC_RSH", "CVS_RSH", "MAKEFLAGS", "SUDO_EDITOR",
    )
)  # fmt: skip
# The arguments of these are text to search for or to print, and are never run.
_TEXT_ONLY = frozenset(
    ("grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "man", "apropos", "hold")
)
_PRINTS = frozenset(("echo", "printf", "print"))
# A history event: `!!`, `!rm`, `^a^b`. Only the shell knows what it becomes.
_HISTORY = re.compile(r"(?<![$\\{\[])!(?![\s=(\"]|$)")


def facts_of(
    effect: ProposedEffect,
    parse: Callable[[str], ParsedLine],
    real: Callable[[str], str],
    home: str = "",
) -> Facts:
    """Of this effect. `home`: of the session's user, for ~."""
    reader = _Reader(effect, parse, real, home)
    match effect.kind:
        case EffectKind.LINE:
            reader.line(effect.text, effect.text_known)
        case EffectKind.INPUT:
            reader.input()
        case EffectKind.EXEC:
            reader.exec()
        case EffectKind.WRITE_OPEN | EffectKind.UNLINK | EffectKind.RENAME:
            for path in (effect.path, *effect.argv):
                reader.writes(Word(path))
        case EffectKind.CONNECT:
            for host in network_names.of_destination(effect.destination):
                reader.found("hosts", host)
        case _:
            pass
    return reader.facts()


class _Reader:
    """Gathers the facts of one effect."""

    def __init__(
        self,
        effect: ProposedEffect,
        parse: Callable[[str], ParsedLine],
        real: Callable[[str], str],
        home: str,
    ) -> None:
        self._effect, self._parse, self._real = effect, parse, real
        named = [each for each in effect.environment if each.startswith("HOME=")]
        self._home = named[-1].removeprefix("HOME=") if named else home
        self._workspace = real(effect.workspace) if effect.workspace else ""
        # The directories in which the commands may run: `cd` in a line adds to them and takes
        # nothing away, because whether it ran is not known. None: somewhere unknown.
        self._directories: set[str | None] = {effect.cwd if effect.cwd.startswith("/") else None}
        self._lists: dict[str, dict[str, None]] = {}
        self._problem = ""
        self._dynamic = self._opaque = self._nested = self._writes_unknown = False
        self._commands = self._paths = 0
        self._pipelines: dict[tuple[int, int], list[str]] = {}
        self._lines_read = 0

    def facts(self) -> Facts:
        lists = {name: tuple(values) for name, values in self._lists.items()}
        joined = ("|".join(names) for names in self._pipelines.values() if len(names) > 1)
        return Facts(
            parsed=not self._problem,
            problem=self._problem,
            dynamic=self._dynamic,
            opaque=self._opaque,
            nested=self._nested,
            writes_unknown=self._writes_unknown,
            pipelines=tuple(joined),
            environment=tuple(each.partition("=")[0] for each in self._effect.environment),
            **lists,
        )

    def found(self, fact: str, value: str) -> None:
        if value:
            self._lists.setdefault(fact, {})[value] = None

    # -- each kind of effect --------------------------------------------------------------------

    def line(self, text: str, known: bool = True) -> None:
        if not known:
            self._problem = "the shell did not say which line it takes"
            return
        if _uses_history(text):
            self._dynamic = self._opaque = True
        self._code(text, 0)

    def input(self) -> None:
        """Text for a program that reads the terminal. A shell takes it as a line; what any other
        program makes of it is unknown, so only its words can be judged."""
        effect = self._effect
        program = (effect.path or (effect.argv or ("",))[0]).rsplit("/", 1)[-1].lstrip("-")
        if program in SHELLS or not effect.text_known:
            self.line(effect.text, effect.text_known)
            return
        for category in destructive.in_text(effect.text):
            self.found("destructive", category)
        read = self._parse(effect.text)
        for command in read.commands:
            words = [each.text for each in command.words]
            for category in destructive.of_command(words[0] if words else "", words[1:]):
                self.found("destructive", category)
        self.found("lines", " ".join(effect.text.split())[:_TEXT_MAX_CHARS])

    def exec(self) -> None:
        """A program with its arguments, by the file that runs and by the name it was given."""
        argv = self._effect.argv
        for name in dict.fromkeys((self._effect.path, *argv[:1])):
            if name:
                words = tuple(Word(each) for each in (name, *argv[1:]))
                self._command(Command(words), 0, 0)

    # -- lines and commands ---------------------------------------------------------------------

    def _code(self, text: str, depth: int) -> None:
        """A line for a shell."""
        if depth > _DEPTH_MAX:
            self._opaque = True
            return
        self._lines_read += 1
        number = self._lines_read
        read = self._parse(text)
        if read.problem and not self._problem:
            self._problem = read.problem
        self._dynamic = self._dynamic or read.substitutes
        for name in read.functions:
            self.found("functions", name)
        for command in read.commands:
            self._command(command, depth, number)
        piped = {tuple(names) for names in self._pipelines.values()}
        if any(names.count(each) > 1 for names in piped for each in read.functions):
            self.found("destructive", "fork-bomb")

    def _command(self, command: Command, depth: int, line: int) -> None:
        self._commands += 1
        if self._commands > _COMMANDS_MAX:
            self._opaque = True
            return
        for assigned in command.assigned:
            self._assigned(assigned.name, assigned.value, depth)
        for redirect in command.redirects:
            self._redirect(redirect)
        self._dynamic = self._dynamic or any(HOLE in each.text for each in command.words)
        if not command.words:
            return
        name = name_of(command.words[0])
        if command.pipeline:
            self._pipelines.setdefault((line, command.pipeline), []).append(name)
        self._effects_of(name, command)
        inner = runs(command.words)
        self._opaque = self._opaque or inner.opaque or name == "?"
        if inner.opaque or inner.reads_stdin:
            self._words_of_code(command)
        if inner.commands or inner.code or inner.reads_stdin or inner.opaque:
            self._nested = True
        for words in inner.commands:
            self._command(Command(words, piped=command.piped), depth + 1, line)
        for code in inner.code:
            self._code(code, depth + 1)
        if inner.reads_stdin:
            self._stdin(name, command, depth)

    def _effects_of(self, name: str, command: Command) -> None:
        words, arguments = command.words, command.words[1:]
        self.found("commands", name)
        shown = " ".join([name, *(each.text for each in arguments)]).replace(HOLE, UNKNOWN)
        self.found("lines", shown[:_TEXT_MAX_CHARS])
        texts = [each.text for each in arguments]
        told = name in _TEXT_ONLY or (name in _PRINTS and not command.pipeline)
        for category in destructive.of_command(name, texts):
            if not (told and category in destructive.OF_STATEMENTS):
                self.found("destructive", category)
        for host in network_names.hosts(name, [each.text for each in arguments if each.static]):
            self.found("hosts", host)
        writing = written_paths.written(name, arguments)
        for path in writing.paths:
            self.writes(path)
        if writing.here:
            self.writes(Word("."))
        for word in (words[0], *arguments):
            self._named(word)
        self._moves(name, arguments)

    def _words_of_code(self, command: Command) -> None:
        """Of code that is not read, the words at least."""
        stdin = [each.target for each in command.redirects if each.operator in ("<<", "<<<")]
        for word in (*command.words[1:], *stdin):
            for category in destructive.in_text(word.text):
                self.found("destructive", category)

    def _stdin(self, name: str, command: Command, depth: int) -> None:
        """It reads code from its standard input."""
        given = [each for each in command.redirects if each.operator in ("<<", "<<<", "<", "<>")]
        if not given:
            # Not from a pipe but from the terminal: what is typed there is judged when it is typed.
            self._opaque = self._opaque or command.piped
            return
        text = given[-1].target
        shell = name in SHELLS or name in ("ssh", "at", "batch", "su")
        if given[-1].operator in ("<<", "<<<") and text.static and shell:
            self._code(text.text, depth + 1)
        else:
            self._opaque = True

    def _assigned(self, name: str, value: Word, depth: int) -> None:
        self.found("assigned", name)
        self._dynamic = self._dynamic or not value.static
        if name in _CODE_VARIABLES or name.startswith("GIT_CONFIG"):
            self._nested = True
            if value.static:
                self._code(value.text, depth + 1)
            else:
                self._opaque = True

    def _redirect(self, redirect: Redirect) -> None:
        target = redirect.target
        self._dynamic = self._dynamic or not target.static
        if redirect.operator in ("<<", "<<<"):
            for category in destructive.in_text(target.text):
                self.found("destructive", category)
            return
        if host := network_names.host_of_path(target.text):
            self.found("hosts", host)
        if redirect.operator not in _OUTPUT:
            self._named(target)
        elif not (redirect.operator == ">&" and re.fullmatch(r"\d*-?", target.text)):
            if target.static:
                self.found("redirects", target.text)
            self.writes(target)

    # -- paths ----------------------------------------------------------------------------------

    def _moves(self, name: str, arguments: Iterable[Word]) -> None:
        """Where later commands of the line may be."""
        words = list(arguments)
        if name in ("cd", "pushd", "chdir"):
            targets = [each for each in words if not each.text.startswith("-") or each.text == "-"]
            target = targets[0] if targets else Word("~", tilde=True)
            if target.text == "-" or target.text.startswith("+") or target.glob:
                self._directories.add(None)
            else:
                self._directories |= set(self._places(target, logical=True))
        elif name == "popd":
            self._directories.add(None)
        elif name in ("env", "sudo"):
            for option, value in pairwise(words):
                if option.text in ("-C", "-D", "--chdir"):
                    self._directories |= set(self._places(value, logical=True))

    def _places(self, word: Word, *, logical: bool = False) -> list[str | None]:
        """Where a path may be; None among them: somewhere unknown."""
        text = word.text
        if word.glob:  # the directory in which the shell looks for names
            head = re.split(r"[*?\[]", text, maxsplit=1)[0]
            text = head[: head.rfind("/") + 1] or "."
        if HOLE in text:
            return [None]
        if word.tilde:
            user, _, rest = text[1:].partition("/")
            if user or not self._home:
                return [None]
            text = joined(self._home, rest) if rest else self._home
        found: list[str | None] = []
        for directory in self._directories:
            if not text.startswith("/") and directory is None:
                found.append(None)
                continue
            whole = joined(directory or "/", text)
            self._paths += 1
            if self._paths > _PATHS_MAX:
                found.append(None)
                continue
            found.append(self._real(whole))
            if logical and ".." in whole:  # `cd` takes `..` by name
                found.append(self._real(without_dots(whole)))
        return list(dict.fromkeys(found))

    def _is_inside(self, path: str) -> bool:
        if not self._workspace:
            return False
        return path == self._workspace or path.startswith(self._workspace.rstrip("/") + "/")

    def writes(self, word: Word) -> None:
        """This path is written, made or removed."""
        if not word.text or written_paths.is_sink(word.text):
            return
        if destructive.is_device(word.text):
            self.found("destructive", "disk")
        for place in self._places(word):
            if place is None:
                self._writes_unknown = True
                continue
            if written_paths.is_sink(place):
                continue
            if destructive.is_device(place):
                self.found("destructive", "disk")
            self.found("writes", place)
            self.found("paths", place)
            if not self._is_inside(place):
                self.found("writes_outside", place)
                self.found("paths_outside", place)

    def _named(self, word: Word) -> None:
        """A word that may be a path, or hold one: `/x`, `../x`, `~/x`, `--file=/x`, `-I/x`."""
        text = word.text
        if text.startswith("-") or ("=" in text and "/" in text.partition("=")[2]):
            begin = text.find("=") + 1 if "=" in text else text.find("/")
            if begin <= 0 or "/" not in text[begin:]:
                return
            word = word.replace(text=text[begin:], tilde=text[begin:].startswith("~"))
        elif not (word.tilde or "/" in text or text in (".", "..")) or "://" in text:
            return
        for place in self._places(word):
            if place is not None and not written_paths.is_sink(place):
                self.found("paths", place)
                if not self._is_inside(place):
                    self.found("paths_outside", place)


def joined(directory: str, path: str) -> str:
    """A path as seen from a directory."""
    return path if path.startswith("/") else f"{directory.rstrip('/')}/{path}"


def without_dots(path: str) -> str:
    """An absolute path without `.` and `..`, by name alone."""
    kept: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del kept[-1:]
        elif step not in ("", "."):
            kept.append(step)
    return "/" + "/".join(kept)


def _uses_history(text: str) -> bool:
    """Whether an interactive shell may put an earlier line in its place."""
    unquoted, single, double, at = [], False, False, 0
    while at < len(text):
        char = text[at]
        if single:
            single = char != "'"
            char = " "
        elif char == "\\":
            unquoted.append("\\")
            at += 1
            char = "x"
        elif char == "'" and not double:
            single, char = True, " "
        elif char == '"':
            double = not double
        unquoted.append(char)
        at += 1
    return text.startswith("^") or _HISTORY.search("".join(unquoted)) is not None
