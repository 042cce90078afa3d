"""libghostty-vt's C interface, loaded fast.

`pyghostty` brings the library and its declarations, and parses the declarations (80 kB of C) each
time it is imported: 0.4 s, which every daemon start and so every hot upgrade would wait for. cffi
can write the parsed form down once; reading that takes 30 ms. So the parsed form is kept beside
our compiled programs, made when it is not there, and when it cannot be kept the slow way is taken.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import _cffi_backend

from holdfast.adapters import compiled

# cffi passes no union by value. GhosttyPoint is larger than the registers, so a struct of the same
# layout is passed the same way.
_POINT_TWIN = """
typedef struct { uint16_t x; uint32_t y; uint64_t _pad; } GhosttyPointValueS;
typedef struct { GhosttyPointTag tag; GhosttyPointValueS value; } GhosttyPointS;
"""
_MODULE = "holdfast_ghostty_abi"


def kept_file() -> Path:
    """Where the parsed declarations are kept; the name changes with what they depend on. (By size
    and time: asking for package versions would take as long as all the rest.)"""
    declarations = os.stat(os.path.join(_package(), "_cdef.py"))
    depends = f"{declarations.st_size:x}-{declarations.st_mtime_ns:x}-{_cffi_backend.__version__}"
    return compiled.directory() / f"{_MODULE}-{depends}.py"


def build() -> Path | str:
    """Write the parsed declarations down, or say why not."""
    target = kept_file()
    if target.exists():
        return target
    from cffi import FFI
    from pyghostty._cdef import CDEF

    maker = FFI()
    maker.cdef(CDEF + _POINT_TWIN)
    maker.set_source(_MODULE, None)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            made = os.path.join(work, "made.py")
            maker.emit_python_code(made)
            os.chmod(made, 0o644)
            os.rename(made, target)
    except OSError as error:
        return f"{target.parent} cannot be written: {error.strerror}"
    return target


def _package() -> str:
    found = importlib.util.find_spec("pyghostty")
    if found is None or not found.submodule_search_locations:
        raise ImportError("pyghostty is not installed")
    return found.submodule_search_locations[0]


def _load() -> tuple[Any, Any]:
    kept = build()
    if isinstance(kept, str):
        from pyghostty._ffi import ffi, lib

        return ffi, lib
    loader = importlib.machinery.SourceFileLoader(_MODULE, str(kept))
    spec = importlib.util.spec_from_loader(_MODULE, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.ffi, module.ffi.dlopen(os.path.join(_package(), "_lib", "libghostty-vt.so"))


ffi, lib = _load()


class LibraryError(RuntimeError):
    """The library refused a call."""


def check(result: int, what: str) -> None:
    if result:
        raise LibraryError(f"{what} failed: {result}")


def with_sizes(ctype: str) -> Any:
    """A new struct whose `size` fields, its own and those of the structs in it, are filled in: the
    library tells versions of a struct apart by them."""
    made = ffi.new(ctype + "*")
    _fill_sizes(made)
    return made


def _fill_sizes(pointer: Any) -> None:
    kind = ffi.typeof(pointer).item
    for name, field in kind.fields:
        if name == "size":
            pointer.size = ffi.sizeof(kind)
        elif field.type.kind == "struct":
            _fill_sizes(ffi.addressof(pointer[0], name))


def taking_point(name: str, signature: str) -> Any:
    """The function `name`, called with the twin struct in place of the union."""
    return ffi.cast(signature, ffi.addressof(lib, name))
