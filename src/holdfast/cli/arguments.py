"""What every verb has: option parsing with examples in the help and errors as our own one line, and
`--json`."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from holdfast.model.size import Size

Options = argparse.Namespace  # what a verb's `run` gets

EXIT_USAGE = 64


class Parser(argparse.ArgumentParser):
    """argparse with our error line and our exit status."""

    runs_command = False  # its last words are a command, which may have options of its own

    def error(self, message: str) -> NoReturn:
        hint = f"see `{self.prog} --help`"
        if self.runs_command and message.startswith("unrecognized arguments"):
            hint = f"if that is the command's own, put `--` before the command; {hint}"
        print(f"{self.prog}: {message} (usage); {hint}", file=sys.stderr)
        sys.exit(EXIT_USAGE)

    def add_flag(self, *names: str, help: str) -> None:
        self.add_argument(*names, action="store_true", help=help)

    def add_value(self, name: str, metavar: str, help: str, **more: Any) -> None:
        """An option with a value, or a word: text, unless `more` has another type."""
        self.add_argument(name, metavar=metavar, help=help, **{"type": utf8, **more})

    def add_values(self, name: str, metavar: str, help: str, **more: Any) -> None:
        """An option that may be repeated."""
        self.add_value(name, metavar, help, action="append", default=[], **more)

    def add_session(self, *, reads: bool = False, optional: bool = False) -> None:
        """`reads`: the verb changes nothing, so a part of a name or id is enough."""
        part = " or its beginning, or 6 characters of its id" if reads else " or whole id"
        often = {"nargs": "?"} if optional else {}
        self.add_value("session", "NAME", f"a session's name{part}", **often)

    def add_session_or_all(self) -> None:
        what = "a session's name, id or start of its id; default: all"
        self.add_value("session", "NAME", what, nargs="?", default="")

    def add_json(self) -> None:
        self.add_flag("--json", help="print JSON with stable fields")


class MixedParser(Parser):
    """For verbs with optional words: options may be anywhere between them, where argparse would
    take the words before the first option for all there are."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        return self.parse_intermixed_args(args, namespace)


def verb_parser(
    verb: str, summary: str, examples: str = "", kind: type[Parser] = Parser, **options: str
) -> Parser:
    """A parser for `hold VERB`. `examples` are shown as they are."""
    return kind(
        prog=f"hold {verb}",
        description=summary,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **options,  # type: ignore[arg-type]
    )


def print_json(value: object) -> None:
    """The answer to `--json`."""
    import json

    print(json.dumps(value, indent=1))


def utf8(text: str) -> str:
    """Text that can travel: a shell may hand over any bytes, our messages carry UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"not UTF-8: {ascii(text)[:80]}") from None
    return text


def count(text: str) -> int:
    """A number of things: 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"not a number: {text[:40]!r}")
    if len(text) > 18:
        raise argparse.ArgumentTypeError(f"out of range: {text[:40]!r}")
    return int(text)


def rate(text: str) -> float:
    """A number of things in a second."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number: {text[:40]!r}") from None
    if not 0 <= value < 1e18:  # no nan, and nothing that messages cannot carry
        raise argparse.ArgumentTypeError(f"out of range: {text[:40]!r}")
    return value


def size(text: str) -> Size:
    """A terminal size, COLSxROWS."""
    from holdfast.model.errors import InvalidArgument
    from holdfast.model.size import Size

    try:
        return Size.parse(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None


def seconds(text: str) -> float:
    """A duration option: seconds, or with s, m, h, d after it."""
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}.get(text[-1:], 0.0)
    number = text[:-1] if factor else text
    try:
        value = float(number) * (factor or 1.0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a duration: {text!r}") from None
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"out of range: {text!r}")
    return value
