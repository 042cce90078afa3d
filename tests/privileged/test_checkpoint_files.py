"""The files of a session in its checkpoints: captured while it stands still, put back when it is
restored, with what is there instead kept beside."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from holdfast.host.continuity.workspace_files import CAPTURED, FILES, compare
from holdfast.model.captured_files import CapturedFile, FileCapture, FileDifference, RestoreFiles
from holdfast.model.home import Home
from privileged.checkpointing import (
    entries,
    put_to_sleep,
    restored,
    said,
    skip_unless_possible,
    started,
    until_screen,
)
from process.commanding import Hold
from process.recorded import host_dies

# At each Enter the next step; every step is seen on the screen.
STEPS = """
import sqlite3, sys
base = sqlite3.connect({path!r}, isolation_level=None)
base.execute("pragma journal_mode=wal"); base.execute("pragma wal_autocheckpoint=0")
base.execute("create table t (n)"); base.execute("insert into t values (1)")
base.execute("begin immediate"); base.execute("insert into t values (2)")
print("in the middle", flush=True)
sys.stdin.readline()
base.execute("commit")
base.execute("begin"); base.executemany("insert into t values (?)", [(9,)] * 5000)
base.execute("commit"); base.execute("begin immediate")
base.execute("insert into t values (10)")
print("ran on", base.execute("select count(*) from t").fetchall(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible()


@pytest.fixture
def hold(_possible: None) -> Iterator[Hold]:
    hold = Hold()
    try:
        hold.ok("up", "-d")
        yield hold
    finally:
        hold.close()


def lost(hold: Hold) -> None:
    host_dies(hold)
    hold.ok("up", "-d")


@pytest.mark.requirement("M2")
def test_a_database_in_a_transaction_comes_back_from_a_session_that_ran_on(
    hold: Hold, tmp_path: Path
) -> None:
    path = tmp_path / "base.sqlite"
    started(hold, "db", sys.executable, "-u", "-c", STEPS.format(path=str(path)), prompt=False)
    until_screen(hold, "db", "in the middle")
    made = hold.json("checkpoint", "db")
    assert made["files"] == 3 and made["left_out"] == []
    sizes = {each.name: each.stat().st_size for each in tmp_path.iterdir()}
    hold.ok("keys", "db", "Enter")
    until_screen(hold, "db", "ran on")
    lost(hold)
    back = restored(hold, "db")
    present = {each.name: each.stat().st_size for each in tmp_path.iterdir()}
    assert {name: present[name] for name in sizes} == sizes
    kept = [Path(each) for each in back["restore"]["files"]["kept_in"]]
    assert kept and all(each.exists() and made["id"] in each.name for each in kept)
    (entry,) = entries(hold, "db", "restored")
    assert entry["body"]["files_put_back"] == len(kept)
    with sqlite3.connect(path, timeout=0) as other, pytest.raises(sqlite3.OperationalError):
        other.execute("insert into t values (1)")  # its lock is held
    hold.ok("keys", "db", "Enter")
    until_screen(hold, "db", r"ran on \[\(5003,\)\]")
    hold.ok("end", "db")
    with sqlite3.connect(path) as base:
        assert base.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert base.execute("select count(*) from t where n < 9").fetchall() == [(2,)]


@pytest.mark.requirement("M2")
def test_a_declared_directory_goes_back_with_its_session(hold: Hold, tmp_path: Path) -> None:
    for name in ("edited", "removed"):
        (tmp_path / name).write_text(f"{name} before\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "link").symlink_to("../edited")
    words = ("run", "-d", "--name", "tree", "--level", "movable", "--capture", str(tmp_path))
    hold.ok(*words, "--", "bash", "--norc")
    hold.ok("wait", "tree", "--for", "prompt", "--timeout", "20")
    planned = hold.json("can-move", "tree")["capture"]
    assert planned["directories"] == [str(tmp_path)] and planned["files"] == 3
    made = hold.json("checkpoint", "tree")
    assert (made["files"], made["file_bytes"]) == (3, 29)
    said(
        hold,
        "tree",
        f"cd {tmp_path}; echo after >edited; rm -r removed deep; mkdir more; echo x >more/made",
    )
    lost(hold)
    back = restored(hold, "tree")
    report = back["restore"]["files"]
    assert report["put_back"] == 4 and report["left"] == []
    assert (tmp_path / "edited").read_text() == "edited before\n"
    assert (tmp_path / "removed").read_text() == "removed before\n"
    assert os.readlink(tmp_path / "deep" / "link") == "../edited"
    assert not (tmp_path / "more" / "made").exists()
    (kept,) = map(Path, report["kept_in"])
    assert (kept / "edited").read_text() == "after\n"
    assert (kept / "more" / "made").read_text() == "x\n"


@pytest.mark.requirement("M2")
def test_what_others_changed_meanwhile_is_not_overwritten_unasked(
    hold: Hold, tmp_path: Path
) -> None:
    for name in ("open", "beside"):
        (tmp_path / name).write_text("then\n")
    words = ("run", "-d", "--name", "asked", "--level", "movable", "--workspace", str(tmp_path))
    hold.ok(*words, "--", "bash", "--norc")
    hold.ok("wait", "asked", "--for", "prompt", "--timeout", "20")
    said(hold, "asked", f"exec 7<>{tmp_path}/open")
    put_to_sleep(hold, "asked")
    (tmp_path / "beside").write_text("a person's\n")
    (tmp_path / "open").write_text("a person's too\n")
    why = hold.fails("files_changed", "restore", "asked")
    assert f"{tmp_path}/open" in why and "--files restore" in why
    why = hold.fails("files_changed", "restore", "asked", "--files", "keep")
    assert "another size" in why
    assert (tmp_path / "open").read_text() == "a person's too\n"
    assert hold.json("show", "asked")["state"] == "asleep"
    (tmp_path / "open").write_text("then\n")
    back = restored(hold, "asked")
    assert back["restore"]["files"]["left"] == [str(tmp_path / "beside")]
    assert (tmp_path / "beside").read_text() == "a person's\n"
    put_to_sleep(hold, "asked")
    (tmp_path / "open").write_text("a person's third\n")
    back = hold.json("restore", "asked", "--files", "restore")
    assert (tmp_path / "open").read_text() == "then\n"
    (kept,) = map(Path, back["restore"]["files"]["kept_in"])
    assert (kept / "open").read_text() == "a person's third\n"


@pytest.mark.requirement("M2")
def test_a_restore_that_fails_puts_no_file_back(hold: Hold, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("then\n")
    started(hold, "fails")
    said(hold, "fails", f"exec 7<>{tmp_path}/file 8<{tmp_path}/file")
    (tmp_path / "read").write_text("as it was\n")
    (tmp_path / "gone").write_text("gone later\n")
    said(hold, "fails", f"exec 6<>{tmp_path}/gone 9<{tmp_path}/read; X=kept")
    made = hold.json("checkpoint", "fails")
    said(hold, "fails", f"echo later >&7; rm {tmp_path}/gone")
    lost(hold)
    (tmp_path / "read").write_text("of another size\n")  # CRIU refuses that
    hold.fails("restore_failed", "restore", made["id"])
    assert (tmp_path / "file").read_text() == "later\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "read"]
    (tmp_path / "read").write_text("as it was\n")
    restored(hold, "fails")
    assert (tmp_path / "file").read_text() == "then\n"
    assert (tmp_path / "gone").read_text() == "gone later\n"
    assert said(hold, "fails", "echo $X") == "kept"


@pytest.mark.requirement("M2")
def test_what_is_too_large_is_named_before_and_after(hold: Hold, tmp_path: Path) -> None:
    Path(hold.home, "config.toml").write_text("capture_max_bytes = 1048576\n")
    hold.ok("daemon", "restart")
    words = ("run", "-d", "--name", "large", "--level", "movable", "--capture", str(tmp_path))
    hold.ok(*words, "--", "bash", "--norc")
    hold.ok("wait", "large", "--for", "prompt", "--timeout", "20")
    said(hold, "large", f"exec 7<>{tmp_path}/large; head -c 2M /dev/zero >&7")
    shown = hold.ok("can-move", "large")
    assert f"not captured: {tmp_path}/large" in shown and "capture_max_bytes" in shown
    made = hold.json("checkpoint", "large")
    named = {each["path"]: each["why"] for each in made["left_out"]}
    assert made["files"] == 0 and set(named) == {str(tmp_path), f"{tmp_path}/large"}
    assert "not captured" in hold.ok("checkpoint", "large")


@pytest.mark.requirement("M2")
def test_files_are_put_back_with_the_rights_of_the_session(tmp_path: Path) -> None:
    """What its user made a directory lead to meanwhile is not root's to write."""
    skip_unless_possible()
    hold = Hold()
    try:
        hold.ok("up", "-d")
        tmp_path.chmod(0o755)
        for above in list(tmp_path.parents)[:3]:
            above.chmod(above.stat().st_mode | 0o011)
        own = tmp_path / "own"
        own.mkdir()
        os.chown(own, 65534, 65534)
        words = ("run", "-d", "--name", "user", "--user", "nobody", "--level", "movable")
        hold.ok(*words, "--capture", str(own), "--cwd", str(own), "--", "sh")
        hold.ok("wait", "user", "--for", "prompt", "--timeout", "20")
        hold.ok("keys", "user", *"echo then >file; echo made", "Enter")
        until_screen(hold, "user", r"(?m)^made$")
        hold.ok("checkpoint", "user")
        hold.ok("keys", "user", *"echo later >file; echo done", "Enter")
        until_screen(hold, "user", r"(?m)^done$")
        lost(hold)
        restored(hold, "user")
        assert (own / "file").read_text() == "then\n" and (own / "file").stat().st_uid == 65534
        put_to_sleep(hold, "user")
        secret = tmp_path / "secret"
        secret.mkdir(mode=0o700)
        (secret / "file").write_text("root's\n")
        own.rename(tmp_path / "moved")
        own.symlink_to(secret)
        hold.fails("restore_failed", "restore", "user", "--files", "restore")
        assert (secret / "file").read_text() == "root's\n"
        assert [each.name for each in secret.iterdir()] == ["file"]
    finally:
        hold.close()


def test_a_restore_tells_of_no_files_that_the_sessions_user_may_not_see(tmp_path: Path) -> None:
    """Wherever its paths lead by now. The bytes that it compares with are the host's own."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as made:
        there, laid_out = Path(made), tmp_path / "checkpoint"
        there.chmod(0o755)
        (laid_out / FILES).mkdir(parents=True, mode=0o700)
        (laid_out / FILES / "1").write_text("then")
        own, secret = there / "own", there / "secret"
        for each in (own / "inner", secret / "inner"):
            each.mkdir(parents=True)
        same, declared = there / "same", own / "inner"
        same.write_text("then")
        files = (
            CapturedFile(str(same), 0o644, 0, 0, 4, data="1"),
            CapturedFile(f"{declared}/file", 0o644, nobody, nobody, 4, data="1"),
        )
        capture = FileCapture(roots=(str(declared),), files=files)
        (laid_out / CAPTURED).write_bytes(msgpack.packb(capture.pack()))

        def told() -> tuple[FileDifference, ...]:
            home = Home(f"{made}/state", "", f"{made}/run")
            choice = RestoreFiles.RESTORE
            return asyncio.run(compare(str(laid_out), home, nobody, choice, 0.0)).decision[0]

        (declared / "file").write_text("late")
        (declared / "made").touch()
        assert {Path(each.path).name for each in told()} == {"file", "made"}
        (secret / "inner" / "file").write_text("then")
        (secret / "inner" / "hidden").touch()
        secret.chmod(0o700)
        own.rename(there / "moved")
        own.symlink_to(secret)
        (only,) = told()
        assert (Path(only.path).name, only.size) == ("file", 0)  # that it differs, and not how
