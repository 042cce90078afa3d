"""Whether a command destroys: removes data, overwrites devices, stops machines, rewrites history.

Recognized by a command's name and arguments; which files are meant does not matter here. No such
list is complete: a rule that must not miss anything names what is allowed instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from holdfast.model.command_line import HOLE

# SQL and key-value stores, anywhere in an argument or an input: clients accept it in many ways.
_STATEMENTS = re.compile(
    r"\b(?:(?P<drop>drop\s+(?:table|database|schema|index|view|user|role|keyspace|tablespace|owned)"
    r"|dropdatabase|db\.\w+\.drop\()|(?P<truncate>truncate\s+(?:table\s+)?[\w\"`.\[]+\s*(?:;|$|cascade))"
    r"|(?P<delete>delete\s+from\s)|(?P<flush>flushall|flushdb))",
    re.IGNORECASE,
)
# In text for a program that is no shell, where commands look like any other words.
_WORDS = re.compile(
    r"\brm\s+-|\brmtree\b|\bos\.(?:remove|unlink|rmdir)\b|\bunlink\s*\(|\bmkfs\b|\bdd\s.*\bof="
    r"|\bshutdown\b|\breboot\b|\bpoweroff\b|\brmSync\b|\bFileUtils\.rm"
    r"|push\s.*(?:--force|-f\b)|reset\s+--hard",
    re.IGNORECASE,
)
# What a statement in some text destroys, if a database reads it.
OF_STATEMENTS = frozenset(("drop-table", "delete-rows", "empty-store"))
_DEVICE = re.compile(
    r"/dev/(?:sd|nvme|vd|xvd|hd|mmcblk|md|dm-|mapper/|loop|disk/|mem$|kmem$|ram|zd)"
)


# Commands that destroy or not by their first words.
_BY_VERB = frozenset(
    (
        "git", "systemctl", "kubectl", "oc", "helm", "docker", "podman", "terraform", "tofu", "aws",
        "gcloud", "az", "zfs", "zpool", "hold",
    )
)  # fmt: skip


def in_text(text: str) -> Iterator[str]:
    """Of text that a program reads, of which only the words are known."""
    yield from _statements(text)
    if _WORDS.search(text):
        yield "words"


def _statements(text: str) -> Iterator[str]:
    for found in _STATEMENTS.finditer(text):
        yield "drop-table" if found["drop"] else "delete-rows" if found["delete"] else "empty-store"


def is_device(path: str) -> bool:
    """Whether to write there is to overwrite a disk."""
    return _DEVICE.match(path) is not None


def of_command(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Categories of what this command destroys; none: it does not, as far as is known."""
    for each in arguments:
        yield from _statements(each)
    if name.startswith(("mkfs", "mke2fs")):
        yield "disk"
    rule = _RULES.get(name)
    if rule is None:
        return
    if name in _BY_VERB and any(each.startswith(HOLE) for each in arguments[:2]):
        yield "unknown-verb"  # `git $x`: it may be any of them
    found = rule if isinstance(rule, str) else rule(list(arguments))
    if found:
        yield found


def _has(arguments: Sequence[str], letters: str, *words: str) -> bool:
    """Whether one of these short options, alone or among others, or long ones, is there."""
    for each in arguments:
        if each == "--":
            return False
        if each.startswith("--"):
            # Long options may be shortened.
            if any(word.startswith(each.partition("=")[0]) and len(each) > 3 for word in words):
                return True
        elif each.startswith("-") and any(letter in each[1:] for letter in letters):
            return True
    return False


def _rm(arguments: list[str]) -> str:
    if any(each in ("--help", "--version") for each in arguments):
        return ""
    return "rm-recursive" if _has(arguments, "rR", "--recursive") else "rm"


def _dd(arguments: list[str]) -> str:
    return "disk" if any(each.startswith("of=") for each in arguments) else ""


