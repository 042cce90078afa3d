"""Frozen values declared by annotation, and checked when unpacked.

`class Size(Record): cols: int; rows: int` gives slots, a keyword constructor, equality, hash,
repr, and `pack`/`unpack` to plain msgpack-able data. It does the part of `dataclasses` and of a
schema library that this project needs, because both cost a short-lived command more than all of
its own work: on the machine this was written on, `dataclasses` adds 20 ms to every `hold` verb
and `msgspec` 60 ms, this module under 1 ms.

What a field may be: int, float, str, bytes, bool, None, a str subclass (ids, enums), another
Record, `X | Y`, `tuple[X, ...]`, `dict[str, X]`. Anything else is refused at class creation.
"""

from __future__ import annotations

import sys
from types import GenericAlias, UnionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


class Malformed(ValueError):
    """Data from outside does not have the declared shape; says where and what was expected."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
class _RecordMeta(type):
    """Moves annotated defaults aside, so that the fields can be slots, and writes the constructor.

    The constructor is generated, as `namedtuple` does it: one made of loops takes five times as
    long, and a key press makes half a dozen records."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _RecordMeta:
        own: list[str] = [
            field
            for field, kind in namespace.get("__annotations__", {}).items()
            if not str(kind).startswith("ClassVar")
        ]
        defaults = {field: namespace.pop(field) for field in own if field in namespace}
        namespace["__slots__"] = tuple(own)
        cls = super().__new__(mcs, name, bases, namespace, **options)
        inherited = [b for b in cls.__mro__[1:] if isinstance(b, _RecordMeta)]
        cls._fields = (*(inherited[0]._fields if inherited else ()), *own)
        cls._defaults = {**(inherited[0]._defaults if inherited else {}), **defaults}
        cls._packer = cls._unpacker = None
        if cls._fields:
            cls.__init__ = _first_use(cls)  # type: ignore[misc]
        return cls

    _fields: tuple[str, ...]
    _defaults: dict[str, Any]
    _packer: Callable[[Any], Any] | None
    _unpacker: Callable[[Any, str], Any] | None


def _first_use(cls: _RecordMeta) -> Callable[..., None]:
    """A constructor that writes the real one when it is first called: a command uses few of the
    classes it imports."""

    def construct(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = made = _constructor(cls)  # type: ignore[misc]
        made(self, *values, **named)

    return construct


def _constructor(cls: _RecordMeta) -> Callable[..., None]:
    """`def __init__(self, a, b=default): ...`, setting each slot by its own descriptor."""
    parameters = [
        f"{field}=_default_{field}" if field in cls._defaults else field for field in cls._fields
    ]
    if any(field in cls._defaults for field in cls._fields):
        first = next(i for i, field in enumerate(cls._fields) if field in cls._defaults)
        # A subclass may add a field without a default after one with: then it must be named.
        if any(field not in cls._defaults for field in cls._fields[first:]):
            parameters.insert(first, "*")
    body = "; ".join(f"_set_{field}(self, {field})" for field in cls._fields)
    scope: dict[str, Any] = {f"_default_{name}": value for name, value in cls._defaults.items()}
    scope |= _setters(cls)
    exec(f"def __init__(self, {', '.join(parameters)}): {body}", scope)
    made: Callable[..., None] = scope["__init__"]
    return made


def _setters(cls: _RecordMeta) -> dict[str, Callable[[Any, Any], None]]:
    return {f"_set_{field}": getattr(cls, field).__set__ for field in cls._fields}


class Record(metaclass=_RecordMeta):
    """Base of every value of the model and of every message on the wire."""

    if TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None: ...

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field) == getattr(other, field) for field in type(self)._fields
        )

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field) for field in type(self)._fields)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self)._fields)
        return f"{type(self).__name__}({shown})"

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # frozen values need no copy

    def replace(self, **changes: Any) -> Self:
        """The same value with some fields changed."""
        values = {field: getattr(self, field) for field in type(self)._fields}
        return type(self)(**{**values, **changes})

    def pack(self) -> dict[str, Any]:
        """Plain data: dicts, lists, strings, numbers, bytes. Every field is present."""
        packer = type(self)._packer or _generate(type(self))[0]
        packed: dict[str, Any] = packer(self)
        return packed

    @classmethod
    def unpack(cls, data: Any, where: str = "") -> Self:
        """The value that `pack` gave. Unknown fields are ignored: newer peers may send more."""
        unpacker = cls._unpacker or _generate(cls)[1]
        made: Self = unpacker(data, where or cls.__name__)
        return made


_PLAIN = {int, float, str, bytes, bool, type(None)}


def _pack(value: Any) -> Any:
    if isinstance(value, Record):
        return value.pack()
    if isinstance(value, tuple):
        return [_pack(item) for item in value]
    if isinstance(value, dict):
        return {key: _pack(item) for key, item in value.items()}
    if isinstance(value, str) and type(value) is not str:
        return str.__str__(value)
    return value


