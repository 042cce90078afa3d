"""A structured action: what it is for, the command, and what its actor expects it to do.

`DECLARATION` is the one declaration of its form: `Action.parsed` checks by it, and the published
JSON schema (docs/action-schema.json) is made from it. A form that does not fit is refused whole,
naming the field and what to do about it, before anything runs.

Not here: carrying an action out (host/gate), and comparing what it did with what it declared
(core/gate).
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import (
    ACTION_COMMAND_MAX_CHARS,
    ACTION_EXPECTED_MAX,
    ACTION_INTENT_MAX_CHARS,
    ACTION_PATH_MAX_CHARS,
    ACTION_RETRIES_MAX,
    ACTION_RETRY_MAX_S,
    ACTION_WORDS_MAX,
    EXEC_KEY_MAX_CHARS,
)
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Expected(Record):
    """What an action is declared to do. Everything else that is found is an undeclared effect."""

    status: int = 0  # exit status
    # files it creates, changes or deletes; each must be there afterwards or have been touched.
    # Globs: `*` and `?` within one name, `**` for any names; relative to where the command runs
    files: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()  # TCP ports that a process of the session listens on afterwards
    processes: tuple[str, ...] = ()  # names of processes that it leaves running
    env: tuple[str, ...] = ()  # names of what it changes in the shell: variables, aliases, ...
    cwd: str = ""  # where the shell is afterwards, absolute; empty: where it was


class ActionRetry(Record):
    """Whether a refusal that may be over soon is tried again: a turn that is held, a busy shell.
    Never after the shell may have read the line."""

    times: int = 0  # how often, besides the first time
    backoff_s: float = 1.0  # before the second time; doubled each time after that


class Action(Record):
    """One act of an actor in a session's shell."""

    intent: str  # what it is for, in a sentence
    line: str  # the command, as one line for the shell
    words: tuple[str, ...]  # or as words, which are quoted for it
    expect: Expected  # what it is expected to do
    key: str  # names it: the same key again, by the same actor, runs nothing
    retry: ActionRetry  # when it is refused
    cwd: str  # run it in this directory, below the session's shell; empty: in that shell

    @classmethod
    def parsed(cls, form: object) -> Action:
        """The action of a JSON form. Raises InvalidArgument: which field, and what to do."""
        DECLARATION.check(form, "action")
        assert isinstance(form, dict)
        command = form["command"]
        expect, retry = form.get("expect", {}), form.get("retry", {})
        return cls(
            form["intent"].strip(),
            command if isinstance(command, str) else "",
            () if isinstance(command, str) else tuple(command),
            Expected.unpack(expect),
            form.get("key", ""),
            ActionRetry(retry.get("times", 0), float(retry.get("backoff_s", 1.0))),
            form.get("cwd", ""),
        )

    def form(self) -> dict[str, Any]:
        """The JSON form, with what is not the default."""
        form: dict[str, Any] = {
            "intent": self.intent,
            "command": list(self.words) if self.words else self.line,
        }
        plain = Expected(), ActionRetry()
        for name, value, default in zip(
            ("expect", "retry"), (self.expect, self.retry), plain, strict=True
        ):
            said = {
                key: each
                for key, each in value.pack().items()
                if each != getattr(default, key) and each != []
            }
            if said:
                form[name] = said
        return form | {name: text for name, text in self._texts() if text}

    def _texts(self) -> tuple[tuple[str, str], ...]:
        return ("key", self.key), ("cwd", self.cwd)


class DeclaredAction(Record):
    """An action on its way to the shell: what the journal says of it before anything runs."""

    id: str  # 16 hexadecimal digits
    declared: str  # its JSON form
    retried: tuple[str, ...]  # codes of the refusals after which it was tried again


# -- the declaration --------------------------------------------------------------------------


class Text:
    """A string."""

    def __init__(self, meaning: str, most: int, *, blank: bool = False, absolute: bool = False):
        self.meaning, self._most, self._blank, self._absolute = meaning, most, blank, absolute

    def schema(self) -> dict[str, Any]:
        pattern = {} if self._blank else {"pattern": r"\S"}
        if self._absolute:
            pattern = {"pattern": "^/"}
        return _described({"type": "string", "maxLength": self._most, **pattern}, self.meaning)

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, str):
            raise _wrong(where, f"must be a string, not {_kind(value)}", self.meaning)
        if len(value) > self._most:
            raise _wrong(where, f"has {len(value)} characters, at most {self._most} are taken")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise _wrong(where, "is not Unicode text", "leave out the lone surrogate")
        if not self._blank and not value.strip():
            raise _wrong(where, "is blank", f"say {self.meaning}")
        if self._absolute and not value.startswith("/"):
            raise _wrong(where, f"is not an absolute path: {value[:80]!r}", "begin it with /")


class WholeNumber:
    """A whole number."""

    def __init__(self, meaning: str, low: int, high: int):
        self.meaning, self._low, self._high = meaning, low, high

    def schema(self) -> dict[str, Any]:
        limits = {"minimum": self._low, "maximum": self._high}
        return _described({"type": "integer", **limits}, self.meaning)

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(where, f"must be a whole number, not {_kind(value)}", self.meaning)
        if not self._low <= value <= self._high:
            raise _wrong(where, f"is {value}", f"give a number from {self._low} to {self._high}")


class Seconds:
    """A time."""

    def __init__(self, meaning: str, high: float):
        self.meaning, self._high = meaning, high

    def schema(self) -> dict[str, Any]:
        return _described({"type": "number", "minimum": 0, "maximum": self._high}, self.meaning)

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(where, f"must be a number of seconds, not {_kind(value)}", self.meaning)
        if not 0 <= value <= self._high:  # also NaN
            raise _wrong(where, f"is {value}", f"give seconds from 0 to {self._high:g}")


