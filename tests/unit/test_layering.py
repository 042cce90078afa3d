"""Who may import whom. The table is the one of ARCHITECTURE.md; the imports are read, not run."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "holdfast"

# Package -> the packages of ours it may import besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "core": {"model"},
    "wire": {"model"},
    "journal": {"model"},
    "ports": {"model"},
    "adapters": {"model", "ports", "wire", "journal"},
    "dial": {"model", "wire"},
    "keeper": set(),
    "host": {"model", "core", "wire", "journal", "ports", "adapters", "keeper", "dial"},
    "relay": {"model", "wire", "ports", "adapters"},
    "sdk": {"model", "wire", "dial", "journal"},  # journal: to read records that were asked for
    "ssh": {"model", "wire", "sdk"},
    "mcp": {"model", "sdk"},
    "cli": {"model", "wire", "journal", "sdk", "ssh", "mcp"},  # ssh: only which keys are let in
    "native": set(),  # C sources only
    "shells": set(),  # shell scripts only
}

# What a machine without clock, randomness, I/O or logging may still use. A list of what is allowed:
# a list of what is forbidden would always be one module short.
_PURE = {
    "__future__", "abc", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib",
    "heapq", "itertools", "math", "operator", "re", "string", "struct", "types", "typing",
}  # fmt: skip
MAY_IMPORT_OUTSIDE: dict[str, set[str]] = {
    "core": _PURE,
    # cryptography, hmac: the channel's arithmetic; keys and random bytes come in as arguments.
    # binascii: base64 of grants and links.
    "wire": _PURE | {"binascii", "cryptography", "hmac", "msgpack"},
    "journal": _PURE | {"json", "msgpack", "zlib"},
    # `signal` for the names of signals, `sys` to find the module of a record's annotations,
    # `ipaddress` for what is one, `marshal` and `zlib` for what is kept packed in memory.
    "model": _PURE | {"ipaddress", "marshal", "signal", "sys", "zlib"},
    "ports": _PURE,
    "keeper": set(sys.stdlib_module_names),
    # It faces the network: what it is made of stays a short list.
    "relay": set(sys.stdlib_module_names) | {"aiohttp", "cryptography", "uvloop"},
    # cryptography: to prove which actor a program is; imported only by who acts as another.
    # uvloop: for the thread that speaks to relays; imported with it.
    # re2: expressions of callers in linear time; imported to wait for a text.
    "sdk": set(sys.stdlib_module_names) | {"cryptography", "re2", "uvloop"},
    # picows: the WebSocket client; imported by who dials. cryptography: to prove who dials.
    "dial": set(sys.stdlib_module_names) | {"cryptography", "picows"},
    # It faces the network too.
    "ssh": set(sys.stdlib_module_names) | {"asyncssh"},
    # The SDK of the protocol, and what it is made of.
    "mcp": set(sys.stdlib_module_names)
    | {
        "anyio",
        "mcp",
        "mcp_types",
        "pydantic",
        "typing_extensions",
        "uvicorn",
    },
    # segno: draws QR codes; imported when one is drawn.
    "cli": set(sys.stdlib_module_names) | {"segno"},
}

# Module -> what it imports against the table, and why that is right.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "holdfast.cli.attach.predicted_typing": {
        "holdfast.adapters.ghostty.cursor_line": "what is drawn over a terminal must be taken away "
        "again, so the client of a far host has an emulator beside its terminal; loaded only then",
    },
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = ("holdfast", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module a file names in an import, wherever in the file: in a function, under
    TYPE_CHECKING, or to be run. Only the text of a type is no import, and it cannot stand alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import; write the whole name"
            yield from _imported_from(node)


def _imported_from(node: ast.ImportFrom) -> Iterator[str]:
    """`from holdfast import wire` names the package wire; `from holdfast import __version__`
    names nothing of ours."""
    assert node.module is not None
    if node.module != "holdfast":
        yield node.module
        return
    for alias in node.names:
        if (SOURCE / alias.name).is_dir():
            yield f"holdfast.{alias.name}"


def package_of(module: str) -> str:
    """`holdfast.core.session` is of package core; modules of others have no package of ours."""
    words = module.split(".")
    return words[1] if words[0] == "holdfast" and len(words) > 1 else ""


def violations(path: Path) -> list[str]:
    module = name_of(path)
    package = package_of(module)
    found = []
    for imported in imports(path):
        if imported in EXCEPTIONS.get(module, {}):
            continue
        theirs = package_of(imported)
        if theirs:
            allowed = theirs == package or theirs in MAY_IMPORT[package]
        elif package in MAY_IMPORT_OUTSIDE:
            allowed = imported.split(".")[0] in MAY_IMPORT_OUTSIDE[package]
        else:
            allowed = True
        if not allowed:
            found.append(f"{module} imports {imported}")
    return found


# Modules that no other module of ours imports, and who uses them. A name that ends with a dot
# stands for all modules below it.
IMPORTED_BY_NONE = {
    "holdfast.adapters.criu.install": "run by scripts/setup and by people",
    "holdfast.adapters.memory.": "the twins of real adapters: contract tests and the simulation",
    "holdfast.adapters.nats.server": "a cluster for tests and scripts/cluster",
    "holdfast.adapters.seccomp.answerer": "a program, started by daemons",
    "holdfast.cli.verbs.": "imported by name, when the verb is called",
    "holdfast.keeper.supervisor": "a program, started by the command and by daemons",
}


def modules_named(path: Path) -> Iterator[str]:
    """What a file imports: the module of `from x import y`, and `x.y`, which may be a module
    too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_is_imported_by_another_or_says_who_uses_it() -> None:
    imported = {name for path in modules() for name in modules_named(path) if name != name_of(path)}
    unused = {
        name_of(path)
        for path in modules()
        if path.name not in ("__init__.py", "__main__.py") and name_of(path) not in imported
    }
    excused = {
        name: [module for module in unused if module == name or module.startswith(name)]
        for name in IMPORTED_BY_NONE
    }
    assert unused == {module for found in excused.values() for module in found}
    assert all(excused.values()), "an exception is no longer needed"


