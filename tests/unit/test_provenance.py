"""Who is behind a line of one session: host.gate.provenance, with a shell that is told what to
hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.access.authority import Authority
from holdfast.core.gate.originators import Origin
from holdfast.host.gate.provenance import SessionProvenance
from holdfast.journal import entries
from holdfast.model.errors import NotPermitted
from holdfast.model.gate import Part
from holdfast.model.packed import PackedState
from holdfast.model.shell_state import ShellState
from unit.test_authority_meet import ANN, BOT, SESSION, authority
from unit.test_originators import state

ME, THEM = str(ANN.id), str(BOT.id)


class Shell:
    """A shell that reports; `run` is one command line."""

    def __init__(self, path: Path, judge: Authority | None = None) -> None:
        self.held: dict[str, Any] = {"cwd": str(path.parent)}
        self.number, self.silent, self.recorded = 1, False, list[entries.Body]()
        self.kept: Callable[[], ShellState | None] = lambda: state(self.number, **self.held)
        self.path, self.judge = path, judge or authority()
        self.book = self.daemon()
        self.book.prompted(1)

    def daemon(self, complete_to: int = 0) -> SessionProvenance:
        return SessionProvenance(
            str(self.path),
            self,
            read_state=self.read_state,
            shell_pid=os.getpid,
            reports=True,
            is_silent=lambda: self.silent,
            writers=lambda: (ME, THEM),
            authority=self.judge,
            session=SESSION,
            labels=(),
            joined=lambda: None,
            complete_to=complete_to,
        )

    def read_state(self) -> PackedState | None:
        kept = self.kept()
        return PackedState.of(kept) if kept is not None else None

    def happened(self, actor: str, body: entries.Body) -> None:
        self.recorded.append(body)

    def begin(self, actor: str, text: str) -> entries.CommandBegan:
        self.book.typed(actor, running=False)
        body = entries.CommandBegan(self.number, text, "/", 0, (actor,))
        return self.book.began(body, actor, 0.0, text, blind=False)

    def run(self, actor: str, text: str, **changed: Any) -> entries.CommandBegan:
        began = self.begin(actor, text)
        self.end(**changed)
        return began

    def end(self, **changed: Any) -> None:
        self.held |= changed
        self.number += 1
        self.book.prompted(self.number)

    def line(self, text: str | None, *authors: str) -> list[tuple[str, Part, str]]:
        found = self.book.contributors_of_line(text, authors or (ME,))
        return [(each.name, each.part, each.what) for each in found]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "provenance")


MINE = ("ann", Part.TRIGGER, "")


def test_a_line_that_uses_what_another_set_has_both_behind_it(shell: Shell) -> None:
    shell.run(THEM, "alias df=evil", aliases={"df": "evil"})
    assert shell.line("df") == [MINE, ("bot", Part.STATE, "alias:df")]
    assert shell.line("echo hi") == [MINE]
    assert shell.line("df", THEM, ME) == [
        MINE,
        ("bot", Part.TYPED, ""),
        ("bot", Part.STATE, "alias:df"),
    ]


def test_what_was_made_with_anothers_state_is_of_both(shell: Shell) -> None:
    shell.run(THEM, "DIR=/tmp", private={"DIR": "#1"})
    began = shell.run(ME, "cd $DIR", cwd="/tmp")
    assert began.originators == (ME, THEM) and began.uses == ("var:DIR@1",)
    assert ("bot", Part.STATE, "cwd") in shell.line("./x")
    assert shell.recorded[-1] == entries.ShapedEntry(2, ("cwd",), 0, (ME, THEM))


def test_one_that_types_into_a_running_command_is_behind_what_it_changes(shell: Shell) -> None:
    shell.begin(ME, "read X")
    shell.book.typed(THEM, running=True)
    shell.end(private={"X": "#1"})
    assert ("bot", Part.STATE, "var:X") in shell.line("echo $X")
    behind = shell.book.contributors_of_command(1)
    assert [(each.name, each.part) for each in behind] == [
        ("ann", Part.TRIGGER),
        ("bot", Part.INPUT),
    ]


def test_one_that_wrote_while_nothing_was_reported_is_behind_what_changed_by_then(
    shell: Shell,
) -> None:
    shell.book.typed(THEM, running=False)  # its hooks are gone: no command begins
    shell.run(ME, "true", private={"X": "#1"})
    assert ("bot", Part.STATE, "var:X") in shell.line("echo $X")
    shell.run(ME, "true", private={"X": "#2"})
    assert ("bot", Part.STATE, "var:X") not in shell.line("echo $X")


def test_what_several_commands_changed_unseen_may_be_of_any_of_them(shell: Shell) -> None:
    seen, shell.kept = shell.kept, lambda: None
    shell.run(THEM, "X=1", private={"X": "#1"})
    assert ("bot", Part.SHAPED, "") in shell.line("echo hi")  # whatever they changed
    shell.kept = seen
    shell.run(ME, "true")
    assert ("bot", Part.STATE, "var:X") in shell.line("echo $X")
    assert shell.line("echo hi") == [MINE]


def test_a_shell_that_does_not_report_is_shaped_by_its_last_writers(shell: Shell) -> None:
    shell.begin(THEM, "PROMPT_COMMAND=()")
    shell.silent = True
    assert shell.book.shaped_by() == (THEM,)
    assert shell.line("echo hi") == [MINE, ("bot", Part.SHAPED, "")]
    shell.silent = False
    assert shell.book.shaped_by() == ()


def test_a_line_that_the_shell_does_not_tell_may_use_everything(shell: Shell) -> None:
    shell.run(THEM, "alias df=evil", aliases={"df": "evil"})
    shell.run(ME, "true")
    assert ("bot", Part.STATE, "alias:df") in shell.line(None)


def test_history_is_of_all_whose_commands_are_in_it(shell: Shell) -> None:
    shell.run(THEM, "echo x")
    assert ("bot", Part.TYPED, "history") in shell.line("!echo")
    assert shell.line("echo x") == [MINE]


def test_a_script_is_of_whoever_wrote_it_by_inode(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("echo hi")
    found = script.stat()
    shell.book.files.wrote(found.st_dev, found.st_ino, str(script), Origin(3, (THEM,)))
    theirs = ("bot", Part.FILE, f"file:{script}")
    renamed = script.rename(tmp_path / "renamed.sh")
    for line in (f"bash {renamed}", str(renamed), f"source {renamed}", "sh renamed.sh"):
        assert theirs in shell.line(line), line
    assert theirs not in shell.line("bash other.sh")
    shell.book.adopt_file(found.st_dev, found.st_ino, str(renamed), ME)
    assert theirs not in shell.line(f"bash {renamed}")


def test_a_path_counts_only_for_programs_that_it_finds_elsewhere(
    shell: Shell, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "du").symlink_to("/bin/true")
    shell.run(THEM, "PATH=evil:$PATH", exported={"PATH": f"{evil}:/usr/bin:/bin"})
    assert ("bot", Part.STATE, f"path:{evil}") in shell.line("du -s /")
    assert ("bot", Part.STATE, f"path:{evil}") not in shell.line("ls /")
    assert ("bot", Part.STATE, "var:PATH") not in shell.line("export PATH=/usr/bin")


def test_all_behind_it_must_have_the_right_now(tmp_path: Path) -> None:
    judge = authority()
    shell = Shell(tmp_path / "provenance", judge)
    shell.run(THEM, "alias df=evil", aliases={"df": "evil"})
    theirs = shell.book.contributors_of_line("df", (ME,))
    shell.book.check(theirs)
    narrowed = Shell(tmp_path / "other", authority(bot=("observe",)))
    with pytest.raises(NotPermitted, match=r"bot set alias:df, which it uses \(command 1\)"):
        narrowed.book.check(theirs)


def test_another_daemon_knows_it_all_and_nothing_without_the_file(shell: Shell) -> None:
    shell.run(THEM, "alias df=evil", aliases={"df": "evil"})
    kept = shell.book.complete_to
    ended = entries.Entry(1, 0.0, 1, "", 1, entries.CommandEnded(1, 0, "/", 0), b"")
    shell.book = shell.daemon(kept)
    shell.book.recover([ended], list)
    assert shell.line("df") == [MINE, ("bot", Part.STATE, "alias:df")]
    assert shell.line("echo hi") == [MINE]
    shell.path.unlink()
    shell.book = shell.daemon(kept)
    shell.book.recover([ended], list)
    assert set(shell.line("echo hi")) == {
        MINE,
        ("ann", Part.SHAPED, ""),
        ("bot", Part.SHAPED, ""),
    }
