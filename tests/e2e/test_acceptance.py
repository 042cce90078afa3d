"""The acceptance run of the whole: one build, started at a command line, goes on through the end of
that command line, of the daemon and of the relay, while a browser, a phone and an agent come, see,
act and go; a person takes it from the agent on the phone, mends what went wrong, and gives it back.

`make acceptance` keeps its report, with pictures: HOLDFAST_ACCEPTANCE says where."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from e2e.agent_thread import AgentThread
from e2e.browsing import DESK, PHONE, Visitor
from e2e.chronicle import Chronicle
from e2e.conftest import Visit
from faults.hosting import process_key
from process.acting import add_actor
from process.commanding import Hold
from process.reaching import Faraway, pid_of_daemon
from process.terminals import Terminal

_BUILD = """\
echo $$ >> began
until_there() { until [ -e "$1" ]; do sleep 0.1; done; }
compile() { for part in 1 2 3 4 5 6 7 8; do
    echo "[$1 $part/8] compiling"
    if [ "$1 $part" = "core 5" ]; then until_there fetched; else sleep 0.4; fi
done; }
echo "build $$ begins"
compile core
printf 'use the cached toolchain? [y/n] '; read -r cached
compile tools
until [ "$target" = staging ]; do
    [ -z "$target" ] || echo "there is no target $target"
    printf 'target: '; read -r target
