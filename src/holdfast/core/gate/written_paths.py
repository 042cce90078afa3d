"""Which paths a command writes, makes or removes, as its arguments show.

Only commands that are listed here are known to write; what another program writes is not in its
arguments. At level contained the exec gate judges the files that are really opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from holdfast.model.command_line import Word
from holdfast.model.record import Record

# Writing there keeps nothing.
SINKS = frozenset(
    (
        "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr",
        "/dev/ptmx",
    )
)  # fmt: skip
_SINK_DIRECTORIES = ("/dev/fd/", "/dev/pts/")


class Writing(Record):
    """What one command writes."""

    paths: tuple[Word, ...] = ()
    here: bool = False  # it writes into the current directory


NOTHING = Writing()


def is_sink(path: str) -> bool:
    return path in SINKS or path.startswith(_SINK_DIRECTORIES)


def written(name: str, arguments: Sequence[Word]) -> Writing:
    """By this command; not by commands that it runs, and not by redirections."""
    rule = _RULES.get(name)
    return NOTHING if rule is None else rule(tuple(arguments))


def _operands(arguments: Sequence[Word], values: str = "") -> list[Word]:
    """What is no option. `values`: options whose value is the next word."""
    with_value, at = values.split(), 0
    found: list[Word] = []
    while at < len(arguments):
        text = arguments[at].text
        if text == "--":
            found.extend(arguments[at + 1 :])
            break
        if text in with_value:
            at += 2
            continue
        if not text.startswith("-") or text == "-":
            found.append(arguments[at])
        at += 1
    return found


def _value(arguments: Sequence[Word], *options: str) -> list[Word]:
    """Values of these options: `-o X`, `-oX`, `--output X`, `--output=X`."""
    found = []
    for at, word in enumerate(arguments):
        for option in options:
            if word.text == option and at + 1 < len(arguments):
                found.append(arguments[at + 1])
            elif option.startswith("--") and word.text.startswith(f"{option}="):
                found.append(word.replace(text=word.text[len(option) + 1 :], tilde=False))
            elif not option.startswith("--") and re.match(f"{re.escape(option)}[^-]", word.text):
                found.append(word.replace(text=word.text[len(option) :], tilde=False))
    return found


def _all(arguments: tuple[Word, ...]) -> Writing:
    return Writing(tuple(_operands(arguments)))


def _all_with_values(arguments: tuple[Word, ...]) -> Writing:
    return Writing(tuple(_operands(arguments, "-s -r --size --reference -m --mode -d -t --date")))


def _all_but_first(arguments: tuple[Word, ...]) -> Writing:
    return Writing(tuple(_operands(arguments, "--reference")[1:]))


def _last(arguments: tuple[Word, ...]) -> Writing:
    into = _value(arguments, "-t", "--target-directory")
    operands = _operands(arguments, "-t --target-directory -m -o -g -S --suffix")
    return Writing(tuple(into or operands[-1:]))


def _move(arguments: tuple[Word, ...]) -> Writing:
    """What is moved is gone from where it was."""
    into = _value(arguments, "-t", "--target-directory")
    return Writing((*into, *_operands(arguments, "-t --target-directory -S --suffix")))


def _link(arguments: tuple[Word, ...]) -> Writing:
    operands = _operands(arguments, "-t --target-directory -S --suffix")
    into = _value(arguments, "-t", "--target-directory")
    if into:
        return Writing(tuple(into))
    return (
        Writing(tuple(operands[-1:]), here=True) if len(operands) < 2 else Writing((operands[-1],))
    )


def _dd(arguments: tuple[Word, ...]) -> Writing:
    return Writing(
        tuple(each.replace(text=each.text[3:]) for each in arguments if each.text.startswith("of="))
    )


def _sed(arguments: tuple[Word, ...]) -> Writing:
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", each.text) for each in arguments)
    return (
        Writing(tuple(_operands(arguments, "-e -f --expression --file"))) if in_place else NOTHING
    )


def _curl(arguments: tuple[Word, ...]) -> Writing:
    here = any(
        re.fullmatch(r"-[a-zA-Z]*[OJ][a-zA-Z]*|--remote-name(?:-all)?", each.text)
        for each in arguments
    )
    named = (
        "-o",
        "--output",
        "--output-dir",
        "-D",
        "--dump-header",
        "-c",
        "--cookie-jar",
        "--trace",
    )
    return Writing(tuple(_value(arguments, *named)), here=here)


def _wget(arguments: tuple[Word, ...]) -> Writing:
    named = ("-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a")
    found = _value(arguments, *named)
    return Writing(tuple(found), here=not found)


def _tar(arguments: tuple[Word, ...]) -> Writing:
    first = arguments[0].text if arguments else ""
    letters = first if not first.startswith("--") else ""
    words = {each.text for each in arguments}
    reads = "x" in letters or bool(words & {"--extract", "--get"})
    makes = any(letter in letters for letter in "cru") or bool(words & {"--create", "--append"})
    if reads:
        into = _value(arguments, "-C", "--directory")
        return Writing(tuple(into), here=not into)
    if makes:
        named = _value(arguments, "-f", "--file")
        if not named and "f" in letters and len(arguments) > 1:
            named = [arguments[1]]
        return Writing(tuple(named))
    return NOTHING


def _unzip(arguments: tuple[Word, ...]) -> Writing:
    into = _value(arguments, "-d")
    return Writing(tuple(into), here=not into)


def _git(arguments: tuple[Word, ...]) -> Writing:
    into = _value(arguments, "-C", "--git-dir", "--work-tree")
    operands = _operands(arguments, "-C -c --git-dir --work-tree -b --branch --depth -o")
    verb = operands[0].text if operands else ""
    if verb in ("clone", "init", "worktree") and len(operands) > 1:
        return Writing((*into, *operands[1:][-1:]), here=not into)
    if verb in ("", "status", "log", "diff", "show", "blame", "grep", "ls-files", "rev-parse"):
        return NOTHING
    return Writing(tuple(into), here=not into)


def _compiler(arguments: tuple[Word, ...]) -> Writing:
    named = _value(arguments, "-o")
    return Writing(tuple(named), here=not named)


def _output_option(arguments: tuple[Word, ...]) -> Writing:
    return Writing(tuple(_value(arguments, "-o", "--output")))


def _find(arguments: tuple[Word, ...]) -> Writing:
    words = [each.text for each in arguments]
    named = _value(arguments, "-fprint", "-fprintf", "-fls")
    if "-delete" not in words and not named:
        return NOTHING
    starts: list[Word] = []
    if "-delete" in words:
        for word in arguments:
            if word.text.startswith(("-", "(", "!")):
                break
            starts.append(word)
    return Writing((*starts, *named), here="-delete" in words and not starts)


def _make(arguments: tuple[Word, ...]) -> Writing:
    into = _value(arguments, "-C", "--directory")
    return Writing(tuple(into), here=not into)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _here(_: tuple[Word, ...]) -> Writing:
    return Writing(here=True)


_RULES: dict[str, Callable[[tuple[Word, ...]], Writing]] = {
    **dict.fromkeys(
        _words(
            "tee rmdir rm unlink srm vim vi nvim nano emacs ed ex pico joe micro wipefs mkswap "
            "gzip gunzip bzip2 bunzip2 xz unxz zstd patch"
        ),
        _all,
    ),
    **dict.fromkeys(("touch", "mkdir", "truncate", "shred", "mkfifo", "mknod"), _all_with_values),
    **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl", "chattr", "setfattr"), _all_but_first),
    **dict.fromkeys(("cp", "install", "rsync", "scp"), _last),
    "mv": _move,
    "rename": _all_but_first,
    "ln": _link,
    "link": _last,
    "dd": _dd,
    "sed": _sed,
    "perl": _sed,
    "curl": _curl,
    "wget": _wget,
    "tar": _tar,
    "bsdtar": _tar,
    "unzip": _unzip,
    "git": _git,
    "find": _find,
    "make": _make,
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc"), _compiler),
    **dict.fromkeys(("sort", "openssl", "objcopy", "xxd", "ssh-keygen"), _output_option),
    **dict.fromkeys(("split", "csplit", "cpio"), _here),
}  # fmt: skip
