"""A command line, read with tree-sitter's grammar of bash: every simple command in it.

The grammar is not bash: it takes lines that bash refuses, and some trees it gives are not what bash
does. So nothing is believed by default. A node of a kind that this file does not know, an error in
the tree, text that belongs to no node, or a character that shells and grammar may see differently
makes the line one that *could not be read*, and a policy learns that.

Not here: what the commands do (core/gate), and aliases, functions and variables of the running
shell, which no parser knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from holdfast.adapters.bash_grammar.words import Chars, read_string, unescape_ansi_c, words_of
from holdfast.model.command_line import HOLE, Assigned, Command, ParsedLine, Redirect, Word

# Longer lines are not read, and none with more marks: the grammar takes quadratic time for some
# (`a?` repeated: four seconds for 8 KiB), and the event loop waits. Within these bounds the worst
# that was found takes a tenth of a second. The parser can be given a time limit, and has crashed
# by one.
LINE_MAX_BYTES = 4 << 10
MARKS_MAX = 300
# Deeper trees are not walked: a walk is recursive, and nobody writes such a line by hand.
_DEPTH_MAX = 60

# Parts of a program that contain statements, and nothing else that matters here.
_BLOCKS = frozenset(
    (
        "program", "list", "compound_statement", "subshell", "do_group", "if_statement",
        "elif_clause", "else_clause", "while_statement", "negated_command", "for_statement",
        "c_style_for_statement", "case_statement", "case_item", "test_command",
        "command_substitution", "process_substitution",
    )
)  # fmt: skip
# Parts of expressions: arithmetic and tests. Substitutions in them run commands.
_EXPRESSIONS = frozenset(
    (
        "unary_expression", "binary_expression", "ternary_expression", "parenthesized_expression",
        "postfix_expression", "arithmetic_expansion", "expansion", "simple_expansion", "subscript",
        "array", "string", "translated_string", "concatenation", "regex", "extglob_pattern",
        "variable_name", "special_variable_name", "word", "number", "raw_string", "ansi_c_string",
        "string_content", "test_operator", "file_descriptor", "heredoc_content",
        "brace_expression", "heredoc_start", "heredoc_end", "comment",
    )
)  # fmt: skip
# Words of bash's own grammar. Where this grammar takes one for a command, it reads another line
# than bash does.
_RESERVED = frozenset(
    (
        "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case",
        "esac", "in", "select", "function", "coproc", "[[", "]]",
    )
)  # fmt: skip
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_DECLARES = ("declaration_command", "unset_command")
_ODD = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\u0085\u00a0\u2000-\u200f\u2028-\u202f\u205f-\u206f\ufeff]"
)
# The grammar's scanner asks C's isdigit() about the character behind a brace and its digits. Beyond
# Latin-1 that reads past the end of a table, and the daemon would crash by a line.
_UNSAFE_BRACE = re.compile(r"\{[0-9.]*[^\x00-\xff]")
_MARKS = re.compile(r"[|&;<>()$`!?*+@=\[\]{}]")
_GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")


class _Unread(Exception):
    """The line has something that this reader does not understand."""


class BashGrammar:
    """Reads lines. One parser, for one thread."""

    def __init__(self) -> None:
        self._parser = Parser(Language(tree_sitter_bash.language()))

    def parse(self, text: str) -> ParsedLine:
        """Always an answer; what could not be read has a `problem`."""
        try:
            source = text.encode()
        except UnicodeEncodeError:
            return ParsedLine(problem="it has bytes that are no text")
        if len(source) > LINE_MAX_BYTES:
            return ParsedLine(problem=f"it is longer than {LINE_MAX_BYTES} bytes")
        if len(_MARKS.findall(text)) > MARKS_MAX:
            return ParsedLine(problem=f"it has more than {MARKS_MAX} operators and expansions")
        odd = _ODD.search(text)
        if odd is not None:
            return ParsedLine(problem=f"it has the character U+{ord(odd.group()):04X}")
        if _UNSAFE_BRACE.search(text):
            return ParsedLine(problem="it has a character beyond Latin-1 behind a brace")
        root = self._parser.parse(source).root_node
        reader = _Reader(source)
        try:
            if root.has_error:
                # What can be seen in it is told all the same: a rule about `rm` need not wait for
                # somebody who writes without mistakes.
                reader.salvage(root)
                raise _Unread("it is not the grammar of a shell that this host knows")
            reader.block(root, 0)
            reader.check_gaps(root)
        except _Unread as unread:
            return reader.line(str(unread))
        return reader.line("")


class _Reader:
    """The walk through one tree."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._commands: list[Command] = []
        self._functions: list[str] = []
        self._substitutes = False
        self._pipelines = 0

    def line(self, problem: str) -> ParsedLine:
        return ParsedLine(tuple(self._commands), tuple(self._functions), self._substitutes, problem)

    # -- statements ---------------------------------------------------------------------------

    def salvage(self, root: Node) -> None:
        """The commands of a tree with errors, as far as they can be seen."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.type == "command":
                try:
                    self._command(node, (), 0, False, 0)
                except _Unread:
                    continue
            else:
                waiting.extend(node.children)

    def block(self, node: Node, depth: int, pipeline: int = 0, piped: bool = False) -> None:
        if depth > _DEPTH_MAX:
            raise _Unread("it is nested too deeply")
        for child in node.named_children:
            self._statement(child, depth + 1, pipeline, piped)

    def _statement(
        self,
        node: Node,
        depth: int,
        pipeline: int,
        piped: bool,
        redirects: tuple[Redirect, ...] = (),
    ) -> None:
        kind = node.type
        if kind == "command":
            self._command(node, redirects, pipeline, piped, depth)
        elif kind == "pipeline":
            self._pipeline(node, depth, pipeline, piped)
        elif kind == "redirected_statement":
            self._redirected(node, depth, pipeline, piped, redirects)
        elif kind in _DECLARES:
            self._declaration(node, redirects, pipeline, piped, depth)
        elif kind in ("variable_assignment", "variable_assignments"):
            parts = [node] if kind == "variable_assignment" else node.named_children
            assigned = tuple(self._assigned(each, depth) for each in parts)
            self._commands.append(Command((), redirects, assigned, pipeline, piped))
        elif kind == "function_definition":
            self._function(node, depth, pipeline, piped)
        elif kind.endswith("_redirect"):  # `$(< file)`
            found = tuple(self._redirect(node, depth))
            self._commands.append(Command((), found, (), pipeline, piped))
        elif kind in _BLOCKS:
            if kind == "negated_command":
                self._check_apart(node.children)
            if kind in _SUBSTITUTIONS:
                self._check_backquotes(node)
            if redirects:
                self._commands.append(Command((), redirects, (), pipeline, piped))
            self.block(node, depth, pipeline, piped)
        elif kind in _EXPRESSIONS:
            self._inside(node, depth)
        else:
            raise _Unread(f"it has a {kind.replace('_', ' ')}")

    def _pipeline(self, node: Node, depth: int, outer: int, piped: bool) -> None:
        self._pipelines += 1
        number = outer or self._pipelines
        for index, child in enumerate(node.named_children):
            self._statement(child, depth + 1, number, piped or index > 0)

    def _redirected(
        self, node: Node, depth: int, pipeline: int, piped: bool, outer: tuple[Redirect, ...]
    ) -> None:
        found = list(outer)
        behind: list[Word] = []
        for child in node.named_children:
            if child.type.endswith("_redirect"):
                more, words = self._redirect_and_words(child, depth)
                found.extend(more)
                behind.extend(words)
        body = node.child_by_field_name("body")
        if body is not None and body.type == "command":
            self._command(body, tuple(found), pipeline, piped, depth, tuple(behind))
        elif behind:
            raise _Unread("it has words behind a redirection")
        elif body is None:
            self._commands.append(Command((), tuple(found), (), pipeline, piped))
        else:
            self._statement(body, depth + 1, pipeline, piped, tuple(found))
        # What follows a here-document on its line is inside of it in the tree.
        for child in node.named_children:
            if child.type == "heredoc_redirect":
                self._behind_heredoc(child, depth, pipeline)

    def _behind_heredoc(self, node: Node, depth: int, pipeline: int) -> None:
        for child in node.named_children:
            if child.type in ("heredoc_start", "heredoc_end", "file_descriptor"):
                continue
            if child.type == "heredoc_body":
                self._inside(child, depth)
            elif child.type == "pipeline":
                self._pipelines += 1
                for each in child.named_children:
                    self._statement(each, depth + 1, pipeline or self._pipelines, True)
            elif child.type in ("file_redirect", "herestring_redirect"):
                continue  # read with the statement's own
            else:
                # An argument or another statement: `cat <<E arg`, `cat <<E && rm x`. Bash may join
                # the argument to the command before; which one is not sure.
                if child.type in _EXPRESSIONS:
                    raise _Unread("it has words behind a here-document")
                self._statement(child, depth + 1, pipeline, False)

    def _function(self, node: Node, depth: int, pipeline: int, piped: bool) -> None:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            raise _Unread("it has half a function")
        self._functions.append(self._text(name))
        redirects = tuple(
            found
            for child in node.named_children
            if child.type.endswith("_redirect")
            for found in self._redirect(child, depth)
        )
        self._statement(body, depth + 1, pipeline, piped, redirects)

    # -- commands -----------------------------------------------------------------------------

    def _command(
        self,
        node: Node,
        redirects: tuple[Redirect, ...],
        pipeline: int,
        piped: bool,
        depth: int,
        arguments: tuple[Word, ...] = (),
    ) -> None:
        """`arguments`: more of them, from behind a redirection."""
        words: list[Word] = []
        assigned: list[Assigned] = []
        found = list(redirects)
        named = [c for c in node.children if not c.type.endswith("_redirect")]
        self._check_apart(named)
        for child in node.children:
            kind = child.type
            if kind == "command_name":
                if self._text(child) in _RESERVED:
                    raise _Unread("it has a word of the shell's grammar in an odd place")
                self._check_apart(child.children)
                words.extend(word for c in child.children for word in self._words(c, depth))
            elif kind == "variable_assignment":
                assigned.append(self._assigned(child, depth))
            elif kind.endswith("_redirect"):
                more, behind = self._redirect_and_words(child, depth)
                found.extend(more)
                words.extend(behind)
            elif kind == "subshell":
                raise _Unread("it has a parenthesis among the words of a command")
            else:
                words.extend(self._words(child, depth))
        words.extend(arguments)
        self._commands.append(Command(tuple(words), tuple(found), tuple(assigned), pipeline, piped))

    def _declaration(
        self,
        node: Node,
        redirects: tuple[Redirect, ...],
        pipeline: int,
        piped: bool,
        depth: int,
    ) -> None:
        """`export A=b`, `declare`, `local`, `readonly`, `unset`: the first child is the builtin."""
        words = [Word(self._text(node.children[0]))]
        assigned: list[Assigned] = []
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                assigned.append(self._assigned(child, depth))
            else:
                words.extend(self._words(child, depth))
        self._commands.append(Command(tuple(words), redirects, tuple(assigned), pipeline, piped))

    def _assigned(self, node: Node, depth: int) -> Assigned:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if node.type != "variable_assignment" or name is None:
            raise _Unread("it has half an assignment")
        if name.type == "subscript":
            self._inside(name, depth)
            inner = name.child_by_field_name("name")
            name = inner if inner is not None else name
        if value is None:
            return Assigned(self._text(name), Word(""))
        if value.type == "array":
            self._inside(value, depth)
            return Assigned(self._text(name), Word(HOLE))
        found = self._words(value, depth, splits=False)
        return Assigned(self._text(name), found[0] if found else Word(""))

    def _redirect(self, node: Node, depth: int) -> Iterator[Redirect]:
        """Of a part that redirects nothing but one target."""
        found, words = self._redirect_and_words(node, depth)
        if words:
            raise _Unread("it has words behind a redirection")
        yield from found

    def _redirect_and_words(
        self, node: Node, depth: int
    ) -> tuple[tuple[Redirect, ...], list[Word]]:
        """`cat > file a b`: for this grammar the words behind belong to the redirection; they are
        arguments."""
        if node.type == "heredoc_redirect":
            return tuple(self._heredoc(node, depth)), []
        operator = next((c.type for c in node.children if not c.is_named), "")
        targets = [c for c in node.named_children if c.type != "file_descriptor"]
        if not targets:
            if operator not in ("<&-", ">&-"):
                raise _Unread("it has half a redirection")
            return (), []
        self._check_apart(targets)
        found = tuple(Redirect(operator, word) for word in self._words(targets[0], depth))
        if len(found) != 1:
            raise _Unread("it has a redirection to several files")
        return found, [word for each in targets[1:] for word in self._words(each, depth)]

    def _check_apart(self, words: list[Node]) -> None:
        """Words that touch are one word for a shell."""
        for one, next_one in pairwise(words):
            if one.end_byte == next_one.start_byte:
                raise _Unread("it has a word that the grammar takes for two")

    def _heredoc(self, node: Node, depth: int) -> Iterator[Redirect]:
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        body = next((c for c in node.children if c.type == "heredoc_body"), None)
        if start is None:
            raise _Unread("it has half a here-document")
        text = "" if body is None else self._text(body)
        # Expanded by the shell: with a variable or a backslash in it, its text is not known.
        quoted = any(mark in self._text(start) for mark in "'\"\\")
        if not quoted and any(mark in text for mark in "$`\\"):
            text = HOLE
        yield Redirect("<<", Word(text))
        for child in node.named_children:
            if child.type in ("file_redirect", "herestring_redirect"):
                yield from self._redirect(child, depth)

    # -- words --------------------------------------------------------------------------------

    def _words(self, node: Node, depth: int, *, splits: bool = True) -> list[Word]:
        """The words that one of the source becomes; more than one if it has braces."""
        return words_of(self._chars(node, depth + 1), splits=splits)

    def _chars(self, node: Node, depth: int) -> Chars:
        if depth > _DEPTH_MAX:
            raise _Unread("it is nested too deeply")
        kind = node.type
        if kind in ("word", "number", "variable_name", "test_operator", "regex", "extglob_pattern"):
            if node.named_child_count:
                self._inside(node, depth)
                return [(HOLE, True)]
            return read_string(self._text(node))
        if kind == "raw_string":
            return [(char, True) for char in self._text(node)[1:-1]]
        if kind == "ansi_c_string":
            return [(char, True) for char in unescape_ansi_c(self._text(node)[2:-1])]
        if kind in ("string", "translated_string"):
            return self._string(node, depth)
        if kind == "concatenation":
            return self._joined(node, depth)
        if kind == "brace_expression":
            return read_string(self._text(node))
        if kind in ("simple_expansion", "expansion", "arithmetic_expansion", *_SUBSTITUTIONS):
            self._inside(node, depth)
            return [(HOLE, False)]
        if kind in ("special_variable_name", "array"):
            self._inside(node, depth)
            return [(HOLE, False)]
        if not node.is_named:  # `[` and `]`, `=` and `==`: words that are also operators
            return read_string(self._text(node))
        raise _Unread(f"it has a {kind.replace('_', ' ')} among its words")

    def _joined(self, node: Node, depth: int) -> Chars:
        found: Chars = []
        at = node.start_byte
        for child in node.children:
            if child.start_byte != at:
                raise _Unread("it has a word with a gap")
            found.extend(self._chars(child, depth + 1))
            at = child.end_byte
        return found

    def _string(self, node: Node, depth: int) -> Chars:
        """In double quotes. Blanks between expansions belong to no node; they are text too."""
        if node.type == "translated_string":
            node = next(c for c in node.children if c.type == "string")
        found: Chars = []
        at = node.start_byte + 1
        for child in node.named_children:
            found.extend(self._quoted(at, child.start_byte))
            if child.type == "string_content":
                found.extend(self._quoted(child.start_byte, child.end_byte))
            else:
                self._inside(child, depth)
                found.append((HOLE, True))
            at = child.end_byte
        found.extend(self._quoted(at, node.end_byte - 1))
        return found

    def _quoted(self, begin: int, end: int) -> Chars:
        text = self._source[begin:end].decode()
        if "$" in text.replace("\\$", ""):
            raise_if_expands(text)
        return [(char, True) for char in re.sub(r'\\([$`"\\])|\\\n', r"\1", text)]

    def _inside(self, node: Node, depth: int) -> None:
        """Commands in substitutions, wherever they are inside of this part."""
        if depth > _DEPTH_MAX:
            raise _Unread("it is nested too deeply")
        if node.type in _SUBSTITUTIONS:
            self._substitutes = True
            self._check_backquotes(node)
            self.block(node, depth + 1)
            return
        for child in node.named_children:
            if child.type in (*_SUBSTITUTIONS, *_EXPRESSIONS, "heredoc_body"):
                self._inside(child, depth + 1)
            elif child.type == "variable_assignment":
                self._assigned(child, depth + 1)
            elif child.type.endswith("_redirect"):  # `$(< file)`
                for _ in self._redirect(child, depth + 1):
                    pass
            else:
                raise _Unread(f"it has a {child.type.replace('_', ' ')} in an expression")

    def _check_backquotes(self, node: Node) -> None:
        """In backquotes a backslash is taken away before the text is read; the grammar keeps it."""
        text = self._text(node)
        if text.startswith("`") and "\\" in text:
            raise _Unread("it has a backslash in backquotes")

    # -- what belongs to no node ----------------------------------------------------------------

    def check_gaps(self, root: Node) -> None:
        """Between the leaves of the tree is nothing but blanks: else the grammar has left something
        out that a shell may read."""
        at = 0
        for begin, end in _leaves(root):
            if begin > at and not _GAP.fullmatch(self._source, at, begin):
                raise _Unread("it has text that the grammar leaves out")
            at = max(at, end)
        if not _GAP.fullmatch(self._source, at):
            raise _Unread("it has text that the grammar leaves out")

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()


def raise_if_expands(text: str) -> None:
    """A dollar sign that the grammar takes as text, where a shell may expand it."""
    if re.search(r"(?<!\\)(?:\\\\)*\$[\w({@*#?$!'\"-]", text):
        raise _Unread("it has an expansion that the grammar leaves out")


def _leaves(node: Node) -> Iterator[tuple[int, int]]:
    """Where the text of the leaves begins and ends, in order. Strings are taken whole."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.child_count == 0 or found.type in ("string", "heredoc_body"):
            yield found.start_byte, found.end_byte
        else:
            waiting.extend(reversed(found.children))
