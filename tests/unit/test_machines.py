"""The machines a user has joined: one file, changed by several programs at once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from holdfast.cli.verbs.sessions import ls
from holdfast.model.errors import InvalidArgument, NoSuchMachine, StorageFailed
from holdfast.model.ids import SessionId
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine

SESSION = SessionId("0" * 26)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    return tmp_path


def machine(number: int, name: str = "box") -> Machine:
    return Machine(name, bytes([number]).hex() * 32, ("http://127.0.0.1:1",), "device")


@pytest.mark.requirement("R2")
def test_what_is_added_is_found_again_and_only_by_its_user(home: Path) -> None:
    kept = machines.add(machine(1))
    assert machines.find("box") == kept and machines.machines() == (kept,)
    assert os.stat(home / "machines.json").st_mode & 0o777 == 0o600
    machines.forget("box")
    with pytest.raises(NoSuchMachine):
        machines.find("box")


def test_a_name_is_given_once_and_a_host_has_one_name() -> None:
    assert machines.add(machine(1)).name == "box"
    assert machines.add(machine(2)).name == "box-2"
    assert machines.add(machine(1, "other")).name == "other", "joined again, under another name"
    assert {each.name for each in machines.machines()} == {"box-2", "other"}


@pytest.mark.requirement("F1")
def test_epochs_only_rise() -> None:
    machines.saw_epoch(SESSION, 5)
    machines.saw_epoch(SESSION, 3)
    assert machines.highest_epoch(SESSION) == 5


def _join(number: int) -> None:
    machines.add(machine(number, f"box{number}"))
    machines.saw_epoch(SESSION, number)


def test_programs_that_change_it_at_once_lose_nothing() -> None:
    with multiprocessing.get_context("fork").Pool(8) as pool:
        pool.map(_join, range(1, 41), chunksize=1)
    assert {each.name for each in machines.machines()} == {f"box{n}" for n in range(1, 41)}
    assert machines.highest_epoch(SESSION) == 40


def test_what_cannot_be_is_refused(home: Path) -> None:
    with pytest.raises(InvalidArgument):
        machines.add(machine(1, "a/b"))
    with pytest.raises(InvalidArgument):
        machines.add(machine(1).replace(host_key="ab"))
    (home / "machines.json").write_text("{")
    with pytest.raises(StorageFailed):
        machines.machines()


def test_a_machine_that_did_not_answer_is_not_said_to_have_no_sessions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"box": NoSuchMachine("it refused")}
    monkeypatch.setattr(ls, "_found", lambda ended, long: ([], refused))
    assert ls.run(ls.parser().parse_args([])) != 0
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("hold: box: it refused")