done
compile "$target"
until_there signed-off
echo "$target built by $$" > artifact
echo "build $$ done"
"""


class Build:
    """The one process that all of it is about."""

    def __init__(self, host: Hold, directory: Path) -> None:
        self._host, self._directory = host, directory
        self.pid = int((directory / "began").read_text())
        graph = host.json("graph", "build")
        (itself,) = [each for each in graph["processes"] if each["pid_inside"] == self.pid]
        self.shell = graph["processes"][0]["pid"]
        self._itself = process_key(itself["pid"])
        assert self._itself is not None

    def check(self) -> None:
        """It is the same one, begun once."""
        graph = self._host.json("graph", "build")
        assert self._itself is not None
        assert self._itself.pid in [each["pid"] for each in graph["processes"]]
        assert process_key(self._itself.pid) == self._itself, "another process has its number"
        assert graph["processes"][0]["pid"] == self.shell, "the shell is another one"
        assert (self._directory / "began").read_text().split() == [str(self.pid)]

    def is_in_the_middle(self) -> None:
        """At work, and neither waiting for anybody nor done; and the same one."""
        self.check()
        assert self._host.json("show", "build")["state"] == "working"
        shown = self._host.ok("screen", "build")
        assert "[core 5/8]" in shown and "toolchain" not in shown, shown


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Chronicle]:
    """What happened: told where it was asked for, also of a run that failed."""
    chronicle = Chronicle(Path(os.environ.get("HOLDFAST_ACCEPTANCE") or tmp_path / "report"))
    yield chronicle


def seen(chronicle: Chronicle, visitor: Visitor, what: str) -> None:
    """A picture of what somebody sees, beside the words."""
    name = f"{len(chronicle.happened):02}-{visitor.name}.png"
    visitor.page.screenshot(path=str(chronicle.directory / name))
    chronicle.says(visitor.name, what, name)


def hold_down(visitor: Visitor, testid: str) -> None:
    """Press and hold a button that wants to be meant."""
    visitor.at(testid).hover()
    visitor.page.mouse.down()
    visitor.until("the turn is not ours", lambda: visitor.turn() == "mine")
    visitor.page.mouse.up()


@pytest.mark.requirement("S1", "S3", "S4", "S5", "A1", "A3", "A4", "A5", "A6", "R6")
@pytest.mark.timeout(300)
def test_one_execution_is_reached_in_every_modality_and_nobody_owns_it(
    box: Faraway, visit: Visit, report: Chronicle, tmp_path: Path
) -> None:
    host = box.host
    (tmp_path / "build.sh").write_text(_BUILD)
    add_actor(host, "otto", "execute", "--all")

    # A person at a command line begins it, and the command line is killed.
    report.comes("build", "one process")
    person = Terminal(host, "run", "--name", "build", "--", "bash", "--norc")
    report.comes("CLI", "starts the build")
    person.until_shown("$")
    person.type(f"cd {tmp_path} && bash build.sh\r".encode())
    person.until_shown("[core 5/8]")
    build = Build(host, tmp_path)
    os.kill(person.pid, signal.SIGKILL)
    report.goes("CLI", "kill -9")
    person.close()

    # A browser looks in, in the middle of it, and the daemon is killed under both.
    build.is_in_the_middle()
    desk = visit("desktop", **DESK)
    report.comes("desktop", "opens the link")
    desk.open("build")
    desk.until_shown("[core 5/8]")
    seen(report, desk, "sees it compile")
    build.is_in_the_middle()
    os.kill(pid_of_daemon(host), signal.SIGKILL)
    report.says("daemon", "kill -9")
    build.is_in_the_middle()
    (tmp_path / "fetched").touch()
    desk.until_shown("toolchain? [y/n]")
    seen(report, desk, "is asked by it")
    build.check()
    desk.close()
    report.goes("desktop", "leaves")

    # A phone takes its place, and the relay goes away under it.
    phone = visit("phone", **PHONE)
    report.comes("phone", "opens its own link")
    phone.open("build")
    phone.until_shown("toolchain? [y/n]")
    seen(report, phone, "sees the question")
    with phone.cut_off():
        os.kill(box.relay.process.pid, signal.SIGKILL)
        report.says("relay", "kill -9")
        phone.until("it says that it is cut off", lambda: _link(phone) != "online")
        box.relay_again()
        phone.until("it is back", lambda: _link(phone) == "online")
    report.says("relay", "is back")
    build.check()

    with AgentThread(host, "otto") as otto:
        report.comes("agent", "observes")
        shown = otto("observe", session="build")
        assert shown["state"] == "input" and "toolchain? [y/n]" in shown["screen"]
        assert otto("request_turn", session="build", message="to answer", seconds=40)["yours"]
        otto("answer", session="build", text="y")
        report.says("agent", "answers y")
        asked = otto("wait", session="build", text="^target:", seconds=50)
        assert asked["happened"]
        otto("answer", session="build", text="produciton")
        phone.until_shown("there is no target produciton")
        report.says("agent", "answers wrongly")

        # The person on the phone takes it, mends it, and gives it back when asked.
        phone.open_ask_sheet()
        hold_down(phone, "turn-seize")
        seen(report, phone, "seizes the turn")
        refused = otto("answer", session="build", text="production")["refused"]
        assert refused["code"] == "turn_held", refused
        report.says("agent", "is refused")
        phone.enter("staging")
        phone.until_shown("[staging 1/8]")
        report.says("phone", "corrects it")
        build.check()
        asking = otto.begin("request_turn", session="build", message="may I go on?", seconds=50)
        grant = phone.page.locator('[data-testid="turn-grant"][data-actor="otto"]').first
        grant.wait_for()
        seen(report, phone, "is asked for the turn")
        grant.click()
        assert asking.result(60)["yours"]
        report.says("phone", "hands it back")
        told = otto("catch_up", session="build")
        assert "otto" in [move["to"] for move in told["turn_moves"]]
        build.check()
        (tmp_path / "signed-off").touch()
        assert otto("wait", session="build", state="prompt", seconds=50)["happened"]
        done = otto("submit", session="build", command="cat artifact", intent="check the result")
        assert done["status"] == 0, done
        assert done["output"].strip() == f"staging built by {build.pid}"
        report.goes("agent", "checks the result")
    phone.until_shown(f"staging built by {build.pid}")
    seen(report, phone, "sees the end")
    report.over()

    findings = _prove(host, build)
    report.write(findings)


def _link(visitor: Visitor) -> str:
    return visitor.at("session").get_attribute("data-link") or ""


def _prove(host: Hold, build: Build) -> list[str]:
    """Every act has its actor, in one unbroken chain."""
    log: list[dict[str, Any]] = [
        json.loads(line) for line in host.ok("log", "build", "--json").splitlines()
    ]
    typed = [
        (entry["actor_name"], bytes.fromhex(entry["body"]["data"]).decode())
        for entry in log
        if entry["kind"] == "input"
    ]
    by: dict[str, str] = {}
    for actor, text in typed:
        pasted = text.replace("\x1b[200~", "").replace("\x1b[201~", "")
        pasted = pasted.replace("\x1b[5097~", "")  # the key that keeps history out of it
        by[actor] = by.get(actor, "") + pasted
    me = host.json("actor", "show")["name"]
    assert "bash build.sh\r" in by[me]
    assert by["otto"] == "y\rproduciton\rcat artifact\r", by
    assert by["phone"] == "staging\r", by
    assert set(by) == {me, "otto", "phone"}, "somebody typed without a name"
    judged = host.json("verify", "build")
    assert (judged["verdict"], judged["status"]) == ("intact", "continuous"), judged
    return [
        f"the build was process {build.pid} from its beginning to its end; it began once",
        f"its shell was process {build.shell} throughout",
        f"{me}, otto and phone typed; the journal has every key under its actor",
        f"{judged['records']} records in one chain, {judged['verdict']} and {judged['status']}",
    ]