def _git(arguments: list[str]) -> str:
    words = list(arguments)
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1]
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "push" and (
        _has(rest, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune")
        or any(each.startswith(("+", ":")) for each in rest)
    ):
        return "force-push"
    if verb == "reset" and "--hard" in rest:
        return "discard-work"
    if verb == "clean" and _has(rest, "f", "--force"):
        return "discard-work"
    if verb in ("checkout", "restore") and (
        _has(rest, "f", "--force") or any(each in (".", "--", ":/") for each in rest)
    ):
        return "discard-work"
    if verb == "branch" and _has(rest, "D"):
        return "discard-work"
    if verb == "stash" and rest[:1] in (["drop"], ["clear"]):
        return "discard-work"
    if verb in ("filter-branch", "filter-repo") or (verb == "reflog" and "expire" in rest):
        return "rewrite-history"
    return "rm" if verb == "rm" else ""


def _systemctl(arguments: list[str]) -> str:
    stops = {"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "rescue", "emergency"}
    ends = {"stop", "disable", "mask", "kill", "isolate"}
    words = {each for each in arguments if not each.startswith("-")}
    return "shutdown" if words & stops else "stop-service" if words & ends else ""


def _any(words: str, category: str) -> Callable[[list[str]], str]:
    """This category if one of the words is an argument."""
    known = frozenset(words.split())
    return lambda arguments: category if known.intersection(arguments) else ""


def _cloud(arguments: list[str]) -> str:
    bad = re.compile(r"(?:delete|terminate|remove|destroy|purge)(?:-|$)|rb$|rm$")
    return "delete-resource" if any(bad.match(each) for each in arguments) else ""


def _kill(arguments: list[str]) -> str:
    return "kill-all" if "-1" in arguments[1:] or arguments == ["-1"] else ""


def _find(arguments: list[str]) -> str:
    return "rm" if "-delete" in arguments else ""


def _rsync(arguments: list[str]) -> str:
    return "rm" if any(re.match(r"--del|--remove-source", each) for each in arguments) else ""


def _recursive(arguments: list[str]) -> str:
    return "permissions" if _has(arguments, "R", "--recursive") else ""


def _mv(arguments: list[str]) -> str:
    return "rm" if arguments and arguments[-1] == "/dev/null" else ""


def _init(arguments: list[str]) -> str:
    return "shutdown" if {"0", "6"}.intersection(arguments) else ""


def _firewall(arguments: list[str]) -> str:
    return "firewall" if _has(arguments, "FX", "--flush") or "flush" in arguments else ""


def _history(arguments: list[str]) -> str:
    return "history" if _has(arguments, "cdw") else ""


_RULES: dict[str, str | Callable[[list[str]], str]] = {
    "rm": _rm, "unlink": "rm", "shred": "rm", "srm": "rm", "wipe": "rm", "rmdir": "rm",
    "trash": "rm", "truncate": "truncate", "dd": _dd, "find": _find, "rsync": _rsync, "mv": _mv,
    "wipefs": "disk", "blkdiscard": "disk", "mkswap": "disk", "fdisk": "disk", "sfdisk": "disk",
    "cfdisk": "disk", "gdisk": "disk", "sgdisk": "disk", "parted": "disk", "badblocks": "disk",
    "lvremove": "disk", "vgremove": "disk", "pvremove": "disk", "pvcreate": "disk",
    "zpool": _any("destroy labelclear", "disk"), "zfs": _any("destroy rollback", "disk"),
    "btrfs": _any("delete", "disk"), "cryptsetup": _any("luksFormat erase luksErase", "disk"),
    "mdadm": _any("--zero-superblock --stop", "disk"), "format": "disk", "diskutil": "disk",
    "shutdown": "shutdown", "reboot": "shutdown", "halt": "shutdown", "poweroff": "shutdown",
    "init": _init, "telinit": _init, "systemctl": _systemctl,
    "service": _any("stop", "stop-service"), "kexec": "shutdown",
    "kill": _kill, "killall": "kill-all", "killall5": "kill-all", "pkill": "kill-all",
    "git": _git, "chmod": _recursive, "chown": _recursive, "chgrp": _recursive,
    "kubectl": _any("delete drain", "delete-resource"), "oc": _any("delete", "delete-resource"),
    "helm": _any("uninstall delete", "delete-resource"),
    "docker": _any("rm rmi prune kill", "delete-resource"),
    "podman": _any("rm rmi prune kill", "delete-resource"),
    "terraform": _any("destroy -destroy", "delete-resource"),
    "tofu": _any("destroy -destroy", "delete-resource"),
    "pulumi": _any("destroy", "delete-resource"), "vagrant": _any("destroy", "delete-resource"),
    "aws": _cloud, "gcloud": _cloud, "az": _cloud, "gsutil": _cloud, "doctl": _cloud,
    "s3cmd": _cloud,
    "gh": _any("delete", "delete-resource"), "dropdb": "drop-table", "dropuser": "drop-table",
    "crontab": _any("-r", "rm"), "userdel": "accounts", "groupdel": "accounts",
    "deluser": "accounts", "iptables": _firewall, "ip6tables": _firewall, "nft": _firewall,
    "apt": _any("remove purge autoremove", "packages"),
    "apt-get": _any("remove purge autoremove", "packages"),
    "dpkg": _any("-r -P --remove --purge", "packages"), "yum": _any("remove erase", "packages"),
    "dnf": _any("remove erase", "packages"), "pacman": lambda a: "packages" if _has(a, "R") else "",
    "npm": _any("unpublish", "delete-resource"), "history": _history,
    "hold": _any("end seize revoke prune", "sessions"), "tmux": _any("kill-server", "sessions"),
}  # fmt: skip