class ListOf:
    """A list of one kind."""

    def __init__(self, meaning: str, item: Text | WholeNumber, most: int, least: int = 0):
        self.meaning, self._item, self._most, self._least = meaning, item, most, least

    def schema(self) -> dict[str, Any]:
        limits = {"minItems": self._least} if self._least else {}
        whole = {"type": "array", "items": self._item.schema(), **limits, "maxItems": self._most}
        return _described(whole, self.meaning)

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, list):
            raise _wrong(where, f"must be a list, not {_kind(value)}", f"such as [{_SUCH}]")
        if len(value) < self._least:
            raise _wrong(where, "is empty", f"give {self.meaning}")
        if len(value) > self._most:
            raise _wrong(where, f"has {len(value)} entries, at most {self._most} are taken")
        for index, each in enumerate(value):
            self._item.check(each, f"{where}[{index}]")


class Either:
    """A string, or a list of strings."""

    def __init__(self, meaning: str, text: Text, words: ListOf):
        self.meaning, self._text, self._words = meaning, text, words

    def schema(self) -> dict[str, Any]:
        return {
            "description": self.meaning,
            "oneOf": [self._text.schema(), self._words.schema()],
        }

    def check(self, value: object, where: str) -> None:
        if isinstance(value, list):
            self._words.check(value, where)
            if not value[0].strip():
                raise _wrong(f"{where}[0]", "is blank", "name the program there")
        elif isinstance(value, str):
            self._text.check(value, where)
        else:
            what = f"must be a string or a list of strings, not {_kind(value)}"
            raise _wrong(where, what, self.meaning)


class Fields:
    """An object with these fields and no others."""

    def __init__(self, meaning: str, required: Sequence[str], **fields: Any):
        self.meaning, self._required, self._fields = meaning, required, fields

    def schema(self) -> dict[str, Any]:
        whole: dict[str, Any] = {
            "type": "object",
            "properties": {name: kind.schema() for name, kind in self._fields.items()},
            "additionalProperties": False,
        }
        if self._required:
            whole["required"] = list(self._required)
        return _described(whole, self.meaning)

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(where, f"must be an object, not {_kind(value)}", self.meaning)
        for name in value:
            if name not in self._fields:
                raise _wrong(
                    f"{where}.{str(name)[:40]}",
                    "is not a field of it",
                    f"{where} takes {', '.join(self._fields)}",
                )
        for name in self._required:
            if name not in value:
                raise _wrong(f"{where}.{name}", "is missing", f"say {self._fields[name].meaning}")
        for name, kind in self._fields.items():
            if name in value:
                kind.check(value[name], f"{where}.{name}")


_SUCH = '"one", "two"'
_GLOB = Text("a path or glob", ACTION_PATH_MAX_CHARS)
_NAME = Text("a name", ACTION_PATH_MAX_CHARS)
_WORD = Text(
    "one word of the command, as the program gets it", ACTION_COMMAND_MAX_CHARS, blank=True
)

DECLARATION = Fields(
    "a structured action for `hold submit`",
    ("intent", "command"),
    intent=Text("what the action is for, in a sentence", ACTION_INTENT_MAX_CHARS),
    command=Either(
        "the command: a line for the session's shell, or a list of words that are quoted for it",
        Text("a line for the session's shell", ACTION_COMMAND_MAX_CHARS),
        ListOf("the words of the command", _WORD, ACTION_WORDS_MAX, least=1),
    ),
    expect=Fields(
        "what the command is expected to do; anything else that it does counts as undeclared",
        (),
        status=WholeNumber("exit status; 0 unless said", 0, 255),
        files=ListOf(
            "files that it creates, changes or deletes: globs, relative to where it runs; "
            "** stands for any directories",
            _GLOB,
            ACTION_EXPECTED_MAX,
        ),
        ports=ListOf(
            "TCP ports on which a process of the session listens afterwards",
            WholeNumber("a port", 1, 65535),
            ACTION_EXPECTED_MAX,
        ),
        processes=ListOf("names of processes that it leaves running", _NAME, ACTION_EXPECTED_MAX),
        env=ListOf(
            "names of what it changes in the shell: variables, aliases, functions, options, traps",
            _NAME,
            ACTION_EXPECTED_MAX,
        ),
        cwd=Text(
            "directory in which the shell is afterwards, absolute",
            ACTION_PATH_MAX_CHARS,
            absolute=True,
        ),
    ),
    key=Text(
        "names this act: the same key again runs nothing and gives the trace of the first time",
        EXEC_KEY_MAX_CHARS,
        blank=True,
    ),
    retry=Fields(
        "whether to try again when the turn is held or the shell is busy; never after the shell "
        "may have read the line",
        (),
        times=WholeNumber("how often, besides the first time", 0, ACTION_RETRIES_MAX),
        backoff_s=Seconds(
            "before the second time, then doubled; 1 unless said", ACTION_RETRY_MAX_S
        ),
    ),
    cwd=Text(
        "run it in this directory, absolute, below the session's shell, which stays where it is",
        ACTION_PATH_MAX_CHARS,
        absolute=True,
    ),
)


def json_schema() -> dict[str, Any]:
    """What docs/action-schema.json holds."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "holdfast action",
        **DECLARATION.schema(),
    }


def _described(schema: dict[str, Any], meaning: str) -> dict[str, Any]:
    return {"description": meaning, **schema}


def _wrong(where: str, what: str, hint: str = "") -> InvalidArgument:
    return InvalidArgument(
        f"{where} {what}; nothing was run",
        hint=hint if hint else "shorten it",
    )


def _kind(value: object) -> str:
    """In the words of JSON."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")
