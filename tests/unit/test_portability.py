"""Nothing in the repository depends on the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Hosts a file may name in an address: formats we refer to, and names that are nobody's.
HOSTS_NAMED = {
    *("keepachangelog.com", "semver.org"),  # what the changelog follows
    "www.w3.org",  # names of formats
    "json-schema.org",  # the name of the language that docs/action-schema.json is written in
    "www.cedarpolicy.com",  # the language of policies, for its readers
    *("localhost", "127.0.0.1"),
}
_RESERVED = re.compile(r"(^|\.)(example|invalid|test|localhost)(\.(com|org|net))?$|^192\.168\.")
_ADDRESS = re.compile(r"\b(?:https?|ftp|git|ssh)://(?:[^\s/@]*@)?([A-Za-z0-9.-]+)")
_REGISTRY = re.compile(
    r"\b(?:[a-z0-9-]+\.)*(?:pypi|pythonhosted|debian|ubuntu|npmjs|docker)\.(?:org|com|net|io)\b"
)
_MACHINE = re.compile(r"(?<![\w.}])/w[o]rk/")  # written so that it does not find itself
# Tests print made-up addresses; that they name no registry is checked all the same.
_MADE_UP = ("tests/",)


@cache
def texts() -> dict[str, str]:
    """Every text file of the repository, by its path in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # an unpacked archive has no git: look at what we would have listed
        names = [
            str(path.relative_to(ROOT))
            for top in ("src", "tests", "docs", "scripts", "bench")
            for path in (ROOT / top).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
    found = {}
    for name in names:
        try:
            found[name] = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a picture; or removed and not yet committed
    return found


def found_in(pattern: re.Pattern[str], *, but: tuple[str, ...] = ()) -> list[str]:
    return [
        f"{name}: {match.group(0)}"
        for name, text in texts().items()
        if not name.startswith(but)
        for match in pattern.finditer(text)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert found_in(_MACHINE) == []


def test_no_file_names_a_package_registry() -> None:
    assert found_in(_REGISTRY) == []


def test_every_address_is_of_a_host_we_mean_to_name() -> None:
    strange = [
        f"{name}: {host}"
        for name, text in texts().items()
        if not name.startswith(_MADE_UP)
        for host in _ADDRESS.findall(text)
        if host.rstrip(".") not in HOSTS_NAMED and not _RESERVED.search(host.rstrip("."))
    ]
    assert strange == []


def test_every_script_that_is_called_can_be_executed() -> None:
    for name in (
        *("scripts/setup", "scripts/web-build", "scripts/web-lock", "scripts/diagrams"),
        ".ci/run",
    ):
        assert (ROOT / name).stat().st_mode & 0o111, f"{name} is not executable"