def _generate(cls: type[Record]) -> tuple[Callable[[Any], Any], Callable[[Any, str], Any]]:
    """Write this class's `pack` and `unpack` out, field by field, when first needed. A value of
    exactly the declared plain type passes with one comparison; all else goes to its reader."""
    scope: dict[str, Any] = {"_cls": cls, "_Malformed": Malformed, "_pack": _pack}
    scope |= {"_made": object.__new__, **_setters(cls)}
    reads, writes = [], []
    for field, (exact, reader) in _readers_of(cls).items():
        scope[f"_exact_{field}"], scope[f"_read_{field}"] = exact, reader
        default, skip = "_cls", ""
        if field in cls._defaults:
            scope[f"_default_{field}"] = cls._defaults[field]
            default, skip = f"_default_{field}", f"{field} is not _default_{field} and "
        reads.append(f"    {field} = _data.get({field!r}, {default})")
        if not skip:
            reads.append(f"    if {field} is _cls: raise _Malformed(_missing(_where, {field!r}))")
        reads.append(f"    if {skip}type({field}) is not _exact_{field}:")
        reads.append(f"        {field} = _read_{field}({field}, _where + {'.' + field!r})")
        value = f"self.{field}" if exact in _PLAIN else f"_pack(self.{field})"
        writes.append(f"{field!r}: {value}")
    scope["_missing"] = lambda where, field: f"{where}: field {field!r} is missing"
    source = [
        "def pack(self):",
        f"    return {{{', '.join(writes)}}}",
        "def unpack(_data, _where):",
        "    if type(_data) is not dict:",
        "        raise _Malformed(f'{_where}: expected a map, got {type(_data).__name__}')",
        *reads,
        "    self = _made(_cls)",
        *(f"    _set_{field}(self, {field})" for field in cls._fields),
        "    return self",
    ]
    exec("\n".join(source), scope)
    cls._packer, cls._unpacker = scope["pack"], scope["unpack"]
    return scope["pack"], scope["unpack"]


def _readers_of(cls: type[Record]) -> dict[str, tuple[type, Callable[[Any, str], Any]]]:
    """For each field its plain type, if it has one, and the reader for anything else."""
    readers = {}
    for owner in reversed(cls.__mro__):
        if not isinstance(owner, _RecordMeta):
            continue
        scope = vars(sys.modules[owner.__module__])
        for field, kind in vars(owner).get("__annotations__", {}).items():
            if field in cls._fields:
                known = eval(kind, scope) if isinstance(kind, str) else kind
                readers[field] = (known if known in _PLAIN else object, _reader(known))
    return readers


def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """A function that checks one value against a declared type and returns it."""
    if isinstance(kind, UnionType):
        return _union_reader([_reader(arm) for arm in kind.__args__])
    if isinstance(kind, GenericAlias):
        if kind.__origin__ is tuple and kind.__args__[1:] == (Ellipsis,):
            return _tuple_reader(_reader(kind.__args__[0]))
        if kind.__origin__ is dict and kind.__args__[0] is str:
            return _dict_reader(_reader(kind.__args__[1]))
    if isinstance(kind, _RecordMeta):
        return kind.unpack  # type: ignore[attr-defined,no-any-return]
    if isinstance(kind, type) and issubclass(kind, str) and kind is not str:
        return _text_reader(kind)
    if kind in (int, float, str, bytes, bool) or kind in (None, type(None)):
        return _scalar_reader(type(None) if kind is None else kind)
    raise TypeError(f"a record field cannot be {kind!r}")


def _scalar_reader(kind: type) -> Callable[[Any, str], Any]:
    allowed = (int, float) if kind is float else (kind,)

    def read(value: Any, where: str) -> Any:
        if type(value) not in allowed:
            raise Malformed(f"{where}: expected {kind.__name__}, got {type(value).__name__}")
        return value

    return read


def _text_reader(kind: type) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, str):
            raise Malformed(f"{where}: expected {kind.__name__}, got {type(value).__name__}")
        try:
            return kind(value)
        except ValueError as error:
            raise Malformed(f"{where}: {error}") from error

    return read


def _tuple_reader(item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple):
            raise Malformed(f"{where}: expected a list, got {type(value).__name__}")
        return tuple(item(element, f"{where}[{index}]") for index, element in enumerate(value))

    return read


def _dict_reader(item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise Malformed(f"{where}: expected a map with text keys")
        return {key: item(element, f"{where}.{key}") for key, element in value.items()}

    return read


def _union_reader(arms: list[Callable[[Any, str], Any]]) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        refusals = []
        for arm in arms:
            try:
                return arm(value, where)
            except Malformed as refusal:
                refusals.append(str(refusal))
        raise Malformed(refusals[0] if len(refusals) == 1 else "; or ".join(refusals))

    return read