# Public class names that are used twice, and why.
TWICE = {
    **dict.fromkeys(
        ("Hold", "Session", "Running", "Turn", "PortForward"), "the SDK, async and blocking"
    ),
    "Verdict": "what the reading of a journal comes to, and what a policy answers",
    "TurnLost": "the SDK: the error of a refused write, and the event that tells of the loss",
}


def test_one_name_is_one_class() -> None:
    found = Counter(
        node.name
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name: count for name, count in found.items() if count > 1} == dict.fromkeys(TWICE, 2)


def test_every_package_is_in_the_table() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_the_table_allows(package: str) -> None:
    found = [line for path in sorted((SOURCE / package).rglob("*.py")) for line in violations(path)]
    assert not found, "\n".join(found)


def test_the_top_of_the_package_imports_nothing_when_it_is_imported() -> None:
    """Every command pays for it. What is public there is loaded by name."""
    script = "import sys, holdfast; print([name for name in sys.modules if 'holdfast.' in name])"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.strip() == "[]"
    for node in ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")).body:
        assert not isinstance(node, ast.Import | ast.ImportFrom)


def test_no_exception_outlives_its_reason() -> None:
    for module, excused in EXCEPTIONS.items():
        path = SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")
        assert set(excused) <= set(imports(path)), f"{module} no longer needs its exception"


def test_a_forbidden_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "core").mkdir()
    bad = tmp_path / "core" / "bad.py"
    bad.write_text("def f() -> None:\n    import time\n    from holdfast.wire import frames\n")
    assert violations(bad) == [
        "holdfast.core.bad imports time",
        "holdfast.core.bad imports holdfast.wire",
    ]
