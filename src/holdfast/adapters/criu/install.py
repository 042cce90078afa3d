"""Getting a CRIU that works on this machine: `python -m holdfast.adapters.criu.install`.

A distribution's own CRIU is often older than its kernel. A newer one is taken from a newer suite
of the same distribution, through the machine's own package configuration (so its mirrors, keys
and proxies apply and no host is named here), and unpacked beside the system with its own loader
and libraries.

Deliberately does not install anything into the system, run maintainer scripts, or touch the
system's package lists. Everything it makes is below one cache directory, which may be deleted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.adapters.criu.find import Criu, find, prefix

DEFAULT_SUITE = "sid"
COMMAND_TIMEOUT_S = 300.0  # one apt or dpkg call; a slow mirror is waited for, a dead one is not
_NOT_NEEDED = ("debconf", "perl", "python", "cdebconf")  # used by maintainer scripts and `crit`
_RELATIONS = (
    "no-recommends",
    "no-suggests",
    "no-conflicts",
    "no-breaks",
    "no-replaces",
    "no-enhances",
)


class UnavailableError(Exception):
    """Why this machine gets no CRIU from here; a plain sentence."""


def install(suite: str) -> str:
    """Make a working CRIU present; gives a sentence saying what there is now."""
    if os.geteuid() != 0:
        raise UnavailableError("CRIU needs root, and this is not root")
    found = find()
    if isinstance(found, Criu):
        return f"CRIU {found.version()} works already ({found.program})"
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise UnavailableError(f"{found}; and there is no {tool} to get another with")
    target = prefix()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=target.parent) as work:
        unpacked = _fetch(Path(work), suite)
        if target.exists():
            shutil.rmtree(target)
        unpacked.rename(target)
    find.cache_clear()
    now = find()
    if isinstance(now, Criu):
        return f"CRIU {now.version()} unpacked into {target}"
    raise UnavailableError(f"CRIU was unpacked into {target}, but: {now}")


def _fetch(work: Path, suite: str) -> Path:
    """Download CRIU and what it needs from `suite`; gives the directory it is unpacked in."""
    parts = work / "sources.d"
    packages = work / "packages"
    unpacked = work / "prefix"
    lists, archives = work / "lists/partial", work / "cache/archives/partial"
    for made in (parts, packages, unpacked, lists, archives):
        made.mkdir(parents=True)
    name, text = source_entry(_apt_files(), _codename(), suite)
    (parts / name).write_text(text)
    options = _apt_options(work, parts)
    _run(["apt-get", *options, "update"], "the package lists cannot be fetched")
    wanted = _closure(options)
    # apt lowers its own user for downloads; as root in a private directory it need not.
    _run(
        ["apt-get", *options, "download", *(f"{package}/{suite}" for package in wanted)],
        "the packages cannot be fetched",
        cwd=packages,
    )
    for archive in sorted(packages.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(unpacked)], f"{archive.name} is damaged")
    return unpacked


def _apt_options(work: Path, parts: Path) -> list[str]:
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(parts),
        "Dir::State::lists": str(work / "lists"),
        "Dir::Cache": str(work / "cache"),
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
        # An index that cannot be fetched is a failure here, not a warning.
        "APT::Update::Error-Mode": "any",
    }
    return ["-q", *(f"-o{key}={value}" for key, value in settings.items())]


def _closure(options: list[str]) -> list[str]:
    only_depends = [f"--{relation}" for relation in _RELATIONS]
    listing = _run(
        ["apt-cache", *options, "depends", "--recurse", *only_depends, "criu"],
        "the suite has no criu",
    )
    # Names at the start of a line are packages; indented ones are relations between them.
    names = {line for line in listing.splitlines() if line and line[0].isalnum()}
    return sorted(name for name in names if ":" not in name and not name.startswith(_NOT_NEEDED))


def _run(command: list[str], problem: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{problem}: no end after {COMMAND_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UnavailableError(f"{problem}: {last}")
    return done.stdout


def _codename() -> str:
    facts = _os_release()
    if facts.get("ID") != "debian":
        name = facts.get("PRETTY_NAME", "this system")
        raise UnavailableError(f"a newer CRIU is fetched on Debian only, and this is {name}")
    return facts.get("VERSION_CODENAME", "")


def _os_release() -> dict[str, str]:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {key: value.strip().strip('"') for key, value in pairs}


def _apt_files() -> dict[str, str]:
    """The machine's package sources: file name to text."""
    found = [Path("/etc/apt/sources.list")]
    found += sorted(Path("/etc/apt/sources.list.d").glob("*"))
    files = {}
    for path in found:
        if path.suffix in (".list", ".sources"):
            try:
                files[path.name] = path.read_text()
            except OSError:
                continue
    return files


def source_entry(files: dict[str, str], codename: str, suite: str) -> tuple[str, str]:
    """The machine's own entry for its release, with the suite replaced: file name and text."""
    for name, text in files.items():
        for stanza in text.split("\n\n") if name.endswith(".sources") else ():
            rewritten = _rewritten_stanza(stanza, codename, suite)
            if rewritten:
                return "newer.sources", rewritten
        for line in text.splitlines() if name.endswith(".list") else ():
            rewritten = _rewritten_line(line, codename, suite)
            if rewritten:
                return "newer.list", rewritten
    raise UnavailableError(f"no package source of this machine carries {codename or 'its release'}")


def _rewritten_stanza(stanza: str, codename: str, suite: str) -> str | None:
    lines = [line for line in stanza.splitlines() if line.strip() and not line.startswith("#")]
    fields = {line.split(":", 1)[0].lower(): line for line in lines if not line[0].isspace()}
    value = {key: line.partition(":")[2].split() for key, line in fields.items()}
    usable = codename in value.get("suites", ()) and "main" in value.get("components", ())
    if not usable or "deb" not in value.get("types", ()) or value.get("enabled") == ["no"]:
        return None
    replaced = {"suites": f"Suites: {suite}"}
    replaced |= {"components": "Components: main", "types": "Types: deb"}
    return "\n".join(replaced.get(line.split(":", 1)[0].lower(), line) for line in lines) + "\n"


def _rewritten_line(line: str, codename: str, suite: str) -> str | None:
    words = line.split("#")[0].split()
    if words[:1] != ["deb"] or codename not in words or "main" not in words:
        return None
    at = words.index(codename)
    return " ".join([*words[:at], suite, "main"]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast.adapters.criu.install")
    parser.add_argument("--suite", default=DEFAULT_SUITE, help="suite to take CRIU from")
    parser.add_argument("--require", action="store_true", help="fail when there is no CRIU after")
    options = parser.parse_args(arguments)
    try:
        print(install(options.suite))
    except (UnavailableError, OSError) as why:
        print(f"no CRIU: {why}")
        print("without it sessions cannot be checkpointed, moved or forked; all else works")
        return 1 if options.require else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
