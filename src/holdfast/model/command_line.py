"""A command line as a parser reads it: words, commands, redirections. Values only.

What a word becomes when the shell takes it is known as far as it is *static*: quotes are removed,
braces expanded. What only the running shell knows (variables, substitutions) is a hole. Reading a
line: adapters/bash_grammar; what it means for a policy: core/gate.
"""

from __future__ import annotations

from holdfast.model.record import Record

HOLE = "\0"  # stands in a word for text that only the running shell knows; no line contains it


class Word(Record):
    """One word, quotes removed."""

    text: str  # with HOLE where it is not known
    glob: bool = False  # an unquoted *, ? or [: it may become other words
    tilde: bool = False  # it begins with an unquoted ~

    @property
    def static(self) -> bool:
        """Whether the shell takes exactly this text."""
        return HOLE not in self.text


class Redirect(Record):
    """A redirection of one command."""

    operator: str  # as written: >, >>, <, <>, >|, &>, <<, <<<
    target: Word  # of a here-document or here-string: its text


class Assigned(Record):
    """NAME=VALUE, before a command or alone."""

    name: str
    value: Word


class Command(Record):
    """One simple command, wherever in the line it is: in a pipeline, a loop, a substitution."""

    words: tuple[Word, ...]  # its name and its arguments; empty: assignments or redirections alone
    redirects: tuple[Redirect, ...] = ()
    assigned: tuple[Assigned, ...] = ()
    pipeline: int = 0  # commands of one pipeline have the same number, above 0
    piped: bool = False  # its standard input is a pipe


class ParsedLine(Record):
    """What a parser makes of a line."""

    commands: tuple[Command, ...] = ()  # in the order of the text
    functions: tuple[str, ...] = ()  # those that it defines
    substitutes: bool = False  # some word has a command or process substitution
    problem: str = ""  # why it could not be read whole; empty: it could
