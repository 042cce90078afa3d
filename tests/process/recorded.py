"""Sessions with a history by several actors, and their files, for tests of the verbs that read
it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.host.near_end import NearEnd
from holdfast.host.session_store import SessionStore
from holdfast.model.ids import SessionId
from process.commanding import PATIENCE_S, Hold, keepers

ALREADY_UP = 75


def add_actor(hold: Hold, name: str, *rights: str) -> str:
    """An actor that may do this everywhere; gives its id."""
    hold.ok("actor", "add", name)
    hold.ok("grant", name, *(rights or ("execute",)), "--all")
    shown = hold.json("actor", "show", name)
    actor: str = shown.get("actor", shown)["id"]
    return actor


def log(hold: Hold, session: str, *words: str) -> list[dict[str, Any]]:
    """Every entry, as JSON."""
    return [json.loads(line) for line in hold.ok("log", session, *words, "--json").splitlines()]


def journal_of(hold: Hold, session: str) -> Path:
    """The directory with its journal."""
    return Path(hold.home) / "sessions" / session


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("journal-*.seg"))


def copied(directory: Path, to: Path) -> Path:
    """A copy of a journal alone, as a backup has it: no key, no spec."""
    to.mkdir()
    for path in directory.glob("journal*"):
        shutil.copy(path, to)
    return to


def verified(hold: Hold, directory: Path, session: str, *words: str) -> tuple[int, dict[str, Any]]:
    """`hold verify` without a host: exit status and JSON."""
    done = hold("verify", "--dir", str(directory), "--session", session, "--json", *words)
    assert done.stderr == "", done
    return done.returncode, json.loads(done.stdout)


def damage(hold: Hold, session: str, kind: str) -> None:
    """Have the next daemon find the journal broken in this way, a kind of DiscontinuityCause."""
    directory = journal_of(hold, session)
    hold.ok("daemon", "restart")  # everything is sealed and on disk
    if kind == "corruption":
        (segment,) = segments(directory)
        altered = bytearray(segment.read_bytes())
        altered[200] ^= 1
        segment.write_bytes(altered)
        return
    assert kind == "conflicting_chains"
    before = {path: path.read_bytes() for path in directory.glob("journal*")}
    hold.ok("resize", session, "101x31")
    hold.ok("daemon", "restart")
    head = (directory / "journal.head").read_bytes()
    for path, data in before.items():  # put back, as from a backup; then things go another way
        path.unlink()  # the daemon that lives still writes to the other one
        path.write_bytes(data)
    hold.ok("daemon", "restart")
    for size in ("90x30", "91x30", "92x30", "93x30", "94x30"):
        hold.ok("resize", session, size)
    hold.ok("daemon", "restart")
    (directory / "journal.head").write_bytes(head)


def reboots(hold: Hold) -> None:
    """The machine loses power and comes back: every process is gone, and so is what a tmpfs had;
    what is on disk was written in another boot. Its host is up again."""
    host_dies(hold)
    for spec in (Path(hold.home) / "sessions").glob("*/spec.json"):
        stored = json.loads(spec.read_text())
        spec.write_text(json.dumps({**stored, "boot_id": "the-boot-before"}))
    shutil.rmtree(Path(hold.home) / "run")
    assert hold("up", "-d").returncode in (0, ALREADY_UP)  # a client may have started it


def near_end(hold: Hold, session: str, is_so: Callable[[NearEnd], bool]) -> NearEnd:
    """What is on disk for the death of the host, once it is so."""
    store, id = SessionStore(hold.home), SessionId(session)
    deadline = time.monotonic() + PATIENCE_S
    while (near := store.near_end(id)) is None or not is_so(near):
        assert time.monotonic() < deadline, near
        time.sleep(0.05)
    return near


def host_dies(hold: Hold) -> None:
    """Everything is killed at once, as by a power loss: no process can write another word."""
    host = hold.json("doctor")
    daemon, supervisor = host["daemon_pid"], host["supervisor_pid"]
    os.kill(daemon, signal.SIGSTOP)  # it must not notice that the others are gone
    for pid in (supervisor, daemon, *keepers(hold.home)):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            assert select.select([handle], [], [], 20)[0]
        finally:
            os.close(handle)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{hold.home}/run/hold.sock")
